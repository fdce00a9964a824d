"""The internal topics of a cluster that real clients have used, as tables; what cannot be read is there too."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pipeline import sources
from pipeline.reading import read_state
from pipeline.schemas import STATE
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


def test_committed_offsets_are_told(directory: Path) -> None:
    """Those of a group, and those of transactions with what became of them."""
    found = {row["group_id"]: row for row in rows(read_state(directory, "offsets"))}
    assert {name: (row["committed_offset"], row["aborted"]) for name, row in found.items()} == {
        "simple": (3, False),
        "committed": (7, False),
        "aborted": (7, True),
    }
    simple = found["simple"]
    assert (simple["committed_topic"], simple["committed_partition"], simple["metadata"].rstrip("\0")) == (
        "t",
        0,
        "so far",
    )
    assert (simple["topic"], simple["is_transactional"], simple["is_tombstone"]) == ("__consumer_offsets", False, False)
    assert found["committed"]["is_transactional"]


def test_transactions_are_told_step_by_step(directory: Path) -> None:
    """Every transition of each transactional id, in order."""
    states: dict[str, list[str]] = {}
    for row in rows(read_state(directory, "transactions")):
        states.setdefault(row["transactional_id"], []).append(row["state"])
    assert [states["committed"][0], states["committed"][-2:]] == ["Empty", ["PrepareCommit", "CompleteCommit"]]
    assert states["aborted"][-2:] == ["PrepareAbort", "CompleteAbort"]
    ongoing = [row for row in rows(read_state(directory, "transactions")) if row["state"] == "Ongoing"]
    assert {"topic": "t", "partition": 0} in [each for row in ongoing for each in row["partitions"]]


def test_the_metadata_is_told(directory: Path) -> None:
    """Type and fields of each record."""
    found = rows(read_state(directory, "metadata"))
    topics = [json.loads(row["record"])["name"] for row in found if row["type"] == "TopicRecord"]
    assert "t" in topics
    assert "__consumer_offsets" in topics
    assert rows(read_state(directory, "metadata", columns=["type"]))[0] == {"type": found[0]["type"]}


def test_what_cannot_be_read_is_not_lost(tmp_path: Path) -> None:
    """A kind of a later Kafka, and what a client has planted."""
    records = [Record(0, NOW_MS, b"\0\x63ab", b"later"), Record(1, NOW_MS, None, b"planted")]
    write_segment(tmp_path, build_batch(records, partition_leader_epoch=0), name="__consumer_offsets-0")
    found = rows(read_state(tmp_path, "unknown"))
    assert [(row["kind"], row["key"], row["value"]) for row in found] == [
        (99, b"\0\x63ab", b"later"),
        (None, None, b"planted"),
    ]
    assert rows(read_state(tmp_path, "offsets")) == []


class Closed:
    """Finds no module of the rooms, as in a user's process once a call has ended (`understudy.rooms`)."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuses them."""
        if name.partition(".")[0] in {"pipeline", "protocol"}:
            raise ModuleNotFoundError(name)


@pytest.mark.parametrize("kind", ["unknown", "offsets"])
def test_a_task_needs_no_import_once_its_rows_are_asked_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a worker, rows are asked for when the rooms are closed again."""
    planted = build_batch([Record(0, NOW_MS, None, b"planted")], partition_leader_epoch=0)
    write_segment(tmp_path, planted, name="__consumer_offsets-0")
    [task] = sources.tasks("kafka_state", {"path": str(tmp_path), "kind": kind}, ["topic", "offset"])
    monkeypatch.delitem(sys.modules, "pipeline.state")
    found = sources.read(task)
    monkeypatch.setattr(sys, "meta_path", [Closed(), *sys.meta_path])
    wanted = [{"topic": "__consumer_offsets", "offset": 0}] if kind == "unknown" else []
    assert rows(found) == wanted
    monkeypatch.delitem(sys.modules, "pipeline.state")
    with pytest.raises(ModuleNotFoundError):
        sources.read(task)


def test_another_kind_is_refused(tmp_path: Path) -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match=f"kind=topics: there are {', '.join(STATE)}"):
        rows(read_state(tmp_path, "topics"))
