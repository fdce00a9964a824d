"""As `Compatibility.java`, for librdkafka through confluent-kafka."""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.clients.compatibility import played
from tests.clients.compatibility.played import PATIENCE_S


def produce(bootstrap: str, name: str, codec: str = "gzip", **settings: str) -> None:
    """Ten records, compressed."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50, **settings})
    errors: list[Any] = []
    for _ in range(10):
        producer.produce(name, b"value" * 20, partition=0, on_delivery=lambda error, _: errors.append(error))
    if producer.flush(PATIENCE_S):
        raise TimeoutError
    for error in errors:
        if error is not None:
            raise KafkaException(error)


def read(consumer: Any, wanted: int) -> list[Any]:
    """So many records, or fewer."""
    messages: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(messages) < wanted and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            messages.append(message)
    return messages


def consumer_of(bootstrap: str, group: str) -> Any:
    """Reads from the start, commits by itself never."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    return Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})


def consume(bootstrap: str, name: str) -> None:
    """All ten, in a group."""
    consumer = consumer_of(bootstrap, f"{name}-group")
    consumer.subscribe([name])
    try:
        if len(read(consumer, 10)) < 10:
            raise TimeoutError
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def transaction(bootstrap: str, name: str) -> None:
    """One aborted, one committed, with offsets."""
    out, group = f"{name}-out", f"{name}-other"
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    consumer = consumer_of(bootstrap, group)
    try:
        producer.init_transactions(PATIENCE_S)
        for commit in (False, True):
            producer.begin_transaction()
            producer.produce(out, b"committed" if commit else b"aborted", partition=0)
            offsets = [TopicPartition(name, 0, 7 if commit else 3)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
            if commit:
                producer.commit_transaction(PATIENCE_S)
            else:
                producer.abort_transaction(PATIENCE_S)
        consumer.assign([TopicPartition(out, 0, 0)])
        values = [message.value() for message in read(consumer, 1)]
        committed = consumer.committed([TopicPartition(name, 0)], PATIENCE_S)[0].offset
        if (values, committed) != ([b"committed"], 7):
            raise AssertionError(f"{values} {committed}")
    finally:
        consumer.close()


STEPS: dict[str, Callable[..., None]] = {
    "produce": produce,
    "idempotent": lambda *target: produce(*target, **{"enable.idempotence": "true"}),
    "consume": consume,
    "transaction": transaction,
}


def name_of(error: Exception) -> str:
    """librdkafka's own name for it."""
    return str(error.args[0].name().strip("_")) if isinstance(error, KafkaException) else played.name_of(error)


if __name__ == "__main__":
    played.answer(STEPS, name_of)
