"""Appending and reading: offsets, bounds, limits of size (core D.3, E.2)."""

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import RecordBatch
from storage.log.partition_log import AppendOrigin, LogSlice
from storage.log.truncation import truncate_fully_and_start_at
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, bases, contents, one_each, records_batch, sized


def joined(piece: LogSlice) -> bytes:
    """The bytes of a slice."""
    return b"".join(piece.buffers)


def test_PRD_02_log_append_time_is_stamped(tree: Tree) -> None:
    """A LogAppendTime topic answers its own time, and every record of the stored batch has it."""
    log = tree.log(message_timestamp_type="LogAppendTime")
    assert append(log, records_batch(b"a", time_ms=0), now_ms=NOW_MS + 5).log_append_time_ms == NOW_MS + 5
    batch = next(log.reader.replay_from(0))
    assert (batch.is_log_append_time, batch.max_timestamp_ms, batch.crc_ok()) == (True, NOW_MS + 5, True)


def test_leader_epoch_is_stamped_and_remembered(tree: Tree) -> None:
    """Each batch carries the epoch of the leader that appended it."""
    log = tree.log()
    append(log, records_batch(b"a"), epoch=0)
    append(log, records_batch(b"b"), epoch=3)
    assert [batch.partition_leader_epoch for batch in log.reader.replay_from(0)] == [0, 3]
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (3, 1)]


def test_a_read_only_buffer_is_left_alone(tree: Tree) -> None:
    """Bytes cannot be stamped in place; they are copied."""
    log = tree.log()
    append(log, records_batch(b"a"))
    sent = bytes(records_batch(b"b"))
    append(log, sent)  # type: ignore[arg-type]  # the public signature takes bytes; the helper's is bytearray
    assert RecordBatch(sent).base_offset == 0
    assert contents(log) == [(0, None, b"a"), (1, None, b"b")]


def test_FET_11_the_first_batch_comes_whole(tree: Tree) -> None:
    """With min_one the byte limit gives way; without, nothing is returned, never a torn first batch."""
    log = tree.log()
    one_each(log, 2)
    assert log.reader.read(0, 1, bound=2, min_one=True).size == SEGMENT
    piece = log.reader.read(0, SEGMENT - 1, bound=2, min_one=False)
    assert (piece.size, piece.buffers, piece.incomplete_first) == (0, [], True)


def test_a_slice_is_cut_at_the_byte_limit(tree: Tree) -> None:
    """Behind the first batch the last one may be incomplete (core E.2.4)."""
    log = tree.log()
    one_each(log, 3)
    assert log.reader.read(0, 250, bound=3, min_one=True).size == 250


def test_nothing_at_or_above_the_bound_is_read(tree: Tree) -> None:
    """The bound cuts between batches, with any limit."""
    log = tree.log()
    for _ in range(4):
        append(log, records_batch(b"a", b"b"))
    whole = log.reader.read(0, 1 << 20, bound=8, min_one=True).size
    assert log.reader.read(0, 1 << 20, bound=4, min_one=True).size == whole // 2
    assert log.reader.read(4, 1 << 20, bound=4, min_one=True).size == 0
    assert log.reader.read(2, 1 << 20, bound=4, min_one=True).size == whole // 4


def test_a_slice_never_crosses_a_segment(tree: Tree) -> None:
    """The next read begins in the next segment (core E.2.5)."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    one_each(log, 5)
    assert bases(log) == [0, 2, 4]
    assert [log.reader.read(offset, 1 << 20, bound=5, min_one=True).size for offset in (0, 1, 2, 4)] == [
        400,
        200,
        400,
        200,
    ]


def test_every_offset_is_found_through_the_index(tree: Tree) -> None:
    """Reads begin at the right batch all over a log with many index entries."""
    log = tree.log(internal_segment_bytes=100_000, index_interval_bytes=500)
    for index in range(900):
        append(log, records_batch(b"%d" % index, b"x" * (index % 300)))
    assert len(log.segments) > 1
    for offset in range(0, 1800, 7):
        piece = log.reader.read(offset, 1, bound=1800, min_one=True)
        assert RecordBatch(joined(piece)).base_offset == offset - offset % 2


def test_large_appends_are_kept_without_a_copy() -> None:
    """In memory, the log keeps the request's buffer and a read returns a slice of it."""
    log = Tree(None).log()
    batch = records_batch(b"x" * 100_000)
    append(log, batch)
    assert log.reader.read(0, 1 << 20, bound=1, min_one=True).buffers[0].obj is batch


def test_bytes_available_are_counted_without_reading(tree: Tree) -> None:
    """What a waiting fetch counts: whole batches up to the bound, at most the cap (core E.3)."""
    log = tree.log(internal_segment_bytes=2 * SEGMENT)
    one_each(log, 2)
    assert log.reader.bytes_available(0, 2, 1 << 20) == 400
    assert log.reader.bytes_available(1, 2, 1 << 20) == 200
    assert log.reader.bytes_available(0, 1, 1 << 20) == 200
    assert log.reader.bytes_available(0, 2, 300) == 300
    assert log.reader.bytes_available(2, 2, 300) == 0
    one_each(log, 1)
    assert log.reader.in_older_segment(1, 3)
    assert not log.reader.in_older_segment(2, 3)
    assert log.reader.bytes_available(1, 3, 10) > 1 << 31


def test_a_follower_has_the_same_bytes(tree: Tree) -> None:
    """Batches are taken as the leader's log has them, epochs with them."""
    leader, follower = tree.log(), tree.log("foo", 1)
    for epoch in (0, 2):
        append(leader, records_batch(b"a", b"b"), epoch=epoch)
    piece = leader.reader.read(0, 1 << 20, bound=4, min_one=True)
    follower.append_as_follower(piece.buffers, NOW_MS)
    assert joined(follower.reader.read(0, 1 << 20, bound=4, min_one=True)) == joined(piece)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.high_watermark == 0


def test_a_follower_refuses_what_does_not_continue_its_log(tree: Tree) -> None:
    """A follower refuses a batch whose offsets go back."""
    leader, follower = tree.log(), tree.log("foo", 1)
    append(leader, records_batch(b"a"))
    piece = leader.reader.read(0, 1 << 20, bound=1, min_one=True)
    follower.append_as_follower(piece.buffers, NOW_MS)
    with pytest.raises(KafkaError) as caught:
        follower.append_as_follower(piece.buffers, NOW_MS)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_follower_ignores_an_incomplete_tail(tree: Tree) -> None:
    """A slice that was cut at its byte limit ends with the last whole batch."""
    leader, follower = tree.log(), tree.log("foo", 1)
    one_each(leader, 3)
    piece = leader.reader.read(0, 2 * SEGMENT + 50, bound=3, min_one=True)
    follower.append_as_follower(piece.buffers, NOW_MS)
    assert follower.log_end_offset == 2


def test_a_refused_batch_leaves_nothing_behind(tree: Tree) -> None:
    """The log's end stays, and so do its files."""
    log = tree.log(max_message_bytes=100)
    append(log, records_batch(b"a"))
    size = log.segments.size
    with pytest.raises(KafkaError) as caught:
        append(log, sized(size=101))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert (log.log_end_offset, log.segments.size) == (1, size)


def test_a_log_ends_where_the_offsets_do(tree: Tree) -> None:
    """The last offset but one is the last of a record: then the log's end is the last offset, and takes nothing."""
    log = tree.log()
    truncate_fully_and_start_at(log, 2**63 - 3, NOW_MS)
    assert append(log, records_batch(b"a")).base_offset == 2**63 - 3
    size = log.segments.size
    with pytest.raises(KafkaError, match="no offsets are left from 9223372036854775806 on") as caught:
        append(log, records_batch(b"a", b"b"))
    assert (caught.value.code, log.log_end_offset, log.segments.size) == (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        2**63 - 2,
        size,
    )
    assert append(log, records_batch(b"a")).base_offset == 2**63 - 2
    with pytest.raises(KafkaError, match="no offsets are left"):
        append(log, records_batch(b"a"))
    assert log.log_end_offset == 2**63 - 1


def test_the_high_watermark_never_passes_the_end_nor_goes_back(tree: Tree) -> None:
    """Values beyond the end or below the current one are corrected."""
    log = tree.log()
    append(log, records_batch(b"a", b"b"), commit=False)
    assert log.high_watermark == 0
    assert log.advance_high_watermark(9)
    assert not log.advance_high_watermark(1)
    assert log.high_watermark == 2


def test_markers_are_appended_by_coordinators_only(tree: Tree) -> None:
    """A control batch from a client is refused."""
    log = tree.log()
    marker = records_batch(b"x", key=b"\0\0\0\1", control=True, transactional=True, producer_id=1, producer_epoch=0)
    with pytest.raises(KafkaError) as caught:
        append(log, bytearray(marker))
    assert caught.value.code is ErrorCode.INVALID_RECORD
    append(log, marker, origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 1
