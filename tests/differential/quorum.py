"""A real Apache Kafka whose controllers are processes of their own: 3000 to 3000+N-1, beside brokers 1 to M."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from comparison.connection import Closed
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.types import uuid_text
from tests.clients.class_archive import kafka_java
from tests.clients.targets import CLUSTER_ID
from tests.ports import free_ports
from tests.serving import until

FIRST = 3000
_PATIENCE_S = 90.0
_HEAP_MB = {True: 128, False: 384}
"""Of a controller, and of a broker."""


def directory_id(controller: int) -> UUID:
    """The id of a controller's data directory, where the quorum is dynamic."""
    return UUID(int=0x5151 << 64 | controller)


class KafkaQuorum:
    """Controllers and brokers of Apache Kafka, one process each; data outlive the processes."""

    def __init__(
        self,
        folder: Path,
        *,
        controllers: int = 3,
        brokers: int = 1,
        dynamic: bool = False,
        settings: Mapping[str, str] | None = None,
        ports: Mapping[int, int] | None = None,
    ) -> None:
        """``dynamic``: the voters are recorded in the log (kraft.version 1), and one more controller is no voter.

        ``ports``: those of some nodes, as the log has them; the others are free ones.
        """
        self.folder = folder
        self.voters = [FIRST + index for index in range(controllers)]
        self.controllers = [*self.voters, FIRST + controllers] if dynamic else self.voters
        self.brokers = list(range(1, brokers + 1))
        free = free_ports(len(self.controllers) + brokers)
        self.ports = dict(zip([*self.controllers, *self.brokers], free, strict=True)) | dict(ports or {})
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._paused: set[int] = set()
        voters = ",".join(f"{each}@{self.address(each)}" for each in self.voters)
        servers = ",".join(map(self.address, self.voters))
        for node in (*self.controllers, *self.brokers):
            is_controller = node >= FIRST
            name = "CONTROLLER" if is_controller else "PLAINTEXT"
            lines = {
                "process.roles": "controller" if is_controller else "broker",
                "node.id": str(node),
                "listeners": f"{name}://{self.address(node)}",
                "advertised.listeners": f"{name}://{self.address(node)}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": str(self.data(node)),
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "offsets.topic.num.partitions": "2",
                "controller.quorum.append.linger.ms": "0",
                "broker.heartbeat.interval.ms": "500",
                **(
                    {"controller.quorum.bootstrap.servers": servers}
                    if dynamic
                    else {"controller.quorum.voters": voters}
                ),
                **(settings or {}),
            }
            self.properties(node).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        self._format(dynamic=dynamic)

    def address(self, node: int) -> str:
        """Host and port of a node."""
        return f"127.0.0.1:{self.ports[node]}"

    def data(self, node: int) -> Path:
        """A node's data directory."""
        return self.folder / f"data-{node}"

    def properties(self, node: int) -> Path:
        """A node's server.properties."""
        return self.folder / f"server-{node}.properties"

    @property
    def bootstrap(self) -> str:
        """The brokers."""
        return ",".join(map(self.address, self.brokers))

    @property
    def bootstrap_controllers(self) -> str:
        """The voters of the start."""
        return ",".join(map(self.address, self.voters))

    def _format(self, *, dynamic: bool) -> None:
        initial = ",".join(f"{each}@{self.address(each)}:{uuid_text(directory_id(each))}" for each in self.voters)
        tool = [*kafka_java(64, "error"), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
        running = []
        for node in (*self.controllers, *self.brokers):
            more = ["--initial-controllers", initial] if node in self.voters else ["--no-initial-controllers"]
            command = [*tool, "-c", str(self.properties(node)), *(more if dynamic and node >= FIRST else ())]
            running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        assert not any([each.wait(_PATIENCE_S) for each in running])  # noqa: C419 - waits for all of them

    def start(self, *nodes: int) -> None:
        """Start these nodes, by default the voters and all brokers; wait until the brokers are registered."""
        for node in nodes or (*self.voters, *self.brokers):
            with (self.folder / f"{node}.log").open("ab") as output:
                command = [*kafka_java(_HEAP_MB[node >= FIRST], "warn"), "kafka.Kafka", str(self.properties(node))]
                self._processes[node] = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        if not nodes:
            until(self.is_ready, "the brokers to register", _PATIENCE_S)

    def is_ready(self) -> bool:
        """Whether a broker lists all brokers."""
        side = Target(self.address(self.brokers[0]))
        try:
            alive = side.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
        except (OSError, Closed):
            return False
        finally:
            side.close()
        return len(alive) == len(self.brokers)

    def end(self, node: int, *, clean: bool = False) -> None:
        """Stop a node, or kill it."""
        process = self._processes.pop(node)
        process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
        process.wait(_PATIENCE_S)

    def close(self) -> None:
        """Kill everything."""
        for node in list(self._processes):
            self.end(node)
