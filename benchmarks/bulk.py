"""Rows of throughput: produce and consume through librdkafka, as fast as it can."""

import functools
import time
from collections.abc import Mapping

from benchmarks import payloads
from benchmarks.librdkafka import Consumer, Producer
from benchmarks.row import WITHOUT_MOCK, Figure, Goal, Scale, ServerRow, Values
from benchmarks.targets import Server

_TIMEOUT_S = 60.0
_LINGER_MS = 5


@functools.cache
def _lines(size: int) -> list[bytes]:
    return payloads.lines(size)


def _figures(name: str, title: str, goal: float) -> tuple[Figure, ...]:
    return (
        Figure(name, title, "msg/s", goal=Goal(of_better=goal)),
        Figure(f"{name}_cpu", f"{title}: the server's CPU", "us a record", "lower"),
    )


def _rates(name: str, count: int, seconds: float, cpu_s: float) -> Values:
    return {name: count / seconds, f"{name}_cpu": cpu_s / count * 1e6}


def _produce(
    server: Server,
    topic: str,
    scale: Scale,
    first: bool,
    *,
    name: str,
    size: int,
    count: int,
    settings: Mapping[str, object],
) -> Values:
    """Produce, then check the counts of acknowledged, stored and read records (each record in the first round)."""
    count = scale.of(count, 10_000)
    server.create_topic(topic)
    with Producer(server.bootstrap, topic, _lines(size), linger_ms=_LINGER_MS, **settings) as producer:
        producer.send(1, _TIMEOUT_S)
        cpu_s = server.cpu_s()
        seconds = producer.send(count, _TIMEOUT_S)
        cpu_s = server.cpu_s() - cpu_s
        end = producer.end_offset(topic)
    if end != count + 1:
        raise AssertionError(f"{count + 1} records acknowledged, {end} in the log")
    if server.stores:
        with Consumer(server.bootstrap, topic) as consumer:
            if first:
                consumer.check_to(end, [size], _TIMEOUT_S)
            else:
                consumer.read_to(end, _TIMEOUT_S)
    server.delete_topic(topic)
    return _rates(name, count, seconds, cpu_s)


def _fill(server: Server, topic: str, scale: Scale, *, size: int, count: int) -> None:
    server.create_topic(topic)
    count = scale.of(count, 10_000)
    with Producer(server.bootstrap, topic, _lines(size), linger_ms=_LINGER_MS) as producer:
        producer.send(count, _TIMEOUT_S)
        if producer.end_offset(topic) != count:
            raise AssertionError("not all records are in the log")
    with Consumer(server.bootstrap, topic) as consumer:
        consumer.check_to(count, [size], _TIMEOUT_S)


def _consume(server: Server, topic: str, scale: Scale, _first: bool, *, name: str, count: int) -> Values:
    """Read all records again; the time is measured from the first one received."""
    count = scale.of(count, 10_000)
    with Consumer(server.bootstrap, topic) as consumer:
        cpu_s = server.cpu_s()
        deadline = time.perf_counter() + _TIMEOUT_S
        while (first := consumer.position()) <= 0 and time.perf_counter() < deadline:
            consumer.read(1000)
        begun = time.perf_counter()
        consumer.read_to(count, _TIMEOUT_S)
        seconds = time.perf_counter() - begun
        cpu_s = server.cpu_s() - cpu_s
    return {name: (count - first) / seconds, f"{name}_cpu": cpu_s / count * 1e6}


def _producing(title: str, goal: float, *, name: str, size: int, count: int, **settings: object) -> ServerRow:
    measure = functools.partial(_produce, name=name, size=size, count=count, settings=settings)
    return ServerRow(name, _figures(name, title, goal), measure)


def _consuming(title: str, goal: float, *, name: str, size: int, count: int) -> ServerRow:
    return ServerRow(
        name,
        _figures(name, title, goal),
        functools.partial(_consume, name=name, count=count),
        prepare=functools.partial(_fill, size=size, count=count),
        kept=True,
        targets=WITHOUT_MOCK,  # it only keeps the last megabytes
    )


ROWS = (
    _producing("produce 100 B", 1.1, name="produce_100", size=100, count=1_500_000),
    _producing("produce 1 kB", 1.0, name="produce_1k", size=1000, count=500_000),
    _producing("produce 1 kB lz4", 1.0, name="produce_1k_lz4", size=1000, count=500_000, compression_type="lz4"),
    _producing(
        "produce 100 B idempotent",
        1.1,
        name="produce_100_idempotent",
        size=100,
        count=1_000_000,
        enable_idempotence="true",
    ),
    _consuming("consume 100 B", 1.0, name="consume_100", size=100, count=1_500_000),
    _consuming("consume 1 kB", 1.0, name="consume_1k", size=1000, count=500_000),
)
