"""Offsets by time and by epoch, the last stable offset, aborted transactions.

Rules: core E.6 to E.9, transactions D.9 to D.12.
"""

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BATCH_HEADER_SIZE
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch, build_marker
from storage.append_info import AppendOrigin
from storage.log import truncation
from storage.log.partition_log import PartitionLog
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, one_each, records_batch, sized, timed_batch


def transactional(log: PartitionLog, producer_id: int, sequence: int = 0, **fields: Any) -> int:
    """Append one record of a transaction; its offset."""
    log.producers.rules.verification = False
    batch = sized(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True, **fields)
    return append(log, batch).base_offset


def end(log: PartitionLog, producer_id: int, *, committed: bool, commit: bool = True) -> int:
    """Append a marker; its offset."""
    marker = build_marker(producer_id, 0, committed, 0, NOW_MS)
    return append(log, marker, origin=AppendOrigin.COORDINATOR, commit=commit).base_offset


def test_LST_01_log_order_decides(tree: Tree) -> None:
    """The first record in the log at or after the time, not the earliest one."""
    log = tree.log()
    append(log, timed_batch(10, 20, 15))
    assert log.reader.offset_for_timestamp(15, 3) == (1, 20, 0)
    assert log.reader.offset_for_timestamp(16, 3) == (1, 20, 0)
    assert log.reader.offset_for_timestamp(21, 3) is None
    assert log.reader.offset_for_timestamp(15, 1) is None


def test_LST_02_the_largest_timestamp(tree: Tree) -> None:
    """The first record that has it; nothing above the bound."""
    log = tree.log()
    append(log, timed_batch(10, 20, 15))
    append(log, timed_batch(20))
    assert log.reader.max_timestamp_offset(4) == (1, 20, 0)
    assert log.reader.max_timestamp_offset(1) is None


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 90_000])
def test_times_in_a_large_batch(tree: Tree, size: int) -> None:
    """Are found in steps, in portions and in records that are longer than those."""
    log = tree.log()
    records = [Record(index, NOW_MS + (index * 7) % 1000, None, bytes(size)) for index in range(500_000 // size)]
    records.append(Record(len(records), NOW_MS + 5000, None, b"the latest"))
    append(log, build_batch(records, codec=Codec.ZSTD))
    for late_ms in (0, 1, 300, 993, 999, 1000):
        first = next((each for each in records if each.timestamp_ms >= NOW_MS + late_ms), None)
        expected = None if first is None else (first.offset, first.timestamp_ms, 0)
        assert log.reader.offset_for_timestamp(NOW_MS + late_ms, 1_000_000) == expected
    assert log.reader.max_timestamp_offset(1_000_000) == (len(records) - 1, NOW_MS + 5000, 0)
    assert sum(1 for _ in log.reader.search_max_timestamp(1_000_000)) > 10


def test_times_are_found_all_over_a_log(tree: Tree) -> None:
    """Through segments and time indexes, with the epoch of the batch."""
    log = tree.log(internal_segment_bytes=20 * SEGMENT, index_interval_bytes=3 * SEGMENT)
    for index in range(100):
        append(log, sized(time_ms=NOW_MS + 10 * index), epoch=index // 50)
    for index in range(100):
        assert log.reader.offset_for_timestamp(NOW_MS + 10 * index - 5, 100) == (
            index,
            NOW_MS + 10 * index,
            index // 50,
        )
    assert log.reader.max_timestamp_offset(100) == (99, NOW_MS + 990, 1)


def test_records_without_timestamps_are_never_found(tree: Tree) -> None:
    """-1 is no time, though it is the largest one of a log that has no other."""
    log = tree.log()
    append(log, timed_batch(-1))
    assert log.reader.offset_for_timestamp(0, 1) is None
    assert log.reader.max_timestamp_offset(1) == (0, -1, 0)


def test_times_below_the_log_start_are_not_found(tree: Tree) -> None:
    """A search by time skips records below the log start offset."""
    log = tree.log()
    append(log, timed_batch(10, 20, 30))
    log.delete_records_before(1)
    assert log.reader.offset_for_timestamp(0, 3) == (1, 20, 0)


def test_log_append_time_holds_for_every_record(tree: Tree) -> None:
    """The first record of the batch is found by the broker's time."""
    log = tree.log(message_timestamp_type="LogAppendTime")
    append(log, timed_batch(1, 2, 3))
    assert log.reader.offset_for_timestamp(NOW_MS, 3) == (0, NOW_MS, 0)


def test_the_epoch_of_the_log_start_is_known(tree: Tree) -> None:
    """ListOffsets EARLIEST answers it, once an epoch is known (core E.8.7)."""
    log = tree.log()
    assert log.epochs.earliest(log.log_start_offset) == -1
    log.epochs.assign(3, log.log_end_offset)
    assert log.epochs.earliest(log.log_start_offset) == 3


@pytest.mark.parametrize(
    ("epoch", "answer"), [(-1, (-1, -1)), (0, (0, 5)), (1, (0, 5)), (2, (2, 9)), (3, (-1, -1))], ids=str
)
def test_EPO_01_end_offsets_of_epochs(tree: Tree, epoch: int, answer: tuple[int, int]) -> None:
    """The largest epoch at or below the one asked for, and where it ended."""
    log = tree.log()
    append(log, records_batch(*[b""] * 5), epoch=0)
    append(log, records_batch(*[b""] * 4), epoch=2)
    assert log.epochs.end_offset_for(epoch, log.log_end_offset) == answer


def test_epochs_before_the_first_known_one(tree: Tree) -> None:
    """They ended where the first known one begins (core E.9)."""
    log = tree.log()
    append(log, records_batch(b""), epoch=5)
    assert log.epochs.end_offset_for(4, log.log_end_offset) == (4, 0)


def test_a_leader_without_records_has_its_epoch(tree: Tree) -> None:
    """{epoch, LEO} is noted when it takes over, and survives a restart."""
    log = tree.log()
    append(log, records_batch(b"a"), epoch=0)
    log.epochs.assign(7, log.log_end_offset)
    assert log.epochs.latest == 7
    assert [log.epochs.end_offset_for(epoch, log.log_end_offset) for epoch in (0, 7)] == [(0, 1), (7, 1)]
    assert tree.read_file("foo-0/leader-epoch-checkpoint") == b"0\n2\n0 0\n7 1\n"


def test_truncation_forgets_records_epochs_and_producers(tree: Tree) -> None:
    """A follower goes back to where its leader's history parts from its own."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    for sequence in range(5):
        fields: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": sequence}
        append(log, sized(b"%d" % sequence, **fields), epoch=sequence)
    assert truncation.truncate_to(log, 3, NOW_MS)
    assert (log.log_end_offset, log.high_watermark, log.epochs.latest) == (3, 3, 2)
    assert log.producers.producers[1].last_sequence == 2
    assert not truncation.truncate_to(log, 3, NOW_MS)
    assert append(log, sized(b"n", producer_id=1, producer_epoch=0, base_sequence=3), epoch=9).base_offset == 3
    tree.stop(clean=False)
    tree.open()
    assert tree.log().log_end_offset == 4


def test_full_truncation_starts_anywhere(tree: Tree) -> None:
    """A follower that is too far behind begins at its leader's start."""
    log = tree.log(internal_segment_bytes=SEGMENT)
    one_each(log, 3)
    truncation.truncate_fully_and_start_at(log, 100, NOW_MS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.epochs.latest) == (100, 100, 100, -1)
    assert append(log, records_batch(b"a")).base_offset == 100
    tree.stop(clean=False)
    tree.open()
    assert (tree.log().log_start_offset, tree.log().log_end_offset) == (100, 101)


def test_the_last_stable_offset_is_the_first_open_transaction(tree: Tree) -> None:
    """It stays there until the marker is replicated (transactions D.9)."""
    log = tree.log()
    one_each(log, 1)
    assert log.last_stable_offset == 1
    transactional(log, 7)
    transactional(log, 8)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    end(log, 7, committed=True)
    assert log.last_stable_offset == 2
    end(log, 8, committed=False, commit=False)
    assert log.last_stable_offset == 2
    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 5


def test_deleting_into_a_transaction_moves_the_stable_offset(tree: Tree) -> None:
    """To the base of the batch that holds the new start, which may lie below it."""
    log = tree.log()
    log.producers.rules.verification = False
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    append(log, records_batch(b"a", b"b", base_sequence=0, **fields))
    append(log, records_batch(b"c", b"d", b"e", base_sequence=2, **fields))
    log.delete_records_before(4)
    assert (log.log_start_offset, log.last_stable_offset) == (4, 2)


def test_aborted_transactions_of_a_range(tree: Tree) -> None:
    """Those whose data may lie in the slice, through all segments, in the order of their markers."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    for producer_id in (1, 2, 3):
        transactional(log, producer_id)  # offsets 0, 1, 2
    end(log, 2, committed=False)  # 3
    end(log, 1, committed=False)  # 4
    end(log, 3, committed=True)  # 5
    assert log.reader.aborted_transactions(0, 6) == [(2, 1), (1, 0)]
    assert log.reader.aborted_transactions(4, 6) == [(1, 0)]
    assert log.reader.aborted_transactions(0, 1) == [(1, 0)]
    assert log.reader.aborted_transactions(5, 6) == []
    piece = log.reader.read(0, 1 << 20, bound=6, min_one=True)
    assert log.reader.upper_bound_of(piece, 6) == 2


def test_DSK_02_the_transaction_index_on_disk(disk: Tree) -> None:
    """Producer, first offset, marker, and the stable offset as in transactions D.10."""
    log = disk.log()
    transactional(log, 1)
    transactional(log, 2)
    end(log, 2, committed=False)
    end(log, 1, committed=False)
    entries = disk.read_file("foo-0/00000000000000000000.txnindex")
    numbers = [[2, 1, 2, 0], [1, 0, 3, 4]]
    assert entries == b"".join(b"\0\0" + b"".join(n.to_bytes(8, "big") for n in entry) for entry in numbers)


READS: list[Callable[[PartitionLog], object]] = [
    lambda log: log.reader.read(0, 1000, bound=1, min_one=True),
    lambda log: log.reader.bytes_available(0, 1, 1000),
    lambda log: log.reader.offset_for_timestamp(NOW_MS, 2),
    lambda log: log.reader.max_timestamp_offset(2),
]


@pytest.mark.parametrize("read", READS)
def test_a_read_that_fails_takes_the_directory_offline(
    disk: Tree, read: Callable[[PartitionLog], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By KAFKA_STORAGE_ERROR, as a write that fails (LocalLog.read: maybeHandleIOException)."""

    def failing(_descriptor: int, _size: int, _position: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    log = disk.log()
    append(log, records_batch(b"a"))
    append(log, records_batch(b"b"))
    monkeypatch.setattr(os, "pread", failing)
    with pytest.raises(KafkaError) as caught:
        read(log)
    assert (caught.value.code, log.offline) == (ErrorCode.KAFKA_STORAGE_ERROR, True)


def test_a_file_that_is_gone_fails_its_readers_alone(disk: Tree) -> None:
    """It may have been deleted with its topic while a search was under way: the directory stays online."""
    log = disk.log(internal_segment_bytes=SEGMENT)
    one_each(log, 2)
    assert disk.root is not None
    (disk.root / "foo-0" / "00000000000000000000.log").unlink()
    for read in READS[:1] + READS[2:3]:
        with pytest.raises(KafkaError) as caught:
            read(log)
        assert (caught.value.code, log.offline) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    assert log.reader.read(1, 1000, bound=2, min_one=True).size == SEGMENT


def test_a_search_in_records_that_cannot_be_read_fails(disk: Tree) -> None:
    """By CORRUPT_MESSAGE, which is an answer for the partition alone."""
    log = disk.log()
    append(log, records_batch(b"a", codec=Codec.GZIP))
    assert disk.root is not None
    with (disk.root / "foo-0" / "00000000000000000000.log").open("r+b") as file:
        file.seek(BATCH_HEADER_SIZE)
        file.write(b"\xff\xff\xff\xff")
    for read in READS[2:]:
        with pytest.raises(KafkaError) as caught:
            read(log)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
