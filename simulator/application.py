"""One run of a user's program: brokers and the program's processes on virtual time, faults, calm, and the checks."""

import asyncio
import gc
import logging
import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from anyio.abc import TaskGroup

from broker.control.app import call
from broker.control.hosting import Clusters, Hosted
from broker.control.topics import log_of
from broker.steering.journal.entries import as_json, decode
from broker.steering.journal.ring import ANSWERED, Entry
from control_api.verb import Verb
from simulator.disks import write_disks
from simulator.engine import Cut, Engine
from simulator.faults import Nemesis
from simulator.liveness_of_programs import Backlog, waiting_tasks
from simulator.loop import BEGIN_NS, now_ms, sleep_ms
from simulator.plan import plan_of_program
from simulator.program import CURRENT, Program, Unsimulated
from simulator.program_faults import ProgramFaults
from simulator.story_diagram import diagram, unanswered
from simulator.supervisor import Supervisor, summary
from simulator.surroundings import surroundings
from simulator.wire_log import Exchange
from storage.log.partition_log import PartitionLog

MOST_AFTER_S = 1_800
"""Limit of virtual time after the planned faults: ten times the time without progress that ends a run."""
CALM_LIMIT_MS = 180_000
"""Time without progress after the last fault, after which a program counts as hanging: three of clients' timeouts."""
GRACE_MS = 60_000
"""Time after the last fault within which a process may still fail because of it: the longest of clients' timeouts."""
_SETTLED_MS = 3_000
"""How long nothing may be left to do before the program counts as done.

Arbitrary, as long as a usual heartbeat interval.
"""
_UNKNOWN_MS = 15_000
"""How long groups may take to form, or to commit for the first time, until they do not count any more.

Ours, longer than a session and a rebalance.
"""
_LOOK_MS = 250  # arbitrary: virtual time, short beside _SETTLED_MS
_COLLECT_S = 60
"""Virtual time between two garbage collections: when they happen may have an effect on a program.

Ours, as each costs real time.
"""
_MOST_CLOSES = 20  # arbitrary: more connections than a process closes in turn
_HARMLESS: Mapping[tuple[str, type], str] = {
    ("MessageAccumulator._pop_batch.<locals>.cb", KeyError): "aiokafka drops a batch twice when its producer has failed"
}
"""Callbacks of libraries that fail with such an error without any consequence, which no program can prevent.

aiokafka 0.14 drops a batch from those that are under way when it is to be sent again, and once more when all batches
fail with the producer: the second time it is not there.
"""
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
MAIN = "test"
"""The name of the user's function in the story."""


@dataclass
class Options:
    """What a run is given, besides its seed.

    ``faults``: kinds of :data:`simulator.plan.OF_PROGRAMS`. ``only``: the numbers of the faults that happen.
    """

    minutes: float = 1
    brokers: int = 3  # as many as replicas in production
    topics: Mapping[str, int] = field(default_factory=dict)
    faults: Collection[str] = ()
    only: Collection[int] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    data_dir: Path | None = None


class ApplicationRun(Engine):
    """The run of one seed. ``main`` is the user's function, which gets this object in its own wrapping."""

    def __init__(
        self,
        main: Callable[["ApplicationRun"], Coroutine[Any, Any, Any]],
        seed: int,
        options: Options,
        until_ms: float = math.inf,
        check: Callable[["ApplicationRun"], None] = lambda _run: None,
    ) -> None:
        """``check`` is called when all processes have ended."""
        super().__init__(seed, options.minutes * 60 + MOST_AFTER_S)
        self._main, self.options, self._check = main, options, check
        self.findings: dict[str, None] = {}
        """Broken promises, each once."""
        self.broken_ms: int | None = None
        """When the first of them was found, in virtual ms."""
        self.diagram: list[str] = []
        self.focus_us = 0
        """The moment to which a check has pointed; 0: none."""
        self.hangs = False
        """Whether the program makes no progress after the last fault."""
        self._until_ms = until_ms
        self.error: BaseException | None = None
        """The exception of the user's function."""
        self.make_servers(options.brokers, options.topics, settings_for(options))
        self.servers.violate = self.violate
        faults = plan_of_program(seed, options.minutes, options.brokers, options.faults)
        self.faults = [each for each in faults if options.only is None or each.number in options.only]
        self.supervisor: Supervisor
        self.nemesis: Nemesis
        self._injecting: asyncio.Task[None] | None = None
        self._all_programs: list[Program] = []
        self._collected_s = 0.0
        self._clusters: Clusters | None = None
        self.loop.advanced = self._advanced

    def violate(self, what: str) -> None:
        """Note a finding."""
        if what not in self.findings:
            self.findings[what] = None
            self.broken_ms = round(self.loop.now_s * 1000) if self.broken_ms is None else self.broken_ms
            self.write("FINDING", what)

    def write(self, who: str, line: str) -> None:
        """Add a line to the story, without addresses in memory, which differ from run to run."""
        self.trace.add(self.network.now_us, who, _ADDRESS.sub("0x...", line))

    def run(self, *, apart: bool) -> None:
        """Play the run to its end; ``apart``: in a process that ends with it, so that nothing is cleared up.

        Raises:
            FileExistsError: the folder for the directories exists by now.
        """
        collects = gc.isenabled()
        if not apart:
            gc.collect()
        gc.disable()
        try:
            with surroundings(self.loop, self.seed), _logs(self):
                self.play(self._world)
                if not apart:
                    _drop(self._all_programs)
        finally:
            if collects:
                gc.enable()

    def _advanced(self) -> None:
        if self._until_ms < math.inf and (self.findings or self.loop.now_s * 1000 > self._until_ms):
            raise Cut
        if self.loop.now_s - self._collected_s > _COLLECT_S:
            self._collected_s = self.loop.now_s
            gc.collect()

    def stuck(self, error: Exception) -> None:
        """Report what the program waits for when the loop cannot continue."""
        self.violate("\n".join([f"the program hangs: {error}", *waiting_tasks(self.programs)]))

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an exception in a callback for a finding, and other warnings of asyncio for lines of the story."""
        error, program, handle = context.get("exception"), CURRENT.get(), context.get("handle")
        name = "asyncio" if program is None else program.name
        self.write(name, f"{context['message']}: {error!r}")
        callback = getattr(getattr(handle, "_callback", None), "__qualname__", "")
        if isinstance(error, Unsimulated):
            self.violate(str(error))
        elif (callback, type(error)) in _HARMLESS:
            self.write(name, f"excused: {_HARMLESS[callback, type(error)]}")
        elif handle is not None and error is not None:
            self.violate(f"{name}: a callback fails with {summary(error)}")

    # --- the run -----------------------------------------------------------------------------------------------------

    async def _world(self) -> None:
        self.supervisor = Supervisor(self.loop, self.network, self.violate, self._all_programs)
        self.nemesis = Nemesis(self.servers, self.network, self.supervisor)
        self.nemesis.steps |= ProgramFaults(self.servers, self.supervisor, self.nemesis).steps
        await self.servers.start()
        self.supervisor.calm = not self.faults
        if self.faults:
            self._injecting = self.supervisor.spawn(self.nemesis.run(self.faults))
        self._program = program = Program(MAIN)
        self._all_programs.append(program)
        main = self.loop.create_task(self._main(self), name=MAIN, context=program.context)
        await asyncio.wait([main])
        error = asyncio.CancelledError() if main.cancelled() else main.exception()
        self.error = error
        if error is not None and not self.hangs:
            self.violate(str(error) if isinstance(error, Unsimulated) else f"{MAIN}: {summary(error)}")
        if error is None:
            await self._end_faults()
            await self.supervisor.stop_all()
        for program in self.programs:
            self.supervisor.lost(program)
        self._check(self)
        for failure in self.servers.tasks.failures:
            self.violate(f"a broker's task failed: {failure!r}")
        if self.findings:
            await self._draw()
        disks = self.servers.end(clean=True)
        if self.options.data_dir is not None:
            write_disks(disks, self.options.data_dir)

    async def _draw(self) -> None:
        """Draw what happened around the moment that a check has pointed to, or else before the first finding."""
        found_us = self.focus_us or (self.broken_ms or 0) * 1000
        begin_ms = self.servers.cluster.clock.now_ms() - self.network.now_us // 1000
        self.diagram = await diagram(self.servers.cluster, self.trace, self.network.names, begin_ms, found_us)

    async def control(
        self, verb: Verb, names: Mapping[str, str], query: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """Perform a verb of the control plane on the present cluster; return the status and the content."""
        if self._clusters is None:
            self._clusters = Clusters(Hosted(self.servers.cluster), cast("TaskGroup", self.servers.tasks))
        self._clusters.first.source = self.servers.cluster  # a restart makes another
        response: tuple[int, bytes] = await self.supervisor.spawn(call(self._clusters, verb, names, query, body))
        return response

    @property
    def programs(self) -> list[Program]:
        """Return the user's function and the running instances of all processes."""
        return [self._program, *(each.program for own in self.supervisor.processes.values() for each in own.instances)]

    def point_to(self, timestamp_ms: int) -> None:
        """Let the story show what happened around the timestamp of a record."""
        begin_ms = BEGIN_NS // 1_000_000
        self.focus_us = max(timestamp_ms - begin_ms, 0) * 1000

    def requests(self) -> dict[str, list[dict[str, Any]]]:
        """Return the requests of each instance, in the order in which it sent them, as the control plane's journal."""
        return {
            name: [_as_entry(number, each) for number, each in enumerate(exchanges)]
            for name, exchanges in self.network.wire.of.items()
        }

    def high_watermark(self, topic: str, partition: int) -> int:
        """Return up to where all in-sync replicas have a partition; -1 if no replica runs."""
        log = self._log(topic, partition)
        return -1 if log is None else log.high_watermark

    def end_offset(self, topic: str, partition: int) -> int:
        """Return the leader's log end offset; -1 if no replica runs."""
        log = self._log(topic, partition)
        return -1 if log is None else log.log_end_offset

    def _log(self, topic: str, partition: int) -> PartitionLog | None:
        led = self.servers.cluster.partitions.get((topic, partition))
        return None if led is None else log_of(led)

    async def calm(self, within_s: float) -> bool:
        """Wait until the planned faults are over, end them, and wait until the program has nothing left to do.

        A program that makes no progress for ``within_s`` is a finding; returns whether it was.
        """
        if self._injecting is not None:
            left_ms = self.options.minutes * 60_000 - now_ms()
            await sleep_ms(max(left_ms, 0))
        await self.supervisor.spawn(self._end_faults())
        self.hangs = await self.supervisor.spawn(self._settle(within_s * 1000))
        return self.hangs

    async def _end_faults(self) -> None:
        if self._injecting is None:
            return
        self._injecting.cancel()
        await asyncio.wait([self._injecting])
        self._injecting = None
        await self.nemesis.end()
        await self.supervisor.recover()
        self.loop.call_later(GRACE_MS / 1000, self._excuse_nothing)

    def _excuse_nothing(self) -> None:
        """From now on, no fault of the past excuses a failure."""
        self.supervisor.calm = True

    async def _settle(self, limit_ms: float) -> bool:
        least, done, since_ms, idle_ms, began_ms = None, 0, now_ms(), now_ms(), now_ms()
        calm_ms = self.servers.cluster.clock.now_ms()
        while now_ms() - idle_ms < _SETTLED_MS:
            backlog = Backlog(self.servers.cluster, calm_ms)
            if least is None or backlog.size < least:
                least, done, since_ms = backlog.size, backlog.done, now_ms()
            if backlog.unknown and now_ms() - began_ms < _UNKNOWN_MS:
                idle_ms = now_ms()
            if backlog.size and any(each.instances for each in self.supervisor.processes.values()):
                idle_ms = now_ms()
                if now_ms() - since_ms > limit_ms:
                    head = f"the program makes no progress for {limit_ms / 1000:g} s after the last fault"
                    if backlog.done > done:
                        head = f"the program commits, but has not less to do for {limit_ms / 1000:g} s: it feeds itself"
                    requests = await unanswered(self.servers.cluster, self.network.names)
                    self.violate("\n".join([head, *backlog.lines(), *waiting_tasks(self.programs), *requests]))
                    return True
            await sleep_ms(_LOOK_MS)
        return False


def _as_entry(number: int, exchange: Exchange) -> dict[str, Any]:
    frame, answer = exchange.request, exchange.response
    if answer is not None:
        answer = len(answer).to_bytes(4) + answer  # as the journal keeps it
    entry = Entry(
        number, exchange.sent_us // 1000, -1 if answer is None else exchange.received_us - exchange.sent_us,
        exchange.broker, exchange.connection, frame, answer, len(frame), len(answer or b""), None,
        "never answered" if answer is None else ANSWERED, exchange.sent_us,
    )  # fmt: skip
    return as_json(entry, decode(entry), None, lambda _topic_id: None)


def _close(task: asyncio.Task[Any]) -> None:
    """Close the coroutine of a task; ``finally`` blocks that wait are closed there, too."""
    coroutine: Any = task.get_coro()
    for _ in range(0 if task.done() else _MOST_CLOSES):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001, S112 - of a program that was killed long ago
            continue
        return


class _StoryHandler(logging.Handler):
    """Puts the lines of the program's log into the story."""

    def __init__(self, run: ApplicationRun) -> None:
        super().__init__()
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        """Add a line."""
        program = CURRENT.get()
        name = "asyncio" if program is None else program.name
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a mistake in a log call must not end the program
            text = f"{record.msg} {record.args}"
        if record.exc_info:
            text += f": {summary(record.exc_info[1] or Exception())}"
        self._run.write(name, f"{record.levelname} {record.name}: {text}")


@contextmanager
def _logs(run: ApplicationRun) -> Iterator[None]:
    """Put the program's log into the story alone, within the block."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [_StoryHandler(run)]
    root.setLevel(min(level, logging.INFO) or logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def settings_for(options: Options) -> dict[str, str]:
    """Return the settings of the brokers: replication for their number, topics that are created on use, the user's."""
    replicas = min(options.brokers, 3)  # Kafka's defaults of the internal topics
    factors = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic", "default")
    return {
        **{f"{each}.replication.factor": str(replicas) for each in factors},
        "transaction.state.log.min.isr": str(min(replicas, 2)),
        "min.insync.replicas": str(min(replicas, 2)),
        "auto.create.topics.enable": "true",
        **options.settings,
    }


def _drop(programs: list[Program]) -> None:
    """Let go of all tasks that did not end, without a trace of what their ``finally`` blocks do."""
    hook, disabled = sys.unraisablehook, logging.root.manager.disable
    sys.unraisablehook = lambda _: None
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for program in programs:
                for task in (*program.buried, *program.tasks):
                    _close(task)
                for kept in (program.buried, program.tasks, program.connections, program.on_signal):
                    kept.clear()
            gc.collect()
    finally:
        sys.unraisablehook = hook
        logging.disable(disabled)
