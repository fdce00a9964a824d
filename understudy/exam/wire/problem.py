"""What the rules of the wire are about: a client and its options, a request that breaks a rule, and its times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.exam.level import Level
from understudy.results import JournalEntry

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Member epochs of the consumer protocol that are none."""
Options = Mapping[str, Any]
Place = tuple[str, int]
"""A topic id and a partition."""


@dataclass(frozen=True)
class Client:
    """A client of a scenario: the command that created it, and its options."""

    name: str
    kind: str
    options: Options
    commands: set[str] = field(default_factory=set)
    """Commands after which requests are expected that the client does not send by itself."""


@dataclass(frozen=True)
class Problem:
    """A request that breaks a rule."""

    entry: JournalEntry
    text: str
    level: Level = Level.MUST
    habit: bool = False
    """Whether the client does so in each run: it is reported in its area's scenario without a fault only."""

    def __str__(self) -> str:
        return f"request {self.entry.id}, {self.entry.api} v{self.entry.version} of {self.entry.client_id}: {self.text}"


def answered(entry: JournalEntry) -> bool:
    """Return whether the client got an answer."""
    return entry.outcome == "answered"


def succeeded(entry: JournalEntry) -> bool:
    """Return whether the client got an answer without an error."""
    return answered(entry) and not entry.error


def answered_us(entry: JournalEntry) -> int:
    """Return when the answer was sent."""
    return entry.ts_us + round((entry.duration_ms or 0) * 1000)
