"""Shrinks a schedule to few steps that still lead to a finding, although timing differs from play to play."""

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Final

from understudy.exam.random.schedule import Schedule, Step

DOUBT: Final = 0.1
"""Probability of leaving a step in although it is not needed, because the finding did not occur in any play.

Ours: less takes more plays, and a step left in costs only reading.
"""
MOST_PLAYS: Final = 8  # arbitrary: each play takes seconds
LIMIT_S: Final = 180.0  # three minutes, as long as a developer waits


def plays_of(rate: float) -> int:
    """Return how often to play a schedule to see a finding that occurs in this share of all plays."""
    if rate >= 1:
        return 1
    return min(math.ceil(math.log(DOUBT) / math.log(1 - rate)), MOST_PLAYS)


def shrunk(
    schedule: Schedule,
    rate: float,
    finds: Callable[[Schedule], bool],
    *,
    clock_s: Callable[[], float],
    limit_s: float = LIMIT_S,
) -> Schedule:
    """Return a schedule with fewer steps that leads to the same finding (delta debugging).

    `rate` is the share of plays in which the whole schedule led to it, `finds` plays a schedule once. No play begins
    after `limit_s`.
    """
    minimal = importlib.import_module("comparison.histories.shrink").shrunk
    plays, ends_s, tried = plays_of(rate), clock_s() + limit_s, set[frozenset[int]]()

    def shows(steps: Sequence[Step]) -> bool:
        numbers = frozenset(each.number for each in steps)
        if numbers in tried:
            return False
        part = schedule.only(numbers)
        for _ in range(plays):
            if clock_s() > ends_s:
                return False
            if finds(part):
                return True
        tried.add(numbers)
        return False

    return schedule.only({each.number for each in minimal(schedule.steps, shows)})
