"""Clusters of real brokers of several releases, whose data directories are copied whenever all of them stop."""

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.clients.class_archive import archive_flags
from tests.clients.targets import CLUSTER_ID, accepts, wait_until
from tests.ports import free_ports
from tests.serving import until
from tools.old_kafka import JVM, fetch, has_zookeeper

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "9000",  # a busy machine delays heartbeats
    "broker.heartbeat.interval.ms": "500",
    "zookeeper.session.timeout.ms": "9000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "300",
}
PATIENCE_S = 600.0
"""Ends what hangs: on a busy machine a broker needs minutes."""
LOG_LEVEL = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class ReleaseCluster:
    """Brokers of one release of Apache Kafka: before 3.3 with a ZooKeeper, otherwise with a controller in the first."""

    def __init__(
        self,
        folder: Path,
        release: str,
        settings: Mapping[str, str] | None = None,
        *,
        brokers: int = 1,
        log_dirs: int = 1,
    ) -> None:
        """``data``: a log directory, or a folder: `broker-N` with several brokers, `dir-N` with several each."""
        self.release, self.data = release, folder / "data"
        self.ports = free_ports(brokers)
        self._folder, self._jars = folder, fetch(release)
        (self._other,) = free_ports(1)
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.copies: list[Path] = []
        """Of ``data``, one for each time that no broker was running any more."""
        for node in range(1, brokers + 1):
            place = self.data / f"broker-{node}" if brokers > 1 else self.data
            places = [place / f"dir-{each}" for each in range(1, log_dirs + 1)] if log_dirs > 1 else [place]
            replicas = str(min(brokers, 3))
            factors = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            values = {
                **self._identity(node),
                "log.dirs": ",".join(map(str, places)),
                **dict.fromkeys([f"{each}.replication.factor" for each in factors], replicas),
                **SETTINGS,
                **(settings or {}),
            }
            self._properties(node).write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            if not has_zookeeper(release):
                self._java(
                    "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties(node))
                ).wait()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, *nodes: int) -> None:
        """Start these brokers, or all, and wait until they accept connections."""
        if has_zookeeper(self.release) and self._zookeeper is None:
            settings = self._folder / "zookeeper.properties"
            settings.write_text(
                f"dataDir={self._folder}/zookeeper\nclientPort={self._other}\nclientPortAddress=127.0.0.1\n"
                "admin.enableServer=false\n4lw.commands.whitelist=dump\n"
            )
            self._zookeeper = self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings))
            wait_until(lambda: accepts(self._other), PATIENCE_S, self._zookeeper, self._log)
        for node in nodes or tuple(range(1, len(self.ports) + 1)):
            self._start(node)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def complete() -> bool:
            with contextlib.suppress(KafkaException):  # while brokers register
                return len(admin.list_topics(timeout=PATIENCE_S).brokers) == len(self._running)
            return False

        until(complete, "all brokers", PATIENCE_S)

    def _start(self, node: int) -> None:
        """Start a broker. A ZooKeeper refuses its second life until the session of the first has ended."""
        port, name = self.ports[node - 1], f"/brokers/ids/{node}\n"
        if self._zookeeper is not None:
            until(lambda: name not in self._sessions(), "the end of a session", PATIENCE_S)
        process = self._java("kafka.Kafka", str(self._properties(node)))
        wait_until(lambda: accepts(port), PATIENCE_S, process, self._log)
        self._running[node] = process

    def _sessions(self) -> str:
        """Return what ZooKeeper's clients have registered, a line each."""
        with socket.create_connection(("127.0.0.1", self._other), PATIENCE_S) as connection:
            connection.sendall(b"dump")
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def stop(self, *nodes: int, clean: bool = True) -> None:
        """Stop these brokers, or all with the controller last: in good order, or by SIGKILL."""
        for node in nodes or sorted(self._running, reverse=True):
            process = self._running.pop(node)
            process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
            process.wait(PATIENCE_S)
        if not self._running:
            self.copies.append(self._folder / f"stop-{len(self.copies) + 1}")
            shutil.copytree(self.data, self.copies[-1])

    def close(self) -> None:
        """Kill what still runs."""
        for process in self._running.values():
            process.kill()
            process.wait()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait()

    def _identity(self, node: int) -> dict[str, str]:
        listener = f"PLAINTEXT://127.0.0.1:{self.ports[node - 1]}"
        if has_zookeeper(self.release):
            return {"broker.id": str(node), "zookeeper.connect": f"127.0.0.1:{self._other}", "listeners": listener}
        return {
            "process.roles": "broker,controller" if node == 1 else "broker",
            "node.id": str(node),
            "controller.quorum.voters": f"1@127.0.0.1:{self._other}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listener + (f",CONTROLLER://127.0.0.1:{self._other}" if node == 1 else ""),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _properties(self, node: int) -> Path:
        return self._folder / f"server-{node}.properties"

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        archive = () if has_zookeeper(self.release) else archive_flags(self._jars)
        command = ["java", *JVM, *archive, LOG_LEVEL, "-cp", f"{self._jars}/*", main, *arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
