"""The clusters that clients are driven against: Understudy, or a real Apache Kafka to show what a client itself can do.

`start(brokers)` gives the one that `TARGET` (or pytest's `--target`) names: `understudy` (default) or `kafka`. Both run
with the same settings and are seen by their bootstrap address only. `proxy` and `proxy-kafka` are the same clusters
behind `understudy proxy`, which is given the address of one broker and finds the others.
"""

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("INTEROP_CACHE", ROOT / ".cache" / "interop"))
KAFKA_VERSION = "4.3.1"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
"""Of each real Kafka that is formatted here."""
START_S = 180.0
"""Ends what hangs at its start, and judges nothing: a Kafka needs 5 s, or more than a minute on a busy machine."""

# Kafka's own names. Few partitions of the internal topics, and no wait for more members: tests have no time to lose.
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.num.standby.replicas": "1",
}
# One JVM for each broker beside the clients' own: small ones, compiled once.
JVM = (
    "-Xmx256m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


BEHIND = {"proxy": "understudy", "proxy-kafka": "kafka"}
"""Targets that are reached through `understudy proxy` -> what is behind it."""


@dataclass(slots=True)
class Target:
    """A running cluster: where it listens, and how it ends."""

    name: str
    brokers: int
    bootstrap_servers: list[str]
    log: Path
    close: Callable[[], None]
    control_url: str | None = None
    """Of the control plane, where it has one."""
    upstream: "Target | None" = None
    """What is behind the proxy."""

    @property
    def bootstrap(self) -> str:
        """The addresses as clients take them: `host:port,host:port`."""
        return ",".join(self.bootstrap_servers)


def start(brokers: int = 3, target: str | None = None, settings: dict[str, str] | None = None) -> Target:
    """Start a cluster of that many brokers; raises RuntimeError with the tail of its log if it does not come up.

    `target` may also be an address, `host:port[,host:port]`, of a cluster that runs already.
    """
    name = target or os.environ.get("TARGET", "understudy")
    if ":" in name:
        return Target("address", brokers, name.split(","), Path(os.devnull), lambda: None)
    if name in BEHIND:
        return _through_proxy(start(brokers, BEHIND[name], settings))
    launch = {"understudy": _understudy, "kafka": _kafka}[name]
    return launch(brokers, {**SETTINGS, **(settings or {})})


def prepare_kafka() -> None:
    """Fetch the jars of a real Kafka, if they are not there."""
    subprocess.run([str(ROOT / "tests" / "clients" / "setup.sh"), "kafka"], check=True)


def kafka_libs() -> Path:
    """The folder with the jars of Kafka and its tools; `KAFKA_LIBS` names one that is there already."""
    return Path(os.environ.get("KAFKA_LIBS", CACHE / "java" / f"kafka-{KAFKA_VERSION}"))


def oracle_version() -> str:
    """The version of the real Kafka that this one is compared with, such as "4.3.1", by its jars."""
    jar = next(kafka_libs().glob("kafka-clients-*.jar"), None)
    return KAFKA_VERSION if jar is None else jar.stem.removeprefix("kafka-clients-")


def oracle_release() -> str:
    """Its release, such as "4.3"."""
    return ".".join(oracle_version().split(".")[:2])


def wait_until(condition: Callable[[], bool], timeout_s: float, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ask until the condition holds. Where it does not in time, or the process ends, kill it and raise RuntimeError."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            ended, tail = process.poll(), log.read_text(errors="replace")[-1500:]
            process.kill()
            process.wait()
            why = f"did not come up within {timeout_s} s" if ended is None else f"ended with exit code {ended}"
            raise RuntimeError(f"{process.args!s:.80} {why}:\n{tail}")
        pause.wait(0.05)


def accepts(port: int) -> bool:
    """Whether a process listens on a port of this machine."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)


def _end(processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> None:
    for process in processes:
        process.kill()
        process.wait()
    if keep := os.environ.get("INTEROP_KEEP_LOGS"):
        shutil.copytree(folder, keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data-*"))
    shutil.rmtree(folder, ignore_errors=True)


def _understudy(brokers: int, settings: dict[str, str]) -> Target:
    options = ["--brokers", str(brokers), "--as-version", oracle_release()]
    for key, value in settings.items():
        options += ["--set", f"{key}={value}"]
    ready, log, close = _command_of_ours("serve", *options)
    return Target("understudy", brokers, ready["bootstrap_servers"], log, close, ready["control_url"])


def _through_proxy(upstream: Target) -> Target:
    """A cluster behind the proxy, which knows one of its brokers at first; both end together."""
    try:
        ready, log, close = _command_of_ours("proxy", "--upstream", upstream.bootstrap_servers[0])
    except BaseException:
        upstream.close()
        raise

    def close_both() -> None:
        close()
        upstream.close()

    name = f"{upstream.name} behind a proxy"
    addresses, control_url = ready["bootstrap_servers"], ready["control_url"]
    return Target(name, upstream.brokers, addresses, log, close_both, control_url, upstream)


def _command_of_ours(name: str, *options: str) -> tuple[dict[str, Any], Path, Callable[[], None]]:
    """Run `understudy NAME` on free ports: its ready file's contents, its log, and how it is ended."""
    folder = Path(tempfile.mkdtemp(prefix=f"interop-{name}-"))
    log, ready = folder / f"{name}.log", folder / f"{name}.json"
    command = shlex.split(os.environ.get("UNDERSTUDY_CMD", f"{shlex.quote(sys.executable)} -m understudy"))
    command += [name, "--port", "0", "--control-port", "0", "--ready-file", str(ready)]
    command += ["--log-format", "json", *options]
    process = _spawn(command, log)

    def close() -> None:
        if process.poll() is not None:  # it was not asked to end
            sys.stderr.write(f"understudy {name} ended by itself ({process.returncode}):\n{log.read_text()[-3000:]}\n")
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        _end([process], folder)

    try:
        wait_until(ready.exists, START_S, process, log)
    except BaseException:
        _end([process], folder)
        raise
    return json.loads(ready.read_text()), log, close


def _kafka(brokers: int, settings: dict[str, str]) -> Target:
    folder = Path(tempfile.mkdtemp(prefix="interop-kafka-"))
    ports, (controller,) = free_ports(brokers), free_ports(1)
    classpath = f"{kafka_libs()}/*"
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for node, port in enumerate(ports, 1):
            properties = folder / f"server-{node}.properties"
            mine = _server_properties(node, port, controller, min(brokers, 3), folder / f"data-{node}") | settings
            properties.write_text("".join(f"{key}={value}\n" for key, value in mine.items()))
            tool = ["java", *JVM, "-cp", classpath, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
            subprocess.run([*tool, "-c", str(properties)], check=True, capture_output=True)
        for node in range(1, brokers + 1):
            server = ["java", *JVM, "-cp", classpath, "kafka.Kafka", str(folder / f"server-{node}.properties")]
            processes.append(_spawn(server, folder / "log"))
        for port, process in zip(ports, processes, strict=True):
            wait_until(lambda port=port: accepts(port), START_S, process, folder / "log")  # type: ignore[misc]
    except BaseException:
        _end(processes, folder)
        raise
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return Target("kafka", brokers, addresses, folder / "log", lambda: _end(processes, folder))


def place_properties(node: int, port: int, controller: int, data: Path) -> dict[str, str]:
    """Which broker it is, where it listens and keeps its data; node 1 is the controller as well."""
    first = node == 1
    return {
        "process.roles": "broker,controller" if first else "broker",
        "node.id": str(node),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}" + (f",CONTROLLER://127.0.0.1:{controller}" if first else ""),
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(data),
    }


def _server_properties(node: int, port: int, controller: int, replicas: int, data: Path) -> dict[str, str]:
    """One broker's settings."""
    return {
        **place_properties(node, port, controller, data),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(replicas, 2)),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": "1",
        "controlled.shutdown.enable": "false",
    }
