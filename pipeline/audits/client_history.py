"""Makes the tables of clients' own histories (`docs/audit.md`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from pipeline.client_history import TABLES

VIEWS: Final = ("sent_records", "polled_records", "poll_runs", "known_records")
"""Views, each of which may use the ones before it."""


class Beside(Protocol):
    """An engine's tables, to which histories are added."""

    def add(self, schemas: Mapping[str, pa.Schema], rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        """Make small tables by name."""

    def add_views(self, names: Sequence[str]) -> None:
        """Make views by name."""


def register(tables: Beside, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Make the tables and views of histories from the rows of `pipeline.client_history.read`."""
    tables.add(TABLES, rows)
    tables.add_views(VIEWS)
