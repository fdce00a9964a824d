"""Reset, snapshot, restore: with clients connected, who go on by themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest
from tests.control.conftest import QUICK, DoorsOf
from tests.control.doors import Doors
from tests.control.test_transactions import RawProducer
from tests.serving import Server, start, until


def written(doors: Doors, topic: str = "t") -> list[bytes | None]:
    """The values in partition 0."""
    return [record.value for record in doors.kafka.topics[topic].partitions[0].records() if not record.control]


def write(doors: Doors, value: str, topic: str = "t") -> None:
    """A record to partition 0."""
    doors.kafka.topics[topic].write({"value": value, "partition": 0})


def send(producer: Producer, value: bytes, topic: str = "t") -> KafkaError | None:
    """What becomes of a record of a real client."""
    told: list[KafkaError | None] = []
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _message: told.append(error))
    assert producer.flush(20) == 0
    return told[0]


def names(doors: Doors) -> list[str]:
    """Of all topics."""
    return [topic.name for topic in doors.kafka.topics.list()]


def busy(doors: Doors) -> RawProducer:
    """A cluster with a topic of its own, records, an open transaction and a group."""
    write(doors, "before")
    Producer({"bootstrap.servers": doors.bootstrap}).list_topics("made", 10)
    consumer = Consumer({"bootstrap.servers": doors.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    raw = RawProducer(doors)
    raw.add(0)
    return raw


# --- reset -----------------------------------------------------------------------------------------------------------


def test_everything_is_as_just_started(doors: Doors) -> None:
    """The topics of the command line, empty, and nothing else; connections stay."""
    raw = busy(doors)
    doors.kafka.clock.advance(hours=1)
    doors.kafka.faults.add(error="NOT_COORDINATOR", optional=True)
    doors.kafka.versions.set(EndTxn=(0, 3))
    doors.kafka.reset()
    assert names(doors) == ["t", "u"]
    assert written(doors) == []
    assert doors.kafka.transactions.list() == []
    assert doors.kafka.groups.list() == []
    assert doors.kafka.faults.list() == []
    assert doors.kafka.journal.find() == []
    assert doors.kafka.clock.show().ahead_ms == 0
    assert doors.kafka.versions.show()["EndTxn"].max == 5
    assert raw.wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers
    assert doors.ctl("reset") == {"status": "ok"}


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
def test_what_is_to_be_kept_is_kept_and_nothing_else(doors: Doors, keep: str, kept: Callable[[Doors], bool]) -> None:
    """Each by its name, at every door."""
    busy(doors)
    doors.kafka.clock.advance(minutes=1)
    doors.kafka.reset(keep=[keep])
    assert kept(doors)
    assert ("made" in names(doors)) is (keep == "topics")
    assert (doors.kafka.groups.list() != []) is (keep == "groups")
    assert (doors.kafka.transactions.list() != []) is (keep == "transactions")
    assert doors.kafka.topics["t"].partitions[0].show().open_transactions == ()
    assert {"t", "u"} <= set(names(doors))
    doors.ctl("reset", "--keep", keep)
    assert kept(doors)


@pytest.mark.verb("reset")
def test_ten_clients_recover_by_themselves(doors: Doors) -> None:
    """Producers deliver, consumers read on, without being told."""
    conf = {"bootstrap.servers": doors.bootstrap}
    producers = [Producer({**conf, "enable.idempotence": number % 2 == 0, "linger.ms": 0}) for number in range(5)]
    consumers = [Consumer({**conf, "group.id": f"g{n}", "auto.offset.reset": "earliest",
                           "topic.metadata.refresh.interval.ms": 500}) for n in range(5)]  # fmt: skip
    for consumer in consumers:
        consumer.subscribe(["t"])
    for producer in producers:
        assert send(producer, b"before") is None
    for consumer in consumers:
        assert until(lambda c=consumer: value_of(c), "a record", 30) == b"before"  # type: ignore[misc]
    doors.kafka.reset()
    for producer in producers:
        assert send(producer, b"after") is None
    for consumer in consumers:
        assert until(lambda c=consumer: value_of(c) == b"after", "a record after the reset", 30)  # type: ignore[misc]
        consumer.close()


def value_of(consumer: Consumer) -> bytes | None:
    """The next record's value, if there is one."""
    record = consumer.poll(0.1)
    return None if record is None or record.error() else record.value()


def test_brokers_that_were_killed_or_paused_are_back(doors_of: DoorsOf) -> None:
    """On their ports, and answering."""
    doors = doors_of(brokers=3, topics=["t:3"])
    doors.kafka.brokers[2].kill()
    doors.kafka.brokers[3].pause()
    doors.kafka.reset()
    for broker in (1, 2, 3):
        assert len(doors.server.wire(broker).call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers) == 3
    doors.kafka.brokers[2].stop()
    doors.kafka.reset(keep=["topics"])
    assert len(doors.server.wire(2).call(ApiKey.METADATA, 12, MetadataRequest(None)).brokers) == 3


def test_whoever_was_kept_silent_is_hung_up(doors: Doors) -> None:
    """So that it can come back."""
    doors.kafka.faults.add(api="Metadata", drop=True)
    wire = doors.server.wire()
    wire.send(ApiKey.METADATA, 12, MetadataRequest(None))
    until(lambda: doors.kafka.journal.find(api="Metadata"), "the request")
    until(lambda: doors.kafka.journal.find(api="Metadata")[0].duration_ms is not None, "its end")
    doors.kafka.reset()
    wire.check_closed()


@pytest.mark.parametrize("keep", ["all", ["everything"], [1]])
def test_only_what_there_is_can_be_kept(doors: Doors, keep: Any) -> None:
    """422, with the names."""
    status, problem = doors.refused("POST", "/v1/reset", {"keep": keep})
    assert (status, problem["field"]) == (422, "keep")
    assert "topics" in problem["detail"]


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_gone_back_to_as_often_as_one_likes(doors: Doors) -> None:
    """Topics, records, groups, open transactions, time; what came after is gone."""
    raw = busy(doors)
    before = doors.kafka.transactions["x"].show()
    snapshot = doors.kafka.snapshots.take()
    for attempt in ("one", "two"):
        write(doors, attempt)
        assert written(doors) == [b"before", attempt.encode()]
        doors.kafka.clock.advance(minutes=15)
        assert until(lambda: doors.kafka.transactions["x"].show().state == "CompleteAbort", "the timeout")
        snapshot.restore()
        assert written(doors) == [b"before"]
        assert "made" in names(doors)
        after = doors.kafka.transactions["x"].show()
        assert (after.state, after.producer_epoch, after.deadline_ms) == (
            "Ongoing", before.producer_epoch, before.deadline_ms)  # fmt: skip
        assert doors.kafka.groups["g"].show().offsets[0].offset == 1
        assert doors.kafka.clock.show().ahead_ms < 60_000
    assert raw.end().name == "NONE"


@pytest.mark.verb("snapshots take", "snapshots restore", "snapshots list")
def test_clients_go_on_after_a_restore(doors: Doors) -> None:
    """A producer and a consumer group of real clients."""
    producer = Producer({"bootstrap.servers": doors.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    snapshot = doors.ctl("snapshots", "take")["id"]
    assert doors.kafka.snapshots.list()[-1].id == doors.ctl("snapshots", "list")["snapshots"][-1]["id"] == snapshot
    assert send(producer, b"2") is None
    doors.ctl("snapshots", "restore", snapshot)
    assert send(producer, b"3") is None
    assert written(doors) == [b"1", b"3"]


def test_a_snapshot_outlives_a_reset(doors: Doors) -> None:
    """So that a session can prepare a state once."""
    write(doors, "prepared")
    snapshot = doors.kafka.snapshots.take()
    doors.kafka.reset()
    assert written(doors) == []
    snapshot.restore()
    assert written(doors) == [b"prepared"]


def test_several_brokers_are_restored(doors_of: DoorsOf) -> None:
    """With leaders where they were, and replicas in sync; one that was killed meanwhile is back."""
    doors = doors_of(brokers=3, settings={"default.replication.factor": 3, "num.partitions": 3})
    Producer({"bootstrap.servers": doors.bootstrap}).list_topics("t", 10)
    write(doors, "before")
    before = doors.kafka.topics["t"].show()
    snapshot = doors.kafka.snapshots.take()
    doors.kafka.brokers[2].kill()
    doors.kafka.clock.advance(minutes=1)
    assert 2 not in {p.leader for p in doors.kafka.topics["t"].show().partitions}
    snapshot.restore()
    after = doors.kafka.topics["t"].show()
    assert [(p.leader, sorted(p.isr)) for p in after.partitions] == [(p.leader, [1, 2, 3]) for p in before.partitions]
    assert written(doors) == [b"before"]


def test_a_state_that_cannot_be_kept_is_refused(doors_of: DoorsOf, tmp_path: Path) -> None:
    """409 with a broker down, 409 for a directory that is only read, 404 for an id that is none."""
    doors = doors_of(brokers=2)
    doors.kafka.brokers[2].kill()
    status, problem = doors.refused("POST", "/v1/snapshots")
    assert (status, "start it first" in problem["detail"]) == (409, True)
    assert doors.refused("POST", "/v1/snapshots/99/restore")[0] == 404
    start(data_dir=tmp_path).stop()
    only_read = doors_of(data_dir=str(tmp_path), read_only=True)
    status, problem = only_read.refused("POST", "/v1/snapshots")
    assert (status, "only read" in problem["detail"]) == (409, True)


def test_a_data_directory_is_gone_back_to(tmp_path: Path) -> None:
    """As often as one likes, by real clients that go on; the copies are gone when the server stops."""
    process = start(data_dir=tmp_path / "data", topics=["t:2"], settings=QUICK)
    doors = Doors(Server(process))
    producer = Producer({"bootstrap.servers": doors.bootstrap, "linger.ms": 0})
    assert send(producer, b"1") is None
    raw = busy(doors)
    snapshot = doors.kafka.snapshots.take()
    for value in (b"2", b"3"):
        assert send(producer, value) is None
        assert written(doors) == [b"1", b"before", value]
        doors.kafka.reset()
        assert written(doors) == []
        snapshot.restore()
        assert written(doors) == [b"1", b"before"]
        assert doors.kafka.transactions["x"].show().state == "Ongoing"
        assert doors.kafka.groups["g"].show().offsets[0].offset == 1
    assert raw.end().name == "NONE"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".data.snapshots", "data"]
    doors.server.finish_test()
    process.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_directories_of_several_brokers_are_gone_back_to(tmp_path: Path) -> None:
    """And a server that is started on them later finds what was restored."""
    process = start(data_dir=tmp_path / "data", brokers=2, topics=["t:2"])
    doors = Doors(Server(process))
    write(doors, "1")
    before = doors.kafka.topics["t"].show()
    snapshot = doors.kafka.snapshots.take()
    write(doors, "2")
    doors.kafka.brokers[2].kill()
    snapshot.restore()
    assert written(doors) == [b"1"]
    after = doors.kafka.topics["t"].show()
    assert [each.leader for each in after.partitions] == [each.leader for each in before.partitions]
    process.stop()
    again = start(data_dir=tmp_path / "data", brokers=2)
    assert written(Doors(Server(again))) == [b"1"]
    again.stop()


def test_a_snapshot_that_finds_no_room_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """Neither when it is taken, nor when it is put back."""
    folder = tmp_path / "data"
    process = start(data_dir=folder, topics=["t:2"])
    doors = Doors(Server(process))
    write(doors, "1")
    (tmp_path / ".data.snapshots").touch()
    status, problem = doors.refused("POST", "/v1/snapshots")
    assert (status, "cannot be copied" in problem["detail"]) == (409, True)
    (tmp_path / ".data.snapshots").unlink()
    snapshot = doors.kafka.snapshots.take()
    write(doors, "2")
    (folder / ".restoring").touch()
    status, problem = doors.refused("POST", "/v1/snapshots/2/restore")
    assert (status, "cannot be copied" in problem["detail"]) == (409, True)
    assert written(doors) == [b"1", b"2"]
    (folder / ".restoring").unlink()
    snapshot.restore()
    assert written(doors) == [b"1"]
    process.stop()


def test_what_a_killed_server_kept_is_not_kept_for_ever(tmp_path: Path) -> None:
    """The next server's first snapshot clears it away."""
    (tmp_path / ".data.snapshots" / "7" / "1").mkdir(parents=True)
    process = start(data_dir=tmp_path / "data")
    Doors(Server(process)).kafka.snapshots.take()
    assert [path.name for path in (tmp_path / ".data.snapshots").iterdir()] == ["1"]
    process.stop()
