"""Verbs that show and control the cluster's clock."""

from broker.control.request import Asked
from broker.control.verbs import answers
from control_api.answers.cluster import ClockState
from control_api.cluster import Advance


def _state(asked: Asked) -> ClockState:
    clock = asked.cluster.clock
    return ClockState(now_ms=clock.now_ms(), ahead_ms=clock.pushed_ms, frozen=clock.frozen)


@answers("clock show")
async def read(asked: Asked) -> ClockState:
    """Show the cluster's time, how far it is ahead of the machine's, and whether it is frozen."""
    return _state(asked)


@answers("clock advance")
async def advance(asked: Asked, body: Advance) -> ClockState:
    """Advance the clock; return after all timers that became due have run.

    A reset, a restore, a freeze, or a caller that closes the connection ends it early.
    """
    await asked.cluster.clock.push(body["ms"], asked.given_up)
    return _state(asked)


@answers("clock freeze")
async def freeze(asked: Asked) -> ClockState:
    """Freeze the clock: from now on only `clock advance` moves it."""
    asked.cluster.clock.freeze()
    return _state(asked)


@answers("clock thaw")
async def thaw(asked: Asked) -> ClockState:
    """Let the clock run again, from its current time."""
    asked.cluster.clock.thaw()
    return _state(asked)
