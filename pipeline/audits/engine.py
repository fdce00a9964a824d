"""Interface of the engines that run the queries: Spark, or DuckDB in this process."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa


class EngineError(RuntimeError):
    """A query failed; the message is for the user."""


class Engine(Protocol):
    """Tables by name, and queries over them."""

    at_once: int
    """Number of queries that run in parallel."""

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query of this package, in Spark's SQL. Raises EngineError."""

    def plain(self, sql: str) -> pa.Table:
        """Return the rows of a query that every engine understands without translation. Raises EngineError."""

    def find(self, sql: str, order: Sequence[str], most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows, sorted by those of the `order` columns that the query has, and the number of rows."""
