"""confluent-kafka (librdkafka) through the script; written for 2.3 and for the newest."""

# ruff: noqa: D102 -- `Client` in script.py documents each method

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import admin as typed_admin

from tests.clients.python.script import Record, UnsupportedError, expect, main

WAIT_S = 20.0
cadmin: Any = typed_admin  # 2.3 and the newest type it differently


def to_record(message: Any) -> Record:
    """What came back, without the client's own types."""
    if message.error():
        raise KafkaException(message.error())
    return Record(
        partition=message.partition(),
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
        offset=message.offset(),
    )


class ConfluentMember:
    """A consumer that has subscribed."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.topic = topic
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 300,
                "partition.assignment.strategy": "range",
            }
        )
        self.consumer.subscribe([topic])

    def poll(self) -> list[Record]:
        """A tenth of a second of records."""
        return [to_record(message) for message in self.consumer.consume(100, timeout=0.1)]

    def assigned(self) -> set[int]:
        """The partitions of the last assignment."""
        return {partition.partition for partition in self.consumer.assignment()}

    def commit(self, offsets: dict[int, int]) -> dict[int, int]:
        """Commit at once, then ask the coordinator."""
        self.consumer.commit(offsets=[TopicPartition(self.topic, p, o) for p, o in offsets.items()], asynchronous=False)
        committed = self.consumer.committed([TopicPartition(self.topic, p) for p in offsets], timeout=WAIT_S)
        return {partition.partition: partition.offset for partition in committed}

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


class Confluent:
    """The whole client: producers per call, one admin client, consumers as asked."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.admin: Any = cadmin.AdminClient({"bootstrap.servers": bootstrap})

    def _one(self, futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        return future.result(WAIT_S)

    def _consumer(self) -> Any:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"unused-{uuid.uuid4()}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )

    def list_topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=WAIT_S).topics)

    def create_topic(self, partitions: int, replicas: int) -> None:
        self._one(self.admin.create_topics([cadmin.NewTopic(self.topic, partitions, replicas)]))

    def produce(self, records: Sequence[Record], codec: str, *, idempotent: bool = False) -> None:
        settings = {"bootstrap.servers": self.bootstrap, "compression.type": codec, "linger.ms": 20}
        producer = Producer({**settings, "enable.idempotence": idempotent})
        failures: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        for r in records:
            producer.produce(
                self.topic,
                key=r.key,
                value=r.value,
                partition=r.partition,
                timestamp=r.timestamp_ms,
                headers=list(r.headers),
                on_delivery=delivered,
            )
        left = producer.flush(WAIT_S)
        expect(not left and not failures, f"{left} not delivered, {failures}")

    def consume(self, count: int) -> list[Record]:
        consumer = self._consumer()
        consumer.assign([TopicPartition(self.topic, p, ck.OFFSET_BEGINNING) for p in range(3)])
        try:
            return [to_record(message) for message in consumer.consume(count, timeout=WAIT_S)]
        finally:
            consumer.close()

    def offsets_for_time(self, timestamp_ms: int) -> dict[int, int]:
        consumer = self._consumer()
        try:
            topic_partitions = [TopicPartition(self.topic, p, timestamp_ms) for p in range(3)]
            return {tp.partition: tp.offset for tp in consumer.offsets_for_times(topic_partitions, timeout=WAIT_S)}
        finally:
            consumer.close()

    def read_at(self, offsets: dict[int, int]) -> list[Record]:
        consumer = self._consumer()
        records = []
        try:
            for p, offset in offsets.items():
                consumer.assign([TopicPartition(self.topic, p, offset)])
                records.append(to_record(consumer.consume(1, timeout=WAIT_S)[0]))
        finally:
            consumer.close()
        return records

    def join(self, group: str) -> ConfluentMember:
        return ConfluentMember(self.bootstrap, self.topic, group)

    def list_groups(self) -> set[str]:
        return {group.group_id for group in self.admin.list_consumer_groups().result(WAIT_S).valid}

    def describe_group(self, group: str) -> tuple[str, int]:
        described = self._one(self.admin.describe_consumer_groups([group]))
        return described.state.name, len(described.members)

    def describe_cluster(self) -> tuple[set[int], int]:
        cluster = self.admin.describe_cluster().result(WAIT_S)
        return {node.id for node in cluster.nodes}, cluster.controller.id

    def describe_topic(self) -> dict[int, tuple[int, list[int], list[int]]]:
        described = self._one(self.admin.describe_topics(ck.TopicCollection([self.topic])))
        return {
            p.id: (p.leader.id if p.leader else -1, [n.id for n in p.replicas], [n.id for n in p.isr])
            for p in described.partitions
        }

    def _configs(self, kind: Any, name: str) -> dict[str, str]:
        described = self._one(self.admin.describe_configs([cadmin.ConfigResource(kind, name)]))
        return {entry.name: entry.value for entry in described.values()}

    def describe_topic_configs(self) -> dict[str, str]:
        return self._configs(cadmin.ResourceType.TOPIC, self.topic)

    def describe_broker_configs(self, broker: int) -> dict[str, str]:
        return self._configs(cadmin.ResourceType.BROKER, str(broker))

    def alter_topic_config(self, name: str, value: str | None) -> None:
        operation = cadmin.AlterConfigOpType.DELETE if value is None else cadmin.AlterConfigOpType.SET
        entry = cadmin.ConfigEntry(name, value, incremental_operation=operation)
        resource = cadmin.ConfigResource(cadmin.ResourceType.TOPIC, self.topic, incremental_configs=[entry])
        self._one(self.admin.incremental_alter_configs([resource]))

    def delete_records(self, partition: int, before: int) -> int:
        if not hasattr(self.admin, "delete_records"):
            raise UnsupportedError("AdminClient.delete_records came with 2.4")
        deleted = self._one(self.admin.delete_records([TopicPartition(self.topic, partition, before)]))
        return int(deleted.low_watermark)

    def earliest(self, partition: int) -> int:
        consumer = self._consumer()
        with contextlib.closing(consumer):
            return int(consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=WAIT_S)[0])

    def delete_group(self, group: str) -> None:
        self._one(self.admin.delete_consumer_groups([group]))

    def delete_topic(self) -> None:
        self._one(self.admin.delete_topics([self.topic]))

    def close(self) -> None:
        """Nothing is kept open."""


if __name__ == "__main__":
    main(Confluent)
