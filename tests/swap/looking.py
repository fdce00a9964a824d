"""What a cluster holds, as clients see it, to be compared between two brokers record by record."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupTopicPartitions
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

T = TypeVar("T")
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
LEVELS = {COMMITTED: IsolationLevel.READ_COMMITTED, UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED}
EARLIEST, LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
PATIENCE_S = 30.0


class Seen(NamedTuple):
    """One record."""

    offset: int
    leader_epoch: int | None
    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass
class Sight:
    """All that is compared. Keys: topic and partition, with the isolation level where it matters."""

    cluster_id: str
    topics: dict[str, tuple[str, int, dict[str, str]]]
    """Name -> id, partitions, settings of its own."""
    bounds: dict[tuple[str, int, str], tuple[int, int]] = field(default_factory=dict)
    """First offset, and the end at this isolation level."""
    records: dict[tuple[str, int, str], list[Seen]] = field(default_factory=dict)
    committed: dict[str, dict[tuple[str, int], tuple[int, str | None, int | None]]] = field(default_factory=dict)
    """Group -> committed offset, metadata, leader epoch."""
    members: dict[str, dict[str, list[tuple[str, int]]]] = field(default_factory=dict)
    """Group -> member id -> its partitions."""

    def values(self, topic: str, partition: int, level: str) -> list[bytes | None]:
        """The values alone."""
        return [record.value for record in self.records[topic, partition, level]]


def patiently(ask: Callable[[], T], until: Callable[[T], bool] = lambda _: True) -> T:
    """Ask until there is an answer that will do: a broker that has just started has not all its partitions yet."""
    pause, deadline = threading.Event(), time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = ask()
            if until(answer) or time.monotonic() > deadline:
                return answer
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        pause.wait(0.1)


def look(bootstrap: str, groups: Iterable[str]) -> Sight:
    """Read everything: topics and their settings, all records at both isolation levels, groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = sorted(name for name in patiently(lambda: admin.list_topics(timeout=10)).topics if name[0] != "_")
    described = patiently(lambda: _topics(admin, names))
    sight = Sight(str(admin.describe_cluster().result(PATIENCE_S).cluster_id), described)
    partitions = [(name, index) for name, (_, count, _) in described.items() for index in range(count)]
    lows = patiently(lambda: _offsets(admin, partitions, EARLIEST, UNCOMMITTED))
    for level in LEVELS:
        ends = patiently(lambda level=level: _offsets(admin, partitions, LATEST, level))  # type: ignore[misc]
        for topic, index in partitions:
            sight.bounds[topic, index, level] = (lows[topic, index], ends[topic, index])
        for (topic, index), records in consume(bootstrap, lows, level).items():
            sight.records[topic, index, level] = records
    for group in groups:
        sight.committed[group] = patiently(lambda group=group: _committed(admin, group))  # type: ignore[misc]
        sight.members[group] = patiently(lambda group=group: _members(admin, group))  # type: ignore[misc]
    return sight


def _topics(admin: AdminClient, names: list[str]) -> dict[str, tuple[str, int, dict[str, str]]]:
    described = admin.describe_topics(TopicCollection(names))
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
    configs = admin.describe_configs(list(resources.values()))
    topics = {}
    for name, resource in resources.items():
        topic = described[name].result(PATIENCE_S)
        assert all(partition.leader is not None for partition in topic.partitions), topic
        own = {
            key: str(entry.value)
            for key, entry in configs[resource].result(PATIENCE_S).items()
            if entry.source == 1  # DYNAMIC_TOPIC_CONFIG
        }
        topics[name] = (str(topic.topic_id), len(topic.partitions), own)
    return topics


def _offsets(
    admin: AdminClient, partitions: list[tuple[str, int]], what: OffsetSpec, level: str
) -> dict[tuple[str, int], int]:
    specs = {TopicPartition(topic, index): what for topic, index in partitions}
    answers = admin.list_offsets(specs, isolation_level=LEVELS[level], request_timeout=10)
    return {(at.topic, at.partition): answer.result(PATIENCE_S).offset for at, answer in answers.items()}


def _committed(admin: AdminClient, group: str) -> dict[tuple[str, int], tuple[int, str | None, int | None]]:
    (answer,) = admin.list_consumer_group_offsets([GroupTopicPartitions(group)]).values()
    commits = {}
    for each in answer.result(PATIENCE_S).topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)
        commits[each.topic, each.partition] = (each.offset, each.metadata, each.leader_epoch)
    return commits


def _members(admin: AdminClient, group: str) -> dict[str, list[tuple[str, int]]]:
    description = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    return {
        member.member_id: sorted((each.topic, each.partition) for each in member.assignment.topic_partitions)
        for member in description.members
    }


def consume(bootstrap: str, lows: dict[tuple[str, int], int], level: str) -> dict[tuple[str, int], list[Seen]]:
    """Everything from the partitions' first offsets to where this isolation level ends."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    settings |= {"enable.partition.eof": True, "fetch.wait.max.ms": 10}  # the end is seen when a fetch comes back empty
    consumer = Consumer({**settings, "isolation.level": level})
    consumer.assign([TopicPartition(*at, low) for at, low in lows.items()])
    consumed: dict[tuple[str, int], list[Seen]] = {at: [] for at in lows}
    left = set(lows)
    while left:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"nothing more comes of {left}"
        at = (str(message.topic()), int(message.partition() or 0))
        error = message.error()
        if error is None:
            consumed[at].append(_seen(message))
        else:
            assert error.name() == "_PARTITION_EOF", error
            left.discard(at)
    with contextlib.suppress(KafkaException):
        consumer.close()
    return consumed


def _seen(message: Any) -> Seen:
    headers = tuple(message.headers() or ())
    return Seen(message.offset(), message.leader_epoch(), message.timestamp(), message.key(), message.value(), headers)
