"""Interface of the engine that runs the queries (`pipeline.duck.engine`)."""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from protocol.java import absolute_hash


class EngineError(RuntimeError):
    """A query failed; the message is for the user."""


def hash_of_name(name: str | None) -> int | None:
    """Return the hash by which a coordinator's topic is partitioned, a function of the queries."""
    return None if name is None else absolute_hash(name)


class Engine(Protocol):
    """Tables by name, and queries over them (`pipeline.duck.dialect`)."""

    def rows(self, sql: str) -> pa.Table:
        """The rows of a query of this package. Raises EngineError."""

    def plain(self, sql: str) -> pa.Table:
        """Return the rows of a query, which DuckDB runs as it is. Raises EngineError."""

    def find(self, sql: str, order: Sequence[str], most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows, sorted by those of the `order` columns that the query has, and the number of rows."""
