"""A transaction exceeds its timeout; its producer recovers and continues (KIP-588).

    make serve                                                  # in another terminal
    .venv/bin/python -m pip install confluent-kafka
    .venv/bin/python examples/exactly_once/recover.py           # or: ... recover.py HOST:PORT CONTROL_URL

The example does not wait 15 minutes: it advances the cluster's clock while the client stays connected.
"""

import sys

from confluent_kafka import KafkaException, Producer

import understudy

SERVERS, CONTROL = sys.argv[1:] or ("127.0.0.1:9092", "http://127.0.0.1:9099")
ID = "payments-1"
kafka = understudy.connect(CONTROL)


def connect() -> Producer:
    settings = {"transactional.id": ID, "transaction.timeout.ms": 15 * 60 * 1000}
    producer = Producer({"bootstrap.servers": SERVERS, **settings})
    producer.init_transactions()  # InitProducerId: bumps the epoch and aborts an open transaction
    return producer


def pay(producer: Producer, *, slow: bool) -> None:
    """Run one transaction. A slow one exceeds its timeout, and the coordinator aborts it."""
    producer.begin_transaction()
    producer.produce("payments", value="debit")
    producer.flush()
    if slow:
        kafka.clock.advance(minutes=16)
    producer.produce("payments", value="credit")
    producer.commit_transaction()


def main() -> None:
    producer = connect()
    for attempt in range(1, 4):
        try:
            pay(producer, slow=attempt == 1)
        except KafkaException as problem:
            error = problem.args[0]
            print(f"attempt {attempt}: {error.name()}")
            print(f"why: {kafka.transactions[ID].why()}")
            if error.fatal():
                # librdkafka cannot distinguish a timeout from another producer with the same id: both errors are
                # fatal. Create a new producer only if you know that there is no other one, and not in an endless loop.
                producer = connect()
            elif error.txn_requires_abort():
                producer.abort_transaction()
            else:
                raise
        else:
            print(f"attempt {attempt}: committed")
            return
    raise SystemExit("given up")


if __name__ == "__main__":
    main()
