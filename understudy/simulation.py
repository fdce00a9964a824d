"""Deterministic simulation of a program of the user's own: `understudy.simulation.run(main, seed=17)`.

`main` is an ``async def main(sim)``. It runs on virtual time, in one process with a simulated cluster, and everything
random comes from the seed: the faults, the order of events, what the program gets from `random`, `uuid4` or the clock.

    async def main(sim):
        sim.process("copier", lambda: copy(sim.bootstrap_servers))
        await sim.feed("in", range(200))
        await sim.calm()
        await sim.check_one_outcome_each("in", "out")
"""

import asyncio
import importlib
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from control_api.verbs import BY_NAME
from understudy import server_path
from understudy.aio import AsyncCluster
from understudy.errors import ControlError
from understudy.exam.wire import broken_rules
from understudy.fault_kinds import FAULTS
from understudy.judging import Conformance, findings_of_client_logs, judge
from understudy.results import JournalEntry, Record, Written
from understudy.transport import Address, AsyncTransport, decoded

_PAUSE_S = 0.1  # of virtual time, between two looks; ours, short beside what is waited for
_SHOWN = 5  # records in an error message; ours, what fits on a line
_BATCH = 1_000  # arbitrary: records that are read at once
_MISSING, _CONFLICT = 404, 409
_STORY = 20_000  # all lines that a trace keeps
Main = Callable[["Simulation"], Coroutine[Any, Any, Any]]


class SimulationError(AssertionError):
    """A run had findings; the message has them, the story and the command that repeats the run."""


class _InProcess(AsyncTransport):
    """Transport to the control plane of a simulated cluster, whose verbs are called without HTTP."""

    def __init__(self, engine: Any) -> None:
        super().__init__(Address("http://127.0.0.1:9099"))
        self._engine = engine

    async def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Perform the verb and return the decoded response; raise ControlError."""
        __tracebackhide__ = True
        verb = BY_NAME[name]
        names = {each: str(arguments[each]) for each in verb.places}
        document = verb.document(arguments)
        body = b"" if document is None else json.dumps(document).encode()
        return decoded(verb, *await self._engine.control(verb, names, verb.query_texts(arguments), body))


class SimulatedCluster(AsyncCluster):
    """The cluster of a simulation: all operations of :class:`understudy.AsyncCluster`, on virtual time."""

    async def conformance(self, *, since: int = 0, software: Iterable[str] = ()) -> Conformance:
        """Check the requests in the journal against the rules of the protocol: see :class:`understudy.AsyncCluster`.

        It starts a process, and takes about two seconds of real time.
        """
        entries = (await self._ask("journal list", **({"since": since} if since else {})))["entries"]
        with importlib.import_module("simulator.surroundings").outside():
            return judge(entries, [software] if isinstance(software, str) else list(software))


class Process:
    """A process of the program: its instances, which the plan's faults kill, stop, and start again."""

    def __init__(self, process: Any, engine: Any) -> None:
        self._process, self._engine = process, engine

    @property
    def name(self) -> str:
        """Return its name; instances are called NAME.1, NAME.2, ... in the story."""
        name: str = self._process.name
        return name

    @property
    def running(self) -> int:
        """Return the number of its running instances."""
        return len(self._process.instances)

    def start(self) -> None:
        """Start an instance, beside those that run."""
        self._process.begin()
        self._process.wanted = len(self._process.instances)

    def kill(self, how: Literal["closed", "reset", "silent"] = "closed") -> None:
        """Kill all instances, as SIGKILL does; they are not started again before :meth:`start`.

        `how` is what brokers notice: connections that are closed, reset, or silent, as after a power cut.
        """
        self._process.wanted = 0
        for instance in list(self._process.instances):
            self._process.kill(instance, how)

    def pause(self) -> None:
        """Freeze all instances, as SIGSTOP does: they run no line, while their connections stay."""
        for instance in self._process.instances:
            if not instance.program.paused:
                self._engine.loop.pause(instance.program)

    def resume(self) -> None:
        """Let frozen instances go on."""
        for instance in self._process.instances:
            if instance.program.paused:
                self._engine.loop.resume(instance.program)

    async def stop(self) -> bool:
        """Stop all instances cleanly, as SIGTERM does; return False if one had to be killed after 30 s."""
        self._process.wanted = 0
        stops = [self._process.stop(each) for each in list(self._process.instances)]
        spawn = self._engine.supervisor.spawn
        return all([await spawn(stop) for stop in stops])


class Simulation:
    """The world of one run: the `sim` of the user's function."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.seed: int = engine.seed
        self.random = Random(f"{engine.seed} test")  # noqa: S311 - replayed from the seed
        """A generator for the function's own decisions."""
        self.bootstrap_servers: list[str] = [f"127.0.0.1:{port}" for port in engine.servers.ports]
        self._client_logs: list[str] = []
        self.cluster = SimulatedCluster(Address(""), self.bootstrap_servers, transport=_InProcess(engine))
        """All operations of `understudy.AsyncCluster`: faults, clock, brokers, holds, journal, diagrams."""

    @property
    def now_s(self) -> float:
        """Return the virtual seconds since the start."""
        now_s: float = self._engine.loop.now_s
        return now_s

    def note(self, text: str) -> None:
        """Add a line to the story."""
        self._engine.trace.add(self._engine.network.now_us, "test", text)

    def log(self, client: str, event: str, **fields: object) -> None:
        """Note what a client of the program has done, for :meth:`check_client_logs`.

        `event` and `fields` are those of client logs in docs/audit.md: `sim.log("producer-1", "sent", id="17",
        topic="orders")`. `client` names one life of one producer or consumer.
        """
        self._client_logs.append(json.dumps({"event": event, "client": client, **fields}))

    async def check_client_logs(self) -> None:
        """Check what the program has noted: records lost, twice, reordered, aborted but read, offsets that go back.

        These are the checks `history-*` of `understudy audit --history`. It starts a process, and takes about two
        seconds of real time. Raises AssertionError: there are findings.
        """
        with importlib.import_module("simulator.surroundings").outside():
            findings = findings_of_client_logs(self._client_logs)
        if findings:
            raise AssertionError("; ".join(findings))

    def process(self, name: str, start: Callable[[], Awaitable[Any]], *, restart: bool = True) -> Process:
        """Start a process of the program: `start()` returns the coroutine of an instance.

        The plan kills it, stops it, starts it again, and starts two at once. An instance that fails by itself is
        started again after a second, unless `restart` is false; without any fault under way, that is a finding.
        """
        return Process(self._engine.supervisor.process(name, start, restart=restart), self._engine)

    async def calm(self, *, within_s: float = 360) -> None:
        """Wait until the planned faults are over and end them; then until the program has nothing left to do.

        All brokers and processes run again by then. The program has nothing left to do if its groups have no lag and no
        transaction is open that began before; it may begin others. If it makes no progress for `within_s` of virtual
        time, that is a finding, which ends the run here. The default is more than the five minutes after which Kafka's
        clients refresh old metadata.
        """
        if await self._engine.calm(within_s):
            raise SimulationError("the program hangs")

    async def feed(
        self,
        topic: str,
        records: Iterable[object],
        *,
        over_s: float | None = None,
    ) -> list[Written]:
        """Write records to a topic, one after another, and return their partitions and offsets.

        A record is a value (bytes; anything else is written as its `str`), or a mapping with key, value, headers and
        partition. They are spread over `over_s` virtual seconds (default: the rest of the minutes with faults). Faults
        of the network do not concern them; without a leader, they wait. Each is acknowledged by all in-sync replicas.
        """
        rows = [dict(each) if isinstance(each, Mapping) else {"value": _bytes(each)} for each in records]
        left_s = max(self._engine.options.minutes * 60 - self.now_s, 0) if over_s is None else over_s
        began_s, written = self.now_s, []
        for at, row in enumerate(rows):
            await asyncio.sleep(max(began_s + at * left_s / len(rows) - self.now_s, 0))
            written.append(await self._write(topic, row))
        return written

    async def _write(self, topic: str, row: Mapping[str, Any]) -> Written:
        while True:
            try:
                (place,) = await self.cluster.topics[topic].write(row)
            except ControlError as error:
                if error.status == _MISSING:
                    raise ValueError(
                        f"there is no topic {topic!r}; name it in topics= or with --topic {topic}"
                    ) from None
                if error.status != _CONFLICT:
                    raise
                await asyncio.sleep(_PAUSE_S)
                continue
            while (end := self._engine.high_watermark(topic, place.partition)) <= place.offset:
                if end < 0 or self._engine.end_offset(topic, place.partition) <= place.offset:
                    break  # a new leader does not have it
                await asyncio.sleep(_PAUSE_S)
            else:
                return place

    async def read(
        self, topic: str, *, isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    ) -> list[Record]:
        """Return all records of a topic, by partition and offset, as a consumer with this isolation level gets them."""
        records: list[Record] = []
        for partition in range(len((await self.cluster.topics[topic].show()).partitions)):
            offset, log = 0, self.cluster.topics[topic].partitions[partition]
            while page := await log.records(offset=offset, limit=_BATCH, isolation=isolation):
                records += [each for each in page if each.control is None]
                offset = page[-1].offset + 1
        return records

    async def check_one_outcome_each(
        self,
        source: str,
        target: str,
        *,
        of: Callable[[Record], object] = lambda record: record.value,
        source_of: Callable[[Record], object] = lambda record: record.value,
    ) -> None:
        """Check that each record of `source` has exactly one outcome in `target`, committed.

        `of` returns which record an outcome belongs to, `source_of` the same of a record of the source; by default both
        have the same value. Raises AssertionError: it lists records with none or several, and outcomes of no record.
        """
        records, outcomes = await self.read(source), await self.read(target)
        wanted, counts = Counter(map(source_of, records)), Counter(map(of, outcomes))
        missing = [each for each in wanted if counts[each] < wanted[each]]
        several = [each for each in wanted if counts[each] > wanted[each]]
        unknown = [each for each in counts if not wanted[each]]
        if missing or several or unknown:
            late = [each.timestamp_ms for each in outcomes if of(each) in (*several[:1], *unknown[:1])]
            early = [each.timestamp_ms for each in records if source_of(each) in missing[:1]]
            self._engine.point_to(max(late or early))
            parts = (
                _listed(f"without an outcome in {target}", missing),
                _listed(f"with several outcomes in {target}", several),
                _listed(f"in {target} without a record in {source}", unknown),
            )
            raise AssertionError("; ".join(filter(None, parts)))


def _bytes(value: object) -> bytes | None:
    return value if isinstance(value, bytes | None) else str(value).encode()


def _listed(what: str, records: Collection[object]) -> str:
    shown = ", ".join(map(repr, list(records)[:_SHOWN]))
    return f"{len(records)} {what}: {shown}{' ...' if len(records) > _SHOWN else ''}" if records else ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened in the run of one seed.

    ``findings``: what went wrong, each once. ``digest``: a hash of everything that happened. ``faults``: number and
    description of those that happened. ``story``: the run line by line: time, who, what; the program's log lines are in
    it. ``exchanges``: pieces of bytes that the program sent and received: time in virtual microseconds, process, what,
    size, checksum.
    """

    seed: int
    findings: tuple[str, ...]
    digest: str
    virtual_s: float
    broken_ms: int
    faults: tuple[tuple[int, int, str], ...]
    story: tuple[str, ...]
    exchanges: tuple[tuple[int, str, str, int, int], ...] = field(repr=False)
    diagram: tuple[str, ...] = ()
    """A part of the story as a sequence diagram in characters, with the lines in place; empty without a finding."""

    @property
    def ok(self) -> bool:
        """Return whether there is no finding."""
        return not self.findings


def options(
    minutes: float = 0.5,  # as for the command `understudy simulate`, and so many brokers
    brokers: int = 3,
    topics: Mapping[str, int] | None = None,
    faults: str | Iterable[str] = "all",
    settings: Mapping[str, object] | None = None,
    data_dir: Path | None = None,
) -> Any:
    """Return the options of a run for the engine.

    Raises:
        ValueError: one is not valid; the message has what to write instead.
    """
    kinds, only = faults_of(faults)
    if not (0 < minutes < math.inf):
        raise ValueError(f"minutes needs a number above 0, not {minutes}")
    if not 1 <= brokers <= 9:  # ours: with more, faults of one broker are hardly noticed
        raise ValueError(f"brokers needs a number from 1 to 9, not {brokers}")
    texts = {name: str(value) for name, value in (settings or {}).items()}
    return importlib.import_module("simulator.application").Options(
        minutes, brokers, dict(topics or {}), kinds, only, texts, data_dir
    )


def faults_of(faults: str | Iterable[str]) -> tuple[tuple[str, ...], frozenset[int] | None]:
    """Return kinds of faults, in their order, and the numbers of the faults that happen, None for all.

    Raises:
        ValueError: there is no such kind.
    """
    parts = faults.split(",") if isinstance(faults, str) else list(faults)
    names = {each for each in parts if not each.isdecimal()}
    numbers = frozenset(int(each) for each in parts if each.isdecimal())
    if wrong := names - {*FAULTS, "all", "none", ""}:
        raise ValueError(f"{', '.join(sorted(wrong))} is no kind of fault; use some of {', '.join(FAULTS)}, or none")
    every = "all" in names or not names
    return (FAULTS if every else tuple(each for each in FAULTS if each in names)), numbers or None


def run(
    main: Main,
    seed: int,
    *,
    minutes: float = 0.5,  # as for the command `understudy simulate`, and so many brokers
    brokers: int = 3,
    topics: Mapping[str, int] | None = None,
    faults: str | Iterable[str] = "all",
    settings: Mapping[str, object] | None = None,
    data_dir: Path | None = None,
    check: bool = True,
) -> Outcome:
    """Run `main(sim)` with one seed on virtual time, and return what happened.

    `minutes`: virtual time with faults. `topics`: name -> partitions. `faults`: kinds of :data:`FAULTS`, or `none`.
    `settings`: of the brokers, by Kafka's names. `data_dir`: a new folder for the brokers' directories.

    Raises:
        SimulationError: there were findings, and `check` is true.
        ValueError: an option is not valid.
    """
    with server_path.entered():
        outcome, error = play(main, seed, options(minutes, brokers, topics, faults, settings, data_dir))
    if outcome.findings and check:
        raise SimulationError("\n".join(outcome.findings)) from error
    return outcome


def _check_requests(engine: Any) -> None:
    """Report the first request of each instance that breaks a rule of the protocol."""
    for name, entries in engine.requests().items():
        broken = broken_rules([JournalEntry(**each) for each in entries])
        if broken:
            first, more = broken[0], f"; {len(broken) - 1} more" if len(broken) > 1 else ""
            engine.focus_us = engine.focus_us or first.entry.at_ms * 1000
            engine.violate(
                f"{name} breaks a rule of the protocol at {first.entry.at_ms / 1000:.3f} s: {first.entry.api} "
                f"v{first.entry.version} to broker {first.entry.broker}: {first.text}{more}"
            )


def play(
    main: Main, seed: int, chosen: Any, until_ms: float = math.inf, *, detailed: bool = False, apart: bool = False
) -> tuple[Outcome, BaseException | None]:
    """Play one seed with these options; return what happened, and the exception of the function, if it raised one.

    The server's packages must be importable. ``until_ms``: the run ends at this virtual time, or at its first finding
    if that is earlier; infinite: it is played to its end. ``detailed``: what was exchanged is kept without a finding.
    ``apart``: this process ends with the run.
    """
    engine = importlib.import_module("simulator.application").ApplicationRun(
        lambda own: main(Simulation(own)), seed, chosen, until_ms, _check_requests
    )
    engine.run(apart=apart)
    outcome = Outcome(
        seed,
        tuple(engine.findings),
        engine.trace.digest,
        engine.loop.now_s,
        engine.broken_ms or 0,
        tuple((each.number, each.at_ms, str(each)) for each in engine.faults),
        tuple(engine.trace.story(_STORY)) if engine.findings else (),
        tuple(engine.trace.exchanges) if engine.findings or detailed else (),
        tuple(engine.diagram),
    )
    return outcome, engine.error


def warm_up() -> None:
    """Run an empty cluster: processes that are forked from this one then need not prepare for it what is made late."""
    play(_idle, 0, options(minutes=0.001, topics={"topic": 1}, faults="none"), apart=True)


async def _idle(sim: Simulation) -> None:
    """Write a record, and read it."""
    await sim.feed("topic", [0])
    await sim.read("topic")
