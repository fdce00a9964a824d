"""A real Apache Kafka of one or several brokers, whose brokers can be stopped, killed and started again by number."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from comparison.connection import Closed
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.clients.class_archive import kafka_java
from tests.clients.targets import CLUSTER_ID, START_S, place_properties, wait_until
from tests.ports import free_ports

HEAP_MB = 384
PATIENCE_S = 60.0
QUICK = {
    "controller.quorum.append.linger.ms": "0",
    "broker.heartbeat.interval.ms": "300",
    "group.coordinator.append.linger.ms": "0",
    "log.cleaner.backoff.ms": "300",
    "replica.fetch.wait.max.ms": "50",
}
"""No client can see these; they spare it from waiting for batches that no other request fills."""


class KafkaCluster:
    """Brokers 1 to N; the first one is the controller too. Data outlive the processes."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
        data_dir: Path | None = None,
        listeners: Sequence[str] = (),
        racks: Sequence[str] = (),
    ) -> None:
        """``listeners``: further ones of the first broker, such as ``SASL_PLAINTEXT://127.0.0.1:9093``."""
        self._folder, self._count = folder, brokers
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(brokers + 1)
        self.addresses = tuple(f"127.0.0.1:{port}" for port in ports[:brokers])
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._paused: set[int] = set()
        for node in range(1, brokers + 1):
            data = data_dir or folder / f"data-{node}"
            lines = _properties(node, ports[node - 1], ports[-1], min(brokers, 3), data) | QUICK | dict(settings or {})
            for name in ("listeners", "advertised.listeners"):
                lines[name] = ",".join((lines[name], *(listeners if node == 1 else ())))
            lines.update({"broker.rack": racks[node - 1]} if racks else {})
            lines["listener.security.protocol.map"] += ",SASL_PLAINTEXT:SASL_PLAINTEXT"
            self._file(node).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        levels = [part for name, level in (features or {}).items() for part in ("--feature", f"{name}={level}")]
        if data_dir is None or not (data_dir / "meta.properties").exists():
            self._format(levels)

    def _file(self, node: int) -> Path:
        return self._folder / f"server-{node}.properties"

    def _format(self, levels: list[str]) -> None:
        """All directories at the same time: each takes a JVM's start."""
        tool = [*_java(64), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, *levels]
        nodes = range(1, self._count + 1)
        output = (self._folder / "format.log").open("ab")
        with output:
            running = [subprocess.Popen([*tool, "-c", self._file(n)], stdout=output, stderr=output) for n in nodes]
            if any([each.wait(PATIENCE_S) for each in running]):  # noqa: C419 - waits for all of them
                raise RuntimeError((self._folder / "format.log").read_text())

    @property
    def running(self) -> tuple[str, ...]:
        """The addresses of those that run, and are not paused."""
        return tuple(self.addresses[node - 1] for node in sorted(self._processes.keys() - self._paused))

    @property
    def log(self) -> Path:
        """The log file of the brokers."""
        return self._folder / "brokers.log"

    def start(self, broker: int | None = None) -> None:
        """Start a broker, or all; returns when each lists all that run and has producer ids. Twice is harmless."""
        for node in range(1, self._count + 1) if broker is None else [broker]:
            if node not in self._processes:
                with self.log.open("ab") as output:
                    command = [*_java(HEAP_MB), "kafka.Kafka", str(self._file(node))]
                    self._processes[node] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        for node, process in self._processes.items():
            if node in self._paused:
                continue
            wait_until(lambda node=node: self._is_ready(node), START_S, process, self.log)  # type: ignore[misc]

    def _is_ready(self, node: int) -> bool:
        side = Target(self.addresses[node - 1])
        try:
            brokers = side.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
            producer = side.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 60_000))
        except (OSError, Closed):
            return False
        finally:
            side.close()
        return {each.broker_id for each in brokers} >= self._processes.keys() and not producer.error_code

    def stop(self, broker: int | None = None, *, clean: bool = True) -> None:
        """End a broker, or all, the controller last; in good order or by SIGKILL."""
        for node in [broker] if broker is not None else sorted(self._processes, reverse=True):
            process = self._processes.pop(node, None)
            if process is not None:
                if node in self._paused:
                    self._paused.remove(node)
                    process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
                process.wait(PATIENCE_S)

    def pause(self, broker: int) -> None:
        """Stop a broker's process as it is: its connections stay, and no request is answered."""
        self._paused.add(broker)
        self._processes[broker].send_signal(signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """Let it go on."""
        if broker in self._paused:
            self._paused.remove(broker)
            self._processes[broker].send_signal(signal.SIGCONT)

    def missed(self, broker: int) -> bool:
        """Wait until no broker lists one that is down; return whether it came to that."""
        deadline = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        while time.monotonic() < deadline:
            for node in self._processes.keys() - self._paused:
                side = Target(self.addresses[node - 1])
                brokers = side.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
                side.close()
                if broker in {each.broker_id for each in brokers}:
                    break
            else:
                return True
            pause.wait(0.05)
        return False


def _java(heap_mb: int) -> list[str]:
    return kafka_java(heap_mb, os.environ.get("KAFKA_LOG_LEVEL", "warn"))


def _properties(node: int, port: int, controller: int, replicas: int, data: Path) -> dict[str, str]:
    return {
        **place_properties(node, port, controller, data),
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
    }
