"""Client of `benchmarks.readme`: librdkafka through confluent-kafka."""

import sys
import time

from confluent_kafka import Consumer, Producer


def read_back(bootstrap: str, topic: str, group: str) -> None:
    """Produce one record to a new topic, and read it with a new group."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"one order")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    record = consumer.poll(20)
    consumer.close()
    assert record is not None
    assert record.value() == b"one order", record.error()


def main() -> None:
    """Run a test for each line of the standard input."""
    for line in sys.stdin:
        begun = time.perf_counter()
        read_back(*line.split())
        print((time.perf_counter() - begun) * 1e3, flush=True)


if __name__ == "__main__":
    main()
