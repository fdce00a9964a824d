"""Rows of a user's test: produce one record to a new topic, subscribe with a new group, read the record, close.

Each client is its own process, which runs one test after the other with its defaults and new connections for each.
Understudy runs with the settings of the pytest fixture and is reset before each test; the reset is included. A peer
keeps running, and each test has its own topic and group, which are not removed.
"""

import contextlib
import itertools
import os
import shlex
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import understudy
from benchmarks.row import Figure, FreshRow, Goal, Scale, Values
from benchmarks.targets import CACHE, KINDS, ROOT, Kind, kafka, kafka_libs, running

HERE = Path(__file__).resolve().parent
INTEROP = Path(os.environ.get("INTEROP_CACHE", ROOT / ".cache" / "interop"))
TESTS_IN_PYTEST = 32
_WARM_UP, _TESTS, _PATIENCE_S = 3, 12, 60.0
_BUDGET_S = 200.0
_PEERS = ("understudy", "kafka", "kfake")
_numbers = itertools.count()


def _java() -> list[str]:
    classpath = f"{kafka_libs()}/*"
    return ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classpath, str(HERE / "Readme.java")]


def _franz() -> list[str]:
    binary = CACHE / "readme-franz"
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(binary), "./readme"], check=True, cwd=ROOT / "benchmarks" / "kfake")
    return [str(binary)]


def _kafkajs() -> list[str]:
    if not (INTEROP / "js" / "node_modules" / "kafkajs").is_dir():
        subprocess.run([str(ROOT / "tests" / "clients" / "setup.sh"), "js"], check=True)
    paths = f"NODE_PATH={INTEROP / 'js' / 'node_modules'}"
    return ["env", paths, "KAFKAJS_NO_PARTITIONER_WARNING=1", "node", str(HERE / "kafkajs.js")]


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.readme.{module}"]


CLIENTS: dict[str, tuple[str, Callable[[], Sequence[str]]]] = {
    "librdkafka": ("librdkafka", partial(_python, "confluent")),
    "java": ("Java", _java),
    "franz": ("franz-go", _franz),
    "kafkajs": ("KafkaJS", _kafkajs),
    "aiokafka": ("aiokafka", partial(_python, "aio")),
}
"""Title, command. A client reads lines "BOOTSTRAP TOPIC GROUP", runs a test for each, and prints its milliseconds."""


class Client:
    """The process of a client."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def test(self, bootstrap: str) -> float:
        """Run one test; return its milliseconds. Raises AssertionError if the record was not read within a minute."""
        number = next(_numbers)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        watch = threading.Timer(_PATIENCE_S, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(f"{bootstrap} orders-{number} group-{number}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            watch.cancel()
        if not line.strip():
            raise AssertionError(f"{shlex.join(self.process.args)[:60]} did not read its record")  # type: ignore[arg-type]
        return float(line)


@contextlib.contextmanager
def serving(kind: Kind) -> Iterator[Callable[[], str]]:
    """Run a server; each call prepares it for another test, and returns its address."""
    if kind.name == "understudy":
        with understudy.start() as cluster:

            def again() -> str:
                cluster.reset(disconnect=True)
                return cluster.bootstrap_servers

            yield again
    else:
        with running(creating(kind)) as server:
            yield lambda: server.bootstrap


def creating(kind: Kind) -> Kind:
    """Return the peer with automatic topic creation, which other rows do not use."""
    if kind.name == "kafka":
        return replace(kind, command=partial(kafka, create_topics=True))
    return replace(kind, command=lambda port, folder: [*KINDS[kind.name].command(port, folder), "-create-topics"])


def _measure(client: str, kind: Kind, scale: Scale) -> Values:
    with serving(kind) as again, Client(CLIENTS[client][1]()) as running_client:

        def one() -> float:
            begun = time.perf_counter()
            bootstrap = again()
            return (time.perf_counter() - begun if kind.name == "understudy" else 0.0) * 1e3 + running_client.test(
                bootstrap
            )

        for _ in range(_WARM_UP):
            one()
        return {f"readme_{client}": statistics.median(one() for _ in range(scale.of(_TESTS, 4)))}


def _in_pytest(kind: Kind, _scale: Scale) -> Values:
    """Run 32 tests of librdkafka in pytest, from its start to its end; a peer is warmed up by some tests before."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull]
    command += ["--rootdir", str(HERE), str(HERE / "suite.py")]
    with contextlib.ExitStack() as stack:
        environment = dict(os.environ)
        if kind.name != "understudy":
            bootstrap = stack.enter_context(serving(kind))()
            environment["BENCH_BOOTSTRAP"] = bootstrap
            with Client(CLIENTS["librdkafka"][1]()) as client:
                for _ in range(_WARM_UP):
                    client.test(bootstrap)
        begun = time.perf_counter()
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180
        )
        took_s = time.perf_counter() - begun
    if f"{TESTS_IN_PYTEST} passed" not in done.stdout:
        raise AssertionError(f"pytest ended with {done.returncode}: {done.stdout[-200:]}")
    return {"readme_pytest": took_s}


def _row(client: str, title: str) -> FreshRow:
    goal = Goal(of_better=1.0, most={"understudy": 150} if client == "librdkafka" else {})
    figure = Figure(f"readme_{client}", f"a test with a group, {title}", "ms", "lower", goal)
    return FreshRow(figure.name, (figure,), partial(_measure, client), targets=_PEERS, budget_s=_BUDGET_S)


ROWS = (
    *(_row(client, title) for client, (title, _) in CLIENTS.items()),
    FreshRow(
        "readme_pytest",
        (
            Figure(
                "readme_pytest",
                f"{TESTS_IN_PYTEST} such tests with librdkafka in pytest, the fixture's server started",
                "s",
                "lower",
                Goal(of_better=1.0),
            ),
        ),
        _in_pytest,
        targets=_PEERS,
        budget_s=_BUDGET_S,
    ),
)
