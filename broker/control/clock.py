"""Verbs of time."""

from broker.control.request import Asked
from broker.control.verbs import answers
from understudy.control_api.answers.cluster import ClockState
from understudy.control_api.cluster import Advance


def _state(asked: Asked) -> ClockState:
    clock = asked.cluster.clock
    return ClockState(now_ms=clock.now_ms(), ahead_ms=clock.pushed_ms, frozen=clock.frozen)


@answers("clock show")
async def read(asked: Asked) -> ClockState:
    """The cluster's time, how far it is ahead of the machine's, and whether it is frozen."""
    return _state(asked)


@answers("clock advance")
async def advance(asked: Asked, body: Advance) -> ClockState:
    """Move time forward; returns after everything that became due has run.

    A reset, a restore or a freeze ends it early, and so does a caller that closes the connection.
    """
    await asked.cluster.clock.push(body["ms"], asked.given_up)
    return _state(asked)


@answers("clock freeze")
async def freeze(asked: Asked) -> ClockState:
    """Stop the clock: from now on only advancing moves it."""
    asked.cluster.clock.freeze()
    return _state(asked)


@answers("clock thaw")
async def thaw(asked: Asked) -> ClockState:
    """Let the clock run again, from its current time."""
    asked.cluster.clock.thaw()
    return _state(asked)
