"""The two clusters of the differential tests: Understudy by its command, and a real Apache Kafka, set up alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from comparison.histories.tokens import USERS
from comparison.target import PROBE_TOPIC, Target
from tests.clients.targets import oracle_release
from tests.differential.cluster import KafkaCluster
from tests.differential.next_id import Draws, NextId
from tests.ports import free_ports
from tests.serving import Server, start
from tests.storage.kafka_tools import RealBroker
from understudy.launcher import ServerProcess

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
    "group.coordinator.append.linger.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.append.linger.ms": "0",
    "group.share.max.share.sessions": "100000",
}
"""As short and few as both need them; nothing that happens by the clock may happen between two requests."""
KAFKA_SETTINGS = {
    **SETTINGS,
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.append.linger.ms": "0",
}
"""Its controller waits 25 ms for more to write; there is no other writer."""
LOGIN = "LOGIN"
"""The listener for users who log in, of clusters whose settings have mechanisms."""
MECHANISMS = "sasl.enabled.mechanisms"


def _jaas(module: str, *users: str) -> str:
    return " ".join((f"org.apache.kafka.common.security.{module}", "required", *users)) + ";"


_LOGIN_BY_PASSWORD = {
    f"listener.name.{LOGIN.lower()}.plain.sasl.jaas.config": _jaas(
        "plain.PlainLoginModule", *(f'user_{user}="{user}-secret"' for user in USERS)
    )
}
OF_KINDS: Mapping[str, dict[str, str]] = {
    "acls": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    },
    "share_acls": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        **_LOGIN_BY_PASSWORD,
    },
    "limited": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        "group.share.max.share.sessions": "2",
        "group.share.max.size": "2",
        **_LOGIN_BY_PASSWORD,
    },
    "share_ends": {
        "errors.deadletterqueue.auto.create.topics.enable": "true",
        "errors.deadletterqueue.topic.name.prefix": "h",
        "group.share.min.session.timeout.ms": "1000",
        "group.share.max.session.timeout.ms": "600000",
        "group.share.session.timeout.ms": "600000",  # the other cluster waits while a Kafka restarts
        "group.share.min.heartbeat.interval.ms": "500",
    },
    "tokens": {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
        "delegation.token.secret.key": "the key of all tokens",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        **_LOGIN_BY_PASSWORD,
        f"listener.name.{LOGIN.lower()}.scram-sha-256.sasl.jaas.config": _jaas("scram.ScramLoginModule"),
    },
}
"""Kind of history -> what its clusters need besides."""
CONTROLLER = 1
THREE = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": "5000",  # ours: longer than the steps between a pause and the next look at it
}
"""Of clusters of three brokers, beside those."""


def side(target: "RestartableCluster", player: int = 0) -> Target:
    """A target as histories see it; they may restart it. Those of several players at once are numbered."""

    def restart(clean: bool, _broker: int) -> None:
        target.stop(clean=clean)
        target.start()

    return Target(
        target.bootstrap,
        restart=restart,
        secured=target.secured,
        probe=f"{PROBE_TOPIC}{player or ''}",
        draws=target.draws,
    )


def sides(kafka: KafkaCluster, understudy: Server) -> tuple[Target, Target]:
    """Clusters of several brokers as histories see them; their brokers can be restarted one by one."""

    def kafkas(clean: bool, broker: int) -> None:
        kafka.stop(broker, clean=clean)
        if broker != CONTROLLER:  # its absence is not noticed: it is the one that notices
            kafka.missed(broker)
        kafka.start(broker)

    def ours(clean: bool, broker: int) -> None:
        understudy.control("POST", f"/v1/brokers/{broker}/{'stop' if clean else 'kill'}")
        understudy.control("POST", f"/v1/brokers/{broker}/start")

    def steer_kafka(do: str, broker: int) -> None:
        if do in ("stop", "kill"):
            kafka.stop(broker, clean=do == "stop")
        else:
            {"pause": kafka.pause, "resume": kafka.resume, "start": kafka.start}[do](broker)

    def steer_ours(do: str, broker: int) -> None:
        understudy.control("POST", f"/v1/brokers/{broker}/{do}")

    return (
        Target(kafka.addresses[0], others=kafka.addresses[1:], restart=kafkas, steer=steer_kafka),
        Target(understudy.addresses[0], others=understudy.addresses[1:], restart=ours, steer=steer_ours),
    )


class RestartableCluster(Protocol):
    """A cluster of one broker that can be started, stopped and started again where it was."""

    @property
    def bootstrap(self) -> str:
        """Where it listens: the same after a restart."""
        ...

    @property
    def secured(self) -> str | None:
        """The listener for users who log in."""
        ...

    @property
    def draws(self) -> Draws | None:
        """Sets the id that it draws next."""
        ...

    def start(self) -> None:
        """Run it; its data are what they were."""
        ...

    def stop(self, *, clean: bool) -> None:
        """End it in good order, or by SIGKILL."""
        ...


class Kafka:
    """A real Apache Kafka."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.draws: Draws | None = None
        broker_settings = {**KAFKA_SETTINGS, **(settings or {})}
        mine, controller, login = (port or free_ports(1)[0], *free_ports(2))
        self.secured: str | None = None
        if MECHANISMS in broker_settings:
            self.secured = f"127.0.0.1:{login}"
            plain = f"PLAINTEXT://127.0.0.1:{mine},{LOGIN}://{self.secured}"
            broker_settings["listeners"] = f"{plain},CONTROLLER://127.0.0.1:{controller}"
            broker_settings["listener.security.protocol.map"] = (
                f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{LOGIN}:SASL_PLAINTEXT"
            )
        self._broker = RealBroker(folder, broker_settings, ports=(mine, controller), heap_mb=512)

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return self._broker.bootstrap

    def start(self) -> None:
        """Run it."""
        self._broker.start()

    def stop(self, *, clean: bool = False) -> None:
        """End it."""
        self._broker.stop(clean=clean)


class Understudy:
    """Ours, with a data directory, as the real one has."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self._port, login = free_ports(2)
        broker_settings = {**SETTINGS, **(settings or {})}
        self.secured = f"127.0.0.1:{login}" if MECHANISMS in broker_settings else None
        self._options = {
            "port": self._port,
            "data_dir": folder,
            "settings": broker_settings,
            "as_version": oracle_release(),
            "listeners": (f"{LOGIN}://{self.secured},protocol=SASL_PLAINTEXT",) if self.secured else (),
        }
        self._ids = NextId(folder.with_name(f"{folder.name}-next-id"))
        self.draws: Draws | None = self._ids.drawn
        self._server = self._started()

    def _started(self) -> ServerProcess:
        with self._ids.of_a_server():
            return start(**self._options)

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Run it, if it does not run."""
        if not self._server.alive:
            self._server = self._started()

    def stop(self, *, clean: bool = False) -> None:
        """End it."""
        if not clean:
            self._server.process.kill()
            self._server.process.wait()
        self._server.stop()
