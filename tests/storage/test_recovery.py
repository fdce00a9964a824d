"""Opening a directory again: after a clean stop, after a kill, with damaged files (core F.7, transactions D.8)."""

import struct
from struct import iter_unpack
from typing import Any
from zlib import crc32

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.records import build_marker
from storage.append_info import AppendOrigin
from storage.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT, encode_offsets
from storage.log.context import Cut
from storage.log_dir import WrongDirectoryError
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, bases, contents, one_each, records_batch, sized

VALUES = [b"0", b"1", b"2", b"3", b"4"]


def values(tree: Tree) -> list[bytes | None]:
    """The values in the log."""
    return [value for _, _, value in contents(tree.log())]


def overwrite(tree: Tree, path: str, contents: bytes) -> None:
    """Replace a file while the directory is closed."""
    if tree.root is None:
        tree.memory.replace(path, contents)
    else:
        (tree.root / path).write_bytes(contents)


def stored(tree: Tree, path: str) -> bytes:
    """A file's contents while the directory is closed."""
    return tree.memory.read_file(path) if tree.root is None else (tree.root / path).read_bytes()


def exists(tree: Tree, path: str) -> bool:
    """Whether a file is there while the directory is closed."""
    return tree.memory.exists(path) if tree.root is None else (tree.root / path).exists()


def remove(tree: Tree, path: str) -> None:
    """Remove a file while the directory is closed."""
    if tree.root is None:
        tree.memory.remove(path)
    else:
        (tree.root / path).unlink()


def without_recovery_points(tree: Tree) -> None:
    """As if the recovery points were never written."""
    overwrite(tree, RECOVERY_POINT, encode_offsets({}))


def test_LOG_08_after_a_clean_stop_nothing_is_lost_or_cut(tree: Tree) -> None:
    """The marker is there after the stop and gone after the start; HW = LEO; files as they were."""
    log = tree.log()
    append(log, records_batch(*VALUES))
    tree.stop()
    assert exists(tree, CLEAN_SHUTDOWN)
    size = len(stored(tree, "foo-0/00000000000000000000.log"))
    opened = tree.open()
    assert opened.was_clean
    assert not exists(tree, CLEAN_SHUTDOWN)
    log = tree.log()
    assert (log.high_watermark, log.log_end_offset, log.segments.size) == (5, 5, size)
    assert tree.cuts == []
    assert values(tree) == VALUES


def test_the_marker_carries_the_broker_epoch(tree: Tree) -> None:
    """The next start learns which epoch stopped cleanly."""
    opened = tree.open()
    opened.close(broker_epoch=42)
    assert tree.open().previous_broker_epoch == 42


def test_LOG_07_a_torn_tail_is_cut_and_the_index_rebuilt(tree: Tree) -> None:
    """After a kill the log ends with its last whole batch."""
    log = tree.log()
    batch = records_batch(b"x" * 5000)
    for _ in range(4):
        append(log, bytearray(batch))
    tree.stop(clean=False)
    path = "foo-0/00000000000000000000.log"
    overwrite(tree, path, stored(tree, path)[:-7])
    overwrite(tree, "foo-0/00000000000000000000.index", b"\xff" * 80)
    tree.open()
    log = tree.log()
    assert (log.log_end_offset, log.segments.size) == (3, 3 * len(batch))
    assert tree.cuts == [Cut("foo", 0, 3, len(batch) - 7, 0)]
    index = tree.read_file("foo-0/00000000000000000000.index")[:16]
    assert list(iter_unpack(">ii", index)) == [(1, len(batch)), (2, 2 * len(batch))]
    assert append(log, records_batch(b"y")).base_offset == 3


def test_LOG_09_damage_ends_the_log(tree: Tree) -> None:
    """A flipped bit behind the recovery point: the segment is cut there, later ones are deleted."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 5)
    tree.stop(clean=False)
    without_recovery_points(tree)
    path = "foo-0/00000000000000000002.log"
    damaged = bytearray(stored(tree, path))
    damaged[100] ^= 1
    overwrite(tree, path, bytes(damaged))
    tree.open()
    log = tree.log()
    assert (log.log_end_offset, bases(log), values(tree)) == (2, [0, 1, 2], [b"0", b"1"])
    assert tree.cuts == [Cut("foo", 0, 2, 3 * len(damaged), 2)]
    assert append(log, sized(b"n")).base_offset == 2


def test_damage_before_the_recovery_point_is_not_looked_for(tree: Tree) -> None:
    """What was flushed is believed, as Kafka believes it."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 3)
    assert tree.dir is not None
    tree.dir.checkpoint_recovery_points()
    tree.stop(clean=False)
    path = "foo-0/00000000000000000000.log"
    damaged = bytearray(stored(tree, path))
    damaged[100] ^= 1
    overwrite(tree, path, bytes(damaged))
    tree.open()
    assert tree.log().log_end_offset == 3


def test_damage_that_recovery_did_not_check_is_answered_to_readers(tree: Tree) -> None:
    """Where no batch can be, reading answers CORRUPT_MESSAGE; what lies before is read."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    one_each(log, 4)
    tree.stop()
    path = "foo-0/00000000000000000000.log"
    damaged = bytearray(stored(tree, path))
    damaged[SEGMENT + 8 : SEGMENT + 12] = bytes(4)
    overwrite(tree, path, bytes(damaged))
    tree.open()
    log = tree.log()
    assert [log.reader.read(offset, 1, bound=4, min_one=True).size for offset in (0, 2, 3)] == [SEGMENT] * 3
    with pytest.raises(KafkaError) as caught:
        log.reader.read(1, 1, bound=4, min_one=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("clean", [True, False])
def test_deleted_indexes_are_rebuilt(tree: Tree, clean: bool) -> None:
    """Each kind of index, also after a clean stop."""
    log = tree.log(internal_segment_bytes=10_000, index_interval_bytes=500)
    for index in range(200):
        append(log, sized(b"%d" % index))
    tree.stop(clean=clean)
    before = {}
    for base in (0, 50, 100):
        for suffix in ("index", "timeindex"):
            path = f"foo-0/{base:020d}.{suffix}"
            before[path] = stored(tree, path)
            remove(tree, path)
    tree.open()
    log = tree.log()
    assert log.log_end_offset == 200
    assert [log.reader.read(offset, 1, bound=200, min_one=True).size for offset in range(200)] == [SEGMENT] * 200
    assert {path: stored(tree, path) for path in before if "timeindex" not in path} == {
        path: contents for path, contents in before.items() if "timeindex" not in path
    }


@pytest.mark.parametrize("size", [1, 7, 9])
def test_an_index_that_is_cut_short_is_rebuilt(tree: Tree, size: int) -> None:
    """A power cut may leave less than an entry: the log is opened all the same, and so is the directory."""
    log = tree.log(internal_segment_bytes=10_000, index_interval_bytes=500)
    for index in range(60):
        append(log, sized(b"%d" % index))
    tree.stop()
    before = stored(tree, "foo-0/00000000000000000000.index")
    overwrite(tree, "foo-0/00000000000000000000.index", before[:size])
    tree.open()
    assert tree.dir is not None
    assert tree.dir.context.offline is None
    assert tree.log().log_end_offset == 60
    tree.stop()
    assert stored(tree, "foo-0/00000000000000000000.index") == before


def test_LOG_15_an_interrupted_cleaning_is_undone(tree: Tree) -> None:
    """`.cleaned` files are dropped, and so are the swaps that belong to them."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 5)
    tree.stop(clean=False)
    for suffix in ("log", "index", "timeindex"):
        overwrite(tree, f"foo-0/{0:020d}.{suffix}.cleaned", b"x" * 24)
        overwrite(tree, f"foo-0/{1:020d}.{suffix}.swap", b"x" * 24)
    tree.open()
    assert [name for name in tree.names() if name.endswith((".cleaned", ".swap"))] == []
    assert values(tree) == VALUES


def test_an_interrupted_swap_is_finished(tree: Tree) -> None:
    """A complete cleaned segment takes the place of those that it covers."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 5)
    tree.stop(clean=False)
    files = {f"{base:020d}.{suffix}": b"" for base in (0, 1) for suffix in ("log", "index", "timeindex")}
    files = {name: stored(tree, f"foo-0/{name}") for name in files}
    swapped = files[f"{0:020d}.log"] + files[f"{1:020d}.log"]
    overwrite(tree, f"foo-0/{0:020d}.log.swap", swapped)
    overwrite(tree, f"foo-0/{0:020d}.index.swap", b"")
    overwrite(tree, f"foo-0/{0:020d}.timeindex.swap", b"")
    tree.open()
    assert bases(tree.log()) == [0, 2, 3, 4]
    assert values(tree) == VALUES


def test_deleted_files_and_orphan_indexes_go(tree: Tree) -> None:
    """Leftovers of the last run are removed at start."""
    append(tree.log(), records_batch(b"a"))
    tree.stop(clean=False)
    for name in ("00000000000000000007.log.deleted", "00000000000000000009.index", "00000000000000000009.txnindex"):
        overwrite(tree, f"foo-0/{name}", b"x" * 8)
    tree.open()
    assert [name for name in tree.names() if name.startswith(("00000000000000000007", "00000000000000000009"))] == []


def test_a_log_that_ends_below_its_checkpointed_start_is_emptied(tree: Tree) -> None:
    """Segments below go; the log restarts, empty, at its start."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 5)
    log.delete_records_before(5)
    tree.stop()
    path = "foo-0/00000000000000000004.log"
    overwrite(tree, path, b"")
    overwrite(tree, "log-start-offset-checkpoint", encode_offsets({("foo", 0): 9}))
    remove(tree, CLEAN_SHUTDOWN)
    without_recovery_points(tree)
    tree.open()
    log = tree.log()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, bases(log)) == (9, 9, 9, [9])


def test_the_log_start_survives(tree: Tree) -> None:
    """A start within a segment is in its checkpoint; one at a segment's base needs none."""
    log, other = tree.log(), tree.log("bar")
    for each in (log, other):
        append(each, records_batch(*VALUES))
    log.delete_records_before(3)
    tree.stop()
    assert stored(tree, "log-start-offset-checkpoint") == b"0\n1\nfoo 0 3\n"
    tree.open()
    assert (tree.log().log_start_offset, tree.log("bar").log_start_offset) == (3, 0)


def test_malformed_checkpoints_count_as_missing(tree: Tree) -> None:
    """A wrong count, or a partition twice: the log is scanned and nothing is lost."""
    append(tree.log(), records_batch(*VALUES))
    tree.stop(clean=False)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        overwrite(tree, name, b"0\n3\nfoo 0 4\n")
    overwrite(tree, "foo-0/leader-epoch-checkpoint", b"nonsense")
    tree.open()
    log = tree.log()
    assert (log.log_end_offset, log.high_watermark, log.epochs.latest) == (5, 0, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_producers_and_open_transactions_come_back(tree: Tree, clean: bool) -> None:
    """Sequences go on, the newest batch is still known as a duplicate, an open transaction stays open."""
    log = tree.log()
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 2, "transactional": True}
    log.producers.rules.verification = False
    append(log, records_batch(b"a", b"b", base_sequence=0, **producer))
    append(log, records_batch(b"c", base_sequence=2, **producer))
    tree.stop(clean=clean)
    tree.open()
    log = tree.log()
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 0
    assert append(log, records_batch(b"c", base_sequence=2, **producer)).duplicate
    assert append(log, records_batch(b"d", base_sequence=3, **producer)).base_offset == 3


def test_DSK_04_a_corrupt_snapshot_is_replaced_by_an_older_one(tree: Tree) -> None:
    """The state is the same: what the older one does not have is read from the log."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    for sequence in range(5):
        append(log, sized(b"%d" % sequence, producer_id=5, producer_epoch=0, base_sequence=sequence))
    tree.stop()
    assert [name for name in (f"{offset:020d}.snapshot" for offset in (2, 4, 5)) if exists(tree, f"foo-0/{name}")] == [
        "00000000000000000002.snapshot",
        "00000000000000000004.snapshot",
        "00000000000000000005.snapshot",
    ]
    overwrite(tree, "foo-0/00000000000000000005.snapshot", b"\0\1garbage")
    overwrite(tree, "foo-0/00000000000000000004.snapshot", b"")
    tree.open()
    entry = tree.log().producers.producers[5]
    assert (entry.last_sequence, len(entry.batches)) == (4, 4)


def test_the_transaction_index_is_rebuilt(tree: Tree) -> None:
    """Aborted transactions of segments that are scanned are indexed again (transactions D.8)."""
    log = tree.log(internal_segment_bytes=400)
    log.producers.rules.verification = False
    fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    append(log, sized(b"a", base_sequence=0, size=300, **fields))
    append(log, sized(b"b", base_sequence=1, size=300, **fields))
    append(log, build_marker(5, 0, False, 0, NOW_MS), origin=AppendOrigin.COORDINATOR)
    before = stored(tree, "foo-0/00000000000000000001.txnindex")
    tree.stop(clean=False)
    without_recovery_points(tree)
    remove(tree, "foo-0/00000000000000000001.txnindex")
    tree.open()
    assert tree.log().reader.aborted_transactions(0, 3) == [(5, 0)]
    assert stored(tree, "foo-0/00000000000000000001.txnindex") == before


def test_stopping_twice_cleanly_changes_nothing(tree: Tree) -> None:
    """Open and stop without an append: all segment files stay byte for byte."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    one_each(log, 5)
    tree.stop()
    names = ["00000000000000000004.log", "00000000000000000004.index", "00000000000000000004.timeindex"]
    before = [stored(tree, f"foo-0/{name}") for name in names]
    tree.open()
    tree.stop()
    assert [stored(tree, f"foo-0/{name}") for name in names] == before


def test_deleting_directories_are_removed_later(disk: Tree) -> None:
    """A `-delete` directory of the last run is no log, and goes after the delay."""
    append(disk.log(), records_batch(b"a"))
    disk.stop()
    assert disk.root is not None
    (disk.root / "foo-0").rename(disk.root / "foo-0.0123456789abcdef0123456789abcdef-delete")
    opened = disk.open()
    assert list(opened) == []
    opened.remove_due(NOW_MS + 60_000)
    assert not (disk.root / "foo-0.0123456789abcdef0123456789abcdef-delete").exists()


@pytest.mark.parametrize("clean", [True, False])
def test_records_of_old_brokers_are_refused_not_cut_off(tree: Tree, clean: bool) -> None:
    """Message format v1: a data directory that only Kafka can go on with; nothing of it is changed."""
    tree.log()
    append(tree.log(), records_batch(b"x"))
    tree.stop(clean=clean)
    path = "foo-0/00000000000000000000.log"
    body = struct.pack(">bbqii", 1, 0, NOW_MS, -1, 3) + b"old"
    old = struct.pack(">qiI", 0, 4 + len(body), crc32(body)) + body
    overwrite(tree, path, old * 3)
    with pytest.raises(WrongDirectoryError, match=r"foo-0 begins .* \(message format v1\), which only Kafka"):
        tree.open()
    assert stored(tree, path) == old * 3


def test_a_missing_time_index_is_rebuilt(tree: Tree) -> None:
    """Also after a clean stop: without it no record of the segment is found by its time."""
    log = tree.log()
    append(log, records_batch(b"a", time_ms=NOW_MS))
    tree.stop()
    remove(tree, "foo-0/00000000000000000000.timeindex")
    tree.open()
    record = tree.log().reader.offset_for_timestamp(NOW_MS, 1)
    assert record is not None
    assert record.offset == 0
