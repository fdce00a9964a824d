"""The cluster in front of which software is put, and what a test reads from it with a client of its own."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

import understudy
from tests.clients import targets
from understudy.options import StartOptions

BROKERS = 3
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Read:
    """A record as a consumer sees it."""

    partition: int
    offset: int
    key: str | None
    value: str


@dataclass(slots=True)
class Cluster:
    """Three brokers: Understudy's or, where TARGET=kafka, real ones; `control` is None for those."""

    bootstrap: str
    control: understudy.Cluster | None
    close: Callable[[], None]
    admin: AdminClient = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """A client that lives as long: one that is collected takes its answers with it."""
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})

    def lose_answer(self, api: str) -> None:
        """Let the next such request succeed, and close its connection instead of an answer."""
        if self.control is not None:
            self.control.faults.add(api=api, apply_then=understudy.Disconnect("reset"))

    def unmet(self) -> list[str]:
        """The APIs whose answer was to be lost, and that no client has called since."""
        return [] if self.control is None else [str(fault.match.get("api")) for fault in self.control.faults.unmet()]

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics: name -> number of partitions."""
        creations = self.admin.create_topics([NewTopic(name, count) for name, count in topics.items()])
        for each in creations.values():
            each.result(PATIENCE_S)

    def write(self, topic: str, records: Iterable[tuple[str | None, str]]) -> int:
        """Write (key, value), partitioned by key; returns how many."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})
        count = 0
        for key, value in records:
            producer.produce(topic, key=key, value=value)
            count += 1
        assert producer.flush(PATIENCE_S) == 0
        return count

    def read(self, topic: str, isolation: str = "read_committed") -> list[Read]:
        """All records of a topic that this isolation level shows, partition by partition."""
        options = {"group.id": "reader of tests", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "enable.auto.commit": False, **options})
        records: list[Read] = []
        try:
            partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            left = set(partitions)
            while left:
                message = consumer.poll(PATIENCE_S)
                assert message is not None, f"{topic}: no end of partitions {left} within {PATIENCE_S} s"
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(message.partition() or 0)
                    continue
                key, value = message.key(), message.value()
                at = (message.partition() or 0, message.offset() or 0)
                records.append(
                    Read(*at, None if key is None else key.decode(), "" if value is None else value.decode())
                )
        finally:
            consumer.close()
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def end(self, topic: str, partition: int = 0) -> int:
        """The end of a partition, control records and uncommitted ones included."""
        offsets = self.admin.list_offsets({TopicPartition(topic, partition): OffsetSpec.latest()})  # type: ignore[no-untyped-call]
        (future,) = offsets.values()
        return int(future.result(PATIENCE_S).offset)

    def consume(self, topic: str, group: str) -> None:
        """Read a topic to its end as a member of a group, and commit that."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.subscribe([topic])
        ended: set[int | None] = set()
        while len(ended) < len(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
        consumer.commit(asynchronous=False)
        consumer.close()

    def topics(self) -> set[str]:
        """Their names, without internal ones."""
        return {name for name in self.admin.list_topics(timeout=PATIENCE_S).topics if not name.startswith("__")}

    def settings(self, topic: str) -> dict[str, str]:
        """A topic's settings."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        (description,) = self.admin.describe_configs([resource]).values()
        return {name: entry.value for name, entry in description.result(PATIENCE_S).items()}

    def groups(self) -> dict[str, str]:
        """Group -> its state, such as STABLE or EMPTY."""
        listed = self.admin.list_consumer_groups(request_timeout=PATIENCE_S).result()
        return {group.group_id: group.state.name for group in listed.valid}

    def lag(self, group: str, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED) -> dict[str, int]:
        """Topic -> how many offsets between the group's commits and the end that this isolation level shows."""
        listing = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
        committed = listing.result(PATIENCE_S).topic_partitions or []
        wanted = {TopicPartition(each.topic, each.partition): OffsetSpec.latest() for each in committed}  # type: ignore[no-untyped-call]
        ends = self.admin.list_offsets(wanted, isolation_level=isolation) if wanted else {}
        at = {(each.topic, each.partition): future.result(PATIENCE_S).offset for each, future in ends.items()}
        behind: dict[str, int] = {}
        for each in committed:
            behind[each.topic] = behind.get(each.topic, 0) + at[each.topic, each.partition] - max(each.offset, 0)
        return behind


def start(settings: Mapping[str, str], as_version: str | None = None) -> Cluster:
    """Start one, by TARGET: `understudy`, which is the default, or `kafka`, of which there is no older release."""
    if os.environ.get("TARGET", "understudy") == "kafka":
        if as_version is not None:
            pytest.skip(f"the software does not know Kafka 4, and there is no Kafka {as_version} here")
        targets.prepare_kafka()
        kafka = targets.start(BROKERS, "kafka", dict(settings))
        return Cluster(kafka.bootstrap, None, kafka.close)
    known = {name: value for name, value in targets.SETTINGS.items() if as_version is None or "streams" not in name}
    options: StartOptions = {"brokers": BROKERS, "for_tests": False, "settings": {**known, **settings}}
    if as_version is not None:
        options["as_version"] = as_version
    control = understudy.start(**options)
    return Cluster(control.bootstrap_servers, control, control.stop)
