"""kafka-python through the script."""

# ruff: noqa: D102 -- `Client` in script.py documents each method

from collections.abc import Sequence
from typing import Any

import kafka
from kafka import admin as kadmin

from tests.clients.python.script import Record, expect, main

WAIT_S = 20
WAIT_MS = 20_000


def to_record(message: Any) -> Record:
    """What came back, without the client's own types."""
    return Record(
        partition=message.partition,
        timestamp_ms=message.timestamp,
        key=message.key,
        value=message.value,
        headers=tuple((name, value) for name, value in message.headers),
        offset=message.offset,
    )


class KafkaPythonMember:
    """A consumer that has subscribed."""

    def __init__(self, bootstrap: list[str], topic: str, group: str) -> None:
        self.topic = topic
        self.consumer: Any = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )
        # Where JoinGroup is answered between two polls, 3.0.12 forgets the assignment (on Kafka too: poll for 10 ms).
        # So its first join must not be followed by a second for the topic's metadata, and polls are long.
        self.consumer.partitions_for_topic(topic)
        self.consumer.subscribe([topic])

    def poll(self) -> list[Record]:
        """Half a second of records."""
        polled = self.consumer.poll(timeout_ms=500)
        return [to_record(message) for messages in polled.values() for message in messages]

    def assigned(self) -> set[int]:
        """The partitions of the last assignment."""
        return {tp.partition for tp in self.consumer.assignment()}

    def commit(self, offsets: dict[int, int]) -> dict[int, int]:
        """Commit at once, then ask the coordinator."""
        partitions = {p: kafka.TopicPartition(self.topic, p) for p in offsets}
        self.consumer.commit({partitions[p]: kafka.OffsetAndMetadata(o, "", -1) for p, o in offsets.items()})
        return {p: self.consumer.committed(tp) for p, tp in partitions.items()}

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


class KafkaPython:
    """The whole client: producers per call, one admin client, consumers as asked."""

    null_headers = False  # "All headers items must be (str, bytes) tuples"

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap.split(","), topic
        self.admin: Any = kadmin.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        self.partitions = [kafka.TopicPartition(topic, p) for p in range(3)]

    def _consumer(self) -> Any:
        return kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )

    def list_topics(self) -> set[str]:
        return set(self.admin.list_topics())

    def create_topic(self, partitions: int, replicas: int) -> None:
        self.admin.create_topics({self.topic: {"num_partitions": partitions, "replication_factor": replicas}})

    def produce(self, records: Sequence[Record], codec: str, *, idempotent: bool = False) -> None:
        producer: Any = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        futures = [
            producer.send(
                self.topic,
                key=r.key,
                value=r.value,
                partition=r.partition,
                timestamp_ms=r.timestamp_ms,
                headers=list(r.headers),
            )
            for r in records
        ]
        producer.flush(WAIT_S)
        offsets = [future.get(WAIT_S).offset for future in futures]
        producer.close()
        expect(all(offset >= 0 for offset in offsets), offsets)

    def consume(self, count: int) -> list[Record]:
        consumer = self._consumer()
        consumer.config["consumer_timeout_ms"] = WAIT_MS
        consumer.assign(self.partitions)
        consumer.seek_to_beginning(*self.partitions)
        records: list[Record] = []
        for message in consumer:
            records.append(to_record(message))
            if len(records) == count:
                break
        consumer.close()
        return records

    def offsets_for_time(self, timestamp_ms: int) -> dict[int, int]:
        consumer = self._consumer()
        offsets = consumer.offsets_for_times(dict.fromkeys(self.partitions, timestamp_ms))
        consumer.close()
        return {tp.partition: offset.offset for tp, offset in offsets.items()}

    def read_at(self, offsets: dict[int, int]) -> list[Record]:
        consumer = self._consumer()
        consumer.config["consumer_timeout_ms"] = WAIT_MS
        records = []
        for tp in self.partitions:
            consumer.assign([tp])
            consumer.seek(tp, offsets[tp.partition])
            records.append(to_record(next(consumer)))
        consumer.close()
        return records

    def join(self, group: str) -> KafkaPythonMember:
        return KafkaPythonMember(self.bootstrap, self.topic, group)

    def list_groups(self) -> set[str]:
        return {group["group_id"] for group in self.admin.list_groups()}

    def describe_group(self, group: str) -> tuple[str, int]:
        described = self.admin.describe_groups([group])[group]
        expect(described["error"] is None, described)
        return described["group_state"], len(described["members"])

    def describe_cluster(self) -> tuple[set[int], int]:
        cluster = self.admin.describe_cluster()
        key = "node_id" if "node_id" in cluster["brokers"][0] else "broker_id"
        return {broker[key] for broker in cluster["brokers"]}, cluster["controller_id"]

    def describe_topic(self) -> dict[int, tuple[int, list[int], list[int]]]:
        (topic,) = self.admin.describe_topics([self.topic])
        return {p["partition_index"]: (p["leader_id"], p["replica_nodes"], p["isr_nodes"]) for p in topic["partitions"]}

    def _configs(self, kind: str, name: str) -> dict[str, str]:
        resource = kadmin.ConfigResource(kind, name)
        described = self.admin.describe_configs([resource], config_filter="all")[kind][name]
        return {key: entry["value"] for key, entry in described.items()}

    def describe_topic_configs(self) -> dict[str, str]:
        return self._configs("topic", self.topic)

    def describe_broker_configs(self, broker: int) -> dict[str, str]:
        return self._configs("broker", str(broker))

    def alter_topic_config(self, name: str, value: str | None) -> None:
        operation = ("DELETE", None) if value is None else ("SET", value)
        resource = kadmin.ConfigResource("topic", self.topic, {name: operation})
        altered = self.admin.alter_configs([resource], incremental=True)
        expect(altered == {"topic": {self.topic: "OK"}}, altered)

    def delete_records(self, partition: int, before: int) -> int:
        deleted = self.admin.delete_records({self.partitions[partition]: before})
        return int(deleted[self.partitions[partition]]["low_watermark"])

    def earliest(self, partition: int) -> int:
        consumer = self._consumer()
        offsets = consumer.beginning_offsets([self.partitions[partition]])
        consumer.close()
        return int(offsets[self.partitions[partition]])

    def delete_group(self, group: str) -> None:
        deleted = self.admin.delete_groups([group])
        expect(deleted == {group: "OK"}, deleted)

    def delete_topic(self) -> None:
        self.admin.delete_topics([self.topic])

    def close(self) -> None:
        """Close the admin client."""
        self.admin.close()


if __name__ == "__main__":
    main(KafkaPython)
