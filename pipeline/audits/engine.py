"""What asks the queries: Spark, or DuckDB in this process."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa


class EngineError(RuntimeError):
    """A query failed; the message is for the user."""


class Engine(Protocol):
    """Tables by name, and queries over them."""

    at_once: int
    """So many queries are asked beside each other."""

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query of this package, in Spark's SQL. Raises EngineError."""

    def plain(self, sql: str) -> pa.Table:
        """The rows of a query that every engine understands as it is. Raises EngineError."""

    def find(self, sql: str, order: Sequence[str], most: int) -> tuple[list[dict[str, Any]], int]:
        """The first rows of a query in the order of those of these columns that it has; how many there are in all."""
