"""The internal topics of a cluster that real clients have used, as tables; what cannot be read is there too."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pipeline import sources
from pipeline.reading import read_state
from pipeline.schemas import STATE
from pipeline.transfer.export import topic_settings
from protocol.log_records import consumer_group, group, metadata, share_group, share_state, streams_group
from protocol.log_records.quorum import snapshot
from protocol.records.records import Record, build_batch
from tests.pipeline.logs import NOW_MS, rows, write_segment
from tests.serving import start

SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped server: offsets committed by a group, and within transactions."""
    folder = tmp_path_factory.mktemp("cluster") / "data"
    server = start(data_dir=folder, settings=SETTINGS, topics=["t:1"])
    try:
        servers = {"bootstrap.servers": server.ready.bootstrap_servers[0]}
        consumer = Consumer({**servers, "group.id": "simple", "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition("t", 0, 3, "so far")], asynchronous=False)
        for name in ("committed", "aborted"):
            producer = Producer({**servers, "transactional.id": name})
            producer.init_transactions()
            producer.begin_transaction()
            producer.produce("t", b"x")
            group = Consumer({**servers, "group.id": name})
            producer.send_offsets_to_transaction([TopicPartition("t", 0, 7)], group.consumer_group_metadata())
            (producer.commit_transaction if name == "committed" else producer.abort_transaction)()
            group.close()
        consumer.close()
    finally:
        server.stop()
    return folder


def test_committed_offsets_are_read(directory: Path) -> None:
    """Those of a group, and those of transactions with what became of them."""
    commits = {row["group_id"]: row for row in rows(read_state(directory, "offsets"))}
    assert {name: (row["committed_offset"], row["aborted"]) for name, row in commits.items()} == {
        "simple": (3, False),
        "committed": (7, False),
        "aborted": (7, True),
    }
    simple = commits["simple"]
    assert (simple["committed_topic"], simple["committed_partition"], simple["metadata"].rstrip("\0")) == (
        "t",
        0,
        "so far",
    )
    assert (simple["topic"], simple["is_transactional"], simple["is_tombstone"]) == ("__consumer_offsets", False, False)
    assert commits["committed"]["is_transactional"]


def test_transactions_are_read_step_by_step(directory: Path) -> None:
    """Every transition of each transactional id, in order."""
    states: dict[str, list[str]] = {}
    for row in rows(read_state(directory, "transactions")):
        states.setdefault(row["transactional_id"], []).append(row["state"])
    assert [states["committed"][0], states["committed"][-2:]] == ["Empty", ["PrepareCommit", "CompleteCommit"]]
    assert states["aborted"][-2:] == ["PrepareAbort", "CompleteAbort"]
    ongoing = [row for row in rows(read_state(directory, "transactions")) if row["state"] == "Ongoing"]
    assert {"topic": "t", "partition": 0} in [each for row in ongoing for each in row["partitions"]]


def test_the_metadata_is_read(directory: Path) -> None:
    """Each metadata record is read with its type and fields."""
    records = rows(read_state(directory, "metadata"))
    topics = [json.loads(row["record"])["name"] for row in records if row["type"] == "TopicRecord"]
    assert "t" in topics
    assert "__consumer_offsets" in topics
    assert rows(read_state(directory, "metadata", columns=["type"]))[0] == {"type": records[0]["type"]}


def test_what_cannot_be_read_is_not_lost(tmp_path: Path) -> None:
    """A kind of a later Kafka, and what a client has planted."""
    records = [Record(0, NOW_MS, b"\0\x63ab", b"later"), Record(1, NOW_MS, None, b"planted")]
    write_segment(tmp_path, build_batch(records, partition_leader_epoch=0), name="__consumer_offsets-0")
    unknown = rows(read_state(tmp_path, "unknown"))
    assert [(row["kind"], row["key"], row["value"]) for row in unknown] == [
        (99, b"\0\x63ab", b"later"),
        (None, None, b"planted"),
    ]
    assert rows(read_state(tmp_path, "offsets")) == []


def test_a_metadata_log_that_was_cut_has_its_snapshot(tmp_path: Path) -> None:
    """What the snapshot has comes first; the log's records before its end are left out. As rows, tasks and settings."""
    ids = [UUID(int=number) for number in (1, 2, 3)]
    values = [metadata.encode(metadata.TopicRecord(name, ids[at]))[1] for at, name in enumerate("abc")]
    settings = metadata.encode(metadata.ConfigRecord(2, "a", "cleanup.policy", "compact"))[1]
    log = [Record(8, NOW_MS, None, values[1]), Record(9, NOW_MS, None, values[2])]
    write_segment(tmp_path, build_batch(log, partition_leader_epoch=0), name="__cluster_metadata-0", base=8)
    folder = tmp_path / "__cluster_metadata-0"
    (folder / f"{9:020d}-{1:010d}.checkpoint").write_bytes(
        snapshot([each for each in (values[0], settings, values[1]) if each], NOW_MS, epoch=1)
    )
    records = rows(read_state(tmp_path, "metadata", columns=["type", "offset"]))
    expected = [("TopicRecord", 8), ("ConfigRecord", 8), ("TopicRecord", 8), ("TopicRecord", 9)]
    assert [tuple(row.values()) for row in records] == expected
    tasks = sources.tasks("kafka_state", {"path": str(tmp_path), "kind": "metadata"}, ["type", "offset"])
    assert [tuple(row.values()) for task in tasks for row in rows(sources.read(task))] == expected
    assert topic_settings(str(tmp_path), ["a"]) == {"a": {"cleanup.policy": "compact"}}


def test_a_damaged_snapshot_of_the_metadata_hides_no_record(tmp_path: Path) -> None:
    """The one before it counts, and the log from its end on; without any, all that the log has."""
    values = [metadata.encode(metadata.TopicRecord(name, UUID(int=at)))[1] for at, name in enumerate("abcd")]
    log = [Record(at, NOW_MS, None, values[at - 4]) for at in range(5, 8)]
    write_segment(tmp_path, build_batch(log, partition_leader_epoch=0), name="__cluster_metadata-0", base=5)
    folder = tmp_path / "__cluster_metadata-0"
    (folder / f"{7:020d}-{1:010d}.checkpoint").write_bytes(b"damaged")

    def read_twice() -> list[list[int]]:
        tasks = sources.tasks("kafka_state", {"path": str(tmp_path), "kind": "metadata"}, ["offset"])
        by_task = [row["offset"] for task in tasks for row in rows(sources.read(task))]
        return [[row["offset"] for row in rows(read_state(tmp_path, "metadata", columns=["offset"]))], by_task]

    assert read_twice() == [[5, 6, 7]] * 2
    (folder / f"{5:020d}-{1:010d}.checkpoint").write_bytes(snapshot([values[0] or b""], NOW_MS, epoch=1))
    assert read_twice() == [[4, 5, 6, 7]] * 2


def test_records_of_the_newer_groups_are_decoded(tmp_path: Path) -> None:
    """Consumer, streams and share groups, and their tombstones."""
    encoded = [
        group.encode(consumer_group.ConsumerRecord.of("c", consumer_group.CurrentMember(member_epoch=3), "m")),
        group.encode(streams_group.StreamsRecord(streams_group.StreamsKind.GROUP_METADATA, "s")),
        group.encode(share_group.ShareGroupRecord.of("q", share_group.ShareGroupEpoch(7))),
    ]
    records = [Record(at, NOW_MS, key, value) for at, (key, value) in enumerate(encoded)]
    write_segment(tmp_path, build_batch(records, partition_leader_epoch=0), name="__consumer_offsets-0")
    key, value = share_state.encode(share_state.ShareRecord("h", UUID(int=5), 2, share_state.ShareSnapshot(4)))
    write_segment(
        tmp_path, build_batch([Record(0, NOW_MS, key, value)], partition_leader_epoch=0), name="__share_group_state-0"
    )
    member, gone, epoch = rows(read_state(tmp_path, "group_records"))
    assert (epoch["group_id"], epoch["type"], json.loads(epoch["record"])["epoch"]) == ("q", "GROUP_METADATA", 7)
    assert (member["group_id"], member["type"], member["name"]) == ("c", "CURRENT_MEMBER", "m")
    assert json.loads(member["record"])["member_epoch"] == 3
    assert (gone["group_id"], gone["type"], gone["record"], gone["is_tombstone"]) == ("s", "GROUP_METADATA", None, True)
    (share,) = rows(read_state(tmp_path, "share"))
    assert (share["group_id"], share["shared_partition"], share["type"]) == ("h", 2, "ShareSnapshot")
    assert rows(read_state(tmp_path, "unknown")) == []


class Closed:
    """Finds no module of the server, as in a user's process once a call has ended (`understudy.server_path`)."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuses them."""
        if name.partition(".")[0] in {"pipeline", "protocol"}:
            raise ModuleNotFoundError(name)


@pytest.mark.parametrize("kind", ["unknown", "offsets"])
def test_a_task_needs_no_import_once_its_rows_are_asked_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a worker, rows are asked for when the server's packages cannot be imported any more."""
    planted = build_batch([Record(0, NOW_MS, None, b"planted")], partition_leader_epoch=0)
    write_segment(tmp_path, planted, name="__consumer_offsets-0")
    [task] = sources.tasks("kafka_state", {"path": str(tmp_path), "kind": kind}, ["topic", "offset"])
    monkeypatch.delitem(sys.modules, "pipeline.state")
    batches = sources.read(task)
    monkeypatch.setattr(sys, "meta_path", [Closed(), *sys.meta_path])
    wanted = [{"topic": "__consumer_offsets", "offset": 0}] if kind == "unknown" else []
    assert rows(batches) == wanted
    monkeypatch.delitem(sys.modules, "pipeline.state")
    with pytest.raises(ModuleNotFoundError):
        sources.read(task)


def test_another_kind_is_refused(tmp_path: Path) -> None:
    """An unknown kind of record is refused with the kinds that there are."""
    with pytest.raises(ValueError, match=f"kind=topics: there are {', '.join(STATE)}"):
        rows(read_state(tmp_path, "topics"))
