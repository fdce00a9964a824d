"""Rows of servers with another setup: on disk, with a journal in files, with three brokers.

A variant changes the command of both builds of Understudy and of the peers alike, if they support it. Only Understudy
has a journal: for that row the peers run as always.
"""

import dataclasses
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from benchmarks import payloads
from benchmarks.latency import percentile
from benchmarks.librdkafka import QUIET, Consumer, Producer
from benchmarks.row import BUILDS, Figure, FreshRow, Goal, Scale, Values
from benchmarks.targets import Kind, Server, free_port, running

_TARGETS = (*BUILDS, "kafka", "kfake")
_TIMEOUT_S = 60.0
_WARM_UP = 100
_BROKERS = 3

Variant = Callable[[Kind], Kind]


def on_disk(plain: Kind) -> Kind:
    """Keep everything in the folder, as Kafka always does."""

    def command(port: int, folder: Path) -> list[str]:
        return [*plain.command(port, folder), *([] if plain.name == "kafka" else ["--data-dir", str(folder / "data")])]

    return dataclasses.replace(plain, command=command)


def journaled(plain: Kind) -> Kind:
    """Write each request into files; a peer runs as always."""

    def command(port: int, folder: Path) -> list[str]:
        return [*plain.command(port, folder), *(["--journal", str(folder / "journal")] if plain.name in BUILDS else [])]

    return dataclasses.replace(plain, command=command)


def three_brokers(plain: Kind) -> Kind:
    """Serve with three brokers: Kafka's are separate processes, the others' are in one."""

    def command(port: int, folder: Path) -> list[str]:
        if plain.name == "kafka":
            return [sys.executable, "-m", "benchmarks.kafka_cluster", "--port", str(port), "--folder", str(folder)]
        own = plain.command(port, folder)
        if plain.name == "kfake":
            return [*own, "--brokers", str(_BROKERS)]
        ports = [port, *(free_port() for _ in range(_BROKERS - 1))]
        own[own.index("--port") + 1] = ",".join(map(str, ports))
        return [*own, "--brokers", str(_BROKERS), "--set", "min.insync.replicas=2"]

    return dataclasses.replace(plain, command=command)


def measure_server(server: Server, scale: Scale, *, replicas: int = 1) -> tuple[float, float, float]:
    """Return p50 of one record in flight in us, then records of 100 B produced and consumed per second, as checked."""
    count, one_by_one = scale.of(300_000, 10_000), scale.of(2000, 200)
    own: dict[str, Any] = {name.replace(".", "_"): value for name, value in server.kind.client.items()}
    server.create_topic("t", replicas=replicas)
    with Producer(server.bootstrap, "t", payloads.lines(100), linger_ms=0, **own) as producer:
        for _ in range(_WARM_UP):
            producer.send_one()
        samples = [producer.send_one() for _ in range(one_by_one)]
    with Producer(server.bootstrap, "t", payloads.lines(100), linger_ms=5, **own) as producer:
        producer.send(1, _TIMEOUT_S)
        produced_s = producer.send(count, _TIMEOUT_S)
    whole = count + 1 + _WARM_UP + one_by_one
    if (stored := server.records("t")) != whole:
        raise AssertionError(f"{whole} records acknowledged, {stored} in the log")
    with Consumer(server.bootstrap, "t", **own) as consumer:
        while consumer.position() <= 0:
            consumer.read(1000)
        first, begun = consumer.position(), time.perf_counter()
        consumer.read_to(whole, _TIMEOUT_S)
        consumed_s = time.perf_counter() - begun
    return percentile(samples, 50), count / produced_s, (whole - first) / consumed_s


def _until_registered(server: Server) -> None:
    """Return once all brokers are in the cluster: a topic needs them for its replicas."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, **QUIET})
    deadline = time.monotonic() + _TIMEOUT_S
    while len(admin.list_topics(timeout=10).brokers) < _BROKERS:
        if time.monotonic() > deadline:
            raise AssertionError("not all brokers have registered")
        time.sleep(0.05)


def _measure(name: str, variant: Variant, replicas: int, kind: Kind, scale: Scale) -> Values:
    with running(variant(kind)) as server:
        if replicas > 1:
            _until_registered(server)
        latency_us, produced, consumed = measure_server(server, scale, replicas=replicas)
    return {f"{name}_one_in_flight": latency_us, f"{name}_produce": produced, f"{name}_consume": consumed}


def _row(name: str, title: str, variant: Variant, replicas: int = 1, least_s: float = 25.0) -> FreshRow:
    figures = (
        Figure(f"{name}_one_in_flight", f"{title}: produce one in flight, p50", "us", "lower", Goal(of_kafka=1.0)),
        Figure(f"{name}_produce", "... produce 100 B", "msg/s", goal=Goal(of_kafka=1.0)),
        Figure(f"{name}_consume", "... consume 100 B", "msg/s", goal=Goal(of_kafka=1.0)),
    )
    return FreshRow(name, figures, partial(_measure, name, variant, replicas), targets=_TARGETS, least_s=least_s)


ROWS = (
    _row("disk", "on disk", on_disk),
    _row("journal", "a journal in files", journaled),
    _row("three_brokers", "three brokers, acks=all", three_brokers, _BROKERS, least_s=60),
)
