"""Data directories as tables: transactions, bounds, splits, replicas, and files that change while they are read."""

from itertools import accumulate
from pathlib import Path
from struct import pack as packed
from typing import Any

import pytest

from pipeline.plan import plan_batches, plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.reading import read_batches
from pipeline.replicas import find_partitions
from pipeline.schemas import BATCHES
from pipeline.splits import join, pack
from protocol.records.conversion import messages_of_batches
from protocol.records.records import Record, build_batch, build_marker
from storage.append_info import AppendOrigin
from storage.log.partition_log import PartitionLog
from tests.pipeline.logs import NOW_MS, RECORD, as_tuples, chain, read, rows, write_segment
from tests.storage.logs import Tree, append

SMALL: dict[str, Any] = {"internal_segment_bytes": 2000, "index_interval_bytes": 200}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A data directory on disk."""
    return Tree(tmp_path)


def log_of(tree: Tree, topic: str = "t", **settings: Any) -> PartitionLog:
    """A log of small segments that believes its transactions."""
    log = tree.log(topic, **{**SMALL, **settings})
    log.producers.rules.verification = False
    return log


def send(log: PartitionLog, *values: bytes, producer: int = -1, sequence: int = 0, time_ms: int = NOW_MS) -> None:
    """A batch; of a transaction where a producer is named."""
    records = [Record(index, time_ms, b"k", value) for index, value in enumerate(values)]
    if producer < 0:
        append(log, build_batch(records))
        return
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    append(log, build_batch(records, transactional=True, **fields))


def mark(log: PartitionLog, producer: int, *, committed: bool) -> None:
    """The end of a transaction."""
    append(log, build_marker(producer, 0, committed, 7, NOW_MS), origin=AppendOrigin.COORDINATOR)


def with_transactions(tree: Tree) -> PartitionLog:
    """Offsets: 0 plain, 1-2 aborted, 3 plain, 4 marker, 5 committed, 6 marker, 7 open, 8 plain, each twice in a row."""
    log = log_of(tree)
    send(log, b"plain")
    send(log, b"a1", b"a2", producer=1)
    send(log, b"between")
    mark(log, 1, committed=False)
    send(log, b"c1", producer=2)
    mark(log, 2, committed=True)
    send(log, b"open", producer=3)
    send(log, b"behind")
    return log


def values(path: Path, **options: Any) -> list[bytes]:
    """The values that are read."""
    return [row["value"] for row in read(path, "value", **options)]


def test_the_outcome_of_a_transaction_is_read(tree: Tree, tmp_path: Path) -> None:
    """Aborted records are flagged; under read_committed they are gone, with all from the open transaction on."""
    with_transactions(tree)
    outcomes = {row["value"]: row["aborted"] for row in read(tmp_path, "value", "aborted")}
    assert outcomes == {b"plain": False, b"a1": True, b"a2": True, b"between": False, b"c1": False, b"open": False,
                     b"behind": False}  # fmt: skip
    assert values(tmp_path, isolation="read_committed") == [b"plain", b"between", b"c1"]
    assert values(tmp_path / "t-0", isolation="read_committed") == [b"plain", b"between", b"c1"]


def test_transactions_over_many_segments_are_followed(tree: Tree, tmp_path: Path) -> None:
    """Begun in one segment, ended in another; what is open is in the newest snapshot."""
    log = log_of(tree)
    expected = []
    for number in range(60):
        send(log, b"x%d" % number * 20, producer=number % 4, sequence=number // 4)
        if number % 4 == 3 and number >= 8:
            for producer in range(3):
                mark(log, producer, committed=producer != 1)
        expected.append(b"x%d" % number * 20)
    tree.stop()
    assert len(list((tmp_path / "t-0").glob("*.log"))) > 3
    assert list((tmp_path / "t-0").glob("*.snapshot"))
    aborted = [row["value"] for row in read(tmp_path, "value", "aborted") if row["aborted"]]
    assert aborted == [value for index, value in enumerate(expected) if index % 4 == 1]
    assert values(tmp_path, isolation="read_committed") == [b"x%d" % index * 20 for index in (0, 2)]  # 3 never ends


def test_lost_indexes_are_made_up_for(tree: Tree, tmp_path: Path) -> None:
    """A transaction index that cannot be read, snapshots that are damaged: the outcome is read from the batches."""
    with_transactions(tree)
    tree.stop()
    (index,) = (tmp_path / "t-0").glob("*.txnindex")
    index.write_bytes(b"junk")
    for snapshot in (tmp_path / "t-0").glob("*.snapshot"):
        snapshot.write_bytes(b"junk")
    assert values(tmp_path, isolation="read_committed") == [b"plain", b"between", b"c1"]


def test_only_what_is_asked_for_is_read(tree: Tree, tmp_path: Path) -> None:
    """Bounds of offsets and times, on records; topics by name and by pattern."""
    log = log_of(tree)
    for number in range(200):
        send(log, b"%d" % number, time_ms=NOW_MS + number // 2)
    send(log_of(tree, "other"), b"else")
    tree.stop()
    assert values(tmp_path, topics=["t"], offsets=(57, 61)) == [b"57", b"58", b"59", b"60"]
    assert values(tmp_path, topics=["t"], times=(NOW_MS + 30, NOW_MS + 32)) == [b"60", b"61", b"62", b"63"]
    assert values(tmp_path, topics=["t"], offsets=(190, None)) == [b"%d" % number for number in range(190, 200)]
    assert values(tmp_path, topics=["o*"]) == [b"else"]
    assert len(values(tmp_path, topics=["o*", "t"])) == 201
    assert [row["base_offset"] for row in rows(read_batches(tmp_path, topics=["t"], offsets=(57, 59)))] == [57, 58]


def test_bytes_out_of_bounds_are_not_read(tree: Tree, tmp_path: Path) -> None:
    """Segments by their names, places in them by the indexes."""
    log = log_of(tree)
    for number in range(200):
        send(log, b"%d" % number, time_ms=NOW_MS + number)
    tree.stop()
    partitions = find_partitions(tmp_path)
    total = sum(segment.size for segment in partitions[0].segments)
    schema = record_schema(None, "fail")

    def planned(**limits: Any) -> int:
        return sum(split.size for split in plan_records(partitions, Query(schema, **limits)))

    assert planned() == total
    assert 0 < planned(offsets=(57, 61)) < 1500
    assert 0 < planned(times=(NOW_MS + 190, None)) < 2500
    assert planned(offsets=(200, None)) < 2000
    assert planned(offsets=(0, 1)) < 1500


@pytest.mark.parametrize("split_bytes", [1, 300, 1000, 5000])
def test_splits_hold_every_record_once(tree: Tree, tmp_path: Path, split_bytes: int) -> None:
    """However small they are; each can be read by itself, or together with what follows."""
    log = log_of(tree, internal_segment_bytes=6000)
    for number in range(150):
        send(log, b"%d" % number, producer=1, sequence=number)
    mark(log, 1, committed=False)
    tree.stop()
    query = Query(record_schema(["offset", "aborted"], "fail"))
    partitions = find_partitions(tmp_path)
    splits = plan_records(partitions, query, split_bytes)
    assert len(splits) > len(partitions[0].segments) or split_bytes == 5000
    records = [row for split in splits for row in rows(read_records(split, query))]
    assert records == [{"offset": offset, "aborted": True} for offset in range(150)]
    packed = pack(splits, 2000)
    assert sum(len(part) for part in packed) == len(splits)
    assert [row for part in packed for split in join(part) for row in rows(read_records(split, query))] == records
    batches = plan_batches(partitions, Query(BATCHES, mode="report"), split_bytes)
    assert len(batches) == len(splits)


def test_a_wrong_index_does_no_harm(tree: Tree, tmp_path: Path) -> None:
    """Splits begin only where a batch header is."""
    log = log_of(tree)
    for number in range(100):
        send(log, b"%d" % number)
    tree.stop()
    for index in (tmp_path / "t-0").glob("*.index"):
        entries = index.read_bytes()
        index.write_bytes(
            b"".join(entries[at : at + 7] + bytes([entries[at + 7] ^ 5]) for at in range(0, len(entries), 8))
        )
    query = Query(record_schema(["value"], "fail"))
    splits = plan_records(find_partitions(tmp_path), query, 300)
    assert [row["value"] for split in splits for row in rows(read_records(split, query))] == [
        b"%d" % n for n in range(100)
    ]
    assert values(tmp_path, offsets=(50, 52)) == [b"50", b"51"]


def indexed(folder: Path, count: int, *entries: tuple[int, int]) -> list[int]:
    """Batches of a record each, and an index that maps offsets to the positions of batches; what those begin with."""
    batches = chain(*[1] * count)
    starts = [0, *accumulate(map(len, batches))]
    path = write_segment(folder, *batches)
    path.with_suffix(".index").write_bytes(b"".join(packed(">ii", offset, starts[at]) for offset, at in entries))
    return starts


@pytest.mark.parametrize(
    ("entries", "offsets"),
    [
        (((1, 10),), (5, 8)),
        (((30, 5), (40, 10)), (0, 20)),
        (((2, 10), (50, 20)), (15, 18)),
    ],
    ids=["the beginning is passed", "the end is before what is wanted", "a hint that is true"],
)
def test_an_index_that_names_another_batch_hides_no_record(
    tmp_path: Path, entries: tuple[tuple[int, int], ...], offsets: tuple[int, int]
) -> None:
    """A batch begins where an entry points, but it is not one that the entry promises."""
    indexed(tmp_path, 60, *entries)
    assert [row["offset"] for row in read(tmp_path, "offset", offsets=offsets)] == list(range(*offsets))


def test_a_true_entry_still_spares_bytes(tmp_path: Path) -> None:
    """Reading begins and ends at the batches that it names."""
    starts = indexed(tmp_path, 60, (10, 10), (20, 20), (30, 30), (40, 40))
    query = Query(record_schema(["offset"], "fail"), offsets=(12, 18))
    (split,) = plan_records(find_partitions(tmp_path), query)
    assert split.size == starts[30] - starts[10]


def test_records_before_the_logs_start_are_gone(tree: Tree, tmp_path: Path) -> None:
    """As DeleteRecords left them; the batches are still there to be looked at."""
    log = log_of(tree)
    for number in range(5):
        send(log, b"%d" % number)
    tree.stop()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    assert values(tmp_path) == [b"3", b"4"]
    assert len(rows(read_batches(tmp_path))) == 5


def test_of_several_replicas_the_longest_is_read(tmp_path: Path) -> None:
    """Each partition once; or those of the broker that was named."""
    first, second = chain(2, 2)
    write_segment(tmp_path / "broker-1", first)
    write_segment(tmp_path / "broker-2", first, second)
    write_segment(tmp_path / "broker-3", first, second, name="u-1")
    assert [(row["topic"], row["offset"]) for row in read(tmp_path, "topic", "offset")] == [
        *(("t", offset) for offset in range(4)),
        *(("u", offset) for offset in range(4)),
    ]
    assert len(read(tmp_path, "offset", broker=1)) == 2
    assert read(tmp_path / "broker-1", "offset") == [{"offset": 0}, {"offset": 1}]


@pytest.mark.parametrize("is_old", [False, True])
def test_the_longest_replica_ends_last(tmp_path: Path, is_old: bool) -> None:
    """Its last segment may begin before that of another one: each broker rolls by itself."""
    batches = [messages_of_batches(each, 1, 0) if is_old else each for each in chain(1, 1, 1, 1)]
    write_segment(tmp_path / "broker-1", *batches[:2])
    write_segment(tmp_path / "broker-1", batches[2], base=2)
    write_segment(tmp_path / "broker-2", *batches)
    write_segment(tmp_path / "broker-3", *batches)
    assert [row["offset"] for row in read(tmp_path, "offset")] == [0, 1, 2, 3]
    (chosen,) = find_partitions(tmp_path)
    assert chosen.broker == 2


def test_logs_that_are_going_away_are_no_logs(tmp_path: Path) -> None:
    """Deleted and stray ones, files that are no segments, and segments that are being swapped."""
    (batch,) = chain(2)
    write_segment(tmp_path, batch)
    write_segment(tmp_path, batch, name="t-1.0123-delete")
    write_segment(tmp_path, batch, name="t-2.0123-stray")
    (tmp_path / "t-0" / f"{7:020d}.log.cleaned").write_bytes(b"junk")
    assert [row["partition"] for row in read(tmp_path, "partition")] == [0, 0]


def test_a_segment_that_is_deleted_meanwhile_is_still_read(tmp_path: Path) -> None:
    """A segment that gets its `.deleted` name between planning and reading is read to its end."""
    first, second = chain(2, 2)
    path = write_segment(tmp_path, first)
    write_segment(tmp_path, second, base=2)
    query = Query(record_schema(["offset"], "fail"))
    splits = plan_records(find_partitions(tmp_path), query)
    path.rename(f"{path}.deleted")
    assert [row["offset"] for split in splits for row in rows(read_records(split, query))] == [0, 1, 2, 3]


def test_a_log_can_be_named_in_many_ways(tmp_path: Path) -> None:
    """A data directory, a partition, a segment, several, a URI."""
    batches = chain(2, 2)
    path = write_segment(tmp_path, *batches)
    expected = as_tuples(read(tmp_path, *RECORD))
    assert len(expected) == 4
    for name in (path.parent, path, f"file://{tmp_path}", [path.parent, path], str(tmp_path) + "/"):
        assert as_tuples(read(name, *RECORD)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_a_path_without_logs_is_refused(tmp_path: Path, path: str) -> None:
    """An empty answer would look like an empty topic."""
    with pytest.raises(FileNotFoundError, match=r"nowhere: there is nothing|no partition's log"):
        read(tmp_path / path)


def test_unknown_options_and_columns_are_refused(tmp_path: Path) -> None:
    """The error lists those that there are."""
    write_segment(tmp_path, *chain(1))
    with pytest.raises(ValueError, match=r"isolation=serializable: there are read_uncommitted, read_committed"):
        read(tmp_path, isolation="serializable")
    with pytest.raises(ValueError, match=r"no column 'valu'; there are: key, value"):
        read(tmp_path, "valu")


def test_batches_are_read_with_all_fields_of_their_headers(tree: Tree, tmp_path: Path) -> None:
    """One row each; markers with their kind and coordinator."""
    with_transactions(tree)
    batches = rows(read_batches(tmp_path))
    assert [row["control_type"] for row in batches] == [None, None, None, "ABORT", None, "COMMIT", None, None]
    assert [row["coordinator_epoch"] for row in batches if row["is_control"]] == [7, 7]
    row = batches[1]
    assert (row["topic"], row["partition"], row["base_offset"], row["last_offset"], row["record_count"]) == (
        "t",
        0,
        1,
        2,
        2,
    )
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"], row["last_sequence"]) == (1, 0, 0, 1)
    assert (row["codec"], row["magic"], row["timestampType"], row["is_transactional"]) == ("none", 2, 0, True)
    assert (row["base_timestamp_ms"], row["max_timestamp_ms"], row["delete_horizon_ms"]) == (NOW_MS, NOW_MS, None)
    assert [row["position"] for row in batches] == [sum(each["size"] for each in batches[:index]) for index in range(8)]
    assert {row["damage"] for row in batches} == {None}


def test_columns_of_batches_can_be_named(tmp_path: Path) -> None:
    """In any order, and no others are made."""
    write_segment(tmp_path, *chain(2, codec=4))
    assert rows(read_batches(tmp_path, columns=["codec", "record_count"])) == [{"codec": "zstd", "record_count": 2}]
