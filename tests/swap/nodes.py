"""A node that changes its software: Understudy or Apache Kafka on one data directory, under one address.

Clients that were connected to the one go on with the other, because node id, ports and directory are the same.
"""

import shutil
from pathlib import Path

from storage.checkpoints import CLEAN_SHUTDOWN
from tests.clients.targets import oracle_release
from tests.ports import free_ports
from tests.serving import Server, start
from tests.storage.kafka_tools import RealBroker

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
    # The metadata log gets a snapshot again and again, and loses what lies before.
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "metadata.max.retention.bytes": "3000",
}
"""As short and few as both sides need them; nothing that happens by the clock may happen between two looks."""
OUR_SETTINGS = {**SETTINGS, "internal.metadata.log.segment.bytes": "3000"}  # Kafka logs a complaint about that
KAFKA_SETTINGS = {
    **SETTINGS,
    "broker.session.timeout.ms": "3000",  # after a kill the next incarnation waits for the last one's session
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
}


class Node:
    """One node of a cluster of one: its log directories and its address, run by either software."""

    def __init__(self, folder: Path, *further: str) -> None:
        """``further``: the names of log directories besides `data`, which has the metadata."""
        self.folder, self.data = folder, folder / "data"
        self.log_dirs = ",".join(str(folder / name) for name in ("data", *further))
        self.port, self.controller_port = free_ports(2)
        self._kafka: RealBroker | None = None
        self._ours: Server | None = None
        self._read_only = False

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start_ours(self, *, read_only: bool = False) -> Server:
        """Run Understudy."""
        self._read_only = read_only
        process = start(
            port=self.port,
            data_dir=self.log_dirs,
            settings=OUR_SETTINGS,
            read_only=read_only,
            as_version=oracle_release(),
        )
        self._ours = Server(process)
        return self._ours

    def start_kafka(self) -> None:
        """Run Apache Kafka; the directory is formatted if it is new."""
        if self._kafka is None:
            settings = {**KAFKA_SETTINGS, "log.dirs": self.log_dirs}
            self._kafka = RealBroker(
                self.folder, settings, ports=(self.port, self.controller_port), formatted=self.data.exists()
            )
        self._kafka.start()

    def stop(self, *, clean: bool = True) -> None:
        """End the process that runs, in good order or by SIGKILL."""
        if self._ours is not None:
            if not clean:
                self._ours.process.process.kill()
                self._ours.process.process.wait()
            self._ours.process.stop()
            self._ours = None
            assert self._read_only or clean == (self.data / CLEAN_SHUTDOWN).exists()
        if self._kafka is not None:
            self._kafka.stop(clean=clean)

    def metadata_begins_with_a_snapshot(self) -> bool:
        """Whether the metadata log has lost its beginning, and has a snapshot instead."""
        folder = self.data / "__cluster_metadata-0"
        begins = min(int(path.stem) for path in folder.glob("*.log"))
        return 0 < begins <= max(int(path.stem.partition("-")[0]) for path in folder.glob("*.checkpoint"))

    def kafka_complaints(self) -> list[str]:
        """The lines that Kafka logged as ERROR, or of a log that it had to repair."""
        bad = ("ERROR", "orrupt", "xception", "nvalid")
        # Kafka's own race: as leader of its last life it begins to load coordinators, and then registers again.
        harmless = "Stopped loading records from __"
        text = "" if self._kafka is None else self._kafka.complaints()
        return [line for line in text.splitlines() if any(part in line for part in bad) and harmless not in line]

    def copy_to(self, folder: Path) -> "Node":
        """The same node with a copy of the directory, on ports of its own."""
        copy = Node(folder)
        folder.mkdir(exist_ok=True)
        shutil.copytree(self.data, copy.data)
        return copy


class ThreeNodes:
    """Three brokers, the first of them the controller as well: one process of ours, or three of Kafka's."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.ports, (controller,) = free_ports(3), free_ports(1)
        self._folder, self._controller = folder, f"127.0.0.1:{controller}"
        self._ours: Server | None = None
        self._kafka: list[RealBroker] = []

    @property
    def bootstrap(self) -> str:
        """All three addresses."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start_ours(self) -> Server:
        """Run Understudy."""
        port = ",".join(map(str, self.ports))
        self._ours = Server(
            start(port=port, brokers=3, data_dir=self.data, settings=SETTINGS, as_version=oracle_release())
        )
        return self._ours

    def start_kafka(self) -> None:
        """Run Apache Kafka on the three directories."""
        for node, port in enumerate(self.ports, 1):
            listeners = f"PLAINTEXT://127.0.0.1:{port}" + (f",CONTROLLER://{self._controller}" if node == 1 else "")
            own = {
                **KAFKA_SETTINGS,
                "process.roles": "broker,controller" if node == 1 else "broker",
                "node.id": str(node),
                "controller.quorum.voters": f"1@{self._controller}",
                "listeners": listeners,
                "log.dirs": str(self.data / f"broker-{node}"),
            }
            folder = self._folder / str(node)
            folder.mkdir(exist_ok=True)
            self._kafka.append(RealBroker(folder, own, ports=(port, 0), formatted=True))
        for broker in self._kafka:
            broker.start()

    def stop(self) -> None:
        """End the processes that run: ours in good order, Kafka's by SIGKILL, since each would wait for the others."""
        if self._ours is not None:
            self._ours.process.stop()
            self._ours = None
        for broker in self._kafka:
            broker.stop(clean=False)
        self._kafka.clear()
