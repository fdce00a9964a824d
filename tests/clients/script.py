"""The steps of `tests/clients/steps.py`, played with any library through its driver of `understudy exam`.

Beside the exam's commands a driver answers those of an administrator, with ``bootstrap_servers`` and ``timeout_ms``:

    list_topics -> topics                            list_groups -> groups
    describe_topic topic -> partitions: {partition, leader, replicas, isr}
    delete_topic topic                               delete_group group
    describe_group group -> state, members           committed group, topic, partitions (how many) -> offsets, or -1
    describe_cluster -> brokers, controller          delete_records topic, partition, offset -> low, or null
    describe_configs kind (topic or broker), name -> settings
    alter_config topic, setting, value (null deletes it)
    list_offsets topic, partitions (how many), timestamp (-2: the earliest) -> offsets

and takes ``replicas`` with ``create_topic``, ``timestamp`` and ``headers`` (pairs of name and value) with the records
of ``send``, null as a value, and ``offsets`` ({topic, partition, offset}) with ``commit_offsets``; the records of
``poll`` have ``timestamp`` and ``headers`` too.
"""

# ruff: noqa: D102 -- STEPS documents each step

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.clients.observed import Report, observed
from tests.clients.steps import CODECS
from understudy.exam.driver import AnyDriver, CallError, library_error

PARTITIONS = 3
PER_CODEC = 30
Headers = tuple[tuple[str, str | None], ...]
HEADERS: Headers = (("h", "one"), ("h", "two"), ("empty", ""))
NULL_HEADER: Headers = (("null", None),)
PATIENCE_S = 60.0
PATIENCE_MS = 60_000
PRODUCER: Mapping[str, Any] = {
    "acks": "all",
    "idempotent": False,
    "transactional_id": None,
    "transaction_timeout_ms": 30_000,
    "delivery_timeout_ms": PATIENCE_MS,
    "request_timeout_ms": 10_000,
    "retry_backoff_ms": 100,
    "linger_ms": 20,
    "max_in_flight": 5,
    "compression": "none",
}
CONSUMER: Mapping[str, Any] = {
    "group": None,
    "instance_id": None,
    "protocol": "classic",
    "isolation": "read_uncommitted",
    "offset_reset": "earliest",
    "auto_commit": False,
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 300,
    "request_timeout_ms": 15_000,
}
"""The options of clients, where a step is not about them."""
SEEKING_LATE = {"KafkaJS", "confluent-kafka-javascript"}
"""They read in groups only, and seek when they have begun: they may return records from before."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is sent and as it comes back; `offset` is -1 before."""

    partition: int
    timestamp_ms: int
    key: str | None
    value: str | None
    headers: Headers = ()
    offset: int = field(default=-1, compare=False)


class Clients:
    """The library: its producers and consumers by name, and its administrator.

    Names begin with the prefix. KafkaJS makes groups of them, which several programs on a cluster must not share.
    """

    def __init__(self, driver: AnyDriver, bootstrap: str, prefix: str = "") -> None:
        self.driver, self.bootstrap, self._prefix = driver, bootstrap, prefix
        # A poll of kafka-python that ends between JoinGroup and its response forgets the assignment, on Kafka too.
        self.poll_ms = 500 if driver.library == "kafka-python" else 100
        # franz-go counts a delivery's time from the record's timestamp, which is an hour ago.
        self.delivery_ms = PATIENCE_MS + (7_200_000 if driver.library == "franz-go" else 0)
        self._numbers = itertools.count()

    def administrator(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """One command of an administrator."""
        return self.driver.call(command, bootstrap_servers=self.bootstrap, timeout_ms=PATIENCE_MS, **fields)

    def create(self, kind: str, options: Mapping[str, Any]) -> str:
        """Create a producer or consumer; its name."""
        name = f"{self._prefix}{kind}-{next(self._numbers)}"
        self.driver.call(kind, name=name, client_id=name, bootstrap_servers=self.bootstrap, **options)
        return name

    def close(self, name: str) -> None:
        """Close a producer or consumer."""
        self.driver.call("close", name=name, timeout_ms=PATIENCE_MS)

    def send(self, producer: str, topic: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Send, and wait for every acknowledgement. Raises the first error of a record."""
        numbered = [{"key": None, **record, "id": number} for number, record in enumerate(records)]
        self.driver.call("send", producer=producer, topic=topic, records=numbered)
        flushed = self.driver.call("flush", producer=producer, timeout_ms=PATIENCE_MS)
        for outcome in flushed["outcomes"]:
            if "error" in outcome:
                raise CallError("send", library_error(outcome["error"]))
        expect(not flushed["pending"] and len(flushed["outcomes"]) == len(numbered), flushed)

    def poll(self, consumer: str, timeout_ms: int, **limit: int) -> list[Record]:
        """What was read meanwhile."""
        polled = self.driver.call("poll", consumer=consumer, timeout_ms=timeout_ms, **limit)
        for error in polled["errors"]:
            if error["class"] not in {"retriable", "timeout"}:
                raise CallError("poll", library_error(error))
        return [
            Record(
                each["partition"],
                each.get("timestamp", -1),
                each["key"],
                each["value"],
                tuple((name, value) for name, value in each.get("headers", ())),
                each["offset"],
            )
            for each in polled["records"]
        ]

    def read(self, topic: str, offsets: Mapping[int, int], count: int, **options: Any) -> list[Record]:
        """So many records from these offsets on, without a group, and what comes in a moment after."""
        consumer = self.create("consumer", {**CONSUMER, **options})
        places = [{"topic": topic, "partition": index, "offset": offset} for index, offset in offsets.items()]
        self.driver.call("assign", consumer=consumer, partitions=places)
        records: list[Record] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(records) < count and time.monotonic() < deadline:
            records += self.poll(consumer, 1000)
        records += self.poll(consumer, 400)
        self.close(consumer)
        return records


class Member:
    """One member of a consumer group."""

    def __init__(self, clients: Clients, topic: str, group: str, **options: Any) -> None:
        self.clients, self.topic, self.group = clients, topic, group
        self.name = clients.create("consumer", {**CONSUMER, "group": group, **options})
        clients.driver.call("subscribe", consumer=self.name, topics=[topic])

    def poll(self, **limit: int) -> list[Record]:
        """Wait a moment; what was read meanwhile."""
        return self.clients.poll(self.name, self.clients.poll_ms, **limit)

    def assigned(self) -> set[int]:
        """The partitions that this member has now."""
        assignment = self.clients.driver.call("assignment", consumer=self.name)["partitions"]
        return {each["partition"] for each in assignment}

    def commit(self, offsets: dict[int, int]) -> dict[int, int]:
        """Commit by partition, then read back what is committed."""
        places = [{"topic": self.topic, "partition": index, "offset": offset} for index, offset in offsets.items()]
        self.clients.driver.call("commit_offsets", consumer=self.name, offsets=places, timeout_ms=PATIENCE_MS)
        return committed(self.clients, self.group, self.topic)

    def rewind(self) -> None:
        """Go back to what is committed."""
        for index, offset in committed(self.clients, self.group, self.topic).items():
            self.clients.driver.call(
                "seek", consumer=self.name, topic=self.topic, partition=index, offset=max(offset, 0)
            )

    def close(self) -> None:
        """Leave the group."""
        self.clients.close(self.name)


def committed(clients: Clients, group: str, topic: str) -> dict[int, int]:
    """What a group has committed, by partition."""
    return dict(
        enumerate(clients.administrator("committed", group=group, topic=topic, partitions=PARTITIONS)["offsets"])
    )


class Client:
    """What the script asks of a library; everything concerns its one topic."""

    def __init__(self, clients: Clients, topic: str) -> None:
        self._clients, self.topic = clients, topic

    def list_topics(self) -> set[str]:
        return set(self._clients.administrator("list_topics")["topics"])

    def create_topic(self, partitions: int, replicas: int) -> None:
        self._clients.administrator("create_topic", topic=self.topic, partitions=partitions, replicas=replicas)

    def produce(self, records: Sequence[Record], codec: str, *, idempotent: bool = False) -> None:
        options = {"compression": codec, "idempotent": idempotent, "delivery_timeout_ms": self._clients.delivery_ms}
        producer = self._clients.create("producer", {**PRODUCER, **options})
        fields = [
            {
                "partition": r.partition,
                "timestamp": r.timestamp_ms,
                "key": r.key,
                "value": r.value,
                "headers": r.headers,
            }
            for r in records
        ]
        self._clients.send(producer, self.topic, fields)
        self._clients.close(producer)

    def consume(self, count: int) -> list[Record]:
        return self._clients.read(self.topic, dict.fromkeys(range(PARTITIONS), 0), count)

    def offsets_for_time(self, timestamp_ms: int) -> dict[int, int]:
        listed = self._clients.administrator(
            "list_offsets", topic=self.topic, partitions=PARTITIONS, timestamp=timestamp_ms
        )
        return dict(enumerate(listed["offsets"]))

    def read_at(self, offsets: dict[int, int]) -> list[Record]:
        read = [self._clients.read(self.topic, {index: offset}, 1) for index, offset in offsets.items()]
        if self._clients.driver.library in SEEKING_LATE:
            read = [[r for r in records if r.offset >= offsets[r.partition]] for records in read]
        return [records[0] for records in read]

    def join(self, group: str) -> Member:
        return Member(self._clients, self.topic, group)

    def list_groups(self) -> set[str]:
        return set(self._clients.administrator("list_groups")["groups"])

    def describe_group(self, group: str) -> tuple[str, int]:
        described = self._clients.administrator("describe_group", group=group)
        return described["state"], described["members"]

    def describe_cluster(self) -> tuple[set[int], int]:
        cluster = self._clients.administrator("describe_cluster")
        return set(cluster["brokers"]), cluster["controller"]

    def describe_topic(self) -> dict[int, tuple[int, list[int], list[int]]]:
        described = self._clients.administrator("describe_topic", topic=self.topic)["partitions"]
        return {each["partition"]: (each["leader"], each["replicas"], each["isr"]) for each in described}

    def describe_topic_configs(self) -> dict[str, str]:
        return dict(self._clients.administrator("describe_configs", kind="topic", name=self.topic)["settings"])

    def describe_broker_configs(self, broker: int) -> dict[str, str]:
        return dict(self._clients.administrator("describe_configs", kind="broker", name=str(broker))["settings"])

    def alter_topic_config(self, name: str, value: str | None) -> None:
        """Set one setting, or delete it (None); the others stay."""
        self._clients.administrator("alter_config", topic=self.topic, setting=name, value=value)

    def delete_records(self, partition: int, before: int) -> int | None:
        """The low watermark, or None from a library that does not return it."""
        deleted = self._clients.administrator("delete_records", topic=self.topic, partition=partition, offset=before)
        return None if deleted["low"] is None else int(deleted["low"])

    def earliest(self, partition: int) -> int:
        return self.offsets_for_time(-2)[partition]

    def delete_group(self, group: str) -> None:
        self._clients.administrator("delete_group", group=group)

    def delete_topic(self) -> None:
        self._clients.administrator("delete_topic", topic=self.topic)


def records_of(base_ms: int, first: int, parts: Iterable[tuple[str | None, str | None, Headers]]) -> list[Record]:
    """Records number `first` and following from (key, value, headers)."""
    return [
        Record(
            partition=number % PARTITIONS,
            timestamp_ms=base_ms + 1000 * number,
            key=key,
            value=value,
            headers=headers,
        )
        for number, (key, value, headers) in enumerate(parts, first)
    ]


def expect(condition: object, seen: object) -> None:
    """Fail the step with what was seen."""
    if not condition:
        raise AssertionError(str(seen))


class Script:
    """Plays the steps with one client; keeps what a later step compares with."""

    def __init__(self, clients: Clients, topic: str, brokers: int, base_ms: int) -> None:
        self.report, self.brokers, self.base_ms = Report(), brokers, base_ms
        self.client = client = observed(Client(clients, topic), self.report)
        self.group = f"{client.topic}-group"
        self.sent: dict[str, list[Record]] = {}
        self.read: list[Record] = []
        self.members: list[Member] = []

    def play(self) -> None:
        """Play all steps."""
        names = [name for name in vars(Script) if name.startswith("step_")]
        steps: list[tuple[str, Callable[[], object]]] = []
        for name in names:
            step = getattr(self, name)
            if name == "step_produce":
                steps += [(f"produce_{codec}", lambda codec=codec, step=step: step(codec)) for codec in CODECS]  # type: ignore[misc]
            else:
                steps.append((name.removeprefix("step_"), step))
        for name, step in steps:
            self.report.step(name, step)
        for member in self.members:
            member.close()

    def step_list_topics(self) -> str:
        topics = self.client.list_topics()
        expect(self.client.topic not in topics, f"{self.client.topic} is there already")
        return f"{len(topics)} topics"

    def step_create_topic(self) -> None:
        self.client.create_topic(PARTITIONS, min(self.brokers, 3))

        def created() -> bool:
            try:
                topic = self.client.describe_topic()
            except Exception:  # not every broker knows it yet  # noqa: BLE001
                return False
            return len(topic) == PARTITIONS and all(leader >= 0 for leader, _, _ in topic.values())

        until(created, lambda: "the topic's partitions do not have their leaders")

    def step_produce(self, codec: str) -> None:
        first = CODECS.index(codec) * PER_CODEC
        parts = [(f"{codec}-{i}", f"{codec}-value-{i}-{'x' * 100}", ()) for i in range(PER_CODEC)]
        self._produce(codec, records_of(self.base_ms, first, parts), codec)

    def step_produce_headers(self) -> None:
        self._produce(
            "headers", records_of(self.base_ms, 150, [(f"headers-{i}", "headers", HEADERS) for i in range(3)])
        )

    def step_produce_nulls(self) -> None:
        parts = [(f"null-{i}", None, ()) for i in range(3)], [(None, f"no-key-{i}", ()) for i in range(3)]
        self._produce("nulls", records_of(self.base_ms, 153, [*parts[0], *parts[1]]))

    def step_produce_idempotent(self) -> None:
        records = records_of(self.base_ms, 159, [(f"idempotent-{i}", "idempotent", ()) for i in range(3)])
        self._produce("idempotent", records, idempotent=True)

    def step_produce_null_header(self) -> None:
        parts = [(f"null-header-{i}", "headers", NULL_HEADER) for i in range(3)]
        self._produce("null-header", records_of(self.base_ms, 162, parts))

    def _produce(self, name: str, records: list[Record], codec: str = "none", *, idempotent: bool = False) -> None:
        self.client.produce(records, codec, idempotent=idempotent)
        self.sent[name] = records

    def step_consume_from_start(self) -> str:
        want = [record for records in self.sent.values() for record in records]
        self.read = self.client.consume(len(want))
        for partition in range(PARTITIONS):
            got = [r for r in self.read if r.partition == partition]
            expect([r.offset for r in got] == list(range(len(got))), f"offsets {[r.offset for r in got]}")
            sent = [(r.key, r.value) for r in want if r.partition == partition]
            expect([(r.key, r.value) for r in got] == sent, f"partition {partition}: {got!r:.500}")
        return f"{len(self.read)} records"

    def step_consume_headers(self) -> None:
        got = sorted(r.headers for r in self.read if r.headers)
        want = sorted(r.headers for records in self.sent.values() for r in records if r.headers)
        expect(got == want and len(got) >= PARTITIONS, got)

    def step_consume_nulls(self) -> None:
        expect(sum(r.value is None for r in self.read) == 3, "null values")
        expect(sum(r.key is None for r in self.read) == 3, "null keys")

    def step_consume_timestamps(self) -> None:
        expect(len(self.read) >= 53 * PARTITIONS, f"{len(self.read)} records were read")
        for partition in range(PARTITIONS):
            got = [r.timestamp_ms for r in self.read if r.partition == partition]
            sent = [r.timestamp_ms for records in self.sent.values() for r in records if r.partition == partition]
            expect(got == sent, f"partition {partition}: {got}, not {sent}")

    def step_consume_by_timestamp(self) -> None:
        moment = self.base_ms + 75_000
        offsets = self.client.offsets_for_time(moment)
        expect(offsets == {0: 25, 1: 25, 2: 25}, offsets)
        for record in self.client.read_at(offsets):
            expect(record.timestamp_ms == moment + 1000 * record.partition, record)

    def step_group_join(self) -> None:
        self.members.append(self.client.join(self.group))
        self._assignments(lambda shares: len(shares[0]) == PARTITIONS)

    def step_group_rebalance(self) -> str:
        self.members.append(self.client.join(self.group))
        shares = self._assignments(lambda shares: all(shares) and sum(map(len, shares)) == PARTITIONS)
        expect(set.union(*shares) == {0, 1, 2}, shares)
        return str(shares)

    def step_group_leave(self) -> None:
        self.members.pop().close()
        self._assignments(lambda shares: len(shares[0]) == PARTITIONS)

    def _assignments(self, right: Callable[[list[set[int]]], bool]) -> list[set[int]]:
        def turn() -> bool:
            for member in self.members:
                member.poll()
            return right([member.assigned() for member in self.members])

        until(turn, lambda: f"assigned: {[member.assigned() for member in self.members]}")
        return [member.assigned() for member in self.members]

    def step_commit(self) -> None:
        committed = self.members[0].commit({0: 10, 1: 11, 2: 12})
        expect(committed == {0: 10, 1: 11, 2: 12}, committed)

    def step_resume(self) -> None:
        self.members.pop().close()
        member = self.client.join(self.group)
        self.members.append(member)
        first: dict[int, int] = {}

        def turn() -> bool:
            for record in member.poll():
                first.setdefault(record.partition, record.offset)
            return len(first) == PARTITIONS

        until(turn, lambda: f"first offsets: {first}")
        expect(first == {0: 10, 1: 11, 2: 12}, first)

    def step_list_groups(self) -> None:
        groups = self.client.list_groups()
        expect(self.group in groups, groups)

    def step_describe_group(self) -> None:
        described = self.client.describe_group(self.group)
        expect((described[0].lower(), described[1]) == ("stable", 1), described)

    def step_describe_cluster(self) -> str:
        brokers, controller = self.client.describe_cluster()
        expect(len(brokers) == self.brokers, brokers)
        expect(controller in brokers, f"controller {controller} of {brokers}")
        return f"brokers {sorted(brokers)}, controller {controller}"

    def step_describe_topic(self) -> None:
        topic = self.client.describe_topic()
        expect(sorted(topic) == [0, 1, 2], topic)
        for leader, replicas, isr in topic.values():
            expect(leader in isr and sorted(isr) == sorted(replicas), topic)
            expect(len(set(replicas)) == min(self.brokers, 3), topic)

    def step_describe_configs(self) -> str:
        topic = self.client.describe_topic_configs()
        expect(topic.get("cleanup.policy") == "delete" and topic.get("retention.ms") == "604800000", topic)
        brokers, _ = self.client.describe_cluster()
        broker = self.client.describe_broker_configs(min(brokers))
        expect(broker.get("log.retention.hours") == "168", broker)
        return f"{len(topic)} of the topic, {len(broker)} of the broker"

    def step_alter_configs(self) -> None:
        self.client.alter_topic_config("retention.ms", "3600000")
        self.client.alter_topic_config("max.message.bytes", "100000")

        def seen(retention: str) -> Callable[[], bool]:
            def look() -> bool:
                topic = self.client.describe_topic_configs()
                return topic["retention.ms"] == retention and topic["max.message.bytes"] == "100000"

            return look

        until(seen("3600000"), lambda: self.client.describe_topic_configs()["retention.ms"])
        self.client.alter_topic_config("retention.ms", None)
        until(seen("604800000"), lambda: self.client.describe_topic_configs()["retention.ms"])

    def step_delete_records(self) -> None:
        low = self.client.delete_records(0, 5)
        expect(low in {5, None}, f"low watermark {low}")
        expect(self.client.earliest(0) == 5, self.client.earliest(0))

    def step_delete_group(self) -> None:
        while self.members:
            self.members.pop().close()
        self.client.delete_group(self.group)
        expect(self.group not in self.client.list_groups(), "still listed")

    def step_delete_topic(self) -> None:
        self.client.delete_topic()
        until(lambda: self.client.topic not in self.client.list_topics(), lambda: "still listed")


def until(condition: Callable[[], bool], seen: Callable[[], object]) -> None:
    """Try until it holds; a client's own waiting sets the pace. Raises AssertionError after PATIENCE_S seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        expect(time.monotonic() < deadline, seen())


def play(driver: AnyDriver, bootstrap: str, brokers: int, topic: str, base_ms: int) -> Report:
    """Play the script with a library."""
    script = Script(Clients(driver, bootstrap, f"{topic}-"), topic, brokers, base_ms)
    script.play()
    return script.report
