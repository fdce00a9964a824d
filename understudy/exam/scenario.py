"""A scenario: its identity, its rule, what it needs, and the function that plays and judges it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.exam.exercise import Exercise


class Level(Enum):
    """How binding the rule is (RFC 2119)."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


Play = Callable[["Exercise"], None]


@dataclass(frozen=True)
class Scenario:
    """One scripted situation.

    Attributes:
        id: area and name, such as `idempotence/lost-answer`.
        title: the situation, as a noun.
        rule: the KIP or Kafka class that decides, and the section of docs/specification.
        needs: capabilities that a library has to have; without them the verdict is *not supported*.
        correct: what a correct client does.
        loss: what the user of a library that fails would have lost.
    """

    id: str
    title: str
    level: Level
    rule: str
    needs: frozenset[str]
    correct: str
    loss: str
    play: Play

    @property
    def area(self) -> str:
        """The part of the id before the slash."""
        return self.id.partition("/")[0]


SCENARIOS: dict[str, Scenario] = {}
"""Id -> scenario, in the order of their definition; filled by importing `understudy.exam.scenarios`."""


def scenario(
    name: str,
    title: str,
    *,
    rule: str,
    needs: str,
    correct: str,
    loss: str,
    level: Level = Level.MUST,
) -> Callable[[Play], Play]:
    """Register a function as a scenario. `needs` are capabilities, separated by spaces."""

    def register(play: Play) -> Play:
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        SCENARIOS[name] = Scenario(name, title, level, rule, frozenset(needs.split()), correct, loss, play)
        return play

    return register
