"""Rows of latency through librdkafka: one record at a time."""

import statistics
import time

from benchmarks import payloads
from benchmarks.librdkafka import ClientError, Consumer, Producer
from benchmarks.row import WITHOUT_MOCK, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server

_LINES = payloads.lines(100)


def percentile(samples: list[float], percent: int) -> float:
    """Return a percentile, in microseconds."""
    return statistics.quantiles(samples, n=100)[percent - 1] * 1e6


def _one_in_flight(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    count = scale.of(6000, 300)
    server.create_topic(topic)
    with Producer(server.bootstrap, topic, _LINES, linger_ms=0) as producer:
        for _ in range(scale.of(500, 50)):
            producer.send_one()
        before = producer.end_offset(topic)
        samples = [producer.send_one() for _ in range(count)]
        if producer.end_offset(topic) - before != count:
            raise AssertionError("not all records are in the log")
    if server.stores:
        with Consumer(server.bootstrap, topic) as consumer:
            consumer.check_to(before + count, [100], 30)
    server.delete_topic(topic)
    return {"one_in_flight_p50": percentile(samples, 50), "one_in_flight_p99": percentile(samples, 99)}


def _produce_to_consume(server: Server, topic: str, scale: Scale, _first: bool) -> Values:
    """Time from handing a record to the producer until the consumer returns it, both in this process."""
    count, warm = scale.of(3000, 200), 100
    server.create_topic(topic)
    samples = []
    with Producer(server.bootstrap, topic, _LINES, linger_ms=0) as producer:
        producer.send_one()
        with Consumer(server.bootstrap, topic) as consumer:
            consumer.read_to(1, 30)
            for number in range(1, warm + count + 1):
                begun = time.perf_counter()
                producer.hand_over(1)
                while consumer.position() <= number:
                    if not consumer.read(5000) and time.perf_counter() - begun > 5:
                        raise ClientError("a record did not arrive within 5 s")
                samples.append(time.perf_counter() - begun)
                producer.settle(1)
    server.delete_topic(topic)
    return {
        "produce_to_consume_p50": percentile(samples[warm:], 50),
        "produce_to_consume_p99": percentile(samples[warm:], 99),
    }


ROWS = (
    ServerRow(
        "one_in_flight",
        (
            Figure("one_in_flight_p50", "produce one in flight, p50", "us", "lower", Goal(of_kfake=1.15)),
            Figure("one_in_flight_p99", "produce one in flight, p99", "us", "lower", Goal(of_kfake=1.5)),
        ),
        _one_in_flight,
    ),
    ServerRow(
        "produce_to_consume",
        (
            Figure("produce_to_consume_p50", "produce to consume, p50", "us", "lower", Goal(of_kfake=1.5)),
            Figure("produce_to_consume_p99", "produce to consume, p99", "us", "lower"),
        ),
        _produce_to_consume,
        kept=True,
        targets=WITHOUT_MOCK,  # it delays each fetch until its time is up
    ),
)
