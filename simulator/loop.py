"""An event loop on virtual time: it never waits, and runs the same work in the same order each time.

When nothing is ready, the time jumps to the next timer. There are no sockets, no threads and no signals; listeners and
connections are opened in the simulated network. A user's program that asks the loop for more gets
:class:`simulator.program.Unsimulated`.
"""

import asyncio
import heapq
import math
import signal
import socket
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, NoReturn

from simulator.program import CURRENT, Program, owner, refuse

_RESOLUTION_S = 1e-6  # a microsecond, the unit of the run's times
_MOST_TURNS = 200_000
"""Iterations of the loop without a pause after which it counts as spinning.

Arbitrary, far more than a run needs between two pauses.
"""
_TIMELESS_TURNS, _TURN_S = 2_000, 200e-6
"""Iterations without a pause that take no time, and how long a further one takes: a program that polls in a busy loop,
as the producer of aiokafka does at times, goes on when its timers are due.

Ours: fewer would let time pass in honest work, more would only take real time.
"""
_FEW_TIMERS = 100
"""Timers that may all be cancelled before they are removed; of more, half: asyncio's own numbers."""
_SHORTEST_S = 10e-6
"""The shortest delay above 0. What floats leave over of a time to wait would not advance the clock: who waits for the
rest would spin."""
BEGIN_NS = 1_800_000_000_000_000_000
"""The virtual time at the start of a run, January 2027: arbitrary, but always the same, as seeds reproduce runs."""


class Spinning(Exception):
    """The loop runs on while no virtual time passes."""


class Endless(Exception):
    """The run has not ended within its limit of virtual time."""


class NothingLeft(Exception):
    """Deadlock: the run awaits something, and no task or timer is left that could complete it."""


class _Timer(asyncio.TimerHandle):
    """A call at a time, which is compared without a check of types: the loop has no others."""

    __slots__ = ()
    _when: float
    _scheduled: bool

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        """Whether it is due before another."""
        when: float = other._when  # type: ignore[attr-defined]
        return self._when < when


class ProgramTask(asyncio.Task[Any]):
    """A task with a number as its hash: a set of tasks has the same order in each run."""

    number = 0

    def __hash__(self) -> int:
        """Return its number."""
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop, with turns that never wait."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[_Timer]
    _timer_cancelled_count: int
    _stopping: bool
    get_debug = False.__bool__  # asked for each task, future and call
    """There is no debug mode."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.now_us = 0
        self.limit_s = math.inf
        self.listen: Callable[[Callable[[], Any], str, int], object] | None = None
        """Opens a listener; set by the simulated network."""
        self.connect: Callable[[Callable[[], Any], str, int], Coroutine[Any, Any, Any]] | None = None
        """Opens a connection of a user's program; set by the simulated network."""
        self._killed = self._paused = False
        self._tasks = 0
        self._turns = 0
        """Turns since the time has advanced."""
        self.advanced: Callable[[], None] = lambda: None
        """Called whenever the virtual time has advanced; what it raises ends the run."""

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self.now_s

    def time_ns(self) -> int:
        """Virtual nanoseconds since 1970, in whole microseconds."""
        return BEGIN_NS + self.now_us * 1000

    # --- turns -------------------------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Do what is ready, or else what is due next: asyncio's own turn without files, threads and debug mode."""
        ready, timers = self._ready, self._scheduled
        if len(timers) > _FEW_TIMERS and 2 * self._timer_cancelled_count > len(timers):
            timers[:] = [each for each in timers if not self._is_over(each)]
            heapq.heapify(timers)
        while timers and self._is_over(timers[0]):
            heapq.heappop(timers)
        if ready or self._stopping:
            self._count_turn()
        elif not timers:
            raise NothingLeft("nothing is due, and the run is not over")
        elif timers[0]._when > self.now_s:
            self._advance(timers[0]._when)
        else:
            self._count_turn()
        due_s = self.now_s + _RESOLUTION_S
        while timers and timers[0]._when < due_s:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _is_over(self, timer: _Timer) -> bool:
        """Whether a timer was cancelled, and is to be dropped."""
        if timer._cancelled:
            timer._scheduled = False
            self._timer_cancelled_count -= 1
        return timer._cancelled

    def _advance(self, until_s: float) -> None:
        self._turns = 0
        self._set_time(until_s)
        if self.now_s > self.limit_s:
            raise Endless(f"it is not over after {self.limit_s:.0f} s of virtual time")
        self.advanced()

    def _count_turn(self) -> None:
        self._turns += 1
        if self._turns > _MOST_TURNS:
            self._turns = 0  # so that the loop can be closed
            raise Spinning(f"{_MOST_TURNS} turns of the loop without a pause, at {self.now_s:.3f} s")
        if self._turns > _TIMELESS_TURNS:
            self._set_time(self.now_s + _TURN_S)

    def _set_time(self, now_s: float) -> None:
        self.now_s, self.now_us = now_s, round(now_s * 1_000_000)

    # --- brokers -----------------------------------------------------------------------------------------------------

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Open a listener of the simulated network; options of real sockets are ignored."""
        assert self.listen is not None
        return self.listen(protocol_factory, str(host), int(port))

    # --- programs of users -------------------------------------------------------------------------------------------

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, ssl: Any = None, **_: Any
    ) -> Any:
        """Connect to a broker; returns transport and protocol. Other servers and TLS raise Unsimulated."""
        if ssl:
            raise refuse("TLS", "use security_protocol PLAINTEXT in the simulation")
        if host is None or self.connect is None:
            raise refuse("a connection over a socket of its own", "connect to sim.bootstrap_servers")
        return await self.connect(protocol_factory, str(host), int(port))

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        """Return the address as given: names are not resolved."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]  # 6: TCP

    def run_in_executor(self, executor: Any, func: Any, *_: Any) -> NoReturn:  # type: ignore[override]  # noqa: ARG002
        """Raise Unsimulated."""
        name = getattr(func, "__qualname__", repr(func))
        raise refuse(f"a thread for {name}", "call it directly, or replace it by a coroutine in the simulation")

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Unsimulated."""
        raise refuse("what is awaited of the operating system, as a socket or a pipe,", "replace it in the simulation")

    add_reader = add_writer = sock_recv = sock_recv_into = sock_recvfrom = sock_recvfrom_into = _refuse  # type: ignore[assignment]
    sock_sendall = sock_sendto = sock_sendfile = sock_connect = sock_accept = _refuse
    create_datagram_endpoint = create_unix_connection = create_unix_server = _refuse
    connect_accepted_socket = connect_read_pipe = connect_write_pipe = _refuse

    def _refuse_process(self, *_: Any, **__: Any) -> NoReturn:
        """Raise Unsimulated."""
        raise refuse("another process", "replace what it does by a coroutine in the simulation")

    subprocess_exec = subprocess_shell = _refuse_process

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:  # type: ignore[override]
        """Keep the handler: a clean stop of the process calls that of SIGTERM, or else that of SIGINT."""
        if (program := CURRENT.get()) is not None:
            program.on_signal[sig] = lambda: callback(*args)

    def remove_signal_handler(self, sig: int) -> bool:
        """Forget the handler; return whether there was one."""
        program = CURRENT.get()
        return program is not None and program.on_signal.pop(sig, None) is not None

    def stop(self) -> None:
        """Stop the loop; a program may not."""
        if CURRENT.get() is not None and self.is_running():
            raise refuse("loop.stop()", "return from the process's coroutine instead")
        super().stop()

    def create_task(self, coro: Any, **options: Any) -> Any:
        """Create a task; a user's process keeps its own until they are done."""
        program = owner(options.get("context"))
        if program is None:
            return super().create_task(coro, **options)
        own = self.get_task_factory() is None
        task = self._task_of_program(coro, options) if own else super().create_task(coro, **options)
        if not program.alive:
            program.buried.append(task)
        elif not task.done():  # an eager one may be
            program.tasks[task] = None
            task.add_done_callback(lambda done: _forget(program, done))
        return task

    def _task_of_program(self, coro: Any, options: dict[str, Any]) -> ProgramTask:
        self._tasks += 1
        ProgramTask.number = self._tasks  # while asyncio registers it; each has its own from then on
        options["name"] = options.get("name") or f"task {self._tasks}"
        task = ProgramTask(coro, loop=self, **options)
        task.number = self._tasks
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a call; one of a killed process is dropped, one of a paused process waits."""
        self._check_closed()  # type: ignore[attr-defined]  # of BaseEventLoop
        handle = asyncio.Handle(callback, args, self, context)
        if (self._killed or self._paused) and (program := owner(context)) is not None:
            if not program.alive:
                handle.cancel()
            elif program.paused:
                program.kept_calls.append(handle)
                return handle
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # as call_soon
    """There is one thread."""

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a call at a time; one of a killed process is dropped."""
        self._check_closed()  # type: ignore[attr-defined]  # of BaseEventLoop
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        if self._killed and (program := owner(context)) is not None and not program.alive:
            timer.cancel()
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a call after some seconds."""
        return super().call_later(max(delay, _SHORTEST_S) if delay > 0 else delay, callback, *args, context=context)

    def pause(self, program: Program) -> None:
        """Let an instance run no line until :meth:`resume`, as SIGSTOP does: its connections stay, its timers wait."""
        program.paused = self._paused = True
        kept, ready, scheduled = program.kept_calls, self._ready, self._scheduled
        for at, handle in enumerate(ready):
            if _is_of(handle, program):
                kept.append(handle)
                ready[at] = asyncio.Handle(int, (), self)  # the loop may be amid its turn, and counts the calls
        timers = [each for each in scheduled if not each.cancelled() and _is_of(each, program)]
        for timer in timers:
            timer._scheduled = False  # so that its cancellation is not counted
        scheduled[:] = [each for each in scheduled if each.cancelled() or not _is_of(each, program)]
        heapq.heapify(scheduled)
        program.kept_timers += timers

    def resume(self, program: Program) -> None:
        """Let a paused instance go on: what was ready is called first, then what has become due, in order."""
        program.paused = False
        self._ready.extend(program.kept_calls)
        for timer in program.kept_timers:
            if not timer.cancelled():
                timer._scheduled = True  # as call_at does
                heapq.heappush(self._scheduled, timer)
        program.kept_calls.clear()
        program.kept_timers.clear()
        for connection in list(program.connections):
            connection.read_on()

    def kill(self, program: Program, how: str) -> None:
        """End an instance between two turns of the loop, its connections first; ``how``: see :meth:`Severable.sever`.

        Its tasks are neither cancelled nor closed, so that no ``finally`` block of theirs runs.
        """
        program.alive, self._killed = False, True
        program.paused = False
        program.kept_calls.clear()
        program.kept_timers.clear()
        for connection in list(program.connections):
            connection.sever(how)
        for handle in (*self._ready, *self._scheduled):
            if _is_of(handle, program):
                handle.cancel()
        program.buried += program.tasks
        program.tasks.clear()
        for task in program.buried:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def terminate(self, program: Program, main: asyncio.Task[Any]) -> None:
        """Ask an instance to end, as SIGTERM does: by its handler, or by cancellation of its main task."""
        handler = program.on_signal.get(signal.SIGTERM) or program.on_signal.get(signal.SIGINT)
        if handler is None:
            main.cancel()
        else:
            self.call_soon(handler, context=program.context.copy())

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


def _is_of(handle: asyncio.Handle, program: Program) -> bool:
    """Whether a call is to be made in the context of an instance."""
    context: Context | None = handle._context  # type: ignore[attr-defined]
    return context is not None and context.get(CURRENT) is program


def _forget(program: Program, task: asyncio.Task[Any]) -> None:
    """Drop a task that is done, unless it failed: the end of the run reports exceptions that were not retrieved."""
    if task.cancelled() or task._exception is None:
        program.tasks.pop(task, None)


async def sleep_ms(ms: float) -> None:
    """Sleep for some virtual milliseconds."""
    await asyncio.sleep(ms / 1000)  # noqa: TID251 - on the virtual loop


def now_ms() -> int:
    """Return the virtual milliseconds since the start of the run."""
    return round(asyncio.get_running_loop().time() * 1000)
