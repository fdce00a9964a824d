"""Running Apache Kafka's own tools on what the log wrote.

KAFKA_LIBS names a folder with the jars of Kafka 4.3; without it `make interop` fetches them once.
"""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.clients.class_archive import kafka_java
from tests.clients.targets import CLUSTER_ID, START_S, prepare_kafka, wait_until
from tests.ports import free_ports


def need_kafka() -> None:
    """Fetch the jars if they are not there; skip where there is no Java to run them. On CI that is a failure."""
    if shutil.which("java"):
        prepare_kafka()
    elif os.environ.get("CI") == "true":
        pytest.fail("java is needed here")
    else:
        pytest.skip("java is missing")


def java(main_class: str, *arguments: str) -> str:
    """What a Java program prints."""
    command = [*kafka_java(256, "error"), main_class, *arguments]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


def dump_log(*arguments: str) -> str:
    """What kafka-dump-log.sh prints."""
    return java("org.apache.kafka.tools.DumpLogSegments", *arguments)


class RealBroker:
    """An Apache Kafka of one node whose data directory outlives its process."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        *,
        ports: tuple[int, int] | None = None,
        formatted: bool = False,
        heap_mb: int = 256,
    ) -> None:
        self.port, controller = ports or free_ports(2)
        self.data = folder / "data"
        self._heap_mb = heap_mb
        self._log = folder / "broker.log"
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.backoff.ms": "300",
            "log.initial.task.delay.ms": "500",
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        if not formatted:
            java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        command = [*kafka_java(self._heap_mb, "warn"), "kafka.Kafka", str(self._properties)]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        wait_until(self._accepts, START_S, self._process, self._log)

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, *, clean: bool = True) -> None:
        """Stop it, cleanly or by SIGKILL."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
            self._process.wait(60)
            self._process = None

    def complaints(self) -> str:
        """What it logged at level WARN and above."""
        return self._log.read_text(errors="replace")
