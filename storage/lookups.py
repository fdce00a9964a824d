"""Reading a log: slices, positions, times. Nothing here changes anything.

Every lookup goes segment by bisection, index by bisection, then over the batch headers of one index interval: the cost
does not grow with the log (core F.2.4, E.2, E.8; Kafka: LocalLog.read, LogSegment.read).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.records import read_records
from storage.segment import Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

ANOTHER_SEGMENT: Final = 2**62
"""More bytes than any request can want: the bound has moved to a newer segment (core E.3 rule 3)."""


@dataclass(slots=True)
class LogSlice:
    """Stored bytes as they lie in one segment.

    `base_offset` is the first batch's; it may be below the offset asked for. -1 without data.
    `incomplete_first`: there is data, but not even the first batch fits.
    """

    buffers: list[memoryview] = field(default_factory=list)
    size: int = 0
    segment: Segment | None = None
    position: int = 0
    incomplete_first: bool = False


class TimestampAnswer(NamedTuple):
    """A record found by time: its offset, its time, and the leader epoch of its batch."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class SegmentStart(NamedTuple):
    """Where a segment begins, or the log ends, and when the segment was last written to."""

    offset: int
    modified_ms: int


def segment_starts(log: "PartitionLog", now_ms: int) -> list[SegmentStart]:
    """Newest first: the log's end, as of now, unless its last segment is empty; then each segment's first offset."""
    found = [SegmentStart(max(each.base_offset, log.log_start_offset), each.modified_ms) for each in log.segments]
    if not found or log.segments.active.size > 0:  # a log that nothing was written to has no segment yet
        found.append(SegmentStart(log.log_end_offset, now_ms))
    return found[::-1]


def read(log: "PartitionLog", offset: int, max_bytes: int, *, bound: int, min_one: bool) -> LogSlice:
    """See `PartitionLog.read`."""
    if offset < log.log_start_offset or offset > log.log_end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {log.topic}-{log.partition}, but we only have log "
            f"segments from offset {log.log_start_offset} to {log.log_end_offset}.",
        )
    if offset >= bound:
        return LogSlice()
    segment = log.segments.floor(offset)
    while segment is not None:
        located = _locate(log, segment, offset)
        if located is not None:
            return _slice(log, segment, located, max_bytes, bound=bound, min_one=min_one)
        segment = log.segments.after(segment)  # the rest of this segment was compacted away
    return LogSlice()


def _locate(log: "PartitionLog", segment: Segment, offset: int) -> tuple[int, int] | None:
    """Position and size of the batch in `segment` that contains `offset` or follows it."""
    if segment is log.segments.active:
        tail_offset, tail_position = log.tail
        if offset == tail_offset:
            return tail_position, segment.size - tail_position
    else:
        log.environment.use(segment)
    located = segment.locate(offset)
    return None if located is None else (located.position, located.size)


def _slice(
    log: "PartitionLog", segment: Segment, located: tuple[int, int], max_bytes: int, *, bound: int, min_one: bool
) -> LogSlice:
    position, first_size = located
    available = _end_position(log, segment, bound) - position
    if available <= 0:
        return LogSlice(segment=segment, position=position)
    if max_bytes < first_size:
        if not min_one:
            return LogSlice(segment=segment, position=position, incomplete_first=True)
        max_bytes = first_size
    size = min(available, max_bytes)
    return LogSlice(segment.log.read(position, size), size, segment, position)


def _end_position(log: "PartitionLog", segment: Segment, bound: int) -> int:
    """Where in `segment` the readable bytes end."""
    if bound >= log.log_end_offset:
        return segment.size
    following = log.segments.after(segment)
    if following is not None and bound >= following.base_offset:
        return segment.size
    located = _locate(log, segment, bound)
    return segment.size if located is None else located[0]


def bytes_available(log: "PartitionLog", offset: int, bound: int, cap: int) -> int:
    """See `PartitionLog.bytes_available`."""
    if offset >= bound:
        return 0
    segment = log.segments.floor(offset)
    if segment is None:
        return 0
    following = log.segments.after(segment)
    if following is not None and bound >= following.base_offset:
        return ANOTHER_SEGMENT
    located = _locate(log, segment, offset)
    if located is None:
        return 0
    return max(0, min(_end_position(log, segment, bound) - located[0], cap))


def replay_from(log: "PartitionLog", offset: int) -> Iterator[RecordBatch]:
    """See `PartitionLog.replay_from`."""
    for segment in log.segments.from_offset(offset):
        yield from segment.batches(segment.position_of(offset))


def in_older_segment(log: "PartitionLog", offset: int, bound: int) -> bool:
    """See `PartitionLog.in_older_segment`."""
    segment = log.segments.floor(offset)
    following = None if segment is None else log.segments.after(segment)
    return following is not None and bound >= following.base_offset


def batch_start(log: "PartitionLog", offset: int) -> int:
    """Base offset of the batch that contains `offset`, or else follows it; the log's end without one."""
    for segment in log.segments.from_offset(offset):
        located = segment.locate(offset)
        if located is not None:
            return located.base_offset
    return log.log_end_offset


def upper_bound_of(log: "PartitionLog", piece: LogSlice, bound: int) -> int:
    """See `PartitionLog.upper_bound_of`."""
    if piece.segment is None:
        return bound
    upper = piece.segment.upper_offset(piece.position, piece.size)
    if upper is not None:
        return upper
    following = log.segments.after(piece.segment)
    return log.log_end_offset if following is None else following.base_offset


def aborted_transactions(log: "PartitionLog", fetch_offset: int, upper_offset: int) -> list[tuple[int, int]]:
    """See `PartitionLog.aborted_transactions`."""
    found: list[tuple[int, int]] = []
    for segment in log.segments.from_offset(fetch_offset):
        if not segment.txn_index.entries:
            continue
        transactions, is_complete = segment.txn_index.search(fetch_offset, upper_offset)
        found += [(transaction.producer_id, transaction.first_offset) for transaction in transactions]
        if is_complete:
            break
    return found


def offset_for_timestamp(log: "PartitionLog", timestamp_ms: int, bound: int) -> TimestampAnswer | None:
    """See `PartitionLog.offset_for_timestamp`."""
    for segment in log.segments:
        if segment.largest_timestamp_ms >= timestamp_ms:
            log.environment.use(segment)
            for batch in segment.batches_from_time(timestamp_ms, log.log_start_offset):
                found = _first_record(batch, timestamp_ms, log.log_start_offset)
                if found is not None:
                    return found if found.offset < bound else None
    return None


def max_timestamp_offset(log: "PartitionLog", bound: int) -> TimestampAnswer | None:
    """See `PartitionLog.max_timestamp_offset`."""
    latest = max(log.segments, key=lambda segment: segment.largest_timestamp_ms, default=None)
    if latest is None or latest.largest_timestamp_ms < 0:
        return None
    batch = latest.batch_at(latest.position_of(latest.largest_offset))
    found = _first_record(batch, latest.largest_timestamp_ms, 0)
    return found if found is not None and found.offset < bound else None


def _first_record(batch: RecordBatch, timestamp_ms: int, from_offset: int) -> TimestampAnswer | None:
    """The first record of a batch at or after a time and an offset."""
    for record in read_records(batch):
        if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
            return TimestampAnswer(record.offset, record.timestamp_ms, batch.partition_leader_epoch)
    return None
