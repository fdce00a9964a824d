"""The processes of a user's program under their supervisor, which starts them again: what faults kill and replace."""

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from simulator.loop import VirtualLoop, sleep_ms
from simulator.network import Network
from simulator.program import LIBRARIES, SEVERED, Program, Unsimulated, short_path

RESTART_MS = 1_000
"""Time from the failure of a process until its supervisor starts it again: ours, a common pause of supervisors."""
CLEANUP_MS = 5_000
"""Time that the tasks of a process get when its main coroutine has returned: arbitrary, time to close connections."""
TERMINATION_MS = 30_000
"""Time that a process gets for a clean stop before it is killed, as in Kubernetes."""
RECOVERY_MS = 60_000
"""Time within which processes run again after the last fault, or are seen to fail over and over.

Ours, longer than the longest of clients' timeouts.
"""
_LOOK_MS = 100  # arbitrary, short beside RESTART_MS
_MOST_EXCHANGES, _MOST_WAIT_MS = 60, 3_000
"""Some rounds of a consumer's or producer's loop; without any, three seconds: ours."""
_TOGETHER_MS = (200, 2_000, 8_000)
"""How long a new instance runs beside the old one, of which each replacement has one.

Shorter than a rebalance, about one, and longer.
"""
_FROZEN_MS, _MOST_OF_OTHER = 15_000, 100
"""How long a process may be frozen, besides the duration of its fault: longer than the sessions of most groups; and for
how many exchanges of an instance that has taken its place."""


class Instance:
    """One life of a process."""

    def __init__(self, program: Program, main: asyncio.Task[Any]) -> None:
        self.program, self.main = program, main
        self.stopping = False
        self.restarts_due = 0
        """How many faults are about to end it and to start another one, which the process has among those due."""
        self.written_off = False
        """Whether another instance has taken its place because it seemed dead."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Process:
    """A process of the program. ``start`` returns the coroutine of a new instance.

    An instance that fails is started again after a second if ``restart``; one that returns is done.
    """

    def __init__(
        self, supervisor: "Supervisor", name: str, start: Callable[[], Coroutine[Any, Any, Any]], *, restart: bool
    ) -> None:
        self._supervisor, self.name, self._start_main, self._restart = supervisor, name, start, restart
        self.wanted = 1
        """How many instances run when no fault is under way."""
        self._lives = 0
        self.instances: list[Instance] = []
        """The running instances, the newest last."""
        self.is_due = 0
        """How many instances are about to be started."""

    @property
    def staying(self) -> list[Instance]:
        """Return the running instances that are not about to end."""
        return [each for each in self.instances if not (each.written_off or each.stopping)]

    def begin(self) -> Instance:
        """Start an instance."""
        self._lives += 1
        program = Program(f"{self.name}.{self._lives}")
        self._supervisor.programs.append(program)
        loop, context = self._supervisor.loop, self._supervisor.context
        main = loop.create_task(self._main(), name=program.name, context=program.context)
        instance = Instance(program, main)
        self.instances.append(instance)
        main.add_done_callback(lambda _: self._supervisor.spawn(self._exit(instance)), context=context)
        return instance

    async def _main(self) -> None:
        await self._start_main()

    def begin_in(self, ms: float) -> None:
        """Start an instance after a while."""
        self.is_due += 1
        self._supervisor.spawn(self._begin_in(ms))

    async def _begin_in(self, ms: float) -> None:
        await sleep_ms(ms)
        await self._supervisor.may_start.wait()
        self.is_due -= 1
        if not self._supervisor.over and len(self.staying) < self.wanted:
            self.begin()

    def kill(self, instance: Instance, how: str) -> None:
        """Kill an instance; brokers learn of it as ``how`` determines."""
        self.instances.remove(instance)
        self._supervisor.loop.kill(instance.program, how)
        self._supervisor.lost(instance.program)
        if not instance.ended.done():
            instance.ended.set_result(None)

    async def stop(self, instance: Instance, limit_ms: int = TERMINATION_MS) -> bool:
        """Stop an instance cleanly; kill it if it takes longer than the limit. Return whether it ended by itself."""
        instance.stopping = True
        self._supervisor.loop.terminate(instance.program, instance.main)
        await asyncio.wait([instance.ended], timeout=limit_ms / 1000)
        if instance.ended.done():
            return True
        self.kill(instance, "closed")
        return False

    async def _exit(self, instance: Instance) -> None:
        """End what is left of an instance whose main coroutine is done, as ``asyncio.run`` does."""
        supervisor, program, main = self._supervisor, instance.program, instance.main
        if not program.alive:
            return
        left = [task for task in program.tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CLEANUP_MS / 1000)
        if not program.alive:
            return
        error = asyncio.CancelledError() if main.cancelled() else main.exception()
        self.kill(instance, "closed")
        if isinstance(error, Unsimulated):
            supervisor.violate(str(error))
        elif error is not None and not (instance.stopping and isinstance(error, asyncio.CancelledError)):
            supervisor.failed(program, error)
            if self._restart and not instance.stopping:
                self.begin_in(RESTART_MS)
        else:
            supervisor.note(program, "ends")


class Supervisor:
    """All processes of a run; :mod:`simulator.faults` kills and replaces them."""

    def __init__(
        self, loop: VirtualLoop, network: Network, violate: Callable[[str], None], programs: list[Program]
    ) -> None:
        self.loop, self.context, self.violate = loop, network.context, violate
        self._network = network
        self.programs = programs
        """All instances that were ever started are added to these."""
        self.processes: dict[str, Process] = {}
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.over = False
        self._recovers = asyncio.Event()
        self.calm = False
        """Whether no fault is under way any more, so that none excuses a failure."""
        self.failures = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task outside of all processes."""
        task: asyncio.Task[Any] = self.loop.create_task(work, context=self.context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def note(self, program: Program, what: str) -> None:
        """Add a line to the story."""
        self._network.trace.add(self._network.now_us, program.name, what)

    def process(self, name: str, start: Callable[[], Coroutine[Any, Any, Any]], *, restart: bool) -> Process:
        """Add a process, and start its first instance. Raises ValueError: there is one with this name."""
        if name in self.processes:
            raise ValueError(f"there is a process {name!r} already; give each a name of its own")
        new_process = self.processes[name] = Process(self, name, start, restart=restart)
        new_process.begin()
        return new_process

    def failed(self, program: Program, error: BaseException) -> None:
        """Note that a process failed by itself: a broken promise if no fault is under way."""
        self.failures += 1
        what = f"fails with {summary(error)}"
        self.note(program, what)
        if self.calm:
            self.violate(f"{program.name} {what} although no fault is under way")

    def lost(self, program: Program) -> None:
        """Report exceptions that tasks of the program's own code raised, and nothing awaited."""
        for task in [*program.tasks, *program.buried]:
            error = task._exception if task.done() and task._log_traceback else None  # noqa: SLF001
            if isinstance(error, Unsimulated):
                self.violate(str(error))
            elif error is not None:
                what = f"the task {task.get_name()} fails with {summary(error)}, and nothing awaits it"
                self.note(program, what)
                if not is_of_library(task):
                    self.violate(f"{program.name}: {what}")
            if error is not None:
                task._log_traceback = False  # noqa: SLF001 - it is reported here

    # --- faults ------------------------------------------------------------------------------------------------------

    def _one(self, chance: Random) -> Process | None:
        running = [each for _, each in sorted(self.processes.items()) if each.instances]
        return chance.choice(running) if running else None

    def kill(self, chance: Random, down_ms: int) -> str:
        """Kill a process, or stop it cleanly, and start it again after ``down_ms``; return a line for the story.

        Most are killed in the middle of an exchange with a broker: a program that mostly waits for records would hardly
        ever be killed in the middle of its work otherwise.
        """
        # Mostly without time to close: that is what a program forgets.
        process, how, clean = self._one(chance), chance.choice(SEVERED), chance.random() < 0.2
        # At once, early in its work, or later.
        exchanges = chance.choice((0, chance.randrange(1, 10), chance.randrange(1, _MOST_EXCHANGES)))
        if process is None:
            return "no process runs that could be killed"
        instance = process.instances[-1]
        if clean and not instance.stopping:
            self.spawn(self._restart(process, instance, down_ms))
            return f"{instance.program.name} is stopped cleanly"
        self.spawn(self._kill_after(process, instance, exchanges, how, down_ms))
        return f"{instance.program.name} is to be killed"

    async def _kill_after(self, process: Process, instance: Instance, exchanges: int, how: str, down_ms: int) -> None:
        """Kill an instance after some exchanges with brokers, or after three seconds."""
        with self._restart_due(process, instance):
            await self._exchanged(instance, exchanges, _MOST_WAIT_MS)
        if not instance.ended.done() and not self.over:
            self.note(instance.program, "is killed; its connections are " + how)
            process.kill(instance, how)
            process.begin_in(down_ms)

    async def _exchanged(self, instance: Instance, exchanges: int, limit_ms: float) -> None:
        """Wait for some exchanges of an instance with brokers, for its end, or for a time."""
        if exchanges:
            reached = asyncio.Event()
            instance.program.exchanges_left, instance.program.last_exchange = exchanges, reached.set
            await self._first(instance, reached, limit_ms)

    async def _first(self, instance: Instance, event: asyncio.Event, limit_ms: float) -> None:
        """Wait for an event, for the end of an instance, or for a time."""
        waiting = [self.spawn(event.wait()), instance.ended]
        await asyncio.wait(waiting, timeout=limit_ms / 1000, return_when=asyncio.FIRST_COMPLETED)

    async def _restart(self, process: Process, instance: Instance, down_ms: int) -> None:
        with self._restart_due(process, instance):
            await process.stop(instance)
        if not self.over:
            process.begin_in(down_ms)

    @contextmanager
    def _restart_due(self, process: Process, instance: Instance) -> Iterator[None]:
        process.is_due += 1
        instance.restarts_due += 1
        yield
        process.is_due -= 1
        instance.restarts_due -= 1

    def replace(self, chance: Random) -> str:
        """Start another instance of a process, as in a rolling deployment; the old one ends some seconds later."""
        # Both ends of the old one: deployments wait for it, or kill it.
        process, together_ms, clean = self._one(chance), chance.choice(_TOGETHER_MS), chance.random() < 0.5
        if process is None:
            return "no process runs that could be replaced"
        old, new = process.instances[-1], process.begin()
        self.spawn(self._end_old(process, old, together_ms, clean=clean))
        return f"{new.program.name} is started beside {old.program.name}"

    async def _end_old(self, process: Process, old: Instance, after_ms: int, *, clean: bool) -> None:
        await asyncio.wait([old.ended], timeout=after_ms / 1000)
        others = [each for each in process.staying if each is not old]
        due = process.is_due - old.restarts_due  # what is to follow this one comes only if it is still there by then
        if not due and len(others) < process.wanted:  # the new one has ended meanwhile
            old.written_off = False
        if old.ended.done() or not (others or due):
            return
        self.note(old.program, "is stopped cleanly, as it was replaced" if clean else "is killed, as it was replaced")
        if clean:
            await process.stop(old)
        else:
            process.kill(old, "closed")

    def freeze(self, chance: Random, lasts_ms: int) -> str:
        """Freeze a process in the middle of its work, as SIGSTOP or a suspended machine does.

        In half of the cases it seems dead, and another instance takes its place. It goes on in the middle of the other
        one's work, and ends some seconds later.
        """
        process = self._one(chance)
        if process is None:
            return "no process runs that could freeze"
        instance = process.instances[-1]
        self.spawn(self._freeze(process, instance, chance, chance.choice((lasts_ms, _FROZEN_MS))))
        return f"{instance.program.name} is to freeze"

    async def _freeze(self, process: Process, instance: Instance, chance: Random, lasts_ms: int) -> None:
        await self._exchanged(instance, chance.randrange(1, _MOST_EXCHANGES), _MOST_WAIT_MS)
        program = instance.program
        if instance.ended.done() or program.paused or self._recovers.is_set():
            return
        self.note(program, "freezes")
        self.loop.pause(program)
        # A pause that no other process notices, or one after which the old instance meets its successor.
        if chance.random() < 0.5:
            await self._first(instance, self._recovers, lasts_ms)
        else:
            instance.written_off = True
            new = process.begin()
            self.note(new.program, f"is started, because {program.name} seems dead")
            await self._exchanged(new, chance.randrange(1, _MOST_OF_OTHER), _FROZEN_MS)
        if instance.ended.done():
            return
        self.note(program, "goes on")
        self.loop.resume(program)
        if instance.written_off:
            await self._end_old(process, instance, chance.choice(_TOGETHER_MS), clean=chance.random() < 0.5)

    # --- ends --------------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        """Let frozen processes go on; wait until each has as many instances again as it needs, or is done."""
        self._recovers.set()
        for _ in range(RECOVERY_MS // _LOOK_MS):
            if not any(each.is_due or len(each.instances) > each.wanted for each in self.processes.values()):
                return
            await sleep_ms(_LOOK_MS)

    async def stop_all(self) -> None:
        """Stop all processes cleanly; that one does not end is a broken promise."""
        self.over = True
        every = [(process, each) for process in self.processes.values() for each in list(process.instances)]
        ends = await asyncio.gather(*(process.stop(each) for process, each in every))
        for (_, each), ended in zip(every, ends, strict=True):
            if not ended:
                self.violate(
                    f"{each.program.name} does not end within {TERMINATION_MS // 1000} s of its clean stop "
                    "(SIGTERM, or the cancellation of its main task)"
                )


_OURS: Final = tuple(str(Path(__file__).parents[1] / name) for name in ("simulator", "understudy"))
"""Folders in a checkout whose checks raise in the name of the program's line that calls them."""


def summary(error: BaseException) -> str:
    """Return an exception in one line, with the line of the program that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not each.filename.startswith((*LIBRARIES, *_OURS))]
    where = f" at {short_path(own[-1].filename)}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}: {error}{where}" if str(error) else f"{type(error).__name__}{where}"


def is_of_library(task: asyncio.Task[Any]) -> bool:
    """Whether the coroutine of a task is a library's, which has its own way to handle failures."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and code.co_filename.startswith(LIBRARIES)
