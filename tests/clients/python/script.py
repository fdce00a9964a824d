"""The steps of `tests/clients/steps.py`, written once; each Python client is an adapter behind `Client`."""

# ruff: noqa: D102 -- STEPS documents each step

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.clients.python.observed import observed
from tests.clients.steps import CODECS

PARTITIONS = 3
PER_CODEC = 30
Headers = tuple[tuple[str, bytes | None], ...]
HEADERS: Headers = (("h", b"one"), ("h", b"two"), ("empty", b""))
NULL_HEADER: Headers = (("null", None),)
PATIENCE_S = 20.0


class UnsupportedError(Exception):
    """The client has no call for what the step asks."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is sent and as it comes back; `offset` is -1 before."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    offset: int = field(default=-1, compare=False)


class Member(Protocol):
    """One member of a consumer group."""

    def poll(self) -> list[Record]:
        """Wait a moment (a tenth of a second or so); what was read meanwhile."""

    def assigned(self) -> set[int]:
        """The partitions that this member has now."""

    def commit(self, offsets: dict[int, int]) -> dict[int, int]:
        """Commit by partition, then read back what is committed."""

    def close(self) -> None:
        """Leave the group."""


class Client(Protocol):
    """What the script needs of a client; everything concerns its one topic."""

    topic: str

    def list_topics(self) -> set[str]:
        """The names of all topics."""

    def create_topic(self, partitions: int, replicas: int) -> None:
        """Create the topic."""

    def produce(self, records: Sequence[Record], codec: str, *, idempotent: bool = False) -> None:
        """Send to the partitions that the records name, and wait for every acknowledgement."""

    def consume(self, count: int) -> list[Record]:
        """The first records of all partitions, without a group."""

    def offsets_for_time(self, timestamp_ms: int) -> dict[int, int]:
        """By partition, the offset of the first record that is not older."""

    def read_at(self, offsets: dict[int, int]) -> list[Record]:
        """The one record at each partition's offset."""

    def join(self, group: str) -> Member:
        """A new member of the group, subscribed to the topic."""

    def list_groups(self) -> set[str]:
        """The ids of all groups."""

    def describe_group(self, group: str) -> tuple[str, int]:
        """Its state, and how many members it has."""

    def describe_cluster(self) -> tuple[set[int], int]:
        """The brokers' ids, and the controller's."""

    def describe_topic(self) -> dict[int, tuple[int, list[int], list[int]]]:
        """By partition, its leader, replicas and in-sync replicas."""

    def describe_topic_configs(self) -> dict[str, str]:
        """The topic's settings, defaults among them."""

    def describe_broker_configs(self, broker: int) -> dict[str, str]:
        """A broker's settings, defaults among them."""

    def alter_topic_config(self, name: str, value: str | None) -> None:
        """Set one setting, or delete it (None); the others stay."""

    def delete_records(self, partition: int, before: int) -> int:
        """Delete what is before the offset; the low watermark."""

    def earliest(self, partition: int) -> int:
        """The partition's earliest offset."""

    def delete_group(self, group: str) -> None:
        """Delete the empty group."""

    def delete_topic(self) -> None:
        """Delete the topic."""

    def close(self) -> None:
        """Let go of what is still open."""


def records_of(base_ms: int, first: int, parts: Iterable[tuple[str | None, str | None, Headers]]) -> list[Record]:
    """Records number `first` and following from (key, value, headers)."""
    return [
        Record(
            partition=number % PARTITIONS,
            timestamp_ms=base_ms + 1000 * number,
            key=None if key is None else key.encode(),
            value=None if value is None else value.encode(),
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

    def __init__(self, client: Client, brokers: int, base_ms: int) -> None:
        self.client, self.brokers, self.base_ms = client, brokers, base_ms
        self.group = f"{client.topic}-group"
        self.sent: dict[str, list[Record]] = {}
        self.read: list[Record] = []
        self.members: list[Member] = []

    def play(self) -> None:
        """Play all steps, one line of JSON for each."""
        names = [name for name in vars(Script) if name.startswith("step_")]
        steps: list[tuple[str, Callable[[], object]]] = []
        for name in names:
            step = getattr(self, name)
            if name == "step_produce":
                steps += [(f"produce_{codec}", lambda codec=codec, step=step: step(codec)) for codec in CODECS]  # type: ignore[misc]
            else:
                steps.append((name.removeprefix("step_"), step))
        for name, step in steps:
            report(name, step)
        for member in self.members:
            member.close()
        self.client.close()

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
        if not getattr(self.client, "null_headers", True):
            raise UnsupportedError("a header's value must be bytes")
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
        expect(low == 5, f"low watermark {low}")
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


def report(name: str, step: Callable[[], object]) -> None:
    """Run one step and print its line."""
    began = time.monotonic()
    line: dict[str, object] = {"step": name, "ok": False}
    try:
        line["detail"] = step() or ""
        line["ok"] = True
    except UnsupportedError as reason:
        line["detail"] = f"unsupported: {reason}"
    except Exception as error:  # any error of a client is what the step reports  # noqa: BLE001
        line["detail"] = f"{type(error).__name__}: {error}"[:1500]
        traceback.print_exc()
    line["ms"] = round((time.monotonic() - began) * 1000)
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(make: Callable[[str, str], Client]) -> None:
    """The driver's entry: `make(bootstrap, topic)` gives the client."""
    bootstrap, brokers, topic, base_ms = sys.argv[1:5]
    Script(observed(make(bootstrap, topic)), int(brokers), int(base_ms)).play()
