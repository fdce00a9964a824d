"""Measures the control plane: the cost of its operations, and their effect on clients.

    python -m benchmarks.steering [--quick] [--only start,reset,clusters,fixture,journal] [--json FILE]

Takes some minutes, and needs an idle machine. A missed goal is
reported, and the exit code is 1.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer

import understudy
from benchmarks import payloads
from benchmarks.librdkafka import Producer as Quick
from benchmarks.targets import CACHE, ROOT, SETTINGS

TOPICS, CLIENTS = 100, 10


@dataclass(frozen=True, slots=True)
class Figure:
    """Line of the table. ``most``: the goal, in the same unit; ``None``: no goal."""

    name: str
    value: float
    unit: str
    most: float | None = None
    worst: float | None = None

    @property
    def missed(self) -> bool:
        """Return whether the figure is above its goal."""
        return self.most is not None and self.value > self.most

    def line(self) -> str:
        """Return the row of a Markdown table."""
        goal = "" if self.most is None else f"{'MISSED: ' if self.missed else ''}at most {self.most:g} {self.unit}"
        worst = "" if self.worst is None else f"{self.worst:.1f} {self.unit}"
        return f"| {self.name} | {self.value:.1f} {self.unit} | {worst} | {goal} |"


def timed_ms(do: Callable[[], object]) -> float:
    """Time a call."""
    begun = time.perf_counter()
    do()
    return (time.perf_counter() - begun) * 1e3


def median_of(name: str, samples: list[float], most: float | None = None) -> Figure:
    """Return the median of times in ms, with the worst one."""
    return Figure(name, statistics.median(samples), "ms", most, max(samples))


# --- start -----------------------------------------------------------------------------------------------------------


def start(quick: bool) -> Iterator[Figure]:
    """Time the start of a test session's first cluster, until control plane and broker respond."""
    samples = []
    for _ in range(3 if quick else 9):
        begun = time.perf_counter()
        with understudy.start() as kafka:
            kafka.health()
            samples.append((time.perf_counter() - begun) * 1e3)
    yield median_of("start of a server with its control plane", samples, 400)


# --- reset -----------------------------------------------------------------------------------------------------------


@contextmanager
def connected(bootstrap: str) -> Iterator[tuple[list[Producer], list[Consumer]]]:
    """Connect ten clients: half producers, half consumers."""
    common = {"bootstrap.servers": bootstrap, "log_level": 0, "retry.backoff.ms": 20, "reconnect.backoff.ms": 10}
    producers = [Producer({**common, "linger.ms": 0}) for _ in range(CLIENTS // 2)]
    consumers = [Consumer({**common, "group.id": f"g{at}", "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
                           "heartbeat.interval.ms": 100}) for at in range(CLIENTS // 2)]  # fmt: skip
    for at, consumer in enumerate(consumers):
        consumer.subscribe([f"t{at}"])
    try:
        yield producers, consumers
    finally:
        for consumer in consumers:
            consumer.close()


def round_trip(producers: list[Producer], consumers: list[Consumer], value: bytes) -> None:
    """Produce a value with each producer and read it with each consumer; raises AssertionError after 60 s."""
    for at, producer in enumerate(producers):
        producer.produce(f"t{at}", value)
    for producer in producers:
        assert producer.flush(60) == 0
    for consumer in consumers:
        deadline = time.monotonic() + 60
        while (message := consumer.poll(1)) is None or message.error() or message.value() != value:
            assert time.monotonic() < deadline, "a consumer did not recover"


def reset(quick: bool) -> Iterator[Figure]:
    """Time `POST /v1/reset` with a hundred topics and ten connected clients, which recover by themselves."""
    names = [f"t{number}:1" for number in range(TOPICS)]
    took, requests_ms, recovered = [], [], []
    with understudy.start(topics=names, settings=SETTINGS) as kafka, connected(kafka.bootstrap_servers) as clients:
        for number in range(3 if quick else 12):
            round_trip(*clients, f"{number}".encode())
            requests_ms.append(timed_ms(kafka.health))
            took.append(timed_ms(kafka.reset))
            recovered.append(timed_ms(partial(round_trip, *clients, f"{number}, again".encode())))
            assert len(kafka.topics.list()) >= TOPICS
    yield median_of(f"reset, {TOPICS} topics, {CLIENTS} clients connected", took, 20)
    yield median_of("of that, asking anything at all", requests_ms)
    yield median_of("until all ten clients have written and read again", recovered)


# --- clusters ---------------------------------------------------------------------------------------------------------


def clusters(quick: bool) -> Iterator[Figure]:
    """Time new clusters in a running server beside its reset; measure memory and processor time of idle ones."""
    topics = {"orders": 3}
    rounds, idle = (30, 50) if quick else (200, 200)
    with understudy.start(topics=topics) as kafka:

        def processor_s() -> float:
            (total,) = re.findall(r"(?m)^process_cpu_seconds_total (\S+)", kafka.metrics())
            return float(total)

        def resident_bytes() -> float:
            (now,) = re.findall(r"(?m)^process_resident_memory_bytes (\S+)", kafka.metrics())
            return float(now)

        for brokers, most in ((1, 10), (3, 15)):
            took, ends = [], []
            for _ in range(rounds):
                begun = time.perf_counter()
                cluster = kafka.clusters.create(brokers=brokers, topics=topics)
                took.append((time.perf_counter() - begun) * 1e3)
                ends.append(timed_ms(cluster.stop))
            yield median_of(f"new cluster, brokers: {brokers}", took, most)
            yield median_of(f"its end, brokers: {brokers}", ends)
        used_s = processor_s()
        yield median_of(
            "reset of one broker, clients disconnected",
            [timed_ms(partial(kafka.reset, disconnect=True)) for _ in range(rounds)],
        )
        yield Figure("processor time of that", (processor_s() - used_s) / rounds * 1e3, "ms")
        used_s = processor_s()
        for _ in range(rounds):
            kafka.clusters.create(topics=topics).stop()
        yield Figure("processor time of a new cluster and its end", (processor_s() - used_s) / rounds * 1e3, "ms")
        before_bytes = resident_bytes()
        with contextlib.ExitStack() as opened:
            for _ in range(idle):
                opened.enter_context(kafka.clusters.create(topics={"orders": 1}))
            yield Figure(
                "memory of a cluster with one topic", (resident_bytes() - before_bytes) / idle / 1024, "KiB", 1024
            )
            used_s, begun = processor_s(), time.perf_counter()
            time.sleep(10 if quick else 60)
            used = (processor_s() - used_s) / (time.perf_counter() - begun) * 100
            yield Figure(f"one core, {idle} idle clusters", used, "%", 1)


# --- the fixture -----------------------------------------------------------------------------------------------------

_TESTS = "import pytest\n\n@pytest.mark.parametrize('number', range({count}))\ndef test({fixture}number):\n    pass\n"


def suite_s(folder: Path, count: int, fixture: str) -> float:
    """Time a session of `count` empty tests."""
    (folder / "test_nothing.py").write_text(_TESTS.format(count=count, fixture=fixture))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return time.perf_counter() - begun


def fixture(quick: bool) -> Iterator[Figure]:
    """Time that `kafka` adds to each test after the first: a reset, two requests, and pytest's own work."""
    few, many, costs = 20, 120 if quick else 420, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(1 if quick else 3):
            each = {
                kind: (suite_s(folder, many, kind) - suite_s(folder, few, kind)) / (many - few) * 1e3
                for kind in ("kafka, ", "")
            }
            costs.append(each["kafka, "] - each[""])
    yield median_of("the fixture, for each test", costs, 10)


# --- the journal -----------------------------------------------------------------------------------------------------


def journal(quick: bool) -> Iterator[Figure]:
    """Measure produce throughput with the journal on, off and in files, in turn, as a loss against off."""
    rates: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        without = {**SETTINGS, "understudy.journal.max.entries": 0}
        ways = {
            "off": opened.enter_context(understudy.start(topics=["t:1"], settings=without)),
            "on": opened.enter_context(understudy.start(topics=["t:1"], settings=SETTINGS)),
            "in files": opened.enter_context(understudy.start(topics=["t:1"], settings=SETTINGS, journal=folder)),
        }
        for number in range(1 + (3 if quick else 9)):
            for load, measured in LOADS.items():
                names = deque(ways)
                names.rotate(number)  # the first after the others' resets has different memory conditions than the last
                for way in names:
                    rate = measured(ways[way].bootstrap_servers, 8 if quick else 1)
                    ways[way].reset()
                    if number:  # the first round warms up
                        rates.setdefault((load, way), []).append(rate)
    for load in LOADS:
        for way in ("on", "in files"):
            cost = (1 - statistics.median(rates[load, way]) / statistics.median(rates[load, "off"])) * 100
            yield Figure(f"journal {way}: throughput lost, {load}", cost, "%", 10 if way == "on" else None)


def bulk_rate(bootstrap: str, part: int) -> float:
    """Return records of 1 kB per second, in librdkafka's default batches."""
    count = 200_000 // part
    with Quick(bootstrap, "t", payloads.lines(1000), linger_ms=5) as producer:
        return count / producer.send(count, 60)


def single_rate(bootstrap: str, part: int) -> float:
    """Return requests of one 100-byte record per second, many in flight: the journal's worst case."""
    count = 40_000 // part
    with Quick(bootstrap, "t", payloads.lines(100), linger_ms=0, batch_num_messages=1) as producer:
        return count / producer.send(count, 60)


LOADS = {"batches of 1 kB records": bulk_rate, "one record a request": single_rate}


# --- all of it -------------------------------------------------------------------------------------------------------


PARTS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "start": start,
    "reset": reset,
    "clusters": clusters,
    "fixture": fixture,
    "journal": journal,
}


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steering", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default=",".join(PARTS), help="some of them: %(default)s")
    parser.add_argument("--json", type=Path, default=CACHE / "steering.json", help="write the figures there")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [name for name in wanted if name not in PARTS]:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(PARTS)}")
    figures = []
    print("| what | median | worst | goal |\n|---|---|---|---|", flush=True)
    for name in wanted:
        for figure in PARTS[name](options.quick):
            figures.append(figure)
            print(figure.line(), flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")
    return int(any(figure.missed for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
