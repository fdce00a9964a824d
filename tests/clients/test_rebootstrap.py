"""A Java client of 4.4 that comes to another cluster, or another broker, than it means (KIP-1242, KIP-1102).

It sends the ids of both with ApiVersions v5, is refused with REBOOTSTRAP_REQUIRED, and asks its bootstrap servers
again. The same is played on real brokers of 4.4 at night.
"""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.clients import compile_java
from tests.clients.drivers import HERE, command
from tests.clients.relay import Relay
from tests.clients.targets import CACHE, JVM
from tests.ports import free_ports
from tests.serving import Server, start, until
from tests.through_proxy import WayTo
from tools.old_kafka import CLUSTER_ID, running

VERSION = "4.4.0"
TOPIC = "foo"
REBOOTSTRAP_LINE = "Rebootstrap requested by server due to cluster metadata mismatch for cluster {} and node {}."
"""What the client logs."""
CHECKED = "metadata.cluster.check.enable=true"
"""Without that, it does not name the cluster that it means."""


class Producer:
    """The Java program: a line in, a record out."""

    def __init__(self, relay: Relay, log: Path, *settings: str) -> None:
        command([HERE / "setup.sh", "java"])
        class_path = compile_java(CACHE / "java" / f"clients-{VERSION}", "rebootstrap", "rebootstrap")
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        run = ["java", *JVM[:4], level, "-cp", class_path, "rebootstrap.Rebootstrap"]
        run += [f"127.0.0.1:{relay.port}", TOPIC, *settings]
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def begin(self, value: str) -> None:
        """Send it, and do not wait."""
        assert self._process.stdin is not None
        print(value, file=self._process.stdin, flush=True)

    def sent(self) -> str:
        """What became of it."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def send(self, value: str) -> str:
        """Send it; what became of it."""
        self.begin(value)
        return self.sent()

    def logged(self, text: str) -> bool:
        """Whether it has logged that."""
        return text in self._log.read_text()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True)
class Ours:
    """A cluster of ours, and the ports that lead to its brokers: their own, or those of a proxy."""

    server: Server
    ports: list[int]


@contextmanager
def ours(relay: Relay, way_to: WayTo, **options: Any) -> Iterator[Ours]:
    """A cluster as 4.4 whose brokers seem to be where the relay is; its id is its seed's."""
    ports = free_ports(options.get("brokers", 1))
    seen = {"advertise": f"127.0.0.1:{relay.port}"}
    listening = {"port": ",".join(map(str, ports)), **({} if way_to.through_proxy else seen)}
    settings = {"offsets.topic.num.partitions": "1"}
    server = Server(start(settings=settings, as_version="4.4", **listening, **options))
    try:
        ways = way_to.all(*(f"127.0.0.1:{port}" for port in ports), **seen)
        yield Ours(server, [int(each.rpartition(":")[2]) for each in ways])
    finally:
        server.finish_test()
        server.process.stop()


def refused(server: Server) -> set[tuple[str, int]]:
    """Which clusters and brokers were meant by clients that the cluster refused."""
    path = "/v1/journal?api=ApiVersions&error=REBOOTSTRAP_REQUIRED&limit=1000"
    requests = [each["request"] for each in server.control("GET", path)["entries"]]
    return {(each["cluster_id"], each["node_id"]) for each in requests}


def values(server: Server) -> list[str]:
    """The topic's records."""
    records = server.control("GET", f"/v1/topics/{TOPIC}/partitions/0/records")["records"]
    return [each["value"] for each in records]


def id_of(server: Server) -> str:
    """The cluster's."""
    return str(server.control("GET", "/v1/cluster")["cluster_id"])


@pytest.fixture
def relay() -> Iterator[Relay]:
    """Where clients believe the cluster to be: always reachable, or they bootstrap again by themselves."""
    first_address = Relay()
    yield first_address
    first_address.close()


@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.parametrize("setting", ["metadata.recovery.strategy=rebootstrap", "metadata.recovery.strategy=none"])
def test_a_client_of_another_cluster_bootstraps_again(
    tmp_path: Path, relay: Relay, way_to: WayTo, setting: str
) -> None:
    """At the same address, with the same broker id; without that strategy it names neither."""
    asks = setting.endswith("=rebootstrap")
    with (
        ours(relay, way_to, seed=1) as one,
        ours(relay, way_to, seed=2) as other,
        closing(Producer(relay, tmp_path / "log", setting, CHECKED)) as producer,
    ):
        first, second = one.server, other.server
        meant = id_of(first)
        assert id_of(second) != meant
        relay.lead_to(one.ports[0])
        assert producer.send("a") == "ok"
        assert refused(first) == set()
        relay.lead_to(other.ports[0])
        assert producer.send("b") == "ok"
        assert refused(second) == ({(meant, 1)} if asks else set())
        assert (values(first), values(second)) == (["a"], ["b"])
        assert producer.logged(REBOOTSTRAP_LINE.format(meant, 1)) == asks


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_a_client_of_another_broker_bootstraps_again(tmp_path: Path, relay: Relay, way_to: WayTo) -> None:
    """Of the same cluster, where the address of the first leads to the second for a while."""
    with (
        ours(relay, way_to, brokers=2, topics=[f"{TOPIC}:1"]) as started,
        closing(Producer(relay, tmp_path / "log", CHECKED)) as producer,
    ):
        cluster, ports = started.server, started.ports
        cluster.control("POST", f"/v1/topics/{TOPIC}/partitions/0/leader", {"broker": 1})
        relay.lead_to(ports[0])
        assert producer.send("a") == "ok"
        relay.lead_to(ports[1])
        producer.begin("b")
        until(lambda: refused(cluster), "a client that is refused")
        relay.lead_to(ports[0])
        assert producer.sent() == "ok"
        assert refused(cluster) == {(id_of(cluster), 1)}
        assert values(cluster) == ["a", "b"]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_real_brokers_refuse_it_too(tmp_path: Path, relay: Relay) -> None:
    """The client does the same with Kafka 4.4.0."""
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port}"}
    with (
        running("4.4", settings=settings) as first,
        running("4.4", settings=settings, cluster_id="b2xkZXIgdGhhbiB0aGF0Lg") as second,
        closing(Producer(relay, tmp_path / "log", CHECKED)) as producer,
    ):
        relay.lead_to(int(first.rpartition(":")[2]))
        assert producer.send("a") == "ok"
        relay.lead_to(int(second.rpartition(":")[2]))
        assert producer.send("b") == "ok"
        assert producer.logged(REBOOTSTRAP_LINE.format(CLUSTER_ID, 1))
