"""The cluster's time. The one module that reads a clock or sleeps.

Everything that waits, expires or is scanned hangs on one :class:`Clock`, so that a test may push time forward and see
fifteen minutes of timeouts now, with real clients connected. ``ManualClock`` is frozen until it is advanced (unit
tests); ``PushedClock`` is real time plus what was pushed, and can be frozen (the running server).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol, TypeVar, cast

from broker.timers import Rhythm, Timer, Timers

T = TypeVar("T")
_FIRED_BETWEEN = 64  # timers of a push, between two looks whether its caller is still there
_TOGETHER = 100  # parts of one request that wait at the same time


stopwatch_ns = time.perf_counter_ns
"""For how long something took, by the machine; nothing may be decided by it."""


def since_1970_ns() -> int:
    """The offset of the stopwatch to the machine's time, in nanoseconds since 1970."""
    return time.time_ns() - stopwatch_ns()


def utc_stamp() -> str:
    """The machine's time as part of a file's name, such as 20261122T000512123Z."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}Z"


def soon(delay_ms: int, call: Callable[[], None]) -> asyncio.TimerHandle:
    """Call after so long by the machine: for files, which a frozen cluster writes too."""
    return asyncio.get_running_loop().call_later(delay_ms / 1000, call)


class Slices:
    """Long work on the loop in slices, so that other work waits for one slice at most."""

    def __init__(self, slice_us: int = 250) -> None:
        self._slice_ns = slice_us * 1000
        self._until_ns = stopwatch_ns() + self._slice_ns

    @property
    def over(self) -> bool:
        """Whether it is the others' turn."""
        return stopwatch_ns() >= self._until_ns

    async def pause(self) -> None:
        """Let the others run, if the slice is over."""
        if self.over:
            await asyncio.sleep(0)
            self._until_ns = stopwatch_ns() + self._slice_ns


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run work that is written in steps; others run between two slices of it. Returns its result."""
    slices = Slices()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)
        await slices.pause()


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do all of it, a hundred at a time, begun in this order. Returns the results in this order.

    A request may ask for a million: others are served meanwhile, and only those under way need memory.
    """
    parts, results = iter(work), list[T]()
    while together := list(islice(parts, _TOGETHER)):
        if len(together) == 1:  # no further turn of the loop
            results.append(await together[0])
        else:
            results += await asyncio.gather(*together)
    return results


async def turns(count: int) -> None:
    """Let the loop go round so often: what has arrived is read, and the others run."""
    for _ in range(count):
        await asyncio.sleep(0)


class Clock(Protocol):
    """The cluster's time, with its timers."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def machine_ms(self) -> int:
        """The machine's own time, pushes left out: for what belongs to the world of real clients."""
        ...

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """Call at that time; at once, in a later turn, if it has passed."""
        ...

    def found(self) -> None:
        """Note that a round of periodic work did something (see :class:`broker.timers.Rhythm`)."""
        ...


class ManualClock:
    """Time that moves only with :meth:`advance`."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._timers = Timers()

    def now_ms(self) -> int:
        """The time that was set."""
        return self._now_ms

    def machine_ms(self) -> int:
        """See :class:`Clock`; the same here."""
        return self._now_ms

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """See :class:`Clock`."""
        return self._timers.call_at(at_ms, call, rhythm)

    def found(self) -> None:
        """See :class:`Clock`."""
        self._timers.found(self.now_ms())

    def advance(self, ms: int) -> None:
        """Move on, firing each timer at its own time, in order."""
        target_ms = self._now_ms + ms
        self._timers.changed()
        while (timer := self._timers.due(target_ms)) is not None:
            self._now_ms = max(self._now_ms, timer.at_ms)
            timer.fire()
        self._now_ms = target_ms


class PushedClock(ManualClock):
    """Real time, plus what :meth:`push` has added; frozen, only pushing moves it.

    ``time_ns`` is the machine's time in nanoseconds since 1970; the simulator has one of its own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, time_ns: Callable[[], int] = time.time_ns) -> None:
        super().__init__()
        self._loop, self._time_ns = loop, time_ns
        self._pushed_ms = 0
        self._frozen_at_ms: int | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_for = 0, 0  # its timer's time, and how far the clock was ahead when it was set
        self._stops = 0  # how often a push under way had to end
        self._held = False

    def now_ms(self) -> int:
        """Real or frozen time plus everything that was pushed."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms
        return self._time_ns() // 1_000_000 + self._pushed_ms

    def machine_ms(self) -> int:
        """See :class:`Clock`."""
        return self._time_ns() // 1_000_000

    @property
    def pushed_ms(self) -> int:
        """The lead of the clock over the machine's."""
        return self._pushed_ms if self._frozen_at_ms is None else self._frozen_at_ms - self.machine_ms()

    @property
    def frozen(self) -> bool:
        """Whether only :meth:`push` moves it."""
        return self._frozen_at_ms is not None

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """See :class:`Clock`."""
        timer = super().call_at(at_ms, call, rhythm)
        if at_ms == self._timers.next_ms():
            self._set_alarm()
        return timer

    async def push(self, ms: int, given_up: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Move on by ``ms``: each timer fires at its own time, and what it wakes runs before the next one does.

        Ends early where the clock is reset, put elsewhere or frozen meanwhile, or when ``given_up`` answers true; it is
        asked now and then.
        """
        target_ms, stops = self.now_ms() + ms, self._stops
        fired = 0
        self._timers.changed()
        try:
            while (timer := self._timers.due(target_ms)) is not None:
                self._move_to(timer.at_ms)
                timer.fire()
                await self._settle()
                fired += 1
                gone = given_up is not None and not fired % _FIRED_BETWEEN and await given_up()
                if gone or self._stops != stops:
                    break
            else:
                self._move_to(target_ms)
        finally:  # also where a timer fails: the others go on by themselves
            self._set_alarm()
        await self._settle()

    def freeze(self) -> None:
        """Stop; timers then fire by pushing only. A push under way ends."""
        self._stops += 1
        if self._frozen_at_ms is None:
            self._frozen_at_ms = self.now_ms()
            self._set_alarm()

    def thaw(self) -> None:
        """Go on from the frozen time."""
        if self._frozen_at_ms is not None:
            frozen_at_ms, self._frozen_at_ms = self._frozen_at_ms, None
            self._pushed_ms = frozen_at_ms - self._time_ns() // 1_000_000
            self._set_alarm()

    def reset(self) -> None:
        """Back to the machine's time, without firing anything; timers are as far away as they were."""
        self.put(0, None)

    def put(self, ahead_ms: int, frozen_at_ms: int | None) -> None:
        """To where it was once, without firing anything: ahead of the machine's, or standing still at a time.

        Where that is back in time, timers go back with it: what waits for five seconds does not wait for the fifteen
        minutes too that were pushed before.
        """
        self._stops += 1
        before_ms = self.now_ms()
        self._pushed_ms, self._frozen_at_ms = ahead_ms, frozen_at_ms
        self._timers.bring_forward(before_ms - self.now_ms())
        self._set_alarm()

    def hold(self) -> None:
        """Fire nothing until :meth:`release`, while time goes on. A push under way ends."""
        self._stops += 1
        self._held = True
        self._set_alarm()

    def release(self) -> None:
        """Fire what has become due meanwhile, and go on."""
        self._held = False
        self._set_alarm()

    def _move_to(self, at_ms: int) -> None:
        ahead_ms = at_ms - self.now_ms()
        if ahead_ms <= 0:
            return
        if self._frozen_at_ms is not None:
            self._frozen_at_ms += ahead_ms
        else:
            self._pushed_ms += ahead_ms

    @staticmethod
    async def _settle() -> None:
        """Let the tasks that a timer woke run: a wake-up, a handler, a reply each take a turn of the loop."""
        for _ in range(4):
            await asyncio.sleep(0)

    def _ring(self) -> None:
        self._alarm = None
        self._timers.changed()
        try:
            while (timer := self._timers.due(self.now_ms())) is not None:
                timer.fire()
        finally:  # the loop logs a timer that fails; the others go on
            self._set_alarm()

    def _set_alarm(self) -> None:
        at_ms = self._timers.next_ms()
        if self._held:
            at_ms = None
        if at_ms is not None and self._frozen_at_ms is not None and at_ms > self._frozen_at_ms:
            at_ms = None  # only a push brings that time; what is due already fires all the same
        if self._alarm is not None:
            if self._alarm_for == (at_ms, self._pushed_ms) and not self._alarm.cancelled():
                return
            self._alarm.cancel()
            self._alarm = None
        if at_ms is not None:
            delay_s = max(0, at_ms - self.now_ms()) / 1000
            self._alarm, self._alarm_for = self._loop.call_later(delay_s, self._ring), (at_ms, self._pushed_ms)

    def close(self) -> None:
        """Fire nothing any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._timers.clear()


class Waiter:
    """One sleeper that may be woken by anybody, or by the clock: the broker's only way to wait."""

    __slots__ = ("_future", "woken")

    def __init__(self) -> None:
        self._future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.woken = False

    def wake(self) -> None:
        """End the wait; waking twice does nothing."""
        self.woken = True
        if not self._future.done():
            self._future.set_result(True)

    async def wait(self, clock: Clock, deadline_ms: int) -> bool:
        """Sleep until woken (true) or until the cluster's clock reaches the deadline (false)."""
        timer = clock.call_at(deadline_ms, self._time_out)
        try:
            return await self._future
        finally:
            timer.cancel()

    def _time_out(self) -> None:
        if not self._future.done():
            self._future.set_result(False)

    def again(self) -> None:
        """Make it ready for another wait."""
        self._future = asyncio.get_running_loop().create_future()
        self.woken = False


class Watched(Protocol):
    """What calls back when something has changed: a partition, a connection."""

    def watch(self, call: Callable[[], None]) -> None:
        """Call from now on."""
        ...

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        ...


async def wait_until(done: Callable[[], bool], watched: Collection[Watched], clock: Clock, deadline_ms: int) -> bool:
    """Wait until it is done, or until the deadline (false), as Kafka's DelayedOperation.

    `done` is asked at the beginning and whenever one of `watched` has changed; what it raises ends the wait.
    """
    waiter = Waiter()
    for each in watched:
        each.watch(waiter.wake)
    try:
        while not done():
            if not await waiter.wait(clock, deadline_ms):
                return False
            waiter.again()
    finally:
        for each in watched:
            each.unwatch(waiter.wake)
    return True
