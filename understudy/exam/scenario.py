"""A scenario: its identity, its rule, what it needs, and the function that plays and judges it."""

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
        needs: capabilities that a library has to have; without them the verdict is *not supported*.
        steers: what it asks of the cluster beside faults, of STEERING; where that is missing, it is *not exercised*.
        correct: what a correct client does.
        loss: what the user of a library that fails would have lost.
        slow: whether some library waits for a minute or more in it. Where several scenarios are played at a time, the
            slow ones begin first, so that the others are played beside them.
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
        """The part of the id before the slash."""
        return self.id.partition("/")[0]


STEERING: Final = frozenset({"brokers", "clock", "coordinators", "leaders", "listeners", "members", "versions"})
"""What a scenario may ask of a cluster beside faults: brokers that stop, time that passes, coordinators and leaders
that move, members that are removed from their group, listeners with TLS and SASL, and APIs of an older release."""

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
        asked = frozenset(needs.split()), frozenset(steers.split())
        assert asked[1] <= STEERING, f"{name} steers what no cluster has"
        SCENARIOS[name] = Scenario(name, title, level, rule, *asked, correct, loss, play, slow)
        return play

    return register
