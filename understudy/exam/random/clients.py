"""The clients of a schedule: each opens on its first step, and writes down what it did and what was promised."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from understudy.client import Cluster
from understudy.errors import UnderstudyError
from understudy.exam import security
from understudy.exam.driver import CallError, LibraryError
from understudy.exam.exercise import Consumer, Exercise, Producer
from understudy.exam.random.history import History

POLL_MS: Final = 200  # as in scenarios: longer than a response takes
PRODUCER_OPTIONS: Final = frozenset({"acks", "compression", "linger_ms", "max_in_flight"})
TOKEN_S: Final = 3_600
"""An hour: longer than a schedule. Ours."""
SETTLED_S: Final = 0.1
"""After this time (arbitrary) the journal has a response that the library has received."""
CONSUMER_OPTIONS: Final = frozenset({"group", "isolation", "protocol", "instance_id", "auto_commit"})
Place = tuple[str, int]


class Client:
    """A client that comes and goes: `opened` returns it, `close` closes it in the library."""

    def __init__(self, exercise: Exercise, history: History, name: str, options: Mapping[str, Any]) -> None:
        self.exercise, self.history, self.name, self.options = exercise, history, name, options
        self.handle: Any = None
        self.last_error: LibraryError | None = None
        """What the library reported last, if its last call failed."""

    @property
    def cluster(self) -> Cluster:
        """Return the cluster."""
        return self.exercise.cluster

    def chosen(self, names: Collection[str]) -> dict[str, Any]:
        """Return the options of the driver's command that the schedule has."""
        return {name: value for name, value in self.options.items() if name in names}

    def secured(self) -> Mapping[str, Any]:
        """Return the options of the driver's command for TLS or SASL."""
        match self.options.get("security"):
            case "tls":
                return security.tls()
            case "password":
                return security.password("PLAIN")
            case "scram":
                return security.password("SCRAM-SHA-256")
            case "token":
                return security.bearer(lifetime_s=TOKEN_S)
        return {}

    def open(self) -> Any:
        """Create it in the library. Raises CallError."""
        raise NotImplementedError

    def opened(self) -> Any:
        """Return the library's client, created if there is none; None if that failed."""
        if self.handle is None:
            self.attempt(self.open)
        return self.handle

    def attempt(self, call: Callable[[], Any]) -> LibraryError | None:
        """Call the library; return its error, as an application that goes on after errors."""
        self.last_error = None
        try:
            call()
        except CallError as error:
            self.last_error = error.error
        return self.last_error

    def promised(self, name: str, api: str, call: Callable[[], LibraryError | None]) -> LibraryError | None:
        """Call the library; note if it reports success although the last response of this API was a refusal."""
        newest = max((each.id for each in self.exercise.journal(name, api)), default=0)
        error = call()
        if error is None and self._refused_since(newest, name, api):
            time.sleep(SETTLED_S)
            if code := self._refused_since(newest, name, api):
                text = f"{self.name}: the library reports success, and {api} was answered with {code}"
                self.history.problems.append(("refusal-as-success", text))
        return error

    def _refused_since(self, newest: int, name: str, api: str) -> str:
        """Return the error of the newest request of a client; empty if that succeeded, or was not answered."""
        later = [each for each in self.exercise.journal(name, api) if each.id > newest]
        return str(later[-1].error or "") if later and later[-1].outcome == "answered" else ""

    def close(self) -> LibraryError | None:
        """Close it in the library; return its error."""
        handle, self.handle = self.handle, None
        return None if handle is None else self.attempt(handle.close)

    def abandon(self) -> None:
        """Forget it without closing it, as a program that is replaced too early, or was killed."""
        self.handle = None


class RecordProducer(Client):
    """A producer, with a transactional id or without."""

    handle: Producer | None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.settled: set[int] = set()
        self.abandoned: list[Producer] = []
        self.transaction: str | None = None
        self.transactions = 0
        self.labels: dict[int, str] = {}
        self.refused_end: LibraryError | None = None
        """The library's error when a transaction was last ended."""

    @property
    def transactional(self) -> bool:
        """Return whether it has a transactional id."""
        return "transactional_id" in self.options

    def open(self) -> None:
        """Create it, and initialize its transactions. Raises CallError."""
        idempotent = self.options["role"] != "plain"
        name = self.options.get("transactional_id")
        options = {**self.chosen(PRODUCER_OPTIONS), **self.secured()}
        producer = self.exercise.producer(idempotent=idempotent, transactional_id=name, **options)
        self.settled, self.transaction, self.labels = set(), None, {}
        if name is not None:
            try:
                producer.call("init_transactions")
            except CallError:
                self.attempt(producer.close)
                raise
        self.handle = producer

    def begin(self) -> bool:
        """Begin a transaction, if it has them; return whether it can send."""
        if self.opened() is None or self.handle is None:
            return False
        if self.transactional and self.transaction is None:
            handle = self.handle
            if self.attempt(lambda: handle.call("begin")) is not None:
                self.close()
                return False
            self.transactions += 1
            self.transaction = f"{handle.name}/{self.transactions}"
        return True

    def send(
        self,
        topic: str,
        places: Sequence[int],
        sources: Sequence[Mapping[str, Any]] = (),
        group: str | None = None,
        key: str | None = None,
    ) -> None:
        """Send a record to each of these partitions; `sources`: the records of which they are copies."""
        if not self.begin() or self.handle is None:
            return
        handle, first = self.handle, len(self.handle.sent)
        idempotent = self.options["role"] != "plain"
        values = [f"{handle.name}/{first + index}" for index in range(len(places))]
        self.history.keys.update(dict.fromkeys(values, key))
        for index, value in enumerate(values):
            source = sources[index] if sources else {}
            if self.transaction is not None:
                self.labels[first + index] = self.transaction
            self.history.write(
                "sent", handle.name, id=value, topic=topic, transaction=self.transaction, idempotent=idempotent,
                source_topic=source.get("topic"), source_id=source.get("value"), group=group,
            )  # fmt: skip
        runs: list[tuple[int, list[str]]] = []
        for place, value in zip(places, values, strict=True):
            if not runs or runs[-1][0] != place:
                runs.append((place, []))
            runs[-1][1].append(value)
        for place, run in runs:
            keys = None if key is None else [key] * len(run)
            self.attempt(
                lambda run=run, place=place, keys=keys: handle.send(run, topic=topic, partition=place, keys=keys)  # type: ignore[misc]
            )

    def abandon(self) -> None:
        """Forget it; what it was given may still be sent."""
        if self.handle is not None:
            self.abandoned.append(self.handle)
        self.handle = None

    def flush_abandoned(self) -> None:
        """Wait until nothing more is sent by producers that were replaced."""
        for handle in self.abandoned:
            self.attempt(lambda handle=handle: handle.flush())  # type: ignore[misc]

    def flush(self) -> int:
        """Wait for outcomes and write them down; return how many records have none."""
        if self.handle is None:
            return 0
        handle, pending, fatal = self.handle, [0], False

        def waited() -> None:
            pending[0] = handle.flush()

        if self.attempt(waited) is not None:
            return 0
        for number, outcome in enumerate(handle.sent):
            if number in self.settled or (outcome.offset is None and outcome.error is None):
                continue
            self.settled.add(number)
            fatal = fatal or (outcome.error is not None and outcome.error.kind == "fatal")
            if outcome.offset is not None:
                self.history.write(
                    "acknowledged", handle.name, id=outcome.value, topic=outcome.topic, partition=outcome.partition,
                    offset=outcome.offset,
                )  # fmt: skip
        if fatal and not self.transactional:  # of a transaction, its end reports that
            super().close()
        return pending[0]

    def failed(self, transaction: str) -> list[str]:
        """Return the records of a transaction that were reported as not written."""
        sent = [] if self.handle is None else self.handle.sent
        return [each.value for at, each in enumerate(sent) if each.error and self.labels.get(at) == transaction]

    def end(self, *, commit: bool, flush: bool = True) -> bool:
        """End the transaction; return whether the library reports success.

        After an abortable error it is aborted. After any other error its outcome is unknown, and the producer closed.
        """
        if self.handle is None or self.transaction is None:
            return False
        if flush:
            self.flush()
            commit = commit and not self.failed(self.transaction)
        handle, transaction = self.handle, self.transaction
        if commit:
            error = self.promised(handle.name, "EndTxn", lambda: self.attempt(lambda: handle.call("commit")))
        else:
            error = self.attempt(lambda: handle.call("abort"))
        self.flush()
        outcome = "committed" if commit else "aborted"
        if error is not None and commit and error.kind == "abortable":
            error, outcome = self.attempt(lambda: handle.call("abort")), "aborted"
        self.transaction, self.refused_end = None, error
        if error is not None:
            self.close()
            return False
        self.history.write("ended", handle.name, transaction=transaction, outcome=outcome)
        if outcome == "committed" and (records := self.failed(transaction)):
            text = f"the commit of {transaction} succeeded, and record {records[0]} of it was reported as not written"
            self.history.problems.append(("commit-despite-failure", text))
        return outcome == ("committed" if commit else "aborted")

    def close(self) -> LibraryError | None:
        """Write down the last outcomes, and close it."""
        self.flush()
        self.transaction = None
        return super().close()


class Reader(Client):
    """A consumer of assigned partitions, or a member of a group."""

    handle: Consumer | None

    def __init__(self, *arguments: Any, partitions: int) -> None:
        super().__init__(*arguments)
        self.partitions = partitions
        self.ids: list[str] = []
        """The client ids that it has had."""
        self.next: dict[Place, int] = {}
        self.begun: set[Place] = set()
        self.rebalances: Counter[Place] = Counter()
        """Partition -> how many rebalances may have moved its position since its last record."""
        self.fresh: dict[Place, int] = {}
        """Positions since the last rebalance: what a commit promises."""
        self.epoch: int | None = None
        self.last: list[Mapping[str, Any]] = []

    @property
    def group(self) -> str | None:
        """Return its group, if it is a member of one."""
        return self.options.get("group")

    def open(self) -> None:
        """Create it, and assign all partitions or subscribe. Raises CallError."""
        consumer = self.exercise.consumer(**self.chosen(CONSUMER_OPTIONS), **self.secured())
        self.next, self.fresh, self.begun, self.epoch = {}, {}, set(), None
        self.rebalances.clear()
        self.ids.append(consumer.name)
        topic = self.options["topic"]
        try:
            if self.group is None:
                consumer.assign_many(topic, dict.fromkeys(range(self.partitions), 0))
            else:
                consumer.subscribe(topic)
        except CallError:
            self.attempt(consumer.close)
            raise
        self.handle = consumer
        if self.group is not None and self.options["role"] != "copier":
            self.poll(0)  # a driver may take a member that was not polled for a part of the next transactional producer
        if self.group is None:
            for partition in range(self.partitions):
                self.history.write("assigned", consumer.name, topic=topic, partition=partition, offset=0)

    def poll(self, timeout_ms: int = POLL_MS, **options: int) -> int:
        """Poll once, write down the records and keep them in `last`; return their number."""
        self.last = []
        if self.opened() is None or self.handle is None:
            return 0
        handle = self.handle
        epoch, owned = self.watch_group(), self._owned(handle)
        before = len(handle.read)
        if self.attempt(lambda: handle.poll(timeout_ms, **options)) is not None:
            return 0
        self.last = list(handle.read[before:])
        if self.watch_group() == epoch is not None and owned is not None and owned == self._owned(handle):
            self._check_owned(owned)
        for record in self.last:
            self.write(handle.name, record)
        return len(self.last)

    def _owned(self, handle: Consumer) -> set[int] | None:
        """Return the partitions that the member reports as its own; None if the library does not report that."""
        owned: set[int] | None = None

        def look_up() -> None:
            nonlocal owned
            owned = handle.partitions()

        if self.group is not None and "assignment" in self.exercise.driver.capabilities:
            self.attempt(look_up)
        return owned

    def _check_owned(self, owned: Collection[int]) -> None:
        """Note records of partitions that the member had neither before nor after the poll."""
        foreign = [each for each in self.last if each["partition"] not in owned]
        if foreign:
            text = f"{self.name} has the partitions {sorted(owned)}, and got {foreign[0]['value']!r} of another one"
            self.history.problems.append(("history-revoked", text))

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write down a record, and before it an assignment, if a rebalance explains its offset."""
        place, offset = (record["topic"], record["partition"]), record["offset"]
        known = {"topic": place[0], "partition": place[1]}
        if self.group is not None:
            first = place not in self.begun
            if first or (self.rebalances[place] > 0 and offset != self.next.get(place)):
                self.rebalances[place] -= not first
                self.begun.add(place)
                self.history.write("assigned", name, group=self.group, **known)
        self.history.check_key(self.name, str(record["value"]), record.get("key"))
        self.history.write(
            "polled", name, id=str(record["value"]) or "empty", offset=offset, isolation=self.options["isolation"],
            **known,
        )  # fmt: skip
        self.next[place] = self.fresh[place] = offset + 1

    def watch_group(self) -> int | None:
        """Return the group's generation or epoch; note for each partition if it has changed."""
        if self.group is None:
            return None
        try:
            epoch = getattr(self.cluster.groups[self.group].show(), "epoch", None)  # another cluster has none
        except UnderstudyError:
            epoch = None
        if epoch is None or epoch != self.epoch:
            self.fresh = {}
            for place in self.next:
                self.rebalances[place] += 1 if epoch is None or self.epoch is None else abs(epoch - self.epoch)
        self.epoch = epoch
        return epoch

    def commit(self) -> bool:
        """Commit; if the group did not rebalance, write down what was promised. Return whether it succeeded."""
        if self.options.get("auto_commit") or self.opened() is None or self.handle is None:
            return False
        handle, epoch = self.handle, self.epoch
        self.last_error = self.promised(handle.name, "OffsetCommit", handle.commit)
        if self.last_error is not None:
            return False
        promised = dict(self.fresh)
        if epoch is not None and self.watch_group() == epoch:
            self.promise(promised)
        return True

    def promise(self, offsets: Mapping[Place, int]) -> None:
        """Write down which offsets were reported as committed."""
        assert self.handle is not None
        for (topic, partition), offset in offsets.items():
            self.history.write(
                "committed", self.handle.name, group=self.group, topic=topic, partition=partition, offset=offset
            )

    def seek(self, partition: int, offset: int) -> None:
        """Move to an offset, up to the position."""
        if self.opened() is None or self.handle is None or self.group is not None:
            return
        handle, topic = self.handle, self.options["topic"]
        offset = min(offset, self.next.get((topic, partition), 0))
        if self.attempt(lambda: handle.seek(offset, topic=topic, partition=partition)) is None:
            self.history.write("assigned", handle.name, topic=topic, partition=partition, offset=offset)
            self.next[topic, partition] = offset
        else:
            self.close()


class Copier(Client):
    """Copies records from one topic to another, exactly once: a member of a group and a transactional producer."""

    def __init__(self, *arguments: Any, partitions: int) -> None:
        super().__init__(*arguments)
        self.reader = Reader(*arguments, partitions=partitions)
        self.producer = RecordProducer(*arguments)

    def copy(self) -> int:
        """Copy what one poll returns in a transaction; return the number of records.

        If anything fails, or the group rebalances meanwhile, the transaction is aborted, and both clients are replaced.
        """
        if self.reader.opened() is None or self.producer.opened() is None or self.reader.poll() == 0:
            return 0
        records, epoch = self.reader.last, self.reader.epoch
        if not self.producer.begin():
            self.replace()
            return 0
        self.producer.send(self.options["output"], [0] * len(records), records, self.reader.group)
        producer, consumer = self.producer.handle, self.reader.handle
        added = producer is not None and consumer is not None and self._add_offsets(producer, consumer)
        commit = added and epoch is not None and self.reader.watch_group() == epoch
        if not self.producer.end(commit=commit) or not commit:
            self.replace()
            return 0
        self.reader.promise(self.reader.fresh)
        return len(records)

    def _add_offsets(self, producer: Producer, consumer: Consumer) -> bool:
        added = partial(self.attempt, lambda: producer.send_offsets(consumer))
        return self.promised(producer.name, "TxnOffsetCommit", added) is None

    def replace(self) -> None:
        """Close both clients; the next step creates new ones."""
        self.reader.close()
        self.producer.close()

    def close(self) -> LibraryError | None:
        """Close both; return an error."""
        return self.reader.close() or self.producer.close()

    def abandon(self) -> None:
        """Forget both."""
        self.reader.abandon()
        self.producer.abandon()


@contextlib.contextmanager
def ignoring_refusals() -> Iterator[None]:
    """Go on if the cluster refuses: a broker that is down already, a member that has left, an unknown group."""
    with contextlib.suppress(UnderstudyError):
        yield
