"""Which engine a command asks: this process, with DuckDB for audits, for what is small; Spark for the rest."""

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
"""Above this size Spark starts. DuckDB takes some ten times of a journal's size in memory, of a log's a tenth."""
_MB: Final = 1 << 20
_DATA: Final = (".log", ".jsonl", ".open", ".gz", ".parquet")


def is_small(arguments: Mapping[str, Any], paths: Sequence[str], needs: Sequence[str] = ("duckdb",)) -> bool:
    """Whether the packages are there, and the files below the paths are within the limit of the command line."""
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
    """A Spark session for an export or a load of these files; None if they are small and no SQL is needed."""
    if not needs_sql and is_small(arguments, [path], ()):
        return None
    register = arguments["enter_spark"]()
    from pipeline.session import session  # noqa: PLC0415 - it starts Spark's gateway

    progress.show("starting Spark ...")
    return session(register, arguments["master"])


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise Spark's errors as EngineError, without importing Spark for that."""
    try:
        yield
    except Exception as error:
        errors = sys.modules.get("pyspark.errors")
        if errors is None or not isinstance(error, errors.PySparkException):
            raise
        raise EngineError(last_line(error)) from error
