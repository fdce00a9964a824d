"""Plays a schedule: steps in order, faults that end on a timer, and then what must work once all of them are over."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from understudy.errors import UnderstudyError
from understudy.exam.driver import AnyDriver, DriverHang, DriverProblem, LibraryError, NotStarted, Starved
from understudy.exam.exercise import TOPICS, Exercise, NotExercised, value_of
from understudy.exam.random import steps
from understudy.exam.random.administration import Administrator
from understudy.exam.random.clients import Client, Copier, Reader, RecordProducer, ignoring_refusals
from understudy.exam.random.faults import BROKERS, REFUSED_FOR_GOOD, UNDO
from understudy.exam.random.history import History
from understudy.exam.random.schedule import FAULT, Schedule, Step
from understudy.exam.random.sharing import ShareLedger, Sharer
from understudy.exam.scenario import STEERING

if TYPE_CHECKING:
    from understudy.exam.upstream import UpstreamCluster

PATIENCE_S: Final = 15.0  # more than a session timeout (10 s)
"""Once all faults are over: how long a consumer may get nothing although there are records for it."""
LEAST_POLLS: Final = 50
"""And how often it is polled at least: on a busy machine the time alone proves nothing. Arbitrary, of POLL_MS each."""
ELSEWHERE_S: Final = 30.0
"""The same on another cluster, from which no member can be removed before its session timeout.

Three of the exam's session timeouts.
"""
LOCK_S: Final = 31
"""One second longer than share.record.lock.duration.ms."""
LOOK_S: Final = 0.05  # as in scenarios: few looks, beside what a coordinator does
LAST_SHARES: Final = 4
"""How often a share group is polled at the end, for records that were reported as done.

Arbitrary, one brings what is left.
"""
ATTEMPTS: Final = 3
"""How often something is tried that must work after all faults: metadata may be old once; a producer is new at last."""
PAUSE_S: Final = 0.2
"""Between two attempts, arbitrary."""
FIRST: Final = 4
"""Records in each partition before the application starts, so that a reader has a position that it can lose.

Arbitrary, few to read.
"""
GHOST_S: Final = 1.0
"""After this time a member whose program is gone is removed from its group, as by its session timeout."""


class Ended(Exception):
    """The driver can answer no more commands; the finding is in the history."""


class Healing:
    """Ends each fault after its time, even if the driver is still in a call; `all` ends them at once."""

    def __init__(self) -> None:
        self._timers: list[tuple[threading.Timer, Callable[[], None]]] = []

    def after(self, seconds: float, undo: Callable[[], object]) -> None:
        """End something later."""
        once = threading.Lock()

        def ended() -> None:
            if once.acquire(blocking=False):
                with ignoring_refusals():
                    undo()

        timer = threading.Timer(seconds, ended)
        timer.daemon = True
        self._timers.append((timer, ended))
        timer.start()

    def all(self) -> None:
        """End everything now; return when it has ended."""
        for timer, ended in self._timers:
            timer.cancel()
            ended()
        for timer, _ in self._timers:
            timer.join()
        self._timers.clear()


class Play:
    """One play of a schedule. `start` starts a driver, each time that the application is started."""

    def __init__(self, exercise: Exercise, schedule: Schedule, start: Callable[[], AnyDriver]) -> None:
        self.exercise, self.schedule, self.start = exercise, schedule, start
        self.history, self.healing = History(), Healing()
        self.ledger = ShareLedger()
        self.clients: dict[str, Client] = {name: self._opened(name, about) for name, about in schedule.clients.items()}
        self.used: set[str] = set()
        self.is_steered = getattr(exercise.cluster, "offers", STEERING) >= STEERING
        """Whether the cluster is Understudy's own; of any other one, only requests can be changed."""

    def _opened(self, name: str, options: Mapping[str, Any]) -> Client:
        arguments = self.exercise, self.history, name, options
        partitions = TOPICS[options["topic"]]
        match options["role"]:
            case "copier":
                return Copier(*arguments, partitions=partitions)
            case "sharer":
                return Sharer(*arguments, ledger=self.ledger)
            case "admin":
                return Administrator(*arguments)
            case "reader" | "member":
                return Reader(*arguments, partitions=partitions)
        return RecordProducer(*arguments)

    def run(self) -> History:
        """Play all steps, then what must work afterwards; return the history."""
        try:
            with self._watched("hello", ""):
                self.exercise.driver.hello()
            self._write_first()
            for step in self.schedule.steps:
                self._step(step)
            self.healing.all()
            self._finish()
        except Ended:
            self.exercise.driver.__exit__(None, None, None)
            self.healing.all()
            self._repair()
            self._abort_open_transactions()
        return self.history

    def _write_first(self) -> None:
        """Write records that are there before the application."""
        for topic in sorted({about["topic"] for about in self.schedule.used().values()}):
            for partition in range(TOPICS[topic]):
                values = [f"first {topic}-{partition}/{number}" for number in range(FIRST)]
                for value in values:
                    self.history.write("sent", "log", id=value, topic=topic)
                    self.history.keys[value] = None
                self.exercise.write(values, topic=topic, partition=partition)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        if step.kind == FAULT:
            self._fault(step.fields)
        elif step.kind == steps.KILL:
            self._kill()
        else:
            client = self.clients[step.fields["client"]]
            self.used.add(client.name)
            with self._watched(step.kind, client.name):
                steps.BY_NAME[step.kind].play(client, dict(step.fields))
            if step.kind == "restart" and not step.fields["close"]:
                self.healing.after(GHOST_S, self.evict_ghosts)

    @contextmanager
    def _watched(self, what: str, name: str) -> Iterator[None]:
        """Write down that a call did not return, or that the driver ended.

        Raises Ended; NotStarted and Starved are passed on, since they are no finding.
        """
        try:
            yield
        except (NotStarted, Starved):
            raise
        except DriverHang as error:
            self.history.write("hung", name or "driver", call=f"{what}: {error}")
            raise Ended from error
        except DriverProblem as error:
            self.history.problems.append(("driver-ended", f"{name} {what}: {error}".strip()))
            raise Ended from error

    def _fault(self, fields: Mapping[str, Any]) -> None:
        for each in fields["steps"]:
            verb, arguments = each["verb"], dict(each["arguments"])
            if verb != "faults add" and not self.is_steered:
                raise NotExercised(f"needs steering of the cluster: {verb}")
            if verb == "groups evict":
                members = [member.member_id for member in self._members(arguments["group"])]
                if not members:
                    continue
                arguments["member"] = members[arguments["member"] % len(members)]
            with ignoring_refusals():
                if verb == "faults add":
                    self.healing.after(fields["lasts_ms"] / 1000, self.exercise.cluster.faults.add(**arguments).remove)
                    continue
                self.exercise.cluster.scenario.run([{"verb": verb, "arguments": arguments}])
                if verb in UNDO:
                    undo = [{"verb": UNDO[verb], "arguments": _named(arguments)}]
                    self.healing.after(fields["lasts_ms"] / 1000, partial(self.exercise.cluster.scenario.run, undo))

    def _kill(self) -> None:
        """Kill the driver's process, and start it again: all clients are gone, without a farewell."""
        self.exercise.driver.__exit__(None, None, None)
        for client in self.clients.values():
            client.abandon()
        for producer in self.producers():
            producer.abandoned.clear()
        with self._watched("start", ""):
            self.exercise.driver = self.start()
            self.exercise.driver.hello()
        self.healing.after(GHOST_S, self.evict_ghosts)

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _members(self, group: str) -> Any:
        try:
            return self.exercise.cluster.groups[group].show().members
        except UnderstudyError:
            return ()

    def readers(self) -> list[Reader]:
        """Return all consumers, those of copiers included."""
        return [
            each.reader if isinstance(each, Copier) else each
            for each in self.clients.values()
            if isinstance(each, Reader | Copier)
        ]

    def producers(self) -> list[RecordProducer]:
        """Return all producers, those of copiers included."""
        return [
            each.producer if isinstance(each, Copier) else each
            for each in self.clients.values()
            if isinstance(each, RecordProducer | Copier)
        ]

    def sharers(self) -> list[Sharer]:
        """Return the members of the share group."""
        return [each for each in self.clients.values() if isinstance(each, Sharer)]

    def evict_ghosts(self) -> None:
        """Remove members whose program is gone, as the cluster would do after the session timeout."""
        if not self.is_steered:
            return
        members = [*self.readers(), *self.sharers()]
        alive = {each.handle.name for each in members if each.handle is not None}
        for group in {each.options["group"] for each in members if "group" in each.options}:
            for member in self._members(group):
                if member.client_id.startswith("exam-") and member.client_id not in alive:
                    with ignoring_refusals():
                        self.exercise.cluster.groups[group].evict(member.member_id)

    def visible(self, topic: str) -> list[tuple[int, int, str]]:
        """Return partition, offset and value of the records that a consumer with read_committed receives."""
        return [
            (partition, record.offset, value_of(record))
            for partition in range(TOPICS[topic])
            for record in self.exercise.log(topic, partition, committed=True)
        ]

    def _check_keys(self) -> None:
        for topic in sorted({about["topic"] for about in self.schedule.used().values()}):
            for partition in range(TOPICS[topic]):
                for record in self.exercise.log(topic, partition):
                    key = None if record.key is None else record.key.decode(errors="backslashreplace")
                    self.history.check_key("the log", value_of(record), key)

    # --- what must work, once all faults are over --------------------------------------------------------------------

    def _repair(self) -> None:
        """Leave no fault and no broker that is down."""
        cluster = self.exercise.cluster
        cluster.faults.clear()
        for broker in BROKERS if self.is_steered else ():
            for verb in ("brokers resume", "brokers start"):
                with ignoring_refusals():
                    cluster.scenario.run([{"verb": verb, "arguments": {"broker": broker}}])
        self.evict_ghosts()

    def _finish(self) -> None:
        self._repair()
        for producer in self.producers():
            with self._watched("flush", producer.name):
                producer.flush_abandoned()
            if producer.handle is not None:
                with self._watched("end of all transactions", producer.name):
                    self._settle(producer)
        self._abort_open_transactions()
        if any(step.fields.get("name") == REFUSED_FOR_GOOD for step in self.schedule.steps if step.kind == FAULT):
            self._replace_consumers()
        self._drain()
        self._drain_shares()
        self._check_keys()
        for admin in self.clients.values():
            if isinstance(admin, Administrator) and admin.name in self.used:
                with self._watched("create topic", admin.name):
                    admin.create_last(ATTEMPTS)
                self.history.problems += admin.problems()
        for client in self.clients.values():
            with self._watched("close", client.name):
                error = client.close()
            if error is not None and not of_rebalance(error):
                text = f"{client.name} could not be closed, after all faults were over: {error}"
                self.history.problems.append(("close-fails", text))
        with self._watched("quit", ""):
            self.exercise.driver.call("quit")

    def _settle(self, producer: RecordProducer) -> None:
        """End what is open; then one more record has to be written."""
        producer.end(commit=True)
        if pending := producer.flush():
            text = f"{producer.name} reports no outcome of {pending} records, after their time was over"
            self.history.problems.append(("no-outcome", text))
        if producer.options["role"] == "copier":
            return
        until, attempt = time.monotonic() + PATIENCE_S, 0
        while attempt < ATTEMPTS or time.monotonic() < until:
            attempt += 1
            error = self._write_last(producer)
            if error is None:
                return
            if error.kind not in {"retriable", "timeout"}:  # those pass without another producer
                producer.close()
            time.sleep(PAUSE_S)
        text = f"{producer.name} could not write, after all faults were over: {error}"
        self.history.problems.append(("not-written-after-healing", text))

    def _write_last(self, producer: RecordProducer) -> LibraryError | None:
        """Write a record, in a transaction of its own if there are any; return the library's error."""
        handle = producer.opened()
        if handle is None:
            return producer.last_error
        before = len(handle.sent)
        producer.send(producer.options["topic"], [0])
        if producer.transactional and not producer.end(commit=True) and producer.refused_end is not None:
            return producer.refused_end
        producer.flush()
        return next((each.error for each in handle.sent[before:] if each.error is not None), None)

    def _replace_consumers(self) -> None:
        """Restart the consumers, as an application does after an error that is final for them."""
        for reader in self.readers():
            if reader.handle is not None:
                with self._watched("restart", reader.name):
                    reader.close()
                    reader.opened()

    def _abort_open_transactions(self) -> None:
        """End transactions that no program ends any more, as the cluster would do after their timeout."""
        if not self.is_steered:
            cast("UpstreamCluster", self.exercise.cluster).end_transactions()
            return
        for name in {each.options["transactional_id"] for each in self.producers() if each.transactional}:
            with ignoring_refusals():
                self.exercise.cluster.transactions[name].abort()
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            states = {each.state for each in self.exercise.cluster.transactions.list()}
            if not states & {"Ongoing", "PrepareCommit", "PrepareAbort"}:
                return
            time.sleep(LOOK_S)

    def _drain(self) -> None:
        """Let all consumers read to the end, and write down that nothing was left."""
        copiers = [each for each in self.clients.values() if isinstance(each, Copier) and each.name in self.used]
        for copier in copiers:
            wanted = {value for _, _, value in self.visible(copier.options["topic"])}
            with self._watched("copy", copier.name):
                self._until(lambda wanted=wanted, copier=copier: wanted <= self._copied(copier), copier.copy)  # type: ignore[misc]
            self.history.write(
                "drained", self._id_of(copier.reader), topic=copier.options["topic"], group=copier.reader.group
            )
            self._store(copier.reader)
        groups: dict[str, list[Reader]] = {}
        for reader in self.readers():
            if reader.name in self.used and reader.name not in {each.name for each in copiers}:
                groups.setdefault(reader.group or reader.name, []).append(reader)
        for readers in groups.values():
            self._drain_together(readers)

    def _drain_together(self, readers: list[Reader]) -> None:
        topic, group = readers[0].options["topic"], readers[0].group
        alive = [each for each in readers if each.handle is not None] or readers[:1]
        if group is None and readers[0].handle is None:
            return

        def poll() -> int:
            got = 0
            for each in alive:
                with self._watched("poll", each.name):
                    got += each.poll()
            return got

        wanted = {(p, o) for p, o, _ in self.visible(topic)}
        if group is None:
            starts = self._starts(readers[0])
            wanted = {(p, o) for p, o in wanted if o >= starts.get(p, 0)}
        self._until(lambda: wanted <= self._read_by(readers), poll)
        for each in alive:
            if each.handle is not None:
                self.history.write("drained", each.handle.name, topic=topic, group=group)
            with self._watched("commit offsets", each.name):
                if group is not None:
                    self._commit_last(each)
        if group is not None:
            self._store(readers[0])

    def _commit_last(self, reader: Reader) -> None:
        """Commit; after some attempts that has to succeed. A member may have to join again before."""
        if reader.options.get("auto_commit") or not reader.next:
            return
        until = time.monotonic() + PATIENCE_S
        while not self._commits(reader):
            if time.monotonic() > until:
                text = f"{reader.name} could not commit, after all faults were over: {reader.last_error}"
                self.history.problems.append(("not-committed-after-healing", text))
                return
            reader.poll()
            time.sleep(PAUSE_S)

    def _commits(self, reader: Reader) -> bool:
        """Commit; return whether that succeeded, or there was nothing to commit: an error of librdkafka."""
        before = self.exercise.journal(api="OffsetCommit")
        if reader.commit():
            return True
        stored = self._offsets_of(reader) or {}
        nothing_sent = len(self.exercise.journal(api="OffsetCommit")) == len(before)
        return nothing_sent and all(stored.get(place, 0) >= offset for place, offset in reader.next.items())

    def _drain_shares(self) -> None:
        """Let a new member of the share group take what is left, after all others have ended."""
        used = [each for each in self.sharers() if each.name in self.used]
        for sharer in used:
            with self._watched("close", sharer.name):
                sharer.close()
        if not used:
            return
        self.evict_ghosts()
        if self.is_steered:
            self.exercise.cluster.clock.advance(seconds=LOCK_S)
        last, topic = used[0], used[0].options["topic"]

        def share() -> int:
            with self._watched("share", last.name):
                return last.share(last=True)

        if not self.ledger.delivered:
            self._until(lambda: self._probed(topic), share)
        for _ in range(LAST_SHARES):
            share()
        visible = {(topic, partition, offset): value for partition, offset, value in self.visible(topic)}
        self._until(lambda: self.ledger.expected(visible) <= self.ledger.delivered.keys(), share)
        self.history.problems += self.ledger.problems(visible)
        if last.refusals and all(last.refusals):
            text = f"{last.name} could not acknowledge, after all faults were over: {last.refusals[-1]}"
            self.history.problems.append(("not-acknowledged-after-healing", text))

    def _probed(self, topic: str) -> bool:
        """Write one more record for a share group that has no start offset yet: it begins at the end of the log."""
        if not self.ledger.delivered:
            value = f"probe {len(self.history.events)}"
            self.history.write("sent", "log", id=value, topic=topic)
            self.exercise.write([value], topic=topic)
        return bool(self.ledger.delivered)

    def _starts(self, reader: Reader) -> dict[int, int]:
        """Return the offsets from which a reader without a group reads, by its last assignment."""
        name = self._id_of(reader)
        return {each["partition"]: each["offset"] for each in self.history.of("assigned") if each["client"] == name}

    def _copied(self, copier: Copier) -> set[str]:
        """Return the values of the records of which there is a visible copy."""
        sources = {each["id"]: each["source_id"] for each in self.history.of("sent") if "source_id" in each}
        return {sources[value] for _, _, value in self.visible(copier.options["output"]) if value in sources}

    def _until(self, done: Callable[[], bool], poll: Callable[[], int]) -> None:
        """Poll until nothing is left, or nothing has come for a long while."""
        patience_s = PATIENCE_S if self.is_steered else ELSEWHERE_S
        until = time.monotonic() + patience_s
        ghosts = time.monotonic() + GHOST_S
        polls = 0
        while time.monotonic() < until or polls < LEAST_POLLS:
            polls += 1
            if done():
                return
            if poll():
                until, polls = time.monotonic() + patience_s, 0
            if time.monotonic() > ghosts:
                ghosts = time.monotonic() + GHOST_S
                self.evict_ghosts()

    def _read_by(self, readers: list[Reader]) -> set[tuple[int, int]]:
        ids = {name for each in readers for name in (each.ids if each.group is not None else each.ids[-1:])}
        return {(each["partition"], each["offset"]) for each in self.history.of("polled") if each["client"] in ids}

    @staticmethod
    def _id_of(reader: Reader) -> str:
        return reader.ids[-1] if reader.ids else reader.name

    def _offsets_of(self, reader: Reader) -> dict[tuple[str, int], int] | None:
        """Return the offsets of a member's group; None if there is none."""
        assert reader.group is not None
        try:
            offsets = self.exercise.cluster.groups[reader.group].show().offsets
        except UnderstudyError:
            return None
        return {(each.topic, each.partition): each.offset for each in offsets}

    def _store(self, reader: Reader) -> None:
        """Write down the group's offsets."""
        stored = self._offsets_of(reader)
        if stored is None:
            return
        topic = reader.options["topic"]
        for partition in range(TOPICS[topic]):
            offset = max(stored.get((topic, partition), 0), 0)  # without one, all is read again
            self.history.write("stored", "log", group=reader.group, topic=topic, partition=partition, offset=offset)


def of_rebalance(error: LibraryError) -> bool:
    """Return whether a member's error is that of a rebalance, which the end of another member begins."""
    letters = re.sub("[^a-z]", "", str(error).lower())
    return any(code in letters for code in ("illegalgeneration", "unknownmember", "rebalanceinprogress", "memberepoch"))


def _named(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that name what a verb is about."""
    return {name: value for name, value in arguments.items() if name in {"broker", "transactional_id"}}
