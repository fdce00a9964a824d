"""Reset, snapshot, restore: with clients connected, who go on by themselves."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest
from tests.control.conftest import QUICK, ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_transactions import RawProducer
from tests.ports import free_ports
from tests.serving import Server, start, until
from tests.wire import Wire


def written(plane: ControlPlane, topic: str = "t") -> list[bytes | None]:
    """The values in partition 0."""
    return [record.value for record in plane.kafka.topics[topic].partitions[0].records() if not record.control]


def write(plane: ControlPlane, value: str, topic: str = "t") -> None:
    """A record to partition 0."""
    plane.kafka.topics[topic].write({"value": value, "partition": 0})


def send(producer: Producer, value: bytes, topic: str = "t") -> KafkaError | None:
    """What becomes of a record of a real client."""
    reported: list[KafkaError | None] = []
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _message: reported.append(error))
    assert producer.flush(60) == 0
    return reported[0]


def names(plane: ControlPlane) -> list[str]:
    """Of all topics."""
    return [topic.name for topic in plane.kafka.topics.list()]


def busy(plane: ControlPlane) -> RawProducer:
    """A cluster with a topic of its own, records, an open transaction and a group."""
    write(plane, "before")
    Producer({"bootstrap.servers": plane.bootstrap}).list_topics("made", 60)
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    raw = RawProducer(plane)
    raw.add(0)
    return raw


# --- reset -----------------------------------------------------------------------------------------------------------


def test_clients_of_before_do_not_come_back() -> None:
    """Disconnected on every broker; their addresses are gone, so that a forgotten consumer joins no group."""
    process = start(brokers=2, topics={"t": 2}, settings=QUICK)
    plane = ControlPlane(Server(process))
    before = plane.bootstrap
    forgotten = Consumer({"bootstrap.servers": before, "group.id": "g", "client.id": "forgotten"})
    forgotten.subscribe(["t"])
    until(lambda: forgotten.poll(0.1) or forgotten.assignment(), "an assignment")

    plane.kafka.reset(disconnect=True)

    after = plane.kafka.bootstrap_servers
    assert not {*before.split(",")} & {*after.split(",")}
    assert [f"{broker.host}:{broker.port}" for broker in plane.kafka.info().brokers] == after.split(",")
    for address in before.split(","):
        host, _, port = address.partition(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), 5)
    consumer = Consumer({"bootstrap.servers": after, "group.id": "g", "client.id": "new"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 2, "both partitions")
    assert {entry.client_id for entry in plane.kafka.journal.find()} == {"new"}
    consumer.close()
    process.stop()


@pytest.mark.parametrize(("port", "keep"), [(None, ()), (0, ("topics",))], ids=["port given", "topics kept"])
def test_listeners_stay_where_something_is_kept_or_the_port_was_given(port: int | None, keep: tuple[str, ...]) -> None:
    """Clients are disconnected all the same, and connect again."""
    process = start(topics={"t": 1}, port=free_ports(1)[0] if port is None else port)
    plane = ControlPlane(Server(process))
    before = plane.bootstrap
    with Wire(plane.server.addresses[0], "test") as wire:
        wire.call(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        plane.kafka.reset(keep=keep, disconnect=True)
        wire.check_closed()
    assert plane.kafka.bootstrap_servers == before
    assert list(Producer({"bootstrap.servers": before}).list_topics(timeout=60).topics) == ["t"]
    process.stop()


def test_everything_is_as_just_started(plane: ControlPlane) -> None:
    """The topics of the command line, empty, and nothing else; connections stay."""
    raw = busy(plane)
    plane.kafka.clock.advance(hours=1)
    plane.kafka.faults.add(error="NOT_COORDINATOR", optional=True)
    plane.kafka.versions.set(EndTxn=(0, 3))
    plane.kafka.reset()
    assert names(plane) == ["t", "u"]
    assert written(plane) == []
    assert plane.kafka.transactions.list() == []
    assert plane.kafka.groups.list() == []
    assert plane.kafka.faults.list() == []
    assert plane.kafka.journal.find() == []
    assert plane.kafka.clock.show().ahead_ms == 0
    assert plane.kafka.versions.show()["EndTxn"].max == 5
    assert raw.wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers
    assert plane.ctl("reset") == {"status": "ok"}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("topics", lambda d: ("made" in names(d), written(d)) == (True, [b"before"])),
        ("groups", lambda d: [group.group_id for group in d.kafka.groups.list()] == ["g"]),
        ("transactions", lambda d: d.kafka.transactions["x"].show().state == "Ongoing"),
        ("clock", lambda d: d.kafka.clock.show().ahead_ms > 59_000),
        ("journal", lambda d: len(d.kafka.journal.find()) > 0),
    ],
)
def test_what_is_to_be_kept_is_kept_and_nothing_else(
    plane: ControlPlane, keep: str, kept: Callable[[ControlPlane], bool]
) -> None:
    """Each by its name, over HTTP, in Python and in the shell."""
    busy(plane)
    plane.kafka.clock.advance(minutes=1)
    plane.kafka.reset(keep=[keep])
    assert kept(plane)
    assert ("made" in names(plane)) is (keep == "topics")
    assert (plane.kafka.groups.list() != []) is (keep == "groups")
    assert (plane.kafka.transactions.list() != []) is (keep == "transactions")
    assert plane.kafka.topics["t"].partitions[0].show().open_transactions == ()
    assert {"t", "u"} <= set(names(plane))
    plane.ctl("reset", "--keep", keep)
    assert kept(plane)


@pytest.mark.verb("reset")
def test_ten_clients_recover_by_themselves(plane: ControlPlane) -> None:
    """Producers deliver and consumers read on, without any notice."""
    conf = {"bootstrap.servers": plane.bootstrap}
    producers = [Producer({**conf, "enable.idempotence": number % 2 == 0, "linger.ms": 0}) for number in range(5)]
    consumers = [Consumer({**conf, "group.id": f"g{n}", "auto.offset.reset": "earliest",
                           "topic.metadata.refresh.interval.ms": 100}) for n in range(5)]  # fmt: skip
    for consumer in consumers:
        consumer.subscribe(["t"])
    send_all(producers, b"before")
    for consumer in consumers:
        assert until(lambda c=consumer: value_of(c), "a record") == b"before"  # type: ignore[misc]
    plane.kafka.reset()
    send_all(producers, b"after")
    for consumer in consumers:
        assert until(lambda c=consumer: value_of(c) == b"after", "a record after the reset")  # type: ignore[misc]
        consumer.close()


def send_all(producers: list[Producer], value: bytes) -> None:
    """A record of each, all at once; every one is delivered."""
    reported: list[Any] = []
    for producer in producers:
        producer.produce("t", value, partition=0, on_delivery=lambda error, _: reported.append(error))
    assert [producer.flush(60) for producer in producers] == [0] * len(producers)
    assert reported == [None] * len(producers)


def value_of(consumer: Consumer) -> bytes | None:
    """The next record's value, if there is one."""
    record = consumer.poll(0.1)
    return None if record is None or record.error() else record.value()


def test_brokers_that_were_killed_or_paused_are_back(plane_of: ControlPlaneOf) -> None:
    """After a reset, killed and paused brokers answer again on their ports."""
    plane = plane_of(brokers=3, topics=["t:3"])
    plane.kafka.brokers[2].kill()
    plane.kafka.brokers[3].pause()
    plane.kafka.reset()
    for broker in (1, 2, 3):
        assert len(plane.server.wire(broker).call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers) == 3
    plane.kafka.brokers[2].stop()
    plane.kafka.reset(keep=["topics"])
    assert len(plane.server.wire(2).call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers) == 3


def test_a_connection_that_a_fault_silenced_is_closed(plane: ControlPlane) -> None:
    """So that its client can reconnect."""
    plane.kafka.faults.add(api="Metadata", drop=True)
    wire = plane.server.wire()
    wire.send(ApiKey.METADATA, 12, MetadataRequest(None))
    until(lambda: plane.kafka.journal.find(api="Metadata"), "the request")
    until(lambda: plane.kafka.journal.find(api="Metadata")[0].duration_ms is not None, "its end")
    plane.kafka.reset()
    wire.check_closed()


@pytest.mark.parametrize("keep", ["all", ["everything"], [1]])
def test_only_what_there_is_can_be_kept(plane: ControlPlane, keep: Any) -> None:
    """A reset that is to keep something unknown is refused with 422 and the names that exist."""
    status, problem = plane.refused("POST", "/v1/reset", {"keep": keep})
    assert (status, problem["field"]) == (422, "keep")
    assert "topics" in problem["detail"]


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_gone_back_to_as_often_as_one_likes(plane: ControlPlane) -> None:
    """Topics, records, groups, open transactions, time; what came after is gone."""
    raw = busy(plane)
    before = plane.kafka.transactions["x"].show()
    snapshot = plane.kafka.snapshots.take()
    for attempt in ("one", "two"):
        write(plane, attempt)
        assert written(plane) == [b"before", attempt.encode()]
        plane.kafka.clock.advance(minutes=15)
        assert until(lambda: plane.kafka.transactions["x"].show().state == "CompleteAbort", "the timeout")
        snapshot.restore()
        assert written(plane) == [b"before"]
        assert "made" in names(plane)
        after = plane.kafka.transactions["x"].show()
        assert (after.state, after.producer_epoch, after.deadline_ms) == (
            "Ongoing", before.producer_epoch, before.deadline_ms)  # fmt: skip
        assert plane.kafka.groups["g"].show().offsets[0].offset == 1
        assert plane.kafka.clock.show().ahead_ms < 60_000
    assert raw.end().name == "NONE"


@pytest.mark.verb("snapshots take", "snapshots restore", "snapshots list")
def test_clients_go_on_after_a_restore(plane: ControlPlane) -> None:
    """A producer and a consumer group of real clients."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    snapshot = plane.ctl("snapshots", "take")["id"]
    assert plane.kafka.snapshots.list()[-1].id == plane.ctl("snapshots", "list")["snapshots"][-1]["id"] == snapshot
    assert send(producer, b"2") is None
    plane.ctl("snapshots", "restore", snapshot)
    assert send(producer, b"3") is None
    assert written(plane) == [b"1", b"3"]


def test_a_snapshot_outlives_a_reset(plane: ControlPlane) -> None:
    """So that a session can prepare a state once."""
    write(plane, "prepared")
    snapshot = plane.kafka.snapshots.take()
    plane.kafka.reset()
    assert written(plane) == []
    snapshot.restore()
    assert written(plane) == [b"prepared"]


def test_several_brokers_are_restored(plane_of: ControlPlaneOf) -> None:
    """With leaders where they were, and replicas in sync; one that was killed meanwhile is back."""
    plane = plane_of(brokers=3, settings={"default.replication.factor": 3, "num.partitions": 3})
    Producer({"bootstrap.servers": plane.bootstrap}).list_topics("t", 60)
    write(plane, "before")
    before = plane.kafka.topics["t"].show()
    snapshot = plane.kafka.snapshots.take()
    plane.kafka.brokers[2].kill()
    plane.kafka.clock.advance(minutes=1)
    assert 2 not in {p.leader for p in plane.kafka.topics["t"].show().partitions}
    snapshot.restore()
    after = plane.kafka.topics["t"].show()
    assert [(p.leader, sorted(p.isr)) for p in after.partitions] == [(p.leader, [1, 2, 3]) for p in before.partitions]
    assert written(plane) == [b"before"]


def test_a_state_that_cannot_be_kept_is_refused(plane_of: ControlPlaneOf, tmp_path: Path) -> None:
    """409 with a broker down, 409 for a directory that is only read, 404 for an id that is none."""
    plane = plane_of(brokers=2)
    plane.kafka.brokers[2].kill()
    status, problem = plane.refused("POST", "/v1/snapshots")
    assert (status, "start it first" in problem["detail"]) == (409, True)
    assert plane.refused("POST", "/v1/snapshots/99/restore")[0] == 404
    start(data_dir=tmp_path).stop()
    only_read = plane_of(data_dir=str(tmp_path), read_only=True)
    status, problem = only_read.refused("POST", "/v1/snapshots")
    assert (status, "read-only" in problem["detail"]) == (409, True)
