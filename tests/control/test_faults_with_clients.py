"""What a real client makes of a fault: librdkafka through confluent-kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

import understudy
from tests.control.harness import ControlPlane


@contextmanager
def transactional(plane: ControlPlane, name: str = "x", **conf: Any) -> Iterator[Producer]:
    """A producer within its first transaction, with one record sent."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": name, "linger.ms": 0, **conf})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    yield producer
    producer.purge()


def committed(plane: ControlPlane, topic: str = "t") -> list[bytes | None]:
    """What a read_committed consumer finds in partition 0."""
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "look", "isolation.level": "read_committed",
                         "enable.partition.eof": True, "fetch.wait.max.ms": 10})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values = []
    while (record := consumer.poll(60)) is not None and not record.error():
        values.append(record.value())
    consumer.close()
    return values


def test_a_commit_whose_reply_is_lost_is_committed_once(plane: ControlPlane) -> None:
    """Apply, then close: the client retries, and is answered that it is done."""
    then = understudy.Disconnect("reset")
    with transactional(plane) as producer, plane.kafka.faults.add(api="EndTxn", apply_then=then) as fault:
        producer.commit_transaction(60)
        assert fault.wait_hits(1).hits == 1
    assert committed(plane) == [b"v"]


@pytest.mark.parametrize("code", ["COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
def test_errors_that_pass_are_retried(plane: ControlPlane, code: str) -> None:
    """A client retries transient errors, and its application notices nothing."""
    with transactional(plane) as producer, plane.kafka.faults.add(api="EndTxn", error=code, times=2) as fault:
        producer.commit_transaction(60)
        assert fault.hits() == 2
    assert committed(plane) == [b"v"]


def test_a_fenced_producer_raises_a_fatal_error(plane: ControlPlane) -> None:
    """PRODUCER_FENCED, injected, is a fatal error of the producer."""
    with transactional(plane) as producer:
        plane.kafka.faults.add(api="EndTxn", error="PRODUCER_FENCED")
        with pytest.raises(KafkaException) as raised:
            producer.commit_transaction(60)
    assert raised.value.args[0].fatal()


def test_a_producer_writes_around_a_partition_that_fails(plane: ControlPlane) -> None:
    """The error of one partition is that partition's alone; retried, its record arrives too."""
    delivered: dict[int | None, Any] = {}
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 50})
    plane.kafka.faults.add(api="Produce", topic="t", partition=1, error="NOT_ENOUGH_REPLICAS")
    for partition in (0, 1):
        producer.produce("t", b"v", partition=partition, on_delivery=lambda e, m: delivered.update({m.partition(): e}))
    assert producer.flush(60) == 0
    assert delivered == {0: None, 1: None}
    assert plane.kafka.faults.unmet() == []


@pytest.mark.parametrize("spoiled", [{"truncate": 20}, {"correlation_id": -77}, {"corrupt": [0, 0x7F]}],
                         ids=["truncate", "correlation_id", "corrupt"])  # fmt: skip
def test_a_client_survives_spoiled_bytes(plane: ControlPlane, spoiled: dict[str, Any]) -> None:
    """It drops the connection, comes back, and delivers."""
    conf = {"socket.timeout.ms": 1000, "reconnect.backoff.ms": 10, "request.timeout.ms": 1000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": plane.bootstrap, **conf})
    with plane.kafka.faults.add(api="Produce", bytes=spoiled) as fault:
        producer.produce("t", b"v", partition=0)
        assert producer.flush(60) == 0
        assert fault.hits() == 1


def test_a_throttled_client_waits(plane: ControlPlane) -> None:
    """librdkafka reports the throttle time of a broker."""
    reported: list[float] = []
    producer = Producer(
        {"bootstrap.servers": plane.bootstrap, "throttle_cb": lambda e: reported.append(e.throttle_time)}
    )
    plane.kafka.faults.add(api="Produce", throttle_ms=120)
    producer.produce("t", b"v")
    assert producer.flush(60) == 0
    assert reported[0] == 0.12
