"""The drivers: what each is, and how it is run once against the session's cluster.

`clients.py` lists the clients.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.known import KNOWN
from tests.clients.observed import Report
from tests.clients.targets import CACHE, ROOT, Target
from understudy.exam import driver as exam
from understudy.exam.driver import AnyDriver

HERE = Path(__file__).resolve().parent
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}
RUN_TIMEOUT_S = 580
"""Ends a client that hangs, within its test's own limit. Kafka's own tools need 215 s at a load of 20 on two cores."""
BUILD_TIMEOUT_S = 3_600
"""Ends a build that hangs. librdkafka and zstd in C take minutes beside other work."""
PATIENCE = 6.0
"""How long a command of a driver may take, in multiples of the usual 20 s: it ends what hangs."""
JAVAC = ("javac", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1")
"""A compiler that runs for a second or two: compiled once itself, it takes half of the processor time."""
INTERMEDIATE = {
    "kafka-clients-3.9.1",
    "kafka-clients-3.9.1-transactions",
    "kafka-streams-4.3.1",
}
"""Versions between the oldest and the newest of a client here: `.ci/run` leaves them to the night."""


def each_step(drivers: "Sequence[Driver]") -> pytest.MarkDecorator:
    """Parametrize a test with every step of every driver: `driver`, `step`; intermediate versions are marked."""
    pairs = [
        pytest.param(
            driver, step, id=f"{driver.name}-{step}", marks=[pytest.mark.intermediate] * (driver.name in INTERMEDIATE)
        )
        for driver in drivers
        for step in driver.steps
    ]
    return pytest.mark.parametrize(("driver", "step"), pairs)


class UnavailableError(Exception):
    """The client cannot run on this machine; the message has the reason."""


Play = Callable[[Sequence[str], Target, str, int], Report]


@dataclass(frozen=True, slots=True)
class Driver:
    """One client: the tools it takes, its part of setup.sh, the command of its program, and the script that is played.

    ``play`` gets the command, a target, a topic and a time. None: the program plays by itself.
    """

    name: str
    tools: tuple[str, ...]
    part: str | None
    build: Callable[[], Sequence[str]]
    steps: tuple[str, ...]
    play: Play | None = None


def with_driver(play: Callable[[AnyDriver, str, int, str, int], Report]) -> Callable[..., Report]:
    """Play a script with a driver of the exam, which the command starts."""

    def played(command: Sequence[str], target: Target, topic: str, base_ms: int) -> Report:
        with exam.Driver(command, patience=PATIENCE) as driver:
            driver.hello()
            report = play(driver, target.bootstrap, target.brokers, topic, base_ms)
            report.stderr = "\n".join(driver.log)
            return report

    return played


@dataclass(slots=True)
class Played:
    """What one run printed: each step's line by its name, how long building and running took, and all in its order.

    ``reported`` holds the steps and the calls before each; of a program that plays by itself, the steps.
    """

    lines: dict[str, dict[str, Any]]
    stderr: str
    build_s: float
    run_s: float
    reported: Sequence[Mapping[str, Any]] = ()


def command(arguments: Sequence[str | Path], folder: Path = ROOT, **environment: str) -> str:
    """Run a build step, one at a time on this machine; raises RuntimeError with its output.

    Two processes may ask for the same binary: the second one finds it made, and writes over none that is running.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [str(each) for each in arguments],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def java_classes(folder: Path, libs: Path, sources: Iterable[Path]) -> Path:
    """Compile Java sources against a folder of jars, once; returns the folder of their classes.

    Its name is a hash of the sources, and it appears when it is complete: several processes may ask for the same
    classes while the JVM of another one is loading them.
    """
    files = sorted(sources)
    digest = hashlib.sha256(str(libs).encode())
    for each in files:
        digest.update(each.name.encode() + b"\0" + each.read_bytes() + b"\0")
    classes = folder / digest.hexdigest()[:16]
    if classes.exists():
        return classes
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=folder, prefix="compiling-"))
    try:
        command([*JAVAC, "-nowarn", "-Xlint:none", "-d", own, "-cp", f"{libs}/*", *files])
        own.rename(classes)
    except OSError:
        if not classes.exists():  # otherwise another process was first
            raise
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return classes


def missing(driver: Driver) -> list[str]:
    """The driver's tools that are not installed on this machine."""
    return [tool for tool in driver.tools if shutil.which(tool) is None]


def play(driver: Driver, target: Target, topic: str | None = None, base_ms: int = 0) -> Played:
    """Build the driver and run it against the cluster, on a topic of its own, or of that name."""
    if absent := missing(driver):
        raise UnavailableError(f"{driver.name} needs {', '.join(absent)}: tests/clients/setup.sh toolchains")
    began = time.monotonic()
    if driver.part:
        command([HERE / "setup.sh", driver.part])
    prefix = driver.build()
    built = time.monotonic()
    topic = topic or f"interop-{driver.name}-{uuid.uuid4().hex[:8]}"
    base_ms = base_ms or (int(time.time()) - 3600) * 1000  # an hour ago: retention leaves it alone
    if driver.play is not None:
        report = driver.play(prefix, target, topic, base_ms)
        steps = {line["step"]: line for line in report.lines if "step" in line}
        return Played(steps, report.stderr, built - began, time.monotonic() - built, report.lines)
    arguments = [*prefix, target.bootstrap, str(target.brokers), topic, str(base_ms)]
    try:
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        stdout, stderr = done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        stdout, stderr = (_text(each) for each in (expired.stdout, expired.stderr))
        stderr += f"\nkilled after {RUN_TIMEOUT_S} s"
    lines = [json.loads(line) for line in stdout.splitlines() if line.startswith('{"step"')]
    return Played({line["step"]: line for line in lines}, stderr, built - began, time.monotonic() - built, lines)


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


class Runs:
    """The session's runs: each driver plays once, a few at a time because most of a run is waiting."""

    def __init__(self, target: Target, workers: int = 2) -> None:
        self.target = target
        self.pool = ThreadPoolExecutor(workers)
        self.started: dict[str, Future[Played]] = {}

    def start(self, drivers: Sequence[Driver]) -> None:
        """Queue the drivers that are not queued yet."""
        for driver in drivers:
            if driver.name not in self.started:
                self.started[driver.name] = self.pool.submit(play, driver, self.target)

    def check(self, driver: Driver, step: str) -> None:
        """Fail unless the step passed, or is a known failure of this client and failed."""
        self.start([driver])
        try:
            played = self.started[driver.name].result()
        except UnavailableError as reason:
            if IN_CI:
                pytest.fail(str(reason))
            pytest.skip(str(reason))
        line = played.lines.get(step)
        if line is None:
            pytest.fail(f"{driver.name} did not come to {step}:\n{played.stderr[-3000:]}")
        reason_known = KNOWN.get((driver.name, step))
        if reason_known is None:
            assert line["ok"], f"{line['detail']}\n{line.get('trace', '')}\n{played.stderr[-1500:]}"
        else:
            assert not line["ok"], f"known.py lists {driver.name} {step}: {reason_known}; but it passed"

    def close(self) -> None:
        """Begin nothing more; what still runs ends with its cluster."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def table(self) -> list[str]:
        """A line for each client that ran: steps passed, times."""
        rows = []
        for name, future in self.started.items():
            if not future.done() or future.cancelled() or future.exception():
                continue
            played = future.result()
            passed = sum(bool(line["ok"]) for line in played.lines.values())
            times = f"build {played.build_s:5.1f} s, run {played.run_s:5.1f} s"
            rows.append(f"{name:28} {passed:3} of {len(played.lines)} steps, {times}")
        return rows
