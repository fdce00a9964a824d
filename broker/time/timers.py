"""The timers of the cluster's clock, some of them rounds of periodic work, and what they woke that has yet to run."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final

_CANCELLED_AT_LEAST: Final = 64
"""Below this, cancelled timers are not worth a new heap; above it, half of the heap has to be cancelled."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The rhythm of periodic work, so that a push of the clock can skip rounds that would find nothing to do.

    So a push of a year costs as much as what happens in it. A round sets the timer of the next one, and calls the
    clock's ``note_work`` if it did something.
    """

    interval_ms: int
    quiet_until_ms: Callable[[], int | None]
    """Returns when, after an idle round, the passing of time alone makes the next round find something; None: never."""


class Timer:
    """A call that is due at ``at_ms``, unless :meth:`cancel` is called before."""

    __slots__ = ("_cancelled", "at_ms", "call", "order", "rhythm", "set_at_change")

    def __init__(
        self,
        at_ms: int,
        order: int,
        call: Callable[[], None],
        cancelled: Callable[[], None],
        rhythm: Rhythm | None = None,
        set_at_change: int = 0,
    ) -> None:
        self.at_ms, self.order = at_ms, order
        self.call: Callable[[], None] | None = call
        self._cancelled = cancelled
        self.rhythm, self.set_at_change = rhythm, set_at_change

    def __lt__(self, other: "Timer") -> bool:
        return (self.at_ms, self.order) < (other.at_ms, other.order)

    def cancel(self) -> None:
        """Cancel the timer. Cancelling twice, or after it fired, does nothing."""
        if self.call is not None:
            self.call = None
            self._cancelled()

    def fire(self) -> None:
        """Call, unless it was cancelled."""
        call, self.call = self.call, None
        if call is not None:
            call()

    def put_off(self, interval_ms: int, instant_ms: int) -> None:
        """Move it by multiples of the interval to the first time that is not before ``instant_ms``."""
        self.at_ms += -(-(instant_ms - self.at_ms) // interval_ms) * interval_ms


class Timers:
    """The timers of a clock, ordered by time."""

    def __init__(self) -> None:
        self._single: list[Timer] = []
        self._periodic: list[Timer] = []
        self._changes = 0
        self._order = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        """Return the number of timers, including cancelled ones that were not dropped yet."""
        return len(self._single) + len(self._periodic)

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """Add a timer."""
        timer = Timer(at_ms, next(self._order), call, self._note_cancelled, rhythm, self._changes)
        heapq.heappush(self._single if rhythm is None else self._periodic, timer)
        return timer

    def clear(self) -> None:
        """Remove all timers."""
        self._single.clear()
        self._periodic.clear()

    def next_ms(self) -> int | None:
        """Return when the next timer is due, which may be a cancelled one; None if there is none."""
        if self._single and self._periodic:
            return min(self._single[0].at_ms, self._periodic[0].at_ms)
        timers = self._single or self._periodic
        return timers[0].at_ms if timers else None

    def bring_forward(self, ms: int) -> None:
        """Move all timers forward by this time, in the same order; nothing if it is not positive."""
        if ms > 0:
            for timer in (*self._single, *self._periodic):
                timer.at_ms -= ms

    def changed(self) -> None:
        """Note a change after which the next round of any periodic work may find something."""
        self._changes += 1

    def note_work(self, now_ms: int) -> None:
        """Note that a round found something: postponed rounds return to their next regular times."""
        self._changes += 1
        for timer in self._periodic:
            if timer.rhythm is not None and timer.at_ms > now_ms:
                timer.at_ms = now_ms + 1 + (timer.at_ms - now_ms - 1) % timer.rhythm.interval_ms
        heapq.heapify(self._periodic)

    def due(self, until_ms: int) -> Timer | None:
        """Remove and return the next timer that is due by then; the caller fires it at its time."""
        self._drop_cancelled(self._single)
        single_ms = self._single[0].at_ms if self._single else until_ms + 1
        while True:
            self._drop_cancelled(self._periodic)
            if not self._periodic or self._periodic[0].at_ms > until_ms or self._periodic[0].at_ms >= single_ms:
                break
            timer = heapq.heappop(self._periodic)
            if not self._is_put_off(timer, min(single_ms, until_ms + 1)):
                return timer
            heapq.heappush(self._periodic, timer)
        if single_ms > until_ms:
            return None
        self._changes += 1
        return heapq.heappop(self._single)

    def _is_put_off(self, timer: Timer, latest_ms: int) -> bool:
        """Postpone a round that would find nothing, because nothing changed since its last round found nothing."""
        if timer.rhythm is None or timer.set_at_change != self._changes:
            return False
        quiet_ms = timer.rhythm.quiet_until_ms()
        quiet_ms = latest_ms if quiet_ms is None else min(quiet_ms, latest_ms)
        if quiet_ms <= timer.at_ms:
            return False
        timer.put_off(timer.rhythm.interval_ms, quiet_ms)
        return True

    def _drop_cancelled(self, timers: list[Timer]) -> None:
        while timers and timers[0].call is None:
            heapq.heappop(timers)
            self._cancelled -= 1

    def _note_cancelled(self) -> None:
        """Drop cancelled timers before they outnumber the rest: most never fire, since each heartbeat replaces one."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_AT_LEAST and 2 * self._cancelled > len(self):
            for timers in (self._single, self._periodic):
                timers[:] = [timer for timer in timers if timer.call is not None]
                heapq.heapify(timers)
            self._cancelled = 0


Pending = set[asyncio.Handle]
"""The calls that one push still waits for; cancelled ones never run."""


class PendingCalls:
    """Counts what a timer has woken and has not run yet, so that a push of the clock knows when all of it has.

    A timer wakes tasks by the loop's ``call_soon``: each result of a future, each new task and each further turn of a
    task is one call. While a push is in progress, ``call_soon`` marks the calls that a timer makes, and those that
    marked calls make, however many turns of the loop that takes. What arrives from clients meanwhile is not marked, so
    that traffic does not keep a push from its end. A task that then waits for a peer, a thread or a later timer has no
    call pending. Several pushes may be in progress on a loop: each cluster has a clock of its own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._unmarked = loop, loop.call_soon
        self._pushes = 0
        self._cause: Pending | None = None

    @contextmanager
    def counted(self) -> Iterator[Pending]:
        """Mark calls in the block. Between pushes the loop's own ``call_soon`` is in place, and nothing is slower."""
        self._pushes += 1
        self._loop.call_soon = self._call_soon  # type: ignore[assignment, method-assign]
        try:
            yield set()
        finally:
            self._pushes -= 1
            if not self._pushes:
                del self._loop.call_soon  # that of its class is behind it

    def cause(self, pending: Pending, call: Callable[..., object], *args: Any) -> None:
        """Call, with everything that it schedules marked as pending."""
        before, self._cause = self._cause, pending
        try:
            call(*args)
        finally:
            self._cause = before

    def _call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        pending = self._cause
        if pending is None:
            return self._unmarked(callback, *args, context=context)

        def run() -> None:
            pending.discard(handle)
            self.cause(pending, callback, *args)

        handle = self._unmarked(run, context=context)
        pending.add(handle)
        return handle


def pending_calls_of(loop: asyncio.AbstractEventLoop) -> PendingCalls:
    """Return the loop's: one for all clocks, or one push's marks would hide another's."""
    owner = getattr(loop.call_soon, "__self__", None)
    return owner if isinstance(owner, PendingCalls) else PendingCalls(loop)
