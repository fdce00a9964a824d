"""Copies of a cluster whose brokers have several log directories each, in folders of any names, served read-only."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import understudy
from broker.options.copies import broker_ids, log_directories
from protocol.apis import ApiKey
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.storage.test_read_only import fingerprint
from tests.wire import Wire

PARTITIONS = 6
DISKS = ("disk-a", "disk-b")


def copied(folder: Path) -> Path:
    """Return a copy of a cluster that ended while a replica moved: a folder for each broker, with its two disks."""
    disks = [folder / name for name in DISKS]
    kafka = understudy.start(
        brokers=3,
        data_dir=",".join(map(str, disks)),
        topics={"t": PARTITIONS},
        settings={"default.replication.factor": 2, "replica.alter.log.dirs.io.max.bytes.per.second": 1},
    )
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(60):
        producer.produce("t", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    with closing(Wire(kafka.bootstrap_servers.split(",")[1])) as wire:
        for disk in disks:  # one of these is where each replica is already
            topics = [AlterReplicaLogDirTopic("t", list(range(PARTITIONS)))]
            wanted = AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(disk / "broker-2"), topics)])
            wire.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, wanted)
    kafka.stop()
    place = folder / "copy"
    for number, host in enumerate(("east", "north", "west"), 1):
        for disk in disks:
            shutil.copytree(disk / f"broker-{number}", place / host / disk.name)
    return place


def future_replicas(kafka: understudy.Cluster) -> list[tuple[int, str, str, int]]:
    """Of all brokers: id, log directory, partition, and how far it is behind."""
    seen = []
    for number, address in enumerate(kafka.bootstrap_servers.split(","), 1):
        with closing(Wire(address)) as wire:
            response = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
        seen += [
            (number, Path(each.log_dir).name, f"{topic.name}-{partition.partition_index}", partition.offset_lag)
            for each in response.results
            for topic in each.topics
            for partition in topic.partitions
            if partition.is_future_key
        ]
    return seen


def test_all_replicas_are_served_wherever_they_are(tmp_path: Path) -> None:
    """Every record, from all brokers, without their number; what was being moved is named, and stays as it is."""
    copy = copied(tmp_path)
    before = fingerprint(copy)
    moving = sorted(path.name.partition(".")[0] for path in copy.glob("north/*/t-*-future"))
    assert moving
    with understudy.start(data_dir=copy, read_only=True) as kafka:
        assert [each.id for each in kafka.info().brokers] == [1, 2, 3]
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
        consumer.assign([TopicPartition("t", each, 0) for each in range(PARTITIONS)])
        values = {message.value() for _ in range(60) if (message := consumer.poll(60))}
        consumer.close()
        assert values == {b"%d" % number for number in range(60)}
        kafka.clock.advance(hours=1)
        futures = future_replicas(kafka)
        assert sorted((number, name) for number, _, name, _ in futures) == [(2, name) for name in moving]
        assert all(lag >= 0 for *_, lag in futures)
    assert fingerprint(copy) == before


def test_a_wrong_number_of_brokers_is_refused(tmp_path: Path) -> None:
    """With the brokers that are there; some of them may be named."""
    understudy.start(brokers=2, data_dir=tmp_path / "data").stop()
    with pytest.raises(understudy.StartError, match=r"log directories of the brokers 1, 2; leave out --brokers 3"):
        understudy.start(brokers=3, data_dir=tmp_path / "data", read_only=True)
    with understudy.start(brokers=2, data_dir=tmp_path / "data", read_only=True) as kafka:
        assert [each.id for each in kafka.info().brokers] == [1, 2]


def test_whose_a_log_directory_is(tmp_path: Path) -> None:
    """By its `meta.properties`, not its folder; that with the metadata first; a controller is none."""
    for folder, node in (("a/one", 4), ("a/two", 4), ("b", 7), ("c", 9), (".hidden", 8), ("d/e/f", 6)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "meta.properties").write_text(f"version=1\nnode.id={node}\n")
    for folder in ("a/two", "c"):
        (tmp_path / folder / "__cluster_metadata-0").mkdir()
    (tmp_path / "a" / "one" / "recovery-point-offset-checkpoint").touch()
    directories = log_directories([tmp_path])
    expected = {4: ("a/two", "a/one"), 7: ("b",), 9: ("c",)}
    assert directories == {node: tuple(tmp_path / name for name in names) for node, names in expected.items()}
    assert broker_ids(directories) == (4, 7)
    assert log_directories([tmp_path / "a", tmp_path / "b"]).keys() == {4, 7}
