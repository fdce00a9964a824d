"""Runs the clients of docs/faults-and-time.md: transactions of `payments-1`, and a consumer in the group `shipping`."""

import sys
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer


def write(bootstrap: str, consumer: Consumer) -> None:
    """Write an order in each transaction, and read while the transaction is open, for about ten seconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "payments", "transactional.id": "payments-1"})
    producer.init_transactions(60)
    while True:
        producer.begin_transaction()
        producer.produce("orders", key="k", value="one order", partition=0)
        producer.flush(10)
        for _ in range(100):
            consumer.poll(0.1)
        producer.commit_transaction(60)


def main(bootstrap: str) -> None:
    """Continue with a new producer after each error, until Ctrl-C."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "shipping", "client.id": "shipping-1"})
    consumer.subscribe(["orders"])
    with suppress(KeyboardInterrupt):
        while True:
            try:
                write(bootstrap, consumer)
            except KafkaException as error:
                print(error, flush=True)
    consumer.close()


main(sys.argv[1])
