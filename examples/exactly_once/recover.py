"""A transaction outlives its timeout; its producer recovers and goes on (KIP-588).

    make serve                                                  # in another terminal
    .venv/bin/python -m pip install confluent-kafka
    .venv/bin/python examples/exactly_once/recover.py           # or: ... recover.py HOST:PORT CONTROL_URL

Nobody waits 15 minutes for it: the cluster's clock is pushed while the client stays connected.
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
    producer.init_transactions()  # InitProducerId: the next epoch; what was open under the last one is aborted
    return producer


def pay(producer: Producer, *, slow: bool) -> None:
    """One transaction. A slow one is still at work when the coordinator loses its patience."""
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
                # librdkafka does not tell a timeout from a successor with the same id, and ends in both cases. Begin
                # anew only where you know that no successor was started, and not for ever.
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
