"""Both ends of the chaos run, each a process of its own: one fills the source, the other reads the sink.

A native client that never comes back from `close()` cannot be interrupted from Python, only killed; so none of them
lives in the process of the test.

    ends.py feed BOOTSTRAP TOPIC PARTITIONS    writes records until stdin ends: each line there is "FIRST LAST"
    ends.py read BOOTSTRAP TOPIC PARTITIONS    prints the value of each committed record on a line
"""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition


def feed(bootstrap: str, topic: str, partitions: int) -> None:
    """Write the records of each range that stdin asks for, also while brokers are down."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True})
    for line in sys.stdin:
        first, last = map(int, line.split())
        for number in range(first, last):
            producer.produce(topic, key=str(number), value=str(number), partition=number % partitions)
        producer.poll(0)


def read(bootstrap: str, topic: str, partitions: int) -> None:
    """Print what a read_committed reader finds, until killed."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
                       "enable.auto.commit": False, "fetch.wait.max.ms": 50})  # fmt: skip
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    while True:
        for each in reader.consume(1000, 0.2):
            if each.error() is None:
                sys.stdout.write(f"{(each.value() or b'').decode()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    {"feed": feed, "read": read}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
