"""Several clusters in one process: made, listed and ended by the control plane; nothing of one is seen in another.

Each test of isolation makes the same change in the cluster that it looks at, too, and sees the difference there.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Consumer, Producer

import understudy
from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until
from tests.wire import Closed, Wire
from understudy import Cluster, ControlError


@pytest.fixture
def two(plane: ControlPlane) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters that were made while the server ran."""
    with (
        plane.kafka.clusters.create(name="one", topics={"t": 1}) as one,
        plane.kafka.clusters.create(name="two", topics={"t": 1}) as two,
    ):
        yield one, two


def produce(cluster: Cluster, value: bytes) -> None:
    """One record to t-0."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
    producer.produce("t", value, partition=0)
    assert producer.flush(60) == 0


def consumed(cluster: Cluster) -> list[bytes]:
    """The values that a consumer group reads from t, at least one, up to the end of a partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["t"])
    values: list[bytes] = []
    while (message := until(lambda: consumer.poll(0.2), "the end")).error() is None or not values:
        values += [message.value() or b""] if message.error() is None else []
    consumer.close()
    return values


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
    """Fifteen minutes pass in one cluster alone: there a transaction expires, in the other it stays open."""
    producers = [Producer({"bootstrap.servers": each.bootstrap_servers, "transactional.id": "x"}) for each in two]
    for producer in producers:
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
    one, other = two
    one.clock.advance(minutes=15)
    assert one.clock.show().ahead_ms == 900_000
    assert one.transactions["x"].show().state == "CompleteAbort"
    assert other.clock.show().ahead_ms == 0
    assert other.transactions["x"].show().state == "Ongoing"


def test_a_paused_broker_hangs_no_other_cluster(two: tuple[Cluster, Cluster]) -> None:
    """Requests to one cluster wait, those to the other are answered."""
    one, other = two
    with Wire(one.servers[0], patience_s=0.2) as of_one, Wire(other.servers[0]) as of_other:
        for wire in (of_one, of_other):
            wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        one.brokers[1].pause()
        of_other.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        with pytest.raises(TimeoutError):
            of_one.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


def test_faults_meet_requests_of_their_own_cluster(two: tuple[Cluster, Cluster]) -> None:
    """The connection is closed in one cluster, and served in the other."""
    one, other = two
    with one.faults.add(api="ApiVersions", disconnect="close"):
        with Wire(other.servers[0]) as wire:
            wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        with Wire(one.servers[0]) as wire, pytest.raises(Closed):
            wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


def test_a_full_journal_drops_requests_of_its_own_cluster(plane: ControlPlane) -> None:
    """Of a hundred requests one cluster keeps some, and the other keeps its only one."""
    small = {"understudy.journal.max.entries": 20}
    with plane.kafka.clusters.create(settings=small) as one, plane.kafka.clusters.create() as other:
        for cluster, count in ((other, 1), (one, 100)):
            with Wire(cluster.servers[0]) as wire:
                for _ in range(count):
                    wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        assert 0 < len(one.journal.find()) < 100
        assert len(other.journal.find()) == 1


def test_a_client_that_reads_nothing_stops_no_other_cluster(two: tuple[Cluster, Cluster]) -> None:
    """Its own connection is read no further, since its responses wait; a client of the other cluster is served."""
    one, other = two
    with Wire(one.servers[0], patience_s=0.3) as deaf, Wire(other.servers[0]) as wire:
        request = deaf.requests.encode(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
        with pytest.raises(TimeoutError):
            deaf.send_bytes(request * 1_000_000)
        assert wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


def test_reset_and_snapshots_are_of_one_cluster(two: tuple[Cluster, Cluster]) -> None:
    """What a reset or a restore removes in one cluster stays in the other."""
    one, other = two
    empty = one.snapshots.take()
    assert other.snapshots.list() == []
    for bring_back in (one.reset, empty.restore):
        for cluster in two:
            produce(cluster, b"v")
        bring_back()
        assert one.topics["t"].partitions[0].show().log_end_offset == 0
    assert other.topics["t"].partitions[0].show().log_end_offset == 2


def test_a_seed_yields_the_same_ids_beside_other_clusters(plane: ControlPlane) -> None:
    """Two clusters with one seed have equal ids, a third with another seed has others."""
    create = plane.kafka.clusters.create
    with create(seed=7) as one, create(seed=8) as noise, create(seed=7) as other:
        assert one.info().cluster_id == other.info().cluster_id != noise.info().cluster_id
        for cluster in (one, noise, other):
            cluster.topics.create("t")
        assert one.topics["t"].show().id == other.topics["t"].show().id != noise.topics["t"].show().id


def test_a_limit_of_connections_is_of_one_cluster(plane: ControlPlane) -> None:
    """The second connection waits in the cluster with a limit of one, and is served in the other."""
    with plane.kafka.clusters.create(settings={"max.connections": 1}) as one, plane.kafka.clusters.create() as other:
        with Wire(other.servers[0]) as first, Wire(other.servers[0]) as second:
            for wire in (first, second):
                wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        with Wire(one.servers[0]) as first, Wire(one.servers[0], patience_s=0.2) as second:
            first.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            with pytest.raises(TimeoutError):
                second.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


def test_each_schema_registry_has_subjects_of_its_own(plane: ControlPlane) -> None:
    """A schema that one registry has is unknown to the other; a registry ends with its cluster."""
    create = plane.kafka.clusters.create
    with create(schema_registry=True) as one, create(schema_registry=True) as other:
        body = json.dumps({"schema": '"string"'}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{one.schema_registry_url}/subjects/s/versions", body, headers)) as response:  # noqa: S310
            assert json.load(response) == {"id": 1}
        assert (one.registry.show().subjects, other.registry.show().subjects) == (1, 0)
    with pytest.raises(OSError, match=r"refused|reset"):
        urlopen(f"{one.schema_registry_url}/subjects")  # noqa: S310


def test_metrics_are_of_the_cluster_in_the_url(plane: ControlPlane, two: tuple[Cluster, Cluster]) -> None:
    """One topic in one cluster, two in the other; those of the first cluster have the others' with a label."""
    one, other = two
    other.topics.create("more")
    assert "\nunderstudy_topics 1.0\n" in one.metrics()
    assert "\nunderstudy_topics 2.0\n" in other.metrics()
    lines = [line for line in plane.kafka.metrics().splitlines() if "understudy_topics" in line]
    ids = [each.address.cluster_id for each in two]
    assert lines == [
        "# HELP understudy_topics Topics",
        "# TYPE understudy_topics gauge",
        "understudy_topics 2.0",
        f'understudy_topics{{cluster="{ids[0]}"}} 1.0',
        f'understudy_topics{{cluster="{ids[1]}"}} 2.0',
    ]


def test_commands_that_wait_end_with_their_cluster(plane: ControlPlane) -> None:
    """A wait for a fault is refused with the reason of the end, and not left without a response."""
    waits = plane.kafka.clusters.create()
    fault = waits.faults.add(api="Produce", drop=True, optional=True).id
    url = urlsplit(waits.control_url)
    with closing(HTTPConnection(str(url.hostname), url.port, timeout=60)) as connection:
        connection.request("GET", f"{url.path}/v1/faults/{fault}?wait_hits=1&timeout_ms=60000")
        waits.stop()
        response = connection.getresponse()
        assert (response.status, b"it was deleted" in response.read()) == (410, True)


def test_bad_input_makes_nothing(plane_of: ControlPlaneOf) -> None:
    """One sentence each, and only the first cluster runs afterwards."""
    plane = plane_of()
    taken = plane.url.rpartition(":")[2]
    for body, status, sentence in (
        ({"settings": {"log.retention.ms": "x"}}, 422, "settings log.retention.ms=x: Invalid value x"),
        ({"settings": {"listeners": f"PLAINTEXT://127.0.0.1:{taken}"}}, 409, f"port {taken} cannot be bound"),
        ({"settings": {"create.topic.policy.class.name": "os:getcwd"}}, 422, "names Python code, which is loaded for"),
        ({"settings": {"group.consumer.assignors": "uniform,os:getcwd"}}, 422, "group.consumer.assignors names Python"),
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
