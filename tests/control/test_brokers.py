"""Brokers that come and go while clients are connected."""

import socket
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.cluster.reset import reset
from broker.cluster.startup import endpoints_of
from broker.control.cluster import describe
from broker.control.request import ControlRequest
from broker.options import ServeOptions
from broker.request.node import Node
from broker.settings.endpoints import Endpoint, EndpointError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest
from storage.files import DiskFiles
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.scenarios.transactions.harness import running
from tests.serving import Server, start, until
from tests.wire import Wire


def metadata(plane: ControlPlane) -> dict[int, str]:
    """The brokers in Metadata, by id."""
    answer = plane.server.wire().call(ApiKey.METADATA, 12, MetadataRequest(None))
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}


def create(plane: ControlPlane, *replicas: list[int], name: str = "m") -> None:
    """The topic, each partition on these brokers."""
    placed = [CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas)]
    request = CreateTopicsRequest([CreatableTopic(name, -1, -1, placed)], 1000)
    answer = plane.server.wire().call(ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code is ErrorCode.NONE


def known(plane: ControlPlane) -> list[int]:
    """Their ids."""
    return sorted(metadata(plane))


def answers(address: str) -> bool:
    """Whether there is a broker at an address, and it knows itself."""
    wire = Wire(address)
    try:
        reported = wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers
        return address in {f"{broker.host}:{broker.port}" for broker in reported}
    finally:
        wire.close()


def test_brokers_are_added_over_http_in_python_and_in_the_shell(plane: ControlPlane) -> None:
    """With the next id, or the one that is requested; clients learn of them at once."""
    first = plane.http("POST", "/v1/brokers", {"rack": "r2"})
    assert (first["id"], first["rack"], first["up"], first["fenced"], first["state"]) == (
        2,
        "r2",
        True,
        False,
        "running",
    )
    second = plane.kafka.brokers.add(id=7)
    third = plane.ctl("brokers", "add", "--rack", "r8")
    assert (second.id, third["id"], third["rack"]) == (7, 8, "r8")
    assert known(plane) == [1, 2, 7, 8]
    assert [broker.id for broker in plane.kafka.info().brokers] == [1, 2, 7, 8]
    assert metadata(plane)[7] == f"{second.host}:{second.port}"
    for address in metadata(plane).values():
        assert answers(address)


def test_brokers_are_removed_over_http_in_python_and_in_the_shell(plane_of: ControlPlaneOf) -> None:
    """Metadata has them no more, and their ports are closed."""
    plane = plane_of(brokers=4)
    gone = metadata(plane)
    assert plane.http("DELETE", "/v1/brokers/2") == {"id": 2, "state": "removed"}
    plane.kafka.brokers[3].remove()
    assert plane.ctl("brokers", "remove", "4")["state"] == "removed"
    assert known(plane) == [1]
    for broker in (2, 3, 4):
        with pytest.raises(ConnectionRefusedError):
            answers(gone[broker])
        assert plane.refused("POST", f"/v1/brokers/{broker}/start")[0] == 404


def delivered(producer: Producer, partition: int, value: bytes) -> KafkaError | None:
    """What becomes of a record of a real client."""
    reported: list[KafkaError | None] = []
    producer.produce("m", value, partition=partition, on_delivery=lambda error, _message: reported.append(error))
    assert producer.flush(60) == 0
    return reported[0]


def leaders(plane: ControlPlane) -> list[tuple[int, int]]:
    """Leader and leader epoch of each partition of m."""
    return [(each.leader, each.leader_epoch) for each in plane.kafka.topics["m"].show().partitions]


@pytest.mark.verb("brokers add", "brokers remove")
def test_a_client_goes_to_a_broker_that_was_added_and_leaves_one_that_is_removed(plane: ControlPlane) -> None:
    """A topic that is made then has replicas there; when it goes its leaders move, and what was acked stays."""
    new = plane.kafka.brokers.add().id
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    create(plane, [new, 1], [1, new])
    create(plane, [new], name="alone")
    producer = Producer(
        {"bootstrap.servers": plane.bootstrap, "linger.ms": 0, "topic.metadata.refresh.interval.ms": 500}
    )
    for partition in range(2):
        assert delivered(producer, partition, b"before") is None
    assert {entry.broker for entry in plane.kafka.journal.find(api="Produce")} == {1, new}
    assert leaders(plane) == [(new, 0), (1, 0)]
    plane.kafka.brokers[new].remove()
    assert leaders(plane) == [(1, 1), (1, 0)]
    assert [each.leader for each in plane.kafka.topics["alone"].show().partitions] == [-1]
    shown = plane.kafka.topics["m"].partitions[0].show()
    assert (shown.replicas, shown.isr) == ((new, 1), (1,))
    for partition in range(2):
        assert delivered(producer, partition, b"after") is None
        values = [record.value for record in plane.kafka.topics["m"].partitions[partition].records()]
        assert values == [b"before", b"after"]
    assert sorted(admin.list_topics(timeout=60).brokers) == [1]


def test_a_broker_that_was_removed_comes_back_with_its_logs(plane_of: ControlPlaneOf) -> None:
    """On the port that it had; where it was the only replica, its records are there again."""
    plane = plane_of(brokers=2)
    before = metadata(plane)
    create(plane, [2])
    plane.kafka.topics["m"].write({"value": "v", "partition": 0})
    plane.kafka.brokers[2].remove()
    plane.kafka.brokers.add(id=2)
    assert metadata(plane) == before
    assert [leader for leader, _ in leaders(plane)] == [2]
    assert [record.value for record in plane.kafka.topics["m"].partitions[0].records()] == [b"v"]


def test_a_broker_that_is_down_can_be_removed(plane_of: ControlPlaneOf) -> None:
    """Also one that hangs, or that an admin client has unregistered."""
    plane = plane_of(brokers=4)
    plane.kafka.brokers[2].kill()
    plane.kafka.brokers[3].pause()
    for broker in (2, 3, 4):
        plane.kafka.brokers[broker].remove()
    plane.kafka.clock.advance(minutes=1)
    assert known(plane) == [1]
    assert len(plane.kafka.info().brokers) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "", {"id": 1}, 409, "there is a broker 1 already"),
        ("POST", "", {"id": 0}, 422, "at least 1"),
        ("POST", "", {"id": 1001}, 422, "at most 1000"),
        ("POST", "", {"port": 65_536}, 422, "at most 65535"),
        ("POST", "", {"rack": 1}, 422, "must be a text"),
        ("POST", "", {"name": "b"}, 422, "known fields: id, rack, port"),
        ("DELETE", "/1", None, 409, "holds the cluster's metadata"),
        ("DELETE", "/9", None, 404, "there is no broker 9"),
    ],
)
def test_a_mistake_is_refused_with_its_reason(
    plane: ControlPlane, method: str, path: str, body: Any, status: int, text: str
) -> None:
    """An invalid command about brokers is refused with its reason and changes nothing."""
    got, problem = plane.refused(method, f"/v1/brokers{path}", body)
    assert got == status
    assert text in problem["detail"]
    assert known(plane) == [1]


def test_a_port_that_is_taken_is_named(plane: ControlPlane) -> None:
    """Nothing is left of the broker, which can be added elsewhere."""
    port = int(plane.server.addresses[0].rpartition(":")[2])
    status, problem = plane.refused("POST", "/v1/brokers", {"port": port})
    assert (status, str(port) in problem["detail"]) == (409, True)
    assert known(plane) == [1]
    assert plane.kafka.brokers.add(port=0).id == 2
    assert known(plane) == [1, 2]


def test_a_reset_brings_back_the_brokers_of_the_command_line(plane_of: ControlPlaneOf) -> None:
    """On their ports, and no others; brokers that were added lose their data."""
    plane = plane_of(brokers=2)
    before = metadata(plane)
    added = plane.kafka.brokers.add()
    plane.kafka.brokers[2].remove()
    plane.server.reset()
    assert metadata(plane) == before
    for address in before.values():
        assert answers(address)
    with pytest.raises(ConnectionRefusedError):
        answers(f"{added.host}:{added.port}")
    assert plane.kafka.brokers.add(rack="r").rack == "r"
    plane.kafka.brokers[2].remove()
    plane.kafka.reset(keep=["topics"])
    assert known(plane) == [1, 2, 3]


def test_a_snapshot_knows_its_brokers(plane_of: ControlPlaneOf) -> None:
    """Brokers added after it are gone, removed ones are back, with their data."""
    plane = plane_of(brokers=2)
    create(plane, [2])
    plane.kafka.topics["m"].write({"value": "v", "partition": 0})
    two = plane.kafka.snapshots.take()
    plane.kafka.brokers.add()
    plane.kafka.brokers[2].remove()
    one_and_three = plane.kafka.snapshots.take()
    for _ in range(2):
        two.restore()
        assert known(plane) == [1, 2]
        assert [record.value for record in plane.kafka.topics["m"].partitions[0].records()] == [b"v"]
        one_and_three.restore()
        assert known(plane) == [1, 3]
        assert leaders(plane) == [(-1, 1)]
    plane.server.reset()
    one_and_three.restore()
    assert known(plane) == [1, 3]
    assert all(answers(address) for address in metadata(plane).values())


def test_an_added_broker_has_its_directory_beside_the_others(tmp_path: Path) -> None:
    """A cluster that is started without it does without it; added again, it has its records."""
    process = start(brokers=2, data_dir=tmp_path)
    plane = ControlPlane(Server(process))
    plane.kafka.brokers.add()
    assert (tmp_path / "broker-3" / "meta.properties").exists()
    create(plane, [3])
    plane.kafka.topics["m"].write({"value": "v", "partition": 0})
    plane.server.finish_test()
    process.stop()
    process = start(brokers=2, data_dir=tmp_path)
    plane = ControlPlane(Server(process))
    assert known(plane) == [1, 2]
    assert leaders(plane)[0][0] == -1
    plane.kafka.brokers.add()
    assert known(plane) == [1, 2, 3]
    assert [record.value for record in plane.kafka.topics["m"].partitions[0].records()] == [b"v"]
    plane.server.finish_test()
    process.stop()


def test_a_broker_whose_directory_another_process_has_taken_cannot_start(tmp_path: Path) -> None:
    """Once it is free, it can: the ports were given up."""
    process = start(brokers=2, data_dir=tmp_path)
    plane = ControlPlane(Server(process))
    plane.kafka.brokers[2].kill()
    other = DiskFiles(tmp_path / "broker-2")
    other.lock()
    status, problem = plane.refused("POST", "/v1/brokers/2/start")
    assert (status, "broker-2 is in use by another process" in problem["detail"]) == (409, True)
    other.close()
    plane.kafka.brokers[2].start()
    assert all(answers(address) for address in metadata(plane).values())
    plane.server.finish_test()
    process.stop()


def test_a_broker_that_could_not_be_added_leaves_nothing(plane_of: ControlPlaneOf) -> None:
    """Neither the port that is taken nor the rack: the next one comes without them, and one of before as it was."""
    plane = plane_of(brokers=2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        wanted = {"port": other.getsockname()[1], "rack": "a"}
        assert plane.refused("POST", "/v1/brokers", wanted)[0] == 409
        added = plane.http("POST", "/v1/brokers")
        assert (added["id"], added["rack"], added["state"]) == (3, None, "running")
        plane.kafka.brokers[3].remove()
        assert plane.refused("POST", "/v1/brokers", wanted)[0] == 409
        again = plane.http("POST", "/v1/brokers")
        assert (again["rack"], again["port"]) == (None, added["port"])


async def test_a_broker_is_described_once_its_listeners_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then, while it is added and while a reset moves it, there is no port that could be given."""
    async with running(brokers=3) as stage:
        cluster, listed, bind = stage.cluster, list[list[int]](), stage.cluster.bind

        async def looked(node: Node) -> None:
            listed.append([broker.id for broker in (await describe(ControlRequest(cluster, {}))).brokers])
            assert len(cluster.bootstrap) == len(listed[-1])
            await bind(node)

        monkeypatch.setattr(cluster, "bind", looked)
        await cluster.lifecycle.add()
        assert listed == [[1, 2, 3]]
        await reset(cluster, disconnect=True)
        assert listed[1:] == [[], [1], [1, 2], [1, 2, 3]]


def test_fixed_ports_count_up() -> None:
    """Those of every listener, from the first broker's."""
    listeners = (Endpoint("IN", "PLAINTEXT", "", 9092), Endpoint("OUT", "PLAINTEXT", "", 0, "kafka", 19092))
    options = ServeOptions(listeners=(listeners,))
    assert endpoints_of(options, 1) == listeners
    inside, outside = endpoints_of(options, 4)
    assert (inside.port, outside.port, outside.advertised_port) == (9095, 0, 19095)
    with pytest.raises(EndpointError, match="would need port"):
        endpoints_of(ServeOptions(listeners=((Endpoint("IN", "PLAINTEXT", "", 65_000),),)), 1000)


def test_the_directory_of_one_broker_has_no_place_for_others(tmp_path: Path) -> None:
    """It is that broker's own log directory, in which another broker's would look like a partition."""
    process = start(data_dir=tmp_path)
    status, problem = ControlPlane(Server(process)).refused("POST", "/v1/brokers")
    assert (status, "--brokers 2" in problem["detail"]) == (409, True)
    process.stop()


def test_a_coordinator_s_groups_move_with_it(plane_of: ControlPlaneOf) -> None:
    """The group goes on at the broker that leads its partition then."""
    plane = plane_of(brokers=3, settings={"offsets.topic.replication.factor": 3})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    coordinator = plane.kafka.transactions["x"].show().coordinator
    if coordinator == 1:
        plane.kafka.coordinators.move(type="transaction", key="x", broker=2)
        coordinator = 2
    plane.kafka.brokers[coordinator].remove()
    producer.begin_transaction()
    producer.produce("made", b"v")
    producer.commit_transaction(60)
    assert plane.kafka.transactions["x"].show().coordinator != coordinator
    assert until(lambda: plane.kafka.transactions["x"].show().state == "CompleteCommit", "the commit")


@pytest.mark.verb("brokers fail-log-dir", "brokers repair-log-dir")
def test_a_log_directory_fails_and_is_repaired(plane_of: ControlPlaneOf) -> None:
    """As seen on 4.4.0: leaders move, what has no other replica has no leader, and the broker refuses both."""
    plane = plane_of(brokers=3)
    create(plane, [2, 3])
    create(plane, [2], name="alone")
    moved, alone = plane.kafka.topics["m"].partitions[0], plane.kafka.topics["alone"].partitions[0]
    plane.kafka.topics["alone"].write({"value": "a"})
    plane.kafka.brokers[2].fail_log_dir()
    until(lambda: moved.show().leader == 3, "the election")
    assert [each["log_dir_failed"] for each in plane.http("GET", "/v1/cluster")["brokers"]] == [False, True, False]
    assert (alone.show().leader, alone.show().leader_epoch, alone.show().isr) == (-1, 1, ())
    wire = plane.server.wire(2)
    for name in ("m", "alone"):
        fetch_topic = FetchTopic(name, [FetchPartition(0, 0, 1 << 20)], topic_id=topic_id_of(wire, name))
        response = wire.call(ApiKey.FETCH, 16, FetchRequest(max_wait_ms=0, session_epoch=-1, topics=[fetch_topic]))
        assert response.responses[0].partitions[0].error_code is ErrorCode.KAFKA_STORAGE_ERROR
        offset = ListOffsetsTopic(name, [ListOffsetsPartition(0, -1)])
        partition = wire.call(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, [offset])).topics[0].partitions[0]
        assert partition.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    for kind, error in (
        (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ):
        election = ElectLeadersRequest([TopicPartitions("alone", [0])], 5000, kind)
        (elected,) = wire.call(ApiKey.ELECT_LEADERS, 2, election).replica_election_results
        assert elected.partition_result[0].error_code is error
    (directory,) = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None)).results
    assert (directory.error_code, [*directory.topics]) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    (shown,) = [each for each in wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics if each.name == "alone"]
    assert shown.partitions[0].error_code is ErrorCode.LEADER_NOT_AVAILABLE
    assert [*shown.partitions[0].offline_replicas] == [2]
    assert "KAFKA_STORAGE_ERROR: the log directory of the broker is offline" in plane.kafka.report().text
    produced = plane.refused("POST", "/v1/topics/alone/records", {"records": [{"value": "b"}]})
    assert "NOT_LEADER_OR_FOLLOWER" in produced[1]["detail"]
    assert plane.refused("POST", "/v1/brokers/2/log-dir/fail")[0] == 409
    assert plane.ctl("brokers", "repair-log-dir", "2")["state"] == "running"
    until(lambda: [each.value for each in alone.records()] == [b"a"], "the records")
    plane.kafka.topics["alone"].write({"value": "b"})
    assert plane.refused("POST", "/v1/brokers/2/log-dir/repair")[0] == 409
    assert "has the cluster's metadata" in plane.refused("POST", "/v1/brokers/1/log-dir/fail")[1]["detail"]


def topic_id_of(wire: Wire, name: str) -> UUID | None:
    """The id of a topic."""
    (topic,) = [each for each in wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics if each.name == name]
    uuid: UUID | None = topic.topic_id
    return uuid


@pytest.mark.verb("brokers fail-log-dir", "brokers repair-log-dir")
def test_one_of_two_log_directories_fails(plane_of: ControlPlaneOf) -> None:
    """The one that is named, or the last one; that of the metadata is refused, and so is an unknown one."""
    plane = plane_of(settings={"log.dirs": "/a,/b"}, topics=["t:2"])
    topic, broker = plane.kafka.topics["t"], plane.kafka.brokers[1]
    for directory, reason in (("/a", "Kafka halts such a broker"), ("/c", "it has /a, /b")):
        status, problem = plane.refused("POST", "/v1/brokers/1/log-dir/fail", {"directory": directory})
        assert (status, reason in problem["detail"]) == (409, True)
    broker.fail_log_dir(directory="/b")
    until(lambda: sorted(part.leader for part in topic.show().partitions) == [-1, 1], "the loss of a leader")
    broker.repair_log_dir()
    until(lambda: [part.leader for part in topic.show().partitions] == [1, 1], "the elections")
    broker.fail_log_dir()
    until(lambda: sorted(part.leader for part in topic.show().partitions) == [-1, 1], "the loss of a leader")


@pytest.mark.verb(
    "controllers add", "controllers remove", "controllers kill", "controllers stop", "controllers start",
    "controllers pause", "controllers resume",
)  # fmt: skip
def test_controllers_come_and_go_while_a_client_creates_topics(plane_of: ControlPlaneOf) -> None:
    """The next controller creates the topic: after a kill when the others miss the active one."""
    plane = plane_of(controllers=3, features={"kraft.version": 1}, seed=1)
    admin, controllers = AdminClient({"bootstrap.servers": plane.bootstrap}), plane.kafka.controllers

    def active() -> int:
        """The id of the active controller."""
        return next(each.id for each in plane.kafka.info().controllers if each.active)

    stopped = active()
    controllers[stopped].stop()
    admin.create_topics([NewTopic("a", 1, 1)])["a"].result(60)
    controllers[stopped].start()
    paused = active()
    controllers[paused].pause()
    waiting = admin.create_topics([NewTopic("c", 1, 1)])["c"]
    controllers[paused].resume()
    waiting.result(60)
    plane.kafka.clock.freeze()
    controllers[active()].kill()
    created = admin.create_topics([NewTopic("b", 1, 1)])["b"]

    def later() -> bool:
        """Half a second later, whether the topic is there."""
        plane.kafka.clock.advance(ms=500)
        return created.done()

    until(later, "the election")
    created.result(60)
    controllers[controllers.add().id].remove()
    assert {"a", "b", "c"} <= set(admin.list_topics(timeout=60).topics)
