"""confluent-kafka through the transactional script."""

# ruff: noqa: D102 -- the protocols in script.py document each method

import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import admin as typed_admin

from tests.clients.python.script import expect
from tests.clients.transactions.script import Source, Transactor, main

cadmin: Any = typed_admin
WAIT_S = 20.0


class ConfluentSource:
    """A subscribed consumer."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.topic = topic
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "heartbeat.interval.ms": 300,
                "fetch.wait.max.ms": 50,
            }
        )
        self.consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int, bytes]]:
        messages = self.consumer.consume(25, timeout=0.2)
        return [(m.partition() or 0, m.offset() or 0, m.value() or b"") for m in messages if m.error() is None]

    def metadata(self) -> Any:
        return self.consumer.consumer_group_metadata()

    def rewind(self) -> None:
        for tp in self.consumer.committed(self.consumer.assignment(), timeout=WAIT_S):
            self.consumer.seek(TopicPartition(tp.topic, tp.partition, max(tp.offset, 0)))

    def close(self) -> None:
        self.consumer.close()


class ConfluentTransactor:
    """A transactional producer."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0}
        self.producer: Any = Producer(
            {**settings, "transaction.timeout.ms": timeout_ms, "message.timeout.ms": timeout_ms}
        )
        self.producer.init_transactions(WAIT_S)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def send(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        failures: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        for partition, value in values:
            self.producer.produce(topic, value=value, partition=partition, on_delivery=delivered)
        expect(self.producer.flush(WAIT_S) == 0, "not delivered")
        if failures:
            raise KafkaException(failures[0])

    def send_offsets(self, topic: str, offsets: Mapping[int, int], metadata: Any) -> None:
        offsets_by_partition = [TopicPartition(topic, p, offset) for p, offset in offsets.items()]
        self.producer.send_offsets_to_transaction(offsets_by_partition, metadata, WAIT_S)

    def commit(self) -> None:
        self.producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        self.producer.abort_transaction(WAIT_S)

    def close(self) -> None:
        """The client closes when it is collected."""


class Confluent:
    """The whole client."""

    zombies_fenced = ""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin: Any = cadmin.AdminClient({"bootstrap.servers": bootstrap})

    def create(self, topics: Sequence[str], replicas: int) -> None:
        for future in self.admin.create_topics([cadmin.NewTopic(topic, 3, replicas) for topic in topics]).values():
            future.result(WAIT_S)

    def produce(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for partition, value in values:
            producer.produce(topic, value=value, partition=partition)
        expect(producer.flush(WAIT_S) == 0, "not delivered")

    def transactor(self, transactional_id: str, timeout_ms: int) -> Transactor:
        return ConfluentTransactor(self.bootstrap, transactional_id, timeout_ms)

    def _reader(self, group: str, isolation: str) -> Any:
        settings = {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False}
        return Consumer({**settings, "isolation.level": isolation, "fetch.wait.max.ms": 50})

    def read(self, topic: str, count: int, *, committed: bool) -> list[bytes]:
        consumer = self._reader(f"unused-{uuid.uuid4()}", "read_committed" if committed else "read_uncommitted")
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(3)])
        read: list[bytes] = []
        deadline = time.monotonic() + WAIT_S
        while len(read) < count and time.monotonic() < deadline:
            read += [m.value() for m in consumer.consume(500, timeout=0.1) if m.error() is None]
        read += [m.value() for m in consumer.consume(10, timeout=0.4) if m.error() is None]
        consumer.close()
        return read

    def source(self, topic: str, group: str) -> Source:
        return ConfluentSource(self.bootstrap, topic, group)

    def committed_offsets(self, topic: str, group: str) -> dict[int, int]:
        consumer = self._reader(group, "read_committed")
        committed = consumer.committed([TopicPartition(topic, p) for p in range(3)], timeout=WAIT_S)
        consumer.close()
        return {tp.partition: tp.offset for tp in committed}

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() in {
            KafkaError._FENCED,
            KafkaError.PRODUCER_FENCED,
            KafkaError.INVALID_PRODUCER_EPOCH,
        }


if __name__ == "__main__":
    main(Confluent, sys.argv[1:5])
