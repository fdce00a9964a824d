"""What hangs on the cluster's time: timers, some of which are rounds of periodic work."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

_CANCELLED_AT_LEAST = 64


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What is known of periodic work: a push of the clock leaves out its rounds that would find nothing.

    So a year costs what happens in it, not its days. A round sets the timer of the next one, and calls ``found`` of the
    clock if it did something.
    """

    interval_ms: int
    quiet_until_ms: Callable[[], int | None]
    """When time alone, after a round that found nothing, gives the next one something to find; None: never."""


class Timer:
    """Something to be called at ``at_ms``; :meth:`cancel` makes it never happen."""

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
        """Forget it. Cancelling twice, or after it fired, does nothing."""
        if self.call is not None:
            self.call = None
            self._cancelled()

    def fire(self) -> None:
        """Call it, unless it was cancelled."""
        call, self.call = self.call, None
        if call is not None:
            call()

    def put_off(self, interval_ms: int, instant_ms: int) -> None:
        """Move it to the first of its instants that is not before this one."""
        self.at_ms += -(-(instant_ms - self.at_ms) // interval_ms) * interval_ms


class Timers:
    """The timers of a clock, by time."""

    def __init__(self) -> None:
        self._single: list[Timer] = []
        self._periodic: list[Timer] = []
        self._changes = 0
        self._order = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        """How many timers are kept, cancelled ones that were not dropped yet among them."""
        return len(self._single) + len(self._periodic)

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """Add a timer."""
        timer = Timer(at_ms, next(self._order), call, self._note_cancelled, rhythm, self._changes)
        heapq.heappush(self._single if rhythm is None else self._periodic, timer)
        return timer

    def clear(self) -> None:
        """Remove everything."""
        self._single.clear()
        self._periodic.clear()

    def next_ms(self) -> int | None:
        """When the next timer is due, or one that was cancelled; None if there is none."""
        if self._single and self._periodic:
            return min(self._single[0].at_ms, self._periodic[0].at_ms)
        timers = self._single or self._periodic
        return timers[0].at_ms if timers else None

    def bring_forward(self, ms: int) -> None:
        """Have all of them so much earlier, in the same order; nothing where that is not positive."""
        if ms > 0:
            for timer in (*self._single, *self._periodic):
                timer.at_ms -= ms

    def changed(self) -> None:
        """Note that something happened which may give the next round of anything something to find."""
        self._changes += 1

    def found(self, now_ms: int) -> None:
        """Note that a round found something: those that were put off come back to their next instants."""
        self._changes += 1
        for timer in self._periodic:
            if timer.rhythm is not None and timer.at_ms > now_ms:
                timer.at_ms = now_ms + 1 + (timer.at_ms - now_ms - 1) % timer.rhythm.interval_ms
        heapq.heapify(self._periodic)

    def due(self, until_ms: int) -> Timer | None:
        """Take the next timer that is due by then; the caller fires it at its time."""
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
        """Put off a round that would find nothing because all is as it was when the last one found nothing."""
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
        """Most timers never fire: each heartbeat replaces one. Drop them before they outnumber the living."""
        self._cancelled += 1
        if self._cancelled > _CANCELLED_AT_LEAST and 2 * self._cancelled > len(self):
            for timers in (self._single, self._periodic):
                timers[:] = [timer for timer in timers if timer.call is not None]
                heapq.heapify(timers)
            self._cancelled = 0
