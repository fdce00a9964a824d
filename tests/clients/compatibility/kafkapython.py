"""As `Compatibility.java`, for kafka-python."""

import time
from collections.abc import Callable
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.clients.compatibility import played
from tests.clients.compatibility.played import PATIENCE_S


def producer_of(bootstrap: str, **settings: Any) -> Any:
    """Waits no longer than the others do."""
    return kafka.KafkaProducer(bootstrap_servers=bootstrap, max_block_ms=PATIENCE_S * 1000, **settings)


def consumer_of(bootstrap: str, group: str) -> Any:
    """Reads from the start, commits by itself never."""
    return kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )


def send(producer: Any, topic: str, values: list[bytes]) -> None:
    """Each is acknowledged when this returns."""
    futures = [producer.send(topic, value, partition=0) for value in values]
    for future in futures:
        future.get(PATIENCE_S)


def produce(bootstrap: str, name: str, *, idempotent: bool = False) -> None:
    """Ten records, compressed."""
    producer = producer_of(bootstrap, compression_type="gzip", linger_ms=50, enable_idempotence=idempotent)
    try:
        send(producer, name, [b"value" * 20] * 10)
    finally:
        producer.close(2)


def read(consumer: Any, wanted: int) -> list[bytes]:
    """So many records, or fewer."""
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < wanted and time.monotonic() < deadline:
        values += [each.value for several in consumer.poll(timeout_ms=200).values() for each in several]
    return values


def consume(bootstrap: str, name: str) -> None:
    """All ten, in a group."""
    consumer = consumer_of(bootstrap, f"{name}-group")
    try:
        consumer.subscribe([name])
        if len(read(consumer, 10)) < 10:
            raise TimeoutError
        consumer.commit()
    finally:
        consumer.close()


def transaction(bootstrap: str, name: str) -> None:
    """One aborted, one committed, with offsets."""
    out, source = f"{name}-out", kafka.TopicPartition(name, 0)
    consumer, producer = consumer_of(bootstrap, f"{name}-other"), producer_of(bootstrap, transactional_id=name)
    try:
        producer.init_transactions()
        for commit in (False, True):
            producer.begin_transaction()
            send(producer, out, [b"committed" if commit else b"aborted"])
            offsets = {source: kafka.OffsetAndMetadata(7 if commit else 3, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        written = kafka.TopicPartition(out, 0)
        consumer.assign([written])
        consumer.seek_to_beginning(written)
        outcome = read(consumer, 1), consumer.committed(source)
        if outcome != ([b"committed"], 7):
            raise AssertionError(outcome)
    finally:
        producer.close(2)
        consumer.close()


def configs(bootstrap: str, name: str) -> None:
    """DescribeConfigs of the topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    finally:
        admin.close()


STEPS: dict[str, Callable[..., None]] = {
    "produce": produce,
    "idempotent": lambda *arguments: produce(*arguments, idempotent=True),
    "consume": consume,
    "transaction": transaction,
    "configs": configs,
}

if __name__ == "__main__":
    played.answer(STEPS)
