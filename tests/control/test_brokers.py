"""Brokers that come and go while clients are connected."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from broker.birth import endpoints_of
from broker.endpoints import Endpoint, EndpointError
from broker.options import ServeOptions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.metadata import MetadataRequest
from tests.control.conftest import DoorsOf
from tests.control.doors import Doors
from tests.serving import Server, start, until
from tests.wire import Wire


def metadata(doors: Doors) -> dict[int, str]:
    """The brokers that clients are told of."""
    answer = doors.server.wire().call(ApiKey.METADATA, 12, MetadataRequest(None))
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}


def create(doors: Doors, *replicas: list[int], name: str = "m") -> None:
    """The topic, each partition on these brokers."""
    placed = [CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas)]
    request = CreateTopicsRequest([CreatableTopic(name, -1, -1, placed)], 1000)
    answer = doors.server.wire().call(ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code is ErrorCode.NONE


def known(doors: Doors) -> list[int]:
    """Their ids."""
    return sorted(metadata(doors))


def answers(address: str) -> bool:
    """Whether there is a broker at an address, and it knows itself."""
    wire = Wire(address)
    try:
        told = wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers
        return address in {f"{broker.host}:{broker.port}" for broker in told}
    finally:
        wire.close()


def test_brokers_are_added_at_each_door(doors: Doors) -> None:
    """With the next id, or the one that is asked for; clients hear of them at once."""
    first = doors.http("POST", "/v1/brokers", {"rack": "r2"})
    assert (first["id"], first["rack"], first["up"], first["fenced"], first["state"]) == (
        2,
        "r2",
        True,
        False,
        "running",
    )
    second = doors.kafka.brokers.add(id=7)
    third = doors.ctl("brokers", "add", "--rack", "r8")
    assert (second.id, third["id"], third["rack"]) == (7, 8, "r8")
    assert known(doors) == [1, 2, 7, 8]
    assert [broker.id for broker in doors.kafka.info().brokers] == [1, 2, 7, 8]
    assert metadata(doors)[7] == f"{second.host}:{second.port}"
    for address in metadata(doors).values():
        assert answers(address)


def test_brokers_are_removed_at_each_door(doors_of: DoorsOf) -> None:
    """Nobody is told of them any more, and nobody listens there."""
    doors = doors_of(brokers=4)
    gone = metadata(doors)
    assert doors.http("DELETE", "/v1/brokers/2") == {"id": 2, "state": "removed"}
    doors.kafka.brokers[3].remove()
    assert doors.ctl("brokers", "remove", "4")["state"] == "removed"
    assert known(doors) == [1]
    for broker in (2, 3, 4):
        with pytest.raises(ConnectionRefusedError):
            answers(gone[broker])
        assert doors.refused("POST", f"/v1/brokers/{broker}/start")[0] == 404


def delivered(producer: Producer, partition: int, value: bytes) -> KafkaError | None:
    """What becomes of a record of a real client."""
    told: list[KafkaError | None] = []
    producer.produce("m", value, partition=partition, on_delivery=lambda error, _message: told.append(error))
    assert producer.flush(20) == 0
    return told[0]


def leaders(doors: Doors) -> list[tuple[int, int]]:
    """Leader and leader epoch of each partition of m."""
    return [(each.leader, each.leader_epoch) for each in doors.kafka.topics["m"].show().partitions]


@pytest.mark.verb("brokers add", "brokers remove")
def test_a_client_goes_to_a_broker_that_was_added_and_leaves_one_that_is_removed(doors: Doors) -> None:
    """A topic that is made then has replicas there; when it goes its leaders move, and what was acked stays."""
    new = doors.kafka.brokers.add().id
    admin = AdminClient({"bootstrap.servers": doors.bootstrap})
    create(doors, [new, 1], [1, new])
    create(doors, [new], name="alone")
    producer = Producer(
        {"bootstrap.servers": doors.bootstrap, "linger.ms": 0, "topic.metadata.refresh.interval.ms": 500}
    )
    for partition in range(2):
        assert delivered(producer, partition, b"before") is None
    assert {entry.broker for entry in doors.kafka.journal.find(api="Produce")} == {1, new}
    assert leaders(doors) == [(new, 0), (1, 0)]
    doors.kafka.brokers[new].remove()
    assert leaders(doors) == [(1, 1), (1, 0)]
    assert [each.leader for each in doors.kafka.topics["alone"].show().partitions] == [-1]
    shown = doors.kafka.topics["m"].partitions[0].show()
    assert (shown.replicas, shown.isr) == ((new, 1), (1,))
    for partition in range(2):
        assert delivered(producer, partition, b"after") is None
        values = [record.value for record in doors.kafka.topics["m"].partitions[partition].records()]
        assert values == [b"before", b"after"]
    assert sorted(admin.list_topics(timeout=10).brokers) == [1]


def test_a_broker_that_was_removed_comes_back_with_its_logs(doors_of: DoorsOf) -> None:
    """On the port that it had; where it was the only replica, its records are there again."""
    doors = doors_of(brokers=2)
    before = metadata(doors)
    create(doors, [2])
    doors.kafka.topics["m"].write({"value": "v", "partition": 0})
    doors.kafka.brokers[2].remove()
    doors.kafka.brokers.add(id=2)
    assert metadata(doors) == before
    assert [leader for leader, _ in leaders(doors)] == [2]
    assert [record.value for record in doors.kafka.topics["m"].partitions[0].records()] == [b"v"]


def test_a_broker_that_is_down_can_be_removed(doors_of: DoorsOf) -> None:
    """Also one that hangs, or that an admin client has unregistered."""
    doors = doors_of(brokers=4)
    doors.kafka.brokers[2].kill()
    doors.kafka.brokers[3].pause()
    for broker in (2, 3, 4):
        doors.kafka.brokers[broker].remove()
    doors.kafka.clock.advance(minutes=1)
    assert known(doors) == [1]
    assert len(doors.kafka.info().brokers) == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
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
def test_a_mistake_is_told(doors: Doors, method: str, path: str, body: Any, status: int, words: str) -> None:
    """And changes nothing."""
    got, problem = doors.refused(method, f"/v1/brokers{path}", body)
    assert got == status
    assert words in problem["detail"]
    assert known(doors) == [1]


def test_a_port_that_is_taken_is_told(doors: Doors) -> None:
    """Nothing is left of the broker, which can be added elsewhere."""
    port = int(doors.server.addresses[0].rpartition(":")[2])
    status, problem = doors.refused("POST", "/v1/brokers", {"port": port})
    assert (status, str(port) in problem["detail"]) == (409, True)
    assert known(doors) == [1]
    assert doors.kafka.brokers.add(port=0).id == 2
    assert known(doors) == [1, 2]


def test_a_reset_brings_back_the_brokers_of_the_command_line(doors_of: DoorsOf) -> None:
    """On their ports, and no others; what was added begins anew."""
    doors = doors_of(brokers=2)
    before = metadata(doors)
    added = doors.kafka.brokers.add()
    doors.kafka.brokers[2].remove()
    doors.server.reset()
    assert metadata(doors) == before
    for address in before.values():
        assert answers(address)
    with pytest.raises(ConnectionRefusedError):
        answers(f"{added.host}:{added.port}")
    assert doors.kafka.brokers.add(rack="r").rack == "r"
    doors.kafka.brokers[2].remove()
    doors.kafka.reset(keep=["topics"])
    assert known(doors) == [1, 2, 3]


def test_a_snapshot_knows_its_brokers(doors_of: DoorsOf) -> None:
    """Those that came later are gone, those that left are back, with what they held."""
    doors = doors_of(brokers=2)
    create(doors, [2])
    doors.kafka.topics["m"].write({"value": "v", "partition": 0})
    two = doors.kafka.snapshots.take()
    doors.kafka.brokers.add()
    doors.kafka.brokers[2].remove()
    one_and_three = doors.kafka.snapshots.take()
    for _ in range(2):
        two.restore()
        assert known(doors) == [1, 2]
        assert [record.value for record in doors.kafka.topics["m"].partitions[0].records()] == [b"v"]
        one_and_three.restore()
        assert known(doors) == [1, 3]
        assert leaders(doors) == [(-1, 1)]
    doors.server.reset()
    one_and_three.restore()
    assert known(doors) == [1, 3]
    assert all(answers(address) for address in metadata(doors).values())


def test_an_added_broker_has_its_directory_beside_the_others(tmp_path: Path) -> None:
    """A cluster that is started without it does without it; added again, it has its records."""
    process = start(brokers=2, data_dir=tmp_path)
    doors = Doors(Server(process))
    doors.kafka.brokers.add()
    assert (tmp_path / "broker-3" / "meta.properties").exists()
    create(doors, [3])
    doors.kafka.topics["m"].write({"value": "v", "partition": 0})
    doors.server.finish_test()
    process.stop()
    process = start(brokers=2, data_dir=tmp_path)
    doors = Doors(Server(process))
    assert known(doors) == [1, 2]
    assert leaders(doors)[0][0] == -1
    doors.kafka.brokers.add()
    assert known(doors) == [1, 2, 3]
    assert [record.value for record in doors.kafka.topics["m"].partitions[0].records()] == [b"v"]
    doors.server.finish_test()
    process.stop()


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
    status, problem = Doors(Server(process)).refused("POST", "/v1/brokers")
    assert (status, "--brokers 2" in problem["detail"]) == (409, True)
    process.stop()


def test_a_coordinator_s_groups_move_with_it(doors_of: DoorsOf) -> None:
    """The group goes on at the broker that leads its partition then."""
    doors = doors_of(brokers=3, settings={"offsets.topic.replication.factor": 3})
    producer = Producer({"bootstrap.servers": doors.bootstrap, "transactional.id": "x"})
    producer.init_transactions(20)
    coordinator = doors.kafka.transactions["x"].show().coordinator
    if coordinator == 1:
        doors.kafka.coordinators.move(type="transaction", key="x", broker=2)
        coordinator = 2
    doors.kafka.brokers[coordinator].remove()
    producer.begin_transaction()
    producer.produce("made", b"v")
    producer.commit_transaction(30)
    assert doors.kafka.transactions["x"].show().coordinator != coordinator
    assert until(lambda: doors.kafka.transactions["x"].show().state == "CompleteCommit", "the commit")
