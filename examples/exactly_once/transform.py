"""Consume, transform, produce: every order is invoiced exactly once (the template of KIP-98 and KIP-447).

    make serve                                                  # in another terminal
    .venv/bin/python -m pip install confluent-kafka
    .venv/bin/python examples/exactly_once/transform.py         # or: ... transform.py HOST:PORT

The invoices and the offsets of their orders are one transaction: both are committed, or neither.
"""

import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
ORDERS = 10


def place_orders() -> None:
    producer = Producer({"bootstrap.servers": SERVERS})
    for number in range(ORDERS):
        producer.produce("orders", key=f"customer {number % 3}", value=f"order {number}")
    producer.flush()


def invoice(order: Message) -> bytes:
    return b"invoice for " + (order.value() or b"")


def transact(consumer: Consumer, producer: Producer, orders: list[Message]) -> bool:
    """Run one transaction; return whether it was committed. If not, the consumer's position is reset."""
    producer.begin_transaction()
    try:
        for order in orders:
            producer.produce("invoices", key=order.key(), value=invoice(order))
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        producer.commit_transaction()
    except KafkaException as problem:
        if not problem.args[0].txn_requires_abort():
            raise  # fenced: another instance has taken over, and this one must end
        producer.abort_transaction()
        for partition in consumer.committed(consumer.assignment()):
            consumer.seek(TopicPartition(partition.topic, partition.partition, max(partition.offset, 0)))
        return False
    return True


def main() -> None:
    place_orders()
    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": "invoicing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # the transaction commits the offsets
            "isolation.level": "read_committed",  # skips orders of aborted transactions
        }
    )
    producer = Producer({"bootstrap.servers": SERVERS, "transactional.id": "invoicing-1"})
    producer.init_transactions()  # fences earlier producers with this id, and aborts their open transactions
    consumer.subscribe(["orders"])
    invoiced = 0
    while invoiced < ORDERS:
        orders = [message for message in consumer.consume(4, timeout=1) if message.error() is None]
        if orders and transact(consumer, producer, orders):
            invoiced += len(orders)
            print(f"committed {len(orders)} invoices, {invoiced} of {ORDERS}")
        elif orders:
            print(f"aborted {len(orders)} invoices, once more")
    consumer.close()


if __name__ == "__main__":
    main()
