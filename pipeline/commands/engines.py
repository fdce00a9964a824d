"""Which engine a command asks: DuckDB in this process for what is small, Spark for the rest."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pipeline.locations import files_below, is_file, locate

DEFAULT_MB: Final = 256
"""Above this size Spark starts. DuckDB takes some ten times of a journal's size in memory, of a log's a tenth."""
_MB: Final = 1 << 20


def is_small(arguments: Mapping[str, Any], paths: Sequence[str]) -> bool:
    """Whether DuckDB is there, and the files below the paths are within the limit of the command line."""
    if not arguments["master"].startswith("local") or importlib.util.find_spec("duckdb") is None:
        return False
    limit = int(arguments["spark_above"]) * _MB
    return sum(_size(path) for path in paths) <= limit if limit else False


def _size(path: str) -> int:
    location = locate(path)
    if is_file(location):
        return 0
    return sum(each.size for each in files_below(location) if each.location.path.endswith((".log", ".jsonl", ".gz")))
