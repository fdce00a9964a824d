"""Plays a scenario: the cluster, the driver's clients, and the checks that lead to a verdict."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal, Unpack

from understudy.client import Cluster
from understudy.client.steering import Fault
from understudy.errors import ControlError
from understudy.exam import codes, wire, witnesses
from understudy.exam.driver import AnyDriver, CallError, DriverProblem, LibraryError, library_error
from understudy.exam.level import Level
from understudy.options import FaultOptions, JournalQuery
from understudy.results import JournalEntry, Record

TIMEOUT_MS: Final = 15_000  # arbitrary: several times a client's timeouts in the exam
REQUEST_TIMEOUT_MS: Final = 2_000  # short, as many scenarios wait for it; ours, many times a response's time
EXPIRY_MS: Final = 3_000
"""How long after `delivery_timeout_ms` a record may be reported as expired: librdkafka checks once a second."""
RETRY_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
POLL_MS: Final = 200
"""How long a poll waits for records: longer than a response takes, short beside a case's limit."""
LONGEST: Final = 2_000
"""Characters of a violation's text: a value of 70 KB in a list of records is no help to a reader.

Ours, some lines.
"""
FEW, LINE = 5, 12
"""Values in a violation's text: of a set, where some identify the fault; of a sequence, as many as fit on a line."""
PRODUCER: Final[Mapping[str, Any]] = {
    "acks": "all",
    "idempotent": False,
    "transactional_id": None,
    "transaction_timeout_ms": 60_000,  # the default of Kafka's producer
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
    "retry_backoff_ms": 50,  # half of Kafka's: more attempts in a case
    "linger_ms": 0,
    "max_in_flight": 5,  # the default of Kafka's producer
    "compression": "none",
}
CONSUMER: Final[Mapping[str, Any]] = {
    "group": None,
    "instance_id": None,
    "protocol": "classic",
    "isolation": "read_uncommitted",
    "offset_reset": "earliest",
    "auto_commit": False,
    "session_timeout_ms": 10_000,  # ours: below a case's limit, and never over while a busy machine pauses
    "heartbeat_interval_ms": 300,  # ours: several in the seconds of a case
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
}

TOPICS: Final[Mapping[str, int]] = {"t": 1, "u": 1, "many": 3}
"""Topics of the exam's cluster and their partitions: `u` is for copies, each leader of `many` another broker."""
BROKERS: Final = 3
"""As many as replicas in production."""

Isolation = Literal["read_uncommitted", "read_committed"]


def value_of(record: Record) -> str:
    """Return a record's value as text; bytes that are not UTF-8, which no scenario sends, are escaped."""
    return (record.value or b"").decode(errors="backslashreplace")


class Violation(Exception):
    """The client violated a rule, whose level is attached; the text is cut off where it lists large records."""

    def __init__(self, text: str, level: Level = Level.MUST) -> None:
        super().__init__(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
        self.level = level


class NotExercised(Exception):
    """The situation did not occur, so nothing can be concluded."""


@dataclass
class Outcome:
    """A record that a producer was given, and the outcome that it reported."""

    value: str
    topic: str
    partition: int
    offset: int | None = None
    error: LibraryError | None = None

    @property
    def acknowledged(self) -> bool:
        """Return whether the library reported success."""
        return self.offset is not None

    @property
    def reported(self) -> bool:
        """Return whether the library reported an outcome."""
        return self.acknowledged or self.error is not None


class Producer:
    """A producer in the driver."""

    def __init__(self, exercise: "Exercise", name: str) -> None:
        self.exercise, self.name = exercise, name
        self.sent: list[Outcome] = []

    def send(
        self, values: Iterable[str | None], *, topic: str = "t", partition: int = 0, keys: Sequence[str] | None = None
    ) -> None:
        """Pass records to the library."""
        first = len(self.sent)
        records = [
            {"id": first + i, "partition": partition, "key": keys[i] if keys else None, "value": value}
            for i, value in enumerate(values)
        ]
        self.sent += [Outcome(str(each["value"] or ""), topic, partition) for each in records]
        self.exercise.driver.call("send", producer=self.name, topic=topic, records=records)

    def flush(self, timeout_ms: int | None = None) -> int:
        """Wait for outcomes, by default until expired records must be reported too; return how many have none."""
        wait_ms = timeout_ms or self.exercise.timeout_ms + EXPIRY_MS
        result = self.exercise.driver.call("flush", producer=self.name, timeout_ms=wait_ms)
        for each in result.get("outcomes", ()):
            if not 0 <= each["id"] < len(self.sent):
                raise DriverProblem(f"the answer to flush is wrong: record {each['id']} was never sent")
            outcome = self.sent[each["id"]]
            if outcome.reported:
                raise Violation(f"the outcome of record {outcome.value!r} was reported twice")
            if "error" in each:
                outcome.error = library_error(each["error"])
            else:
                outcome.offset = each["offset"]
        return int(result.get("pending", 0))

    def call(self, command: str, **fields: Any) -> None:
        """Run `init_transactions`, `begin`, `send_offsets`, `commit` or `abort`. Raises CallError.

        After a retriable error the call is repeated, as applications must do for this class of error.
        """
        if command != "begin":
            fields["timeout_ms"] = self.exercise.timeout_ms
        until = self.exercise.deadline()
        while True:
            try:
                self.exercise.driver.call(command, producer=self.name, **fields)
            except CallError as error:
                if error.error.kind != "retriable" or self.exercise.past(until):
                    raise
                time.sleep(RETRY_S)
            else:
                return

    def send_offsets(self, consumer: "Consumer") -> None:
        """Add the consumer's positions to the transaction. Raises CallError."""
        self.call("send_offsets", consumer=consumer.name)

    def refusal(self, command: str) -> LibraryError | None:
        """Return the library's error for a command; None if it succeeds."""
        try:
            self.call(command)
        except CallError as error:
            return error.error
        return None

    def values(self) -> list[str]:
        """Return the values that were sent."""
        return [outcome.value for outcome in self.sent]

    def batches(self) -> list[witnesses.Batch]:
        """Return its batches on the wire."""
        return list(witnesses.batches(self.exercise.journal(self.name)))

    def close(self) -> None:
        """Close it in the library."""
        self.exercise.driver.call("close", name=self.name, timeout_ms=self.exercise.timeout_ms)


class Consumer:
    """A consumer in the driver."""

    def __init__(self, exercise: "Exercise", name: str) -> None:
        self.exercise, self.name = exercise, name
        self.read: list[Mapping[str, Any]] = []
        self.errors: list[LibraryError] = []

    def assign(self, offset: int = 0, *, topic: str = "t", partition: int = 0) -> None:
        """Read one partition from an offset."""
        self.assign_many(topic, {partition: offset})

    def assign_many(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read several partitions of a topic, each from its offset."""
        partitions = [
            {"topic": topic, "partition": partition, "offset": offset} for partition, offset in offsets.items()
        ]
        self.exercise.driver.call("assign", consumer=self.name, partitions=partitions)

    def partitions(self) -> set[int]:
        """Return the partitions that the library reports as assigned, for a consumer of one topic."""
        partitions = self.exercise.driver.call("assignment", consumer=self.name)["partitions"]
        return {int(partition["partition"]) for partition in partitions}

    def subscribe(self, *topics: str) -> None:
        """Join the group."""
        self.exercise.driver.call("subscribe", consumer=self.name, topics=topics or ["t"])

    def poll(self, timeout_ms: int = POLL_MS, **options: int) -> int:
        """Poll once, `max_records` with the capability of this name; return the number of records."""
        result = self.exercise.driver.call("poll", consumer=self.name, timeout_ms=timeout_ms, **options)
        self.read += result.get("records", ())
        self.errors += map(library_error, result.get("errors", ()))
        return len(result.get("records", ()))

    def poll_for(self, count: int) -> None:
        """Poll until that many records have been read in total, or the time is up."""
        until = self.exercise.deadline()
        while len(self.read) < count and time.monotonic() < until:
            self.poll()

    def poll_quietly(self, times: int = 3) -> None:
        """Poll a few more times, for records that must not arrive: by default for 600 ms, longer than a fetch waits."""
        for _ in range(times):
            self.poll()

    def seek(self, offset: int, *, topic: str = "t", partition: int = 0) -> None:
        """Move to an offset."""
        self.exercise.driver.call("seek", consumer=self.name, topic=topic, partition=partition, offset=offset)

    def commit(self) -> LibraryError | None:
        """Commit the positions; return the library's error."""
        self.exercise.client(self.name).commands.add("commit_offsets")
        try:
            self.exercise.driver.call("commit_offsets", consumer=self.name, timeout_ms=self.exercise.timeout_ms)
        except CallError as error:
            return error.error
        return None

    def values(self) -> list[str]:
        """Return the values that were read."""
        return [str(record["value"]) for record in self.read]

    def close(self) -> None:
        """Close it in the library."""
        self.exercise.driver.call("close", name=self.name, timeout_ms=self.exercise.timeout_ms)


@dataclass
class Exercise:
    """The interface of a scenario's function. Topics: `t` and `u` with 1 partition, `many` with 3."""

    cluster: Cluster
    driver: AnyDriver
    faults: list[Fault] = field(default_factory=list)
    older: dict[str, Fault] = field(default_factory=dict)
    """Id of a fault -> the one for requests of versions that do not have its error code."""
    clients: list[wire.Client] = field(default_factory=list)
    timeout_ms: int = TIMEOUT_MS
    """How long a scenario waits for something that must happen."""

    def producer(self, **options: Any) -> Producer:
        """Create a producer; options as in the driver's command, and `listener` to connect to."""
        defaults = {**PRODUCER, "delivery_timeout_ms": self.timeout_ms}
        return Producer(self, self.create("producer", {**defaults, **options}))

    def transactional(self, transactional_id: str = "tx", **options: Any) -> Producer:
        """Create a transactional producer and initialize it."""
        producer = self.producer(idempotent=True, transactional_id=transactional_id, **options)
        producer.call("init_transactions")
        return producer

    def consumer(self, **options: Any) -> Consumer:
        """Create a consumer; options as in the driver's command."""
        return Consumer(self, self.create("consumer", {**CONSUMER, **options}))

    def deadline(self, times: int = 1) -> float:
        """Return a time limit on the monotonic clock: this many times the usual wait."""
        return time.monotonic() + times * self.timeout_ms / 1000

    @staticmethod
    def past(deadline: float) -> bool:
        """Return whether the time limit has passed."""
        return time.monotonic() >= deadline

    def next_name(self, command: str) -> str:
        """Return the name of the next client, which is its client id."""
        return f"exam-{command.replace('_', '-')}-{len(self.clients) + 1}"

    def create(self, command: str, options: dict[str, Any]) -> str:
        """Create a client with this driver command; return its name, which is its client id."""
        name = self.next_name(command)
        self.clients.append(wire.Client(name, command, options))
        servers = self._servers(options.pop("listener", None))
        self.driver.call(command, name=name, bootstrap_servers=servers, client_id=name, **options)
        return name

    def client(self, name: str) -> wire.Client:
        """Return a client that was created."""
        return next(each for each in self.clients if each.name == name)

    def _servers(self, listener: str | None) -> str:
        if listener is None:
            return self.cluster.bootstrap_servers
        endpoints = [
            endpoint
            for broker in self.cluster.info().brokers
            for endpoint in broker.listeners
            if endpoint.name == listener
        ]
        if not endpoints:
            raise NotExercised(f"the cluster has no listener {listener}")
        return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)

    def fault(self, **options: Unpack[FaultOptions]) -> Fault:
        """Add a fault; unless a request matches it, the scenario counts as not exercised.

        An error code is returned in versions that have it, and in older ones what a broker answers instead, if there is
        a code for the same state: then a request that matches either counts.
        """
        refusal = options.get("api", ""), str(options.get("error", ""))
        since = None if "versions" in options else codes.SINCE.get(refusal)
        older: FaultOptions = {**options}
        if since is not None:
            options["versions"] = [since, codes.NEWEST]
        fault = self.cluster.faults.add(**options)
        if since is not None and refusal in codes.BEFORE:
            older["versions"], older["error"] = [0, since - 1], codes.BEFORE[refusal]
            self.older[fault.id] = self.cluster.faults.add(**older)
        self.faults.append(fault)
        return fault

    def hits(self, fault: Fault) -> int:
        """Return how many requests a fault has matched, in all versions."""
        return fault.hits() + (self.older[fault.id].hits() if fault.id in self.older else 0)

    def write(self, values: Sequence[str | None], *, topic: str = "t", partition: int = 0) -> None:
        """Write records without the library."""
        self.cluster.topics[topic].write(*({"value": value, "partition": partition} for value in values))

    def log(self, topic: str = "t", partition: int = 0, *, committed: bool = False) -> list[Record]:
        """Return the data records of a partition; `committed`: only those that a `read_committed` consumer receives."""
        isolation: Isolation = "read_committed" if committed else "read_uncommitted"
        # More than a scenario writes.
        records = self.cluster.topics[topic].partitions[partition].records(limit=10_000, isolation=isolation)
        return [record for record in records if not record.control]

    def log_values(self, topic: str = "t", partition: int = 0) -> list[str]:
        """Return the values in a partition."""
        return list(map(value_of, self.log(topic, partition)))

    def committed_values(self, topic: str = "t", partition: int = 0) -> list[str]:
        """Return the values that a `read_committed` consumer receives."""
        return list(map(value_of, self.log(topic, partition, committed=True)))

    def journal(self, client_id: str = "", api: str = "") -> list[JournalEntry]:
        """Return the requests of the exam, or of one client or API."""
        query: JournalQuery = {"limit": 10_000}  # more than a scenario sends
        if api:
            query["api"] = api
        if client_id:
            query["client_id"] = client_id
        return list(self.cluster.journal.find(**query))

    def served_by(self, client_id: str, api: str) -> int:
        """Return the broker that received the client's last request of an API. Raises Violation if there was none."""
        sent = self.journal(client_id, api)
        self.require(bool(sent), f"the library sent no {api}")
        return sent[-1].broker

    def group(self, name: str) -> Any:
        """Return a group with members and committed offsets. Raises Violation if no member has joined."""
        try:
            return self.cluster.groups[name].show()
        except ControlError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            raise Violation(f"no member has joined the group {name}") from error

    # --- checks ------------------------------------------------------------------------------------------------------

    def require(self, condition: bool, text: str, level: Level = Level.MUST) -> None:
        """Fail the scenario with this sentence unless the condition is true. Raises Violation."""
        if not condition:
            raise Violation(text, level)

    def require_situation(self, arose: bool, text: str) -> None:
        """Raise NotExercised unless the situation arose."""
        if not arose:
            raise NotExercised(text)

    def met(self, *, every_fault: bool = True) -> bool:
        """Return whether requests have matched all faults, or any of them."""
        hits = [bool(self.hits(fault)) for fault in self.faults]
        return all(hits) or (not every_fault and any(hits))

    def require_exercised(self, *, every_fault: bool = True) -> None:
        """Raise NotExercised unless every fault has matched a request, or any of them, depending on `every_fault`."""
        unmet = [fault for fault in self.faults if not self.hits(fault)]
        if unmet and (every_fault or len(unmet) == len(self.faults)):
            raise NotExercised(f"no request met the fault {unmet[0].show().match}")

    def require_read(self, consumer: Consumer, values: Iterable[str]) -> None:
        """Require that the consumer has read each of these values; it may have read others, or some again."""
        missing = sorted({*values} - {*consumer.values()})
        self.require(not missing, f"not read: {', '.join(missing[:FEW])}")

    def require_acknowledged(self, producer: Producer, level: Level = Level.MUST) -> None:
        """Require that all records are reported as written. At level SHOULD, a record may be reported as failed."""
        for each in producer.sent:
            self.require(each.error is None, f"the library gave up record {each.value!r}: {each.error}", level)
            self.require(each.acknowledged, f"the library reports no outcome of record {each.value!r}")

    def require_no_loss(self, producer: Producer) -> None:
        """Require that each acknowledged record is in the log, at the reported offset."""
        for place in sorted({(each.topic, each.partition) for each in producer.sent}):
            at = {record.offset: value_of(record) for record in self.log(*place)}
            for each in producer.sent:
                if (each.topic, each.partition) == place and each.offset is not None and each.offset >= 0:
                    self.require(
                        at.get(each.offset) == each.value,
                        f"record {each.value!r} was acknowledged at offset {each.offset}, where the log has "
                        f"{at.get(each.offset)!r}",
                    )
            stored = set(at.values())
            for each in producer.sent:
                if (each.topic, each.partition) == place and each.acknowledged:
                    self.require(each.value in stored, f"record {each.value!r} was acknowledged and is not in the log")

    def require_once_in_order(self, producer: Producer, topic: str = "t", partition: int = 0) -> None:
        """Require that the log has each of the producer's records once, in the order in which they were sent."""
        wanted = [each.value for each in producer.sent if (each.topic, each.partition) == (topic, partition)]
        mine = set(wanted)
        values = [value for value in self.log_values(topic, partition) if value in mine]
        twice = sorted({value for value in values if values.count(value) > 1})
        self.require(not twice, f"in the log more than once: {', '.join(twice[:FEW])}")
        missing = [value for value in wanted if value not in set(values)]
        self.require(not missing, f"not in the log: {', '.join(missing[:FEW])}")
        self.require(values == wanted, f"the log has another order: {' '.join(values[:LINE])}")

    def require_sequences(self, producer: Producer) -> None:
        """Require that each batch on the wire continues the sequence or repeats one of the last five (KIP-98)."""
        sent = producer.batches()
        for _batch, problem in [*witnesses.broken_sequences(sent), *witnesses.wrong_epochs(sent)]:
            raise Violation(problem)

    def require_log_sequences(self, topic: str = "t", partition: int = 0) -> None:
        """Require that each producer's sequences in the log begin with 0 and have no gap."""
        expected: dict[tuple[int, int], int] = {}
        for record in self.log(topic, partition):
            producer = record.producer_id, record.producer_epoch
            if record.producer_id >= 0:
                wanted = expected.get(producer, 0)
                text = f"the record at offset {record.offset} has sequence {record.sequence}, where {wanted} comes next"
                self.require(record.sequence == wanted, text)
                expected[producer] = wanted + 1
