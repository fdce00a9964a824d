"""Rows of the coordinators: transactions, groups, and the delay until a client's first record."""

import itertools
import statistics
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from benchmarks.librdkafka import QUIET
from benchmarks.row import STORING, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server

_PATIENCE_S = 20.0
_numbers = itertools.count()
# librdkafka itself waits: half of reconnect.backoff.ms before it opens its second connection (11 ms here, its minimum,
# instead of 50), and 100 ms before it requests the first offset of a group that has none. It does so with every broker.
_BRISK = {"reconnect.backoff.ms": 1}
# The median of a round counts: sometimes librdkafka's threads miss a signal and wait for a timer of 500 ms.
_TRIES = 5


def _new(what: str) -> str:
    """Return a new unique name."""
    return f"bench-{what}-{next(_numbers)}"


def _transactional(server: Server, **settings: object) -> Producer:
    """Create a producer with a new transactional id."""
    return Producer(
        {
            "bootstrap.servers": server.bootstrap,
            **QUIET,
            "transactional.id": _new("id"),
            "linger.ms": 0,
            **settings,
        }
    )


def _committed(server: Server, topic: str) -> int:
    """Count the records that a read_committed consumer gets."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            **QUIET,
            "group.id": "bench-unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        count, deadline = 0, time.perf_counter() + _PATIENCE_S
        while time.perf_counter() < deadline:
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    return count
                if error is not None:
                    raise KafkaException(error)
                count += 1
    finally:
        consumer.close()
    raise AssertionError(f"the end of {topic} was not reached, {count} records were")


def _transactions(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Repeat for some seconds: begin, produce one record, commit."""
    server.create_topic(topic)
    producer = _transactional(server)
    producer.init_transactions(_PATIENCE_S)
    committed = 0
    begun = time.perf_counter()
    while (seconds := time.perf_counter() - begun) < max(2.5 * scale.part, 0.5):
        producer.begin_transaction()
        producer.produce(topic, b"one record")
        producer.commit_transaction(_PATIENCE_S)
        committed += 1
    if server.stores and (count := _committed(server, topic)) != committed:
        raise AssertionError(f"{committed} transactions, {count} records")
    server.delete_topic(topic)
    return {"transactions": committed / seconds}


def _first_init(server: Server, _topic: str, _scale: Scale, _first: bool) -> Values:
    """Time `init_transactions` of a new producer with a new id: connection, coordinator, producer id."""

    def once(**settings: object) -> float:
        producer = _transactional(server, **settings)
        begun = time.perf_counter()
        producer.init_transactions(_PATIENCE_S)
        return (time.perf_counter() - begun) * 1e3

    return {
        "first_init": statistics.median(once() for _ in range(_TRIES)),
        "first_init_brisk": statistics.median(once(**_BRISK) for _ in range(_TRIES)),
    }


def _one_record(server: Server, topic: str, _scale: Scale) -> None:
    server.create_topic(topic)
    producer = Producer({"bootstrap.servers": server.bootstrap, **QUIET})
    producer.produce(topic, b"the first")
    if producer.flush(_PATIENCE_S):
        raise AssertionError("the record was not acknowledged")


def _member(server: Server, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            **QUIET,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )


def _commit(server: Server, topic: str, group: str) -> None:
    """Commit offset 0, so that a member need not look up its start offset."""
    consumer = _member(server, group)
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    finally:
        consumer.close()


def _join(server: Server, topic: str, group: str, **settings: object) -> float:
    """Return the milliseconds from a consumer's construction to its first record."""
    begun = time.perf_counter()
    consumer = _member(server, group, **settings)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(_PATIENCE_S)
        seconds = time.perf_counter() - begun
    finally:
        consumer.close()
    if message is None or message.error() or message.value() != b"the first":
        raise AssertionError("the record did not come")
    return seconds * 1e3


def _first_join(server: Server, topic: str, _scale: Scale, _first: bool) -> Values:
    """Time a new consumer in a new group, with and without the client's own waits."""
    plain, brisk = [], []
    for _ in range(_TRIES):
        plain.append(_join(server, topic, _new("group")))
        known = _new("group")
        _commit(server, topic, known)
        brisk.append(_join(server, topic, known, **_BRISK))
    return {"first_join": statistics.median(plain), "first_join_brisk": statistics.median(brisk)}


ROWS = (
    ServerRow(
        "transactions",
        (Figure("transactions", "transactions, one record each", "/s", goal=Goal(of_kfake=0.95)),),
        _transactions,
    ),
    ServerRow(
        "first_join",
        (
            Figure("first_join", "first group join to first record", "ms", "lower"),
            Figure("first_join_brisk", "... without the client's pauses", "ms", "lower", Goal(of_better=1.05)),
        ),
        _first_join,
        prepare=_one_record,
        targets=STORING,  # the mock's groups wait for 3 s
    ),
    ServerRow(
        "first_init",
        (
            Figure("first_init", "first init_transactions", "ms", "lower"),
            Figure("first_init_brisk", "... without the client's pauses", "ms", "lower", Goal(of_limit=1.05)),
        ),
        _first_init,
    ),
)
