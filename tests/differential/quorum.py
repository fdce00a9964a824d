"""A real Apache Kafka whose controllers are processes of their own: 3000 to 3000+N-1, beside brokers 1 to M."""

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from comparison.connection import Closed
from comparison.exchange import Pair
from comparison.histories.run import Histories
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.types import uuid_text
from tests.clients.class_archive import kafka_java
from tests.clients.targets import CLUSTER_ID, oracle_release
from tests.differential.targets import KAFKA_SETTINGS, SETTINGS, THREE
from tests.ports import free_ports
from tests.serving import Server, start, until

FIRST = 3000
_PATIENCE_S = 90.0
_HEAP_MB = {True: 128, False: 384}
"""Of a controller, and of a broker."""
IMPATIENT = {**THREE, "controller.socket.timeout.ms": "6000"}
"""Of clusters of three brokers, which leave a controller that hangs soon, but not before a broker has stopped."""


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
        """Whether each broker lists all brokers."""
        return all(map(self._lists_all, self.brokers))

    def _lists_all(self, broker: int) -> bool:
        side = Target(self.address(broker))
        try:
            alive = side.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
        except (OSError, Closed):
            return False
        finally:
            side.close()
        return len(alive) == len(self.brokers)

    def pause(self, node: int) -> None:
        """Stop a process as it is: its connections stay, and no request is answered."""
        self._processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Let it go on."""
        self._processes[node].send_signal(signal.SIGCONT)

    def end(self, node: int, *, clean: bool = False) -> None:
        """Stop a node, or kill it."""
        process = self._processes.pop(node)
        process.send_signal(signal.SIGTERM if clean else signal.SIGKILL)
        process.send_signal(signal.SIGCONT)  # it may be paused
        process.wait(_PATIENCE_S)

    def close(self) -> None:
        """Kill everything."""
        for node in list(self._processes):
            self.end(node)


class Controllers:
    """The controllers of a cluster as scripts name them; see ``comparison.target.Target.steer_controllers``."""

    def __init__(self, addresses: Mapping[int, str], steer: Callable[[str, int], None]) -> None:
        self._addresses, self._steer = addresses, steer
        self._away: dict[int, str] = {}
        """Those that are paused or have ended -> how."""

    def __call__(self, how: str, which: str) -> None:
        """Do that to some of them; or wait until there is an active one, or none."""
        if how == "elected":
            until(lambda: self.active() is not None, "an active controller", _PATIENCE_S)
        elif how == "resigned":
            until(lambda: self.active() is None, "no active controller", _PATIENCE_S)
        elif how == "restore":
            for node, went in list(self._away.items()):
                self._do("resume" if went == "pause" else "start", node)
        else:
            for node in self._named(which):
                self._do(how, node)
        if how in ("restore", "start"):
            until(lambda: all(map(self._described, self._present())), "the controllers to respond", _PATIENCE_S)

    def active(self) -> int | None:
        """The active one of those that are present, by the latest leader epoch."""
        described = filter(None, map(self._described, self._present()))
        leaders = [(each.leader_epoch, each.leader_id) for each in described if not each.error_code]
        return max(leaders)[1] if leaders else None

    def _present(self) -> list[int]:
        return [node for node in self._addresses if node not in self._away]

    def _named(self, which: str) -> list[int]:
        if which == "all":
            return list(self._addresses)
        if which in ("away", "paused"):
            return [node for node, how in self._away.items() if which == "away" or how == "pause"]
        active = until(self.active, "an active controller", _PATIENCE_S)
        others = [node for node in self._present() if node != active]
        return {"active": [active], "others": others, "another": others[:1]}[which]

    def _do(self, how: str, node: int) -> None:
        self._steer(how, node)
        if how in ("resume", "start"):
            self._away.pop(node, None)
        else:
            self._away[node] = how

    def _described(self, node: int) -> Any:
        """The quorum as a controller describes it; None if it does not respond."""
        request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        side = Target(self._addresses[node])
        try:
            return side.call(ApiKey.DESCRIBE_QUORUM, 2, request).topics[0].partitions[0]
        except (OSError, Closed):
            return None
        finally:
            side.close()


def kafkas(kafka: KafkaQuorum) -> Target:
    """A Kafka with controllers of its own as histories see it."""

    def steer(do: str, node: int) -> None:
        if do in ("stop", "kill"):
            kafka.end(node, clean=do == "stop")
        else:
            steered: Mapping[str, Callable[[int], None]] = {
                "pause": kafka.pause,
                "resume": kafka.resume,
                "start": kafka.start,
            }
            steered[do](node)
        if do == "start" and node in kafka.brokers:
            until(kafka.is_ready, "the broker to register", _PATIENCE_S)

    first, *others = map(kafka.address, kafka.brokers)
    controllers = Controllers({each: kafka.address(each) for each in kafka.voters}, steer)
    return Target(first, others=tuple(others), steer=steer, steer_controllers=controllers)


def understudys(server: Server) -> Target:
    """An Understudy with controllers of its own as histories see it."""

    def steer(kind: str, do: str, node: int) -> None:
        server.control("POST", f"/v1/{kind}/{node}/{do}")

    nodes = server.control("GET", "/v1/cluster")["controllers"]
    addresses = {each["id"]: f"{each['host']}:{each['port']}" for each in nodes}
    controllers = Controllers(addresses, partial(steer, "controllers"))
    first, *others = server.addresses
    return Target(first, others=tuple(others), steer=partial(steer, "brokers"), steer_controllers=controllers)


def clusters_of_controllers(folder: Path) -> Iterator[Histories]:
    """Both, with three controllers and three brokers each, for as long as the iterator is held."""
    ours = Server(start(brokers=3, controllers=3, settings={**SETTINGS, **IMPATIENT}, as_version=oracle_release()))
    try:
        theirs = KafkaQuorum(folder, brokers=3, settings={**KAFKA_SETTINGS, **IMPATIENT})
        try:
            theirs.start()
            yield Histories(Pair(kafkas(theirs), understudys(ours)))
        finally:
            theirs.close()
    finally:
        ours.process.stop()
