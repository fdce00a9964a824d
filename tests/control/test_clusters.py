"""Several clusters in one process: made, listed and ended by the control plane; nothing of one is seen in another.

Each test of isolation makes the same change in the cluster that it looks at, too, and sees the difference there.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

import understudy
from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until
from tests.wire import Wire
from understudy import Cluster, ControlError


@pytest.fixture
def two(plane: ControlPlane) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters that were made while the server ran."""
    with (
        plane.kafka.clusters.create(name="one", topics={"t": 1}) as one,
        plane.kafka.clusters.create(name="two") as two,
    ):
        yield one, two


def produce(cluster: Cluster, value: bytes) -> None:
    """One record to t-0."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    producer.produce("t", value, partition=0)
    assert producer.flush(20) == 0


def consumed(cluster: Cluster) -> list[bytes]:
    """The values that a consumer group reads from t, at least one."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["t"])
    found = []
    while (message := until(lambda: consumer.poll(0.2), "the end", 20)).error() is None:
        found.append(message.value() or b"")
    consumer.close()
    return found


@pytest.mark.verb("clusters create", "clusters list", "clusters delete")
def test_a_cluster_is_made_used_by_clients_and_ended(plane: ControlPlane) -> None:
    """Its clients find its records there and nothing in the first; when it ends, they are disconnected."""
    with plane.kafka.clusters.create(
        name="mine", brokers=3, topics={"t": 2}, settings={"min.insync.replicas": 1}
    ) as mine:
        produce(mine, b"v")
        assert consumed(mine) == [b"v"]
        assert plane.kafka.topics["t"].partitions[0].show().log_end_offset == 0
        assert [each.name for each in plane.kafka.clusters.list()] == ["cluster-1", "mine"]
        assert understudy.connect(mine.control_url).bootstrap_servers == mine.bootstrap_servers
        assert plane.ctl("clusters", "list")["clusters"][1]["brokers"] == len(mine.info().brokers) == 3
        wire = Wire(mine.servers[0])
        wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    wire.check_closed()
    wire.close()
    with pytest.raises(OSError, match="refused"):
        Wire(mine.servers[0])
    assert [each.name for each in plane.kafka.clusters.list()] == ["cluster-1"]


def test_the_report_of_an_ended_cluster_can_be_read_and_nothing_else(plane: ControlPlane) -> None:
    """Its last requests are there; a command that would act on it is refused with the reason of its end."""
    with plane.kafka.clusters.create(topics={"t": 1}) as mine:
        produce(mine, b"v")
    assert "Produce" in str(mine.report())
    with pytest.raises(ControlError, match="has ended: it was deleted"):
        mine.topics.list()


def test_an_advance_of_one_clock_moves_no_other(two: tuple[Cluster, Cluster]) -> None:
    """Fifteen minutes pass in one cluster alone."""
    one, other = two
    one.clock.advance(minutes=15)
    assert one.clock.show().ahead_ms == 900_000
    assert other.clock.show().ahead_ms == 0


def test_bad_input_makes_nothing(plane_of: ControlPlaneOf) -> None:
    """One sentence each, and only the first cluster runs afterwards."""
    plane = plane_of()
    taken = plane.url.rpartition(":")[2]
    for body, status, sentence in (
        ({"settings": {"log.retention.ms": "x"}}, 422, "settings log.retention.ms=x: Invalid value x"),
        ({"settings": {"listeners": f"PLAINTEXT://127.0.0.1:{taken}"}}, 409, f"port {taken} cannot be bound"),
        ({"data_dir": "/tmp/x"}, 422, "unknown field 'data_dir'"),
        ({"topics": {"a b": 1}}, 422, "does not start with a topic's name"),
        ({"as_version": "1"}, 422, "as_version 1 cannot be emulated"),
    ):
        refused, problem = plane.refused("POST", "/v1/clusters", body)
        assert (refused, sentence in problem["detail"]) == (status, True), problem
    assert len(plane.kafka.clusters.list()) == 1
    for method, path, status, sentence in (
        ("DELETE", "/v1/clusters/1", 409, "that of the command line"),
        ("DELETE", "/v1/clusters/99", 404, "there is no cluster 99"),
        ("GET", "/clusters/99/v1/topics", 404, "there is no cluster 99"),
    ):
        refused, problem = plane.refused(method, path)
        assert (refused, sentence in problem["detail"]) == (status, True), problem
