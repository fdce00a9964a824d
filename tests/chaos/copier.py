"""One copier of the chaos run: consume, produce, commit the offsets with the transaction; now and then abort.

Started as a process of its own, and killed like one. What it cannot recover from ends it with exit code 1, and the
run starts it again. The KIP-98 template: a fatal error ends the instance, an abortable one the transaction.
"""

import random
import sys
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

ABORTED_OF = 8  # one transaction in so many is aborted on purpose


def copy(bootstrap: str, source: str, sink: str, group: str, transactional_id: str, batch: int, seed: int) -> None:
    """Copy until killed."""
    chance = random.Random(seed)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 50,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "linger.ms": 1,
        }
    )
    producer.init_transactions(30)
    consumer.subscribe([source])
    while True:
        messages = [each for each in consumer.consume(batch, 0.2) if each.error() is None]
        if messages:
            _transaction(consumer, producer, sink, messages, abort=chance.randrange(ABORTED_OF) == 0)


def _transaction(consumer: Any, producer: Any, sink: str, messages: list[Message], *, abort: bool) -> None:
    """One transaction; an abortable error aborts it and goes back to what is committed."""
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(sink, key=message.key(), value=message.value(), partition=message.partition())
            producer.poll(0)
        ends: dict[int, int] = {}
        for message in messages:
            ends[message.partition() or 0] = (message.offset() or 0) + 1
        topic = messages[0].topic() or ""
        offsets = [TopicPartition(topic, partition, offset) for partition, offset in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
        if not abort:
            _commit(producer)
            return
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
    producer.abort_transaction(20)
    _rewind(consumer)


def _commit(producer: Any) -> None:
    while True:
        try:
            producer.commit_transaction(20)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def _rewind(consumer: Any) -> None:
    """Read again from the committed offsets."""
    for place in consumer.committed(consumer.assignment(), 20):
        consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


if __name__ == "__main__":
    bootstrap, source, sink, group, name, batch, seed = sys.argv[1:]
    try:
        copy(bootstrap, source, sink, group, name, int(batch), int(seed))
    except KafkaException as error:
        sys.exit(f"{name}: {error.args[0]}")
