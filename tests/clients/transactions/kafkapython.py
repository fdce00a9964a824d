"""kafka-python through the transactional script."""

# ruff: noqa: D102 -- the protocols in script.py document each method

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import kafka
from kafka import admin as kadmin
from kafka import errors

from tests.clients.transactions.script import Source, Transactor, main

WAIT_S = 20


class KafkaPythonSource:
    """A subscribed consumer."""

    def __init__(self, bootstrap: list[str], topic: str, group: str) -> None:
        self.consumer: Any = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=300,
            fetch_max_wait_ms=50,
        )
        self.consumer.partitions_for_topic(topic)  # as in the other driver
        self.consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int, bytes]]:
        polled = self.consumer.poll(timeout_ms=500, max_records=25)
        return [(m.partition, m.offset, m.value) for messages in polled.values() for m in messages]

    def metadata(self) -> Any:
        return self.consumer.group_metadata()

    def rewind(self) -> None:
        for tp in self.consumer.assignment():
            self.consumer.seek(tp, self.consumer.committed(tp) or 0)

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonTransactor:
    """A transactional producer."""

    def __init__(self, bootstrap: list[str], transactional_id: str, timeout_ms: int) -> None:
        self.producer: Any = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=20_000,
        )
        self.producer.init_transactions()

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        futures = [self.producer.send(topic, value=value, partition=partition) for partition, value in values]
        self.producer.flush(WAIT_S)
        for future in futures:
            future.get(WAIT_S)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], metadata: Any) -> None:
        offsets_by_partition = {
            kafka.TopicPartition(topic, p): kafka.OffsetAndMetadata(o, "", -1) for p, o in offsets.items()
        }
        self.producer.send_offsets_to_transaction(offsets_by_partition, metadata)

    def commit(self) -> None:
        self.producer.commit_transaction()

    def abort(self) -> None:
        self.producer.abort_transaction()

    def close(self) -> None:
        self.producer.close(2)


class KafkaPython:
    """The whole client."""

    zombies_fenced = ""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap.split(",")

    def create(self, topics: Sequence[str], replicas: int) -> None:
        admin: Any = kadmin.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        admin.create_topics({topic: {"num_partitions": 3, "replication_factor": replicas} for topic in topics})
        admin.close()

    def produce(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        producer: Any = kafka.KafkaProducer(bootstrap_servers=self.bootstrap)
        futures = [producer.send(topic, value=value, partition=partition) for partition, value in values]
        producer.flush(WAIT_S)
        for future in futures:
            future.get(WAIT_S)
        producer.close()

    def transactor(self, transactional_id: str, timeout_ms: int) -> Transactor:
        return KafkaPythonTransactor(self.bootstrap, transactional_id, timeout_ms)

    def read(self, topic: str, count: int, *, committed: bool) -> list[bytes]:
        consumer: Any = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            isolation_level="read_committed" if committed else "read_uncommitted",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
        )
        partitions = [kafka.TopicPartition(topic, p) for p in range(3)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        read: list[bytes] = []
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            whole = len(read) >= count
            read += [m.value for messages in consumer.poll(timeout_ms=400).values() for m in messages]
            if whole:
                break
        consumer.close()
        return read

    def source(self, topic: str, group: str) -> Source:
        return KafkaPythonSource(self.bootstrap, topic, group)

    def committed_offsets(self, topic: str, group: str) -> dict[int, int]:
        consumer: Any = kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False)
        committed = {p: consumer.committed(kafka.TopicPartition(topic, p)) or -1 for p in range(3)}
        consumer.close()
        return committed

    def is_fenced(self, error: Exception) -> bool:
        kinds = ("ProducerFencedError", "InvalidProducerEpochError")
        return isinstance(error, tuple(getattr(errors, kind) for kind in kinds if hasattr(errors, kind)))


if __name__ == "__main__":
    main(KafkaPython, sys.argv[1:5])
