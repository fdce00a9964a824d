"""Rows of the process: start time and memory."""

import time

from benchmarks import payloads
from benchmarks.librdkafka import Producer
from benchmarks.row import STORING, WITHOUT_MOCK, Figure, FreshRow, Goal, Scale, Values
from benchmarks.targets import Kind, running

_MB = 1_000_000


def _start(kind: Kind, _scale: Scale) -> Values:
    """Measure the time from the process's start to its first response, and its memory a second later."""
    with running(kind) as server:
        time.sleep(1)
        return {"start": server.started_s * 1e3, "idle_rss": server.rss_bytes() / _MB}


def _stored(kind: Kind, scale: Scale) -> Values:
    """Measure memory after a million records of 1 kB."""
    count = scale.of(1_000_000, 20_000)
    with running(kind) as server:
        server.create_topic("stored")
        with Producer(server.bootstrap, "stored", payloads.lines(1000), linger_ms=5) as producer:
            producer.send(count, 90)
            if (end := producer.end_offset("stored")) != count:
                raise AssertionError(f"{count} records acknowledged, {end} in the log")
            return {"stored_rss": server.rss_bytes() / _MB}


ROWS = (
    FreshRow(
        "start",
        (
            Figure("start", "start to first answer", "ms", "lower", Goal(most={"understudy": 150})),
            Figure("idle_rss", "idle RSS", "MB", "lower", Goal(most={"understudy": 70})),
        ),
        _start,
        targets=WITHOUT_MOCK,  # it is a thread of its client
    ),
    FreshRow(
        "stored_rss",
        (
            Figure(
                "stored_rss",
                "RSS after 1 GB produced",
                "MB",
                "lower",
                Goal(most={"understudy": 1200, "understudy-disk": 150}),
            ),
        ),
        _stored,
        targets=STORING,
        rounds=1,
    ),
)
