"""Verbs that show and control the cluster's clock."""

from collections import Counter
from collections.abc import Mapping

from broker.control.request import ControlRequest
from broker.control.verbs import answers
from control_api.answers.cluster import ClockState
from control_api.cluster import Advance


def _state(request: ControlRequest, expired: Mapping[str, int] | None = None) -> ClockState:
    clock = request.cluster.clock
    return ClockState(now_ms=clock.now_ms(), ahead_ms=clock.pushed_ms, frozen=clock.frozen, expired=dict(expired or {}))


@answers("clock show")
async def read(request: ControlRequest) -> ClockState:
    """Show the cluster's time, how far it is ahead of the machine's, and whether it is frozen."""
    return _state(request)


@answers("clock advance")
async def advance(request: ControlRequest, body: Advance) -> ClockState:
    """Advance the clock; return after all timers that became due have run.

    A reset, a restore, a freeze, or a caller that closes the connection ends it early.
    """
    before = _expired(request)
    await request.cluster.clock.push(body["ms"], request.given_up)
    return _state(request, {kind: count for kind, count in (_expired(request) - before).items() if count})


def _expired(request: ControlRequest) -> Counter[str]:
    """Count what time has ended since the start; records by the offsets below the log starts."""
    cluster = request.cluster
    counts = cluster.group_timelines.expired + cluster.transaction_timelines.expired
    counts["records"] = cluster.maintenance.expired_records
    counts["producer_ids"] = cluster.maintenance.expired_producer_ids
    return counts


@answers("clock freeze")
async def freeze(request: ControlRequest) -> ClockState:
    """Freeze the clock: from now on only `clock advance` moves it."""
    request.cluster.clock.freeze()
    return _state(request)


@answers("clock thaw")
async def thaw(request: ControlRequest) -> ClockState:
    """Let the clock run again, from its current time."""
    request.cluster.clock.thaw()
    return _state(request)
