"""What the reports need: the options, the queries in `views/`, and their arguments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pipeline.rendering import plots, queries
from pipeline.rendering.queries import Question
from pipeline.reports.registry import PACKAGE
from pipeline.transfer.selection import Choice

JOURNAL_VIEWS: Final = (
    "calls", "topic_names", "era", "deletions", "produces", "fetches", "commits", "group_clients", "current_produces",
)  # fmt: skip
"""Views of a journal that the reports use."""
OF_RECORDS: Final = ("keys", "hot-keys", "skew")
"""Reports that use the view `keys`."""
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Options of the command line. Times in milliseconds since 1970; None: the topic's own configuration."""

    topics: tuple[str, ...] = ()
    now_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None
    top: int = 20
    """Hot keys of a topic: a screen."""
    values: int = 100_000
    """Approximate number of records to sample: ours, seconds of work, and rare fields are met."""


class TablesOfReports(Protocol):
    """The reports' tables on one of the engines."""

    topics: list[str]

    def prepare(self, wanted: Iterable[Question]) -> None:
        """Make the tables of these reports."""

    def ask(self, sql: str, most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """Return the first rows of a query, the number of rows, and the columns."""

    def forget(self) -> None:
        """Release everything."""


def views() -> Mapping[str, str]:
    """Return the queries of the views by name."""
    return queries.read_all(PACKAGE, "views")


def wanted_of(selection: Selection, topics: Iterable[str]) -> list[str]:
    """Return the selected topics."""
    choice = Choice(topics=selection.topics)
    return sorted({topic for topic in topics if choice.wants(topic)})


def wanted_topics(selection: Selection, path: str, topics: Iterable[str]) -> list[str]:
    """Return the selected topics; raises FileNotFoundError if there are none."""
    there = set(topics)
    names_there = wanted_of(selection, there)
    if not names_there:
        # What fits on a line or two.
        names = ", ".join(sorted(there)[:10])
        raise FileNotFoundError(f"{path} has no topic that is wanted; it has {names}: use --topic NAME")
    return names_there


def arguments_of(selection: Selection) -> dict[str, Any]:
    """Return the arguments of the queries (`:name`) that the options define."""
    names = ("now_ms", "retention_ms", "retention_bytes", "top")
    return {name: getattr(selection, name) for name in names} | {"names_topics": bool(selection.topics)}


def named(arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the arguments that a query uses."""
    return {name: value for name, value in arguments.items() if f":{name}" in text}


def sample_ppm(selection: Selection, records: int) -> int:
    """Return how many of a million records to sample."""
    return min(_MILLION, max(1, round(selection.values / max(records, 1) * _MILLION)))


def window_ms(low_us: int | None, high_us: int | None) -> int:
    """Return a round window length, such that sixty windows cover a journal."""
    return plots.window_ms(((high_us or 0) - (low_us or 0)) // 1000)
