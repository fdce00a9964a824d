"""Compaction: which log, how far, what stays (core F.6, transactions D.14)."""

from typing import Any

import pytest

from protocol.records.batch import BATCH_HEADER_SIZE, RecordBatch
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch, build_marker, read_records
from storage.append_info import AppendOrigin
from storage.cleaner.cleaner import LogCleaner
from storage.log import retention, truncation
from storage.log.partition_log import PartitionLog
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, bases, contents, records_batch, sized

COMPACT: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "internal_segment_bytes": SEGMENT,
    "min_cleanable_dirty_ratio": 0.01,
}
HOUR_MS = 3_600_000


def cleaner_of(tree: Tree, **options: Any) -> LogCleaner:
    """A new cleaner, which reads its checkpoint again."""
    assert tree.dir is not None
    return LogCleaner(tree.dir, **options)


def put(log: PartitionLog, *pairs: tuple[bytes, bytes | None], **fields: Any) -> None:
    """Each pair in a segment of its own."""
    for key, value in pairs:
        append(log, sized(value, key, **fields))


def stored(log: PartitionLog) -> list[RecordBatch]:
    """All batches."""
    return list(log.reader.replay_from(0))


def test_LOG_10_of_each_key_the_newest_record_stays(tree: Tree) -> None:
    """Offsets do not change, the active segment is not touched, and the checkpoint moves."""
    log = tree.log(**COMPACT)
    put(log, (b"k1", b"a"), (b"k2", b"b"), (b"k1", b"c"), (b"k9", b""))
    assert cleaner_of(tree).run(NOW_MS) == 1
    assert contents(log) == [(1, b"k2", b"b"), (2, b"k1", b"c"), (3, b"k9", b"")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 4)
    assert tree.read_file("cleaner-offset-checkpoint") == b"0\n1\nfoo 0 3\n"
    assert log.reader.read(0, 1000, bound=4, min_one=True).size == SEGMENT
    assert cleaner_of(tree).run(NOW_MS) == 0


def test_LOG_11_a_tombstone_gets_a_horizon_and_goes_behind_it(tree: Tree) -> None:
    """First bit 6 and the time until which it stays, record times unchanged; then it is gone."""
    log = tree.log(**COMPACT, delete_retention_ms=2000)
    put(log, (b"k1", b"a"), (b"k1", None), (b"k2", b"x"), (b"k3", b""))
    cleaner_of(tree).run(NOW_MS + 10)
    first = stored(log)[0]
    assert (first.has_delete_horizon, first.base_timestamp_ms, first.crc_ok()) == (True, NOW_MS + 2010, True)
    assert [(record.offset, record.timestamp_ms) for record in read_records(first)] == [(1, NOW_MS)]
    assert contents(log)[0] == (1, b"k1", None)
    put(log, (b"k4", b""), (b"k5", b""))
    cleaner_of(tree).run(NOW_MS + 2009)
    assert contents(log)[0] == (1, b"k1", None)
    put(log, (b"k6", b""))
    cleaner_of(tree).run(NOW_MS + 2010)
    assert contents(log)[0] == (2, b"k2", b"x")


def test_LOG_14_the_last_batch_of_a_remembered_producer_stays_empty(tree: Tree) -> None:
    """61 bytes that keep its sequence; gone once the producer is forgotten."""
    log = tree.log(**COMPACT)
    put(log, (b"k", b"a"), producer_id=4, producer_epoch=0, base_sequence=0, partition_leader_epoch=0)
    put(log, (b"k", b"b"), (b"k", b"c"), (b"z", b""))
    cleaner_of(tree).run(NOW_MS)
    empty = stored(log)[0]
    assert (empty.size, empty.record_count, empty.last_offset, empty.crc_ok()) == (61, 0, 0, True)
    assert (empty.producer_id, empty.base_sequence, empty.base_timestamp_ms, empty.max_timestamp_ms) == (
        4,
        0,
        -1,
        NOW_MS,
    )
    assert [offset for offset, _, _ in contents(log)] == [2, 3]
    log.producer_log.forget(4)
    put(log, (b"y", b""))
    cleaner_of(tree).run(NOW_MS)
    assert stored(log)[0].base_offset == 2


def test_the_last_batch_of_a_round_stays_if_it_is_empty(tree: Tree) -> None:
    """It keeps the offsets of the round's end."""
    log = tree.log(**COMPACT, delete_retention_ms=0)
    put(log, (b"k", b"a"), (b"k", None), (b"z", b""))
    cleaner_of(tree).run(NOW_MS)
    put(log, (b"z", b"2"))
    cleaner_of(tree).run(NOW_MS + 1)
    put(log, (b"z", b"3"))
    cleaner_of(tree).run(NOW_MS + 2)
    assert [(batch.base_offset, batch.record_count) for batch in stored(log)] == [(3, 1), (4, 1)]


def test_a_batch_keeps_its_range_of_offsets(tree: Tree) -> None:
    """Records go, the batch's first and last offset stay, and so do codec and headers."""
    log = tree.log(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    records = [Record(index, NOW_MS + index, b"k%d" % (index % 3), b"%d" % index, [("h", b"1")]) for index in range(9)]
    for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        append(log, build_batch(records, codec=codec))
        append(log, build_batch([Record(0, NOW_MS, b"other", b"")]))
        log.roll(NOW_MS)
    cleaner_of(tree).run(NOW_MS)
    assert [(batch.base_offset, batch.last_offset, batch.record_count) for batch in stored(log)] == [
        (40, 48, 3),
        (49, 49, 1),
    ]
    kept = list(read_records(stored(log)[0]))
    assert [(record.offset, record.timestamp_ms - NOW_MS, record.value) for record in kept] == [
        (46, 6, b"6"),
        (47, 7, b"7"),
        (48, 8, b"8"),
    ]
    assert list(kept[0].headers) == [("h", b"1")]
    assert (stored(log)[0].codec, stored(log)[0].max_timestamp_ms, stored(log)[0].crc_ok()) == (
        Codec.ZSTD,
        NOW_MS + 8,
        True,
    )


@pytest.mark.slow
def test_a_batch_that_is_too_large_stays_as_it_is(tree: Tree) -> None:
    """To read it would take more memory than is held at once, or hold up others; its neighbours are compacted."""
    log = tree.log(**{**COMPACT, "internal_segment_bytes": 1 << 24}, max_message_bytes=1 << 24)
    small = build_batch([Record(0, NOW_MS, b"k", b"v")], codec=Codec.ZSTD)
    large = build_batch([Record(each, NOW_MS, b"k", bytes(64 << 20)) for each in range(3)], codec=Codec.ZSTD)
    for batch in (small, large, small, small):
        append(log, bytearray(batch))
        log.roll(NOW_MS)
    cleaner_of(tree).run(NOW_MS)
    assert [(each.base_offset, each.record_count) for each in stored(log)] == [(1, 3), (5, 1)]


def test_neighbours_become_one_segment(tree: Tree) -> None:
    """Groups of what fits into a segment, named by their first member; lookups of offsets still work."""
    log = tree.log(**{**COMPACT, "internal_segment_bytes": 5 * SEGMENT})
    for index in range(23):
        append(log, sized(b"%d" % index, b"k%d" % (index % 2)))
    assert bases(log) == [0, 5, 10, 15, 20]
    cleaner_of(tree).run(NOW_MS)
    assert bases(log) == [0, 5, 10, 15, 20]
    for index in range(23, 31):
        append(log, sized(b"%d" % index, b"k%d" % (index % 2)))
    cleaner_of(tree).run(NOW_MS)
    assert bases(log) == [0, 20, 25, 30]
    assert [offset for offset, _, _ in contents(log)] == [28, 29, 30]
    assert log.reader.read(3, 1, bound=31, min_one=True).size == SEGMENT
    assert log.reader.offset_for_timestamp(NOW_MS, 31) is None  # the first segment is empty, and as young (core E.8.5)


def test_aborted_data_goes_then_its_marker(tree: Tree) -> None:
    """The marker waits until its data is gone, then for the horizon."""
    log = tree.log(**{**COMPACT, "internal_segment_bytes": 2 * SEGMENT, "delete_retention_ms": 1000})
    log.producers.rules.verification = False
    for pid, committed in ((1, False), (2, True)):
        fields = {"producer_id": pid, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        append(log, sized(b"t%d" % pid, b"t%d" % pid, **fields))
        append(log, build_marker(pid, 0, committed, 0, NOW_MS), origin=AppendOrigin.COORDINATOR)
        log.roll(NOW_MS)
        log.producer_log.forget(pid)
    put(log, (b"z", b""))
    cleaner_of(tree).run(NOW_MS)
    assert contents(log) == [(2, b"t2", b"t2"), (4, b"z", b"")]
    markers = [(batch.base_offset, batch.has_delete_horizon) for batch in stored(log) if batch.is_control]
    assert markers == [(1, False), (3, False)]
    assert log.reader.aborted_transactions(0, 5) == [(1, 0)]
    log.roll(NOW_MS)
    put(log, (b"y", b""))
    cleaner_of(tree).run(NOW_MS)
    markers = [(batch.base_offset, batch.has_delete_horizon) for batch in stored(log) if batch.is_control]
    assert markers == [(1, True), (3, False)]
    assert log.reader.aborted_transactions(0, 5) == []
    log.roll(NOW_MS)
    put(log, (b"x", b""))
    cleaner_of(tree).run(NOW_MS + 1000)
    assert [batch.base_offset for batch in stored(log) if batch.is_control] == [3]


def test_an_open_transaction_bounds_the_cleaner(tree: Tree) -> None:
    """Nothing at or above the last stable offset is cleaned."""
    log = tree.log(**COMPACT)
    log.producers.rules.verification = False
    put(log, (b"k", b"a"), (b"k", b"b"))
    put(log, (b"t", b"t"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    put(log, (b"k", b"c"), (b"k", b"d"), (b"z", b""))
    cleaner_of(tree).run(NOW_MS)
    assert [offset for offset, _, _ in contents(log)] == [1, 2, 3, 4, 5]


def test_a_full_map_ends_the_round_earlier(tree: Tree) -> None:
    """What did not fit stays dirty; the next round goes on there."""
    log = tree.log(**COMPACT)
    put(log, *((b"k%d" % (index % 5), b"") for index in range(12)))
    cleaner = cleaner_of(tree, map_entries=4)
    cleaner.run(NOW_MS)
    assert tree.read_file("cleaner-offset-checkpoint") == b"0\n1\nfoo 0 4\n"
    for _ in range(4):
        cleaner.run(NOW_MS)
    assert [offset for offset, _, _ in contents(log)] == [6, 7, 8, 9, 10, 11]


def test_the_dirtiest_log_comes_first(tree: Tree) -> None:
    """Ratio decides, not size; logs below their ratio are left alone."""
    clean, dirty, lazy = (tree.log(topic, **COMPACT) for topic in ("clean", "dirty", "lazy"))
    for log in (clean, dirty, lazy):
        put(log, (b"k", b"a"), (b"k", b"b"), (b"k", b"c"))
    lazy.config = type(lazy.config)(cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0)
    cleaner = cleaner_of(tree)
    order = [log.topic for log in cleaner.steps(NOW_MS) if log is not None]
    assert sorted(order) == ["clean", "dirty"]
    put(clean, (b"k", b"d"))
    put(dirty, (b"k", b"d"), (b"k", b"e"), (b"k", b"f"))
    assert [log.topic for log in cleaner.steps(NOW_MS) if log is not None] == ["dirty", "clean"]
    assert [log.topic for log in cleaner.steps(NOW_MS, force=True) if log is not None] == ["lazy"]


def test_compact_delete_logs_are_cut_by_retention_too(tree: Tree) -> None:
    """The cleaner applies time and size to them; the directory's own retention does not touch them."""
    log = tree.log(**{**COMPACT, "cleanup_policy": ("compact", "delete")}, retention_ms=HOUR_MS)
    put(log, (b"k1", b""), (b"k2", b""), time_ms=NOW_MS - 2 * HOUR_MS)
    put(log, (b"k3", b""))
    assert tree.dir is not None
    assert tree.dir.run_retention(NOW_MS) == 0
    cleaner_of(tree).run(NOW_MS)
    assert log.log_start_offset == 2


def test_appends_go_on_while_a_log_is_cleaned(tree: Tree) -> None:
    """The cleaner works in pieces; segments that are taken away meanwhile make it give up."""
    log = tree.log(**COMPACT)
    put(log, *((b"k%d" % (index % 3), b"%d" % index) for index in range(20)))
    steps = cleaner_of(tree).steps(NOW_MS)
    for _ in range(25):
        next(steps)
    put(log, (b"k0", b"new"))
    log.delete_records_before(10)
    retention.run(log, NOW_MS)
    assert [log for log in steps if log is not None] == [log]
    assert [offset for offset, _, _ in contents(log)] == list(range(10, 21))
    cleaner_of(tree).run(NOW_MS)
    assert [offset for offset, _, _ in contents(log)] == [17, 18, 19, 20]
    assert [name for name in tree.names() if name.endswith((".cleaned", ".swap"))] == []


def test_a_damaged_log_is_left_alone_and_the_others_are_cleaned(disk: Tree) -> None:
    """Bytes that are no batch end the work on that log, not the cleaner's."""
    damaged, sound = disk.log("damaged", **COMPACT), disk.log("sound", **COMPACT)
    for log in (damaged, sound):
        put(log, (b"k", b"a"), (b"k", b"b"), (b"k", b"c"))
    assert disk.root is not None
    with (disk.root / "damaged-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(8)
        file.write(b"\xff\xff\xff\xff")
    cleaner = cleaner_of(disk)
    assert [log.topic for log in cleaner.steps(NOW_MS) if log is not None] == ["damaged", "sound"]
    assert {topic: error.code.name for (topic, _), error in cleaner.uncleanable.items()} == {
        "damaged": "CORRUPT_MESSAGE"
    }
    assert [offset for offset, _, _ in contents(sound)] == [1, 2]
    assert cleaner.run(NOW_MS, force=True) == 0


def test_records_that_cannot_be_read_end_the_work_on_their_log_alone(disk: Tree) -> None:
    """A batch whose compressed bytes are damaged: as in Kafka, its log is uncleanable, and the others are cleaned."""
    damaged, sound = disk.log("damaged", **COMPACT), disk.log("sound", **COMPACT)
    for value in (b"a", b"b"):
        append(damaged, records_batch(value, key=b"k", codec=Codec.GZIP))
        damaged.roll(NOW_MS)
    put(sound, (b"k", b"a"), (b"k", b"b"), (b"k", b"c"))
    assert disk.root is not None
    with (disk.root / "damaged-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(BATCH_HEADER_SIZE)
        file.write(b"\xff\xff\xff\xff")
    cleaner = cleaner_of(disk)
    assert [log.topic for log in cleaner.steps(NOW_MS) if log is not None] == ["damaged", "sound"]
    assert {topic: error.code.name for (topic, _), error in cleaner.uncleanable.items()} == {
        "damaged": "CORRUPT_MESSAGE"
    }
    assert [offset for offset, _, _ in contents(sound)] == [1, 2]


def test_a_cleaned_log_opens_again(tree: Tree) -> None:
    """Gaps and empty batches are no damage."""
    log = tree.log(**COMPACT)
    put(log, (b"k", b"a"), producer_id=4, producer_epoch=0, base_sequence=0)
    put(log, *((b"k", b"%d" % index) for index in range(6)))
    cleaner_of(tree).run(NOW_MS)
    before = contents(log), bases(log)
    tree.stop(clean=False)
    tree.open()
    log = tree.log()
    assert (contents(log), bases(log)) == before
    assert log.log_end_offset == 7
    tree.stop()
    tree.open()
    assert contents(tree.log()) == before[0]


def test_a_log_that_is_truncated_while_it_is_cleaned_keeps_what_it_has(tree: Tree) -> None:
    """The newest record of a key may be one that is gone by now; and what was written aside must not come back."""
    log = tree.log(**COMPACT)
    put(log, (b"k1", b"a"), (b"k2", b"b"), (b"k1", b"gone"), (b"z", b""))
    steps = cleaner_of(tree).steps(NOW_MS)
    for _ in range(3):
        next(steps)
    truncation.truncate_to(log, 2, NOW_MS)
    put(log, (b"k3", b"c"), (b"k4", b"d"))
    list(steps)
    assert contents(log) == [(0, b"k1", b"a"), (1, b"k2", b"b"), (2, b"k3", b"c"), (3, b"k4", b"d")]
    assert log.log_end_offset == 4


def test_what_is_written_after_a_truncation_is_dirty(tree: Tree) -> None:
    """Also below the offset up to which the log was clean (LogCleanerManager.maybeTruncateCheckpoint)."""
    log = tree.log(**COMPACT)
    put(log, (b"k1", b"a"), (b"k2", b"b"), (b"k3", b"c"), (b"z", b""))
    cleaner = cleaner_of(tree)
    cleaner.run(NOW_MS)
    truncation.truncate_to(log, 1, NOW_MS)
    put(log, (b"k1", b"x"), (b"k1", b"y"), (b"z", b""))
    assert cleaner.run(NOW_MS) == 1
    assert contents(log) == [(2, b"k1", b"y"), (3, b"z", b"")]
