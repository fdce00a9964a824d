"""What the reports ask of either engine: the options, the queries in `views/`, and their arguments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pipeline.rendering import plots, queries
from pipeline.rendering.queries import Question
from pipeline.reports.registry import PACKAGE
from pipeline.transfer.selection import Choice

LOG_VIEWS: Final = ("produced", "transactions", "committed")
JOURNAL_VIEWS: Final = ("calls", "topic_names", "produces", "fetches", "commits", "group_clients")
"""Of the audits' views, those that reports ask."""
OF_RECORDS: Final = ("keys", "hot-keys")
"""Reports that ask the view `keys`."""
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of the command line. Times in milliseconds since 1970; None: as the topics have it."""

    topics: tuple[str, ...] = ()
    now_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None
    top: int = 20
    values: int = 100_000
    """So many records are looked into, about."""


class TablesOfReports(Protocol):
    """The tables on one of the engines."""

    topics: list[str]

    def prepare(self, wanted: Iterable[Question]) -> None:
        """Make what these reports ask."""

    def ask(self, sql: str, most: int) -> tuple[list[dict[str, Any]], int, list[str]]:
        """The first rows of a query, how many there are, and the columns."""

    def forget(self) -> None:
        """Drop what was kept."""


def views() -> Mapping[str, str]:
    """The queries of the tables by name."""
    return queries.read_all(PACKAGE, "views")


def wanted_of(asked: Asked, topics: Iterable[str]) -> list[str]:
    """Those of the topics that are wanted."""
    choice = Choice(topics=asked.topics)
    return sorted({topic for topic in topics if choice.wants(topic)})


def wanted_topics(asked: Asked, path: str, topics: Iterable[str]) -> list[str]:
    """The same; raises FileNotFoundError: there is none."""
    there = set(topics)
    found = wanted_of(asked, there)
    if not found:
        names = ", ".join(sorted(there)[:10])
        raise FileNotFoundError(f"{path} has no topic that is wanted; it has {names}: use --topic NAME")
    return found


def arguments_of(asked: Asked) -> dict[str, Any]:
    """What the queries name with a colon, as far as the options have it."""
    names = ("now_ms", "retention_ms", "retention_bytes", "top")
    return {name: getattr(asked, name) for name in names}


def named(arguments: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Those of the arguments that a query names."""
    return {name: value for name, value in arguments.items() if f":{name}" in text}


def sample_ppm(asked: Asked, records: int) -> int:
    """How many of a million records are looked into."""
    return min(_MILLION, max(1, round(asked.values / max(records, 1) * _MILLION)))


def window_ms(low_us: int | None, high_us: int | None) -> int:
    """A round length of which sixty cover a journal."""
    return plots.window_ms(((high_us or 0) - (low_us or 0)) // 1000)
