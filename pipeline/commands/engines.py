"""Chooses the engine of a command: this process (with DuckDB for audits) for small data, else Spark."""

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pipeline.audits.engine import EngineError
from pipeline.commands.progress import Progress
from pipeline.locations import files_below, is_file, locate, size_of
from pipeline.rendering.text import last_line

DEFAULT_MB: Final = 256
"""Data above this size use Spark. DuckDB needs about ten times a journal's size in memory, and a tenth of a log's."""
_MB: Final = 1 << 20
_DATA: Final = (".log", ".jsonl", ".open", ".gz", ".parquet")


def is_small(arguments: Mapping[str, Any], paths: Sequence[str], needs: Sequence[str] = ("duckdb",)) -> bool:
    """Return whether the packages are installed, and the files below the paths are within the command line's limit."""
    if not arguments["master"].startswith("local") or not all(map(importlib.util.find_spec, needs)):
        return False
    limit = int(arguments["spark_above"]) * _MB
    return sum(_size(path) for path in paths) <= limit if limit else False


def _size(path: str) -> int:
    location = locate(path)
    if is_file(location):
        return size_of(location)
    return sum(each.size for each in files_below(location) if each.location.path.endswith(_DATA))


def session_for(arguments: Mapping[str, Any], path: str, progress: Progress, *, needs_sql: bool) -> Any:
    """Return a Spark session to export or load these files; None if they are small and no SQL is needed."""
    if not needs_sql and is_small(arguments, [path], ()):
        return None
    register = arguments["enter_spark"]()
    from pipeline.session import session  # noqa: PLC0415 - it starts Spark's gateway

    progress.show("starting Spark ...")
    return session(register, arguments["master"])


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise Spark's errors as EngineError, without importing Spark."""
    try:
        yield
    except Exception as error:
        errors = sys.modules.get("pyspark.errors")
        if errors is None or not isinstance(error, errors.PySparkException):
            raise
        raise EngineError(last_line(error)) from error
