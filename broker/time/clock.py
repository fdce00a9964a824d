"""The cluster's clock: the only module that reads the machine's time or sleeps.

Every timeout, expiry and periodic scan uses one :class:`Clock`, so that a test can advance time and see fifteen minutes
of timeouts immediately, with real clients connected. ``ManualClock`` is frozen until it is advanced (unit tests);
``PushedClock`` is real time plus what was pushed, and can be frozen (the running server).
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, cast

from broker.time.timers import Rhythm, Timer, Timers, pending_calls_of
from broker.time.wakeups import Wakeup

T = TypeVar("T")
_TURNS_BETWEEN: Final = 64
"""Turns of the loop in a push between two checks whether its caller has given up: ours, microseconds each."""
# Parts of one request that run concurrently; arbitrary, so that a large request does not make thousands of tasks.
_TOGETHER: Final = 100


stopwatch_ns = time.perf_counter_ns
"""The machine's monotonic time in ns, for measuring durations; the cluster's behaviour must not depend on it."""


def since_1970_ns() -> int:
    """Return the time in ns since 1970 at which the stopwatch read 0."""
    return time.time_ns() - stopwatch_ns()


def utc_stamp() -> str:
    """Return the machine's time in UTC as part of a file name, such as 20261122T000512123Z."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}Z"


def soon(delay_ms: int, call: Callable[[], object]) -> asyncio.TimerHandle:
    """Call after a delay by the machine's time: for files, which a frozen cluster still writes."""
    return asyncio.get_running_loop().call_later(delay_ms / 1000, call)


class Slices:
    """Splits long work on the event loop into slices, so that other tasks wait for one slice at most.

    A slice of 250 us is the work of two produced records: a client does not notice that it waited.
    """

    def __init__(self, slice_us: int = 250) -> None:
        self._slice_ns = slice_us * 1000
        self._until_ns = stopwatch_ns() + self._slice_ns

    @property
    def over(self) -> bool:
        """Whether the slice is used up."""
        return stopwatch_ns() >= self._until_ns

    async def pause(self) -> None:
        """Let other tasks run if the slice is used up."""
        if self.over:
            await asyncio.sleep(0)
            self._until_ns = stopwatch_ns() + self._slice_ns


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run a generator to its end, letting other tasks run between slices, and return its result."""
    slices = Slices()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)
        await slices.pause()


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all coroutines, a hundred at a time, started in this order. Return the results in this order.

    One request may have a million parts: other requests are served meanwhile, and only the parts in progress use
    memory.
    """
    parts, results = iter(work), list[T]()
    while together := list(islice(parts, _TOGETHER)):
        if len(together) == 1:  # saves a turn of the loop
            results.append(await together[0])
        else:
            results += await asyncio.gather(*together)
    return results


async def turns(count: int) -> None:
    """Let the event loop run this many times, so that it reads what has arrived and runs other tasks."""
    for _ in range(count):
        await asyncio.sleep(0)


class Clock(Protocol):
    """The cluster's time and its timers."""

    def now_ms(self) -> int:
        """Return the cluster's time in ms since 1970."""
        ...

    def machine_ms(self) -> int:
        """Return the machine's own time in ms, without pushes: for what concerns real clients, such as certificates."""
        ...

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """Call at that time; if it has passed, in a later turn of the loop."""
        ...

    def note_work(self) -> None:
        """Note that a round of periodic work did something (see :class:`broker.time.timers.Rhythm`)."""
        ...

    def poll_deadline_ms(self, wait_ms: int) -> int:
        """Return the time at which a long poll ends that begins now and waits at most this long.

        A poll that begins during a push counts from the end of the push. Its client polls again as soon as it has a
        response, which would otherwise be thousands of requests for each pushed hour.
        """
        ...


class ManualClock:
    """A clock that moves only by :meth:`advance`."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._timers = Timers()

    def now_ms(self) -> int:
        """Return the time that was set."""
        return self._now_ms

    def machine_ms(self) -> int:
        """See :class:`Clock`; here it is the same as :meth:`now_ms`."""
        return self._now_ms

    def call_at(self, at_ms: int, call: Callable[[], None], rhythm: Rhythm | None = None) -> Timer:
        """See :class:`Clock`."""
        return self._timers.call_at(at_ms, call, rhythm)

    def note_work(self) -> None:
        """See :class:`Clock`."""
        self._timers.note_work(self.now_ms())

    def poll_deadline_ms(self, wait_ms: int) -> int:
        """See :class:`Clock`; here nothing begins during an advance."""
        return self.now_ms() + wait_ms

    def advance(self, ms: int) -> None:
        """Advance the time, firing each timer at its own time, in order."""
        target_ms = self._now_ms + ms
        self._timers.changed()
        while (timer := self._timers.due(target_ms)) is not None:
            self._now_ms = max(self._now_ms, timer.at_ms)
            timer.fire()
        self._now_ms = target_ms


class PushedClock(ManualClock):
    """Real time plus what :meth:`push` has added; while frozen, only :meth:`push` moves it.

    ``time_ns`` returns the machine's time in ns since 1970; the simulator passes its own.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, time_ns: Callable[[], int] = time.time_ns) -> None:
        super().__init__()
        self._loop, self._time_ns = loop, time_ns
        self._pushed_ms = 0
        self._frozen_at_ms: int | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_for = 0, 0  # when its timer is due, and how far the clock was ahead when it was set
        self._stops = 0  # how often a push in progress had to end
        self._held = False
        self._target_ms = 0  # of the push in progress

    def now_ms(self) -> int:
        """Return real or frozen time, plus everything that was pushed."""
        if self._frozen_at_ms is not None:
            return self._frozen_at_ms
        return self._time_ns() // 1_000_000 + self._pushed_ms

    def machine_ms(self) -> int:
        """See :class:`Clock`."""
        return self._time_ns() // 1_000_000

    @property
    def pushed_ms(self) -> int:
        """How far the clock is ahead of the machine's, in ms."""
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

    def poll_deadline_ms(self, wait_ms: int) -> int:
        """See :class:`Clock`."""
        return max(self.now_ms(), self._target_ms) + wait_ms

    async def push(self, ms: int, given_up: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Advance by ``ms``: each timer fires at its own time, and all that it wakes has run before the next one fires.

        The machine's time that passes meanwhile counts too, so that the clock is ahead by the sum of all advances.
        Ends early if the clock is reset, set to another time or frozen meanwhile, or if ``given_up`` returns true; it
        is called every 64 turns of the loop.
        """
        target_ms, pushed_ms = self.now_ms() + ms, self._pushed_ms + ms
        self._timers.changed()
        self._target_ms = target_ms
        try:
            if await self._fire_until(target_ms, given_up):
                self._move_to(target_ms)
                if self._frozen_at_ms is None:
                    self._pushed_ms = max(self._pushed_ms, pushed_ms)
        finally:  # even if a timer raises: the others still fire by themselves
            self._target_ms = 0
            self._set_alarm()

    async def _fire_until(self, target_ms: int, given_up: Callable[[], Awaitable[bool]] | None) -> bool:
        """Fire what is due by then, waiting for what each timer wakes; return false if the push has to end early."""
        taken, stops = 0, self._stops
        calls = pending_calls_of(self._loop)
        with calls.counted() as pending:
            while (timer := self._timers.due(target_ms)) is not None:
                self._move_to(timer.at_ms)
                calls.cause(pending, timer.fire)
                while True:
                    await asyncio.sleep(0)  # also after a timer that woke nothing, of which there may be thousands
                    taken += 1
                    gone = given_up is not None and not taken % _TURNS_BETWEEN and await given_up()
                    if gone or self._stops != stops:
                        return False
                    pending.difference_update([handle for handle in pending if handle.cancelled()])
                    if not pending:
                        break
        return True

    def freeze(self) -> None:
        """Freeze the time; timers then fire only by pushing. A push in progress ends."""
        self._stops += 1
        if self._frozen_at_ms is None:
            self._frozen_at_ms = self.now_ms()
            self._set_alarm()

    def thaw(self) -> None:
        """Let the time continue from the frozen time."""
        if self._frozen_at_ms is not None:
            frozen_at_ms, self._frozen_at_ms = self._frozen_at_ms, None
            self._pushed_ms = frozen_at_ms - self._time_ns() // 1_000_000
            self._set_alarm()

    def reset(self) -> None:
        """Return to the machine's time without firing anything; the time left on each timer stays the same."""
        self.put(0, None)

    def put(self, ahead_ms: int, frozen_at_ms: int | None) -> None:
        """Set the time, without firing anything: this far ahead of the machine's, or frozen at a time.

        If that moves the time back, timers move back with it: a timer with five seconds left does not also wait for the
        fifteen minutes that had been pushed.
        """
        self._stops += 1
        before_ms = self.now_ms()
        self._pushed_ms, self._frozen_at_ms = ahead_ms, frozen_at_ms
        self._timers.bring_forward(before_ms - self.now_ms())
        self._set_alarm()

    def hold(self) -> None:
        """Fire no timer until :meth:`release`, while time passes. A push in progress ends."""
        self._stops += 1
        self._held = True
        self._set_alarm()

    def release(self) -> None:
        """Fire the timers that are due by now, and continue as before :meth:`hold`."""
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

    def _ring(self) -> None:
        self._alarm = None
        self._timers.changed()
        try:
            while (timer := self._timers.due(self.now_ms())) is not None:
                timer.fire()
        finally:  # the loop logs a timer that raises; the others still fire
            self._set_alarm()

    def _set_alarm(self) -> None:
        at_ms = self._timers.next_ms()
        if self._held:
            at_ms = None
        if at_ms is not None and self._frozen_at_ms is not None and at_ms > self._frozen_at_ms:
            at_ms = None  # only a push reaches that time; timers that are due already still fire
        if self._alarm is not None:
            if self._alarm_for == (at_ms, self._pushed_ms) and not self._alarm.cancelled():
                return
            self._alarm.cancel()
            self._alarm = None
        if at_ms is not None:
            delay_s = max(0, at_ms - self.now_ms()) / 1000
            self._alarm, self._alarm_for = self._loop.call_later(delay_s, self._ring), (at_ms, self._pushed_ms)

    def close(self) -> None:
        """Drop all timers."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._timers.clear()


class Waiter:
    """One wait that ends by :meth:`wake` or by the cluster's clock: the broker's only way to wait."""

    __slots__ = ("_future", "woken")

    def __init__(self) -> None:
        self._future: Wakeup[bool] = Wakeup()
        self.woken = False

    def wake(self) -> None:
        """End the wait; a second call does nothing."""
        self.woken = True
        self._end(woken=True)

    async def wait_woken(self) -> None:
        """Wait until woken, however long."""
        await self._future

    async def wait(self, clock: Clock, deadline_ms: int) -> bool:
        """Wait until woken (return true) or until the cluster's clock reaches the deadline (return false)."""
        timer = clock.call_at(deadline_ms, self._time_out)
        try:
            return await self._future
        finally:
            timer.cancel()

    def _time_out(self) -> None:
        self._end(woken=False)

    def _end(self, *, woken: bool) -> None:
        if not self._future.done():
            self._future.set_result(woken)
            if self._future.on_done is not None:
                self._future.on_done()

    def again(self) -> None:
        """Prepare for another wait."""
        self._future = Wakeup()
        self.woken = False


class Watched(Protocol):
    """An object that calls back when it has changed: a partition, a connection."""

    def watch(self, call: Callable[[], None]) -> None:
        """Call on each change from now on."""
        ...

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop calling."""
        ...


async def wait_until(done: Callable[[], bool], watched: Collection[Watched], clock: Clock, deadline_ms: int) -> bool:
    """Wait until ``done()`` (return true) or until the deadline (return false), like Kafka's DelayedOperation.

    `done` is called at the beginning and whenever one of `watched` has changed; an exception that it raises ends the
    wait.
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


# --- a coroutine without a task -------------------------------------------------------------------------------------


_COMPLETED: Final = object()


def begin(work: Coroutine[Any, Any, None]) -> "Begun | None":
    """Run a coroutine up to its next wait; return ``None`` if it has completed.

    Only a coroutine that waits for something else than a :class:`Wakeup` needs a task. Python has eager tasks from 3.12
    on; before that, this saves the cost of a task: two turns of the event loop and a future.

    An exception of the coroutine is raised where the result is awaited.
    """
    try:
        waits_for = next(work.__await__(), _COMPLETED)  # send() would raise StopIteration, for which it costs a tenth
    except Exception as error:  # noqa: BLE001 - it is raised again
        return Begun(work, None, error)
    return None if waits_for is _COMPLETED else Begun(work, waits_for)


class Begun:
    """A coroutine at a wait, which a task awaits once, or which goes on without a task when the wait is over."""

    __slots__ = ("_error", "_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any, error: Exception | None = None) -> None:
        self._work, self._waits_for, self._error = work, waits_for, error

    def calls(self, on_done: Callable[[], None]) -> bool:
        """Call when the wait is over, in the step that ends it; return false if a task has to await this one."""
        if isinstance(self._waits_for, Wakeup):
            self._waits_for.on_done = on_done
            return True
        return False

    @property
    def ready(self) -> bool:
        """Whether the wait that calls is over."""
        return isinstance(self._waits_for, Wakeup) and self._waits_for.done()

    def go_on(self) -> "Begun | None":
        """Continue like :func:`begin`, once it is ready."""
        return begin(self._work)

    def __await__(self) -> Generator[Any, Any, None]:
        """Continue the coroutine, as ``yield from`` would: the task waits for what the coroutine waits for."""
        if self._error is not None:
            raise self._error
        waits_for = self._waits_for
        while True:
            try:
                try:
                    value = yield waits_for
                except BaseException as error:  # noqa: BLE001 - the coroutine handles its own cancellation
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(value)
            except StopIteration:
                return

    def cancel(self) -> None:
        """End the coroutine without a task, and what it waits for, as the cancellation of its task would.

        It may not wait once more, as there is no task that would let it go on: it is closed at such a wait.
        """
        if self._error is not None:
            return
        if isinstance(self._waits_for, asyncio.Future):
            self._waits_for.cancel()
        with suppress(asyncio.CancelledError):
            self._work.throw(asyncio.CancelledError())
            self._work.close()


class ActionQueue:
    """Responses whose wait is over: they go on at the end of the request that ended it, else in the next turn.

    Not within the step that ends it, which may be in the middle of an append (Kafka's ActionQueue, which
    ``KafkaApis.handle`` completes after each request).
    """

    __slots__ = ("_calls", "in_request")

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self.in_request = False
        """Whether a request is being served at whose end the calls are completed."""

    def add(self, call: Callable[[], None]) -> None:
        """Call at the end of the current request or in the next turn of the loop."""
        if not self._calls and not self.in_request:
            asyncio.get_running_loop().call_soon(self.complete)
        self._calls.append(call)

    def complete(self) -> None:
        """Make all calls, in order."""
        self.in_request = False
        while self._calls:
            self._calls.popleft()()
