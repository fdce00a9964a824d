"""Scenarios: their id, rule and requirements, and the function that plays and judges them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from understudy.exam.exercise import Exercise
from understudy.exam.level import Level

Play = Callable[[Exercise], None]


@dataclass(frozen=True)
class Scenario:
    """One scripted situation.

    Attributes:
        id: area and name, such as `idempotence/lost-answer`.
        title: the situation, as a noun.
        rule: the KIP or Kafka class that decides, and the section of docs/specification.
        needs: capabilities that a library must have; otherwise the verdict is *not supported*.
        steers: what it needs of the cluster besides faults, of STEERING; otherwise the verdict is *not exercised*.
        correct: what a correct client does.
        loss: what the user of a failing library would have lost.
        slow: whether some library waits for a minute or more in it. If several scenarios are played in parallel, slow
            ones start first.
    """

    id: str
    title: str
    level: Level
    rule: str
    needs: frozenset[str]
    steers: frozenset[str]
    correct: str
    loss: str
    play: Play
    slow: bool = False

    @property
    def area(self) -> str:
        """Return the part of the id before the slash."""
        return self.id.partition("/")[0]


STEERING: Final = frozenset(
    {"brokers", "clock", "coordinators", "leaders", "listeners", "members", "topics", "versions"}
)
"""What a scenario may need of a cluster besides faults: stopping brokers, advancing the clock, moving coordinators and
leaders, removing members from their group, settings of topics, listeners with TLS and SASL, and APIs of an older
release.
"""

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
    steers: str = "",
    level: Level = Level.MUST,
    slow: bool = False,
) -> Callable[[Play], Play]:
    """Register a function as a scenario. `needs` and `steers` are separated by spaces."""

    def register(play: Play) -> Play:
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        conditions = frozenset(needs.split()), frozenset(steers.split())
        assert conditions[1] <= STEERING, f"{name} steers what no cluster has"
        SCENARIOS[name] = Scenario(name, title, level, rule, *conditions, correct, loss, play, slow)
        return play

    return register
