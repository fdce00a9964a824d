"""Reading a log: slices, positions, times. Changes nothing.

Every lookup goes segment by bisection, index by bisection, then over the batch headers of one index interval: the cost
does not grow with the log (core F.2.4, E.2, E.8; Kafka: LocalLog.read, LogSegment.read).
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.errors import DecompressedTooLargeError, RecordsError
from protocol.records.record_portions import LongEnd, Portion, portions
from protocol.records.records import read_records
from storage.log.context import LogContext
from storage.log.large_batches import in_one_go
from storage.log.offsets import LogBounds
from storage.log.segment import TIERED_SUFFIX, Segment, Segments
from storage.log.tier import Tier

ANOTHER_SEGMENT: Final = 2**62
"""Result of `bytes_available`, more than any request can ask for, if the bound is in a newer segment (core E.3.3)."""


class LogSlice:
    """Stored bytes of one segment.

    The first batch, at byte `position` of `segment`, may begin below the requested offset. `incomplete_first`: there is
    data, but not even the first batch fits.
    """

    __slots__ = ("buffers", "incomplete_first", "position", "segment", "size")

    def __init__(
        self,
        buffers: list[memoryview] | None = None,
        size: int = 0,
        segment: Segment | None = None,
        position: int = 0,
        *,
        incomplete_first: bool = False,
    ) -> None:
        self.buffers = [] if buffers is None else buffers
        self.size, self.segment, self.position = size, segment, position
        self.incomplete_first = incomplete_first


class TimestampAnswer(NamedTuple):
    """Result of a lookup by time: offset and timestamp of a record, and the leader epoch of its batch."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


TimestampSearch = Generator[None, None, TimestampAnswer | None]
_AT_ONCE: Final = 256 * 1024
"""Most decompressed bytes of a batch whose records are read in one step.

Arbitrary, larger ones are read in portions, so that others are served.
"""
_UNLIMITED: Final = 2**63  # more bytes than an int64 counts


class SegmentStart(NamedTuple):
    """Offset where a segment begins, or the log ends, and the time of the last write to the segment."""

    offset: int
    modified_ms: int


class LogReader:
    """Reads one log. `name` is for errors: topic and partition; `tier` has the older segments, if the log has one."""

    __slots__ = ("_bounds", "_context", "_name", "_segments", "tier")

    def __init__(self, context: LogContext, name: str, segments: Segments, bounds: LogBounds) -> None:
        self._context, self._name, self._segments, self._bounds = context, name, segments, bounds
        self.tier: Tier | None = None

    # ------------------------------------------------------------------ segments of both tiers

    def _floor(self, offset: int) -> Segment | None:
        """Return the segment that has an offset, or else the first one; None without any."""
        tier = self.tier
        if tier is None or not tier.segments or offset >= self._segments.first.base_offset:
            return self._segments.floor(offset)
        return tier.segments.floor(offset)

    def _after(self, segment: Segment) -> Segment | None:
        """Return the next segment; None for the active one."""
        tier = self.tier
        if tier is None or segment.suffix != TIERED_SUFFIX:
            return self._segments.after(segment)
        return tier.segments.after(segment) or self._segments.first

    def _from_offset(self, offset: int) -> Iterator[Segment]:
        """Yield the segment of an offset and all later ones."""
        tier = self.tier
        if tier is not None and tier.segments and offset < self._segments.first.base_offset:
            yield from tier.segments.from_offset(offset)
        yield from self._segments.from_offset(offset)

    # ------------------------------------------------------------------ batches

    def read(self, offset: int, max_bytes: int, *, bound: int, min_one: bool) -> LogSlice:
        """Read stored batches from the one that contains `offset` on (core E.2).

        Args:
            offset: where to begin; the first batch may begin before it.
            max_bytes: limit of the slice, whose last batch may be incomplete.
            bound: nothing from this offset on is read.
            min_one: return the first batch, even if it is larger than `max_bytes`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE below the log's start or above its end; KAFKA_STORAGE_ERROR.
        """
        bounds = self._bounds
        if offset < bounds.log_start_offset or offset > bounds.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self._name}, but we only have log "
                f"segments from offset {bounds.log_start_offset} to {bounds.log_end_offset}.",
            )
        if offset >= bound:
            return LogSlice()
        segment = self._floor(offset)
        try:
            while segment is not None:
                located = self._locate(segment, offset)
                if located is not None:
                    return self._slice(segment, located, max_bytes, bound=bound, min_one=min_one)
                segment = self._after(segment)  # the rest of this segment was compacted away
        except OSError as error:
            raise self._context.read_error(error) from error
        return LogSlice()

    def _locate(self, segment: Segment, offset: int) -> tuple[int, int] | None:
        """Return position and size of the batch in `segment` that contains `offset` or follows it."""
        if segment is self._segments.active:
            tail_offset, tail_position = self._segments.tail
            if offset == tail_offset:
                return tail_position, segment.size - tail_position
        else:
            self._context.use(segment)
        located = segment.locate(offset)
        return None if located is None else (located.position, located.size)

    def _slice(
        self, segment: Segment, located: tuple[int, int], max_bytes: int, *, bound: int, min_one: bool
    ) -> LogSlice:
        position, first_size = located
        available = self._end_position(segment, bound) - position
        if available <= 0:
            return LogSlice(segment=segment, position=position)
        if max_bytes < first_size:
            if not min_one:
                return LogSlice(segment=segment, position=position, incomplete_first=True)
            max_bytes = first_size
        size = min(available, max_bytes)
        return LogSlice(segment.log.read(position, size), size, segment, position)

    def _end_position(self, segment: Segment, bound: int) -> int:
        """Return the position in `segment` where the readable bytes end: never within a batch (core E.2.6)."""
        if bound >= self._bounds.log_end_offset:
            return segment.size
        following = self._after(segment)
        if following is not None and bound >= following.base_offset:
            return segment.size
        located = self._locate(segment, bound)
        return segment.size if located is None else located[0]

    def bytes_available(self, offset: int, bound: int, cap: int) -> int:
        """Count the bytes between two offsets, at most `cap`, without reading them (core E.3.4).

        `ANOTHER_SEGMENT`, larger than any minimum, where `bound` lies in a newer segment (core E.3.3).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; CORRUPT_MESSAGE.
        """
        if offset >= bound:
            return 0
        segment = self._floor(offset)
        if segment is None:
            return 0
        following = self._after(segment)
        if following is not None and bound >= following.base_offset:
            return ANOTHER_SEGMENT
        try:
            located = self._locate(segment, offset)
            return 0 if located is None else max(0, min(self._end_position(segment, bound) - located[0], cap))
        except OSError as error:
            raise self._context.read_error(error) from error

    def replay_from(self, offset: int) -> Iterator[RecordBatch]:
        """Yield the batches from the one that contains `offset` to the log's end, with their records: for loading."""
        for segment in self._from_offset(offset):
            yield from segment.batches(segment.position_of(offset))

    # ------------------------------------------------------------------ offsets

    def in_older_segment(self, offset: int, bound: int) -> bool:
        """Whether `bound` lies in a newer segment than `offset` (core E.3.3), whose own may be deleted."""
        segment = self._floor(offset)
        if segment is None:
            return len(self._segments) > 0
        following = self._after(segment)
        return following is not None and bound >= following.base_offset

    def batch_start(self, offset: int) -> int:
        """Return the base offset of the batch that contains `offset`, or else follows it; the log's end without one."""
        for segment in self._from_offset(offset):
            located = segment.locate(offset)
            if located is not None:
                return located.base_offset
        return self._bounds.log_end_offset

    def segment_starts(self, now_ms: int) -> list[SegmentStart]:
        """List the log's end, unless its last segment is empty, then each segment's first offset, newest first."""
        start, segments = self._bounds.log_start_offset, self._segments
        starts = [SegmentStart(max(each.base_offset, start), each.modified_ms) for each in segments]
        if not starts or segments.active.size > 0:  # a log without any record has no segment yet
            starts.append(SegmentStart(self._bounds.log_end_offset, now_ms))
        return starts[::-1]

    def aborted_within(self, piece: LogSlice, fetch_offset: int, bound: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of the aborted transactions with records in a slice (transactions D.11).

        `fetch_offset` and `bound` are those that the slice was read with.
        """
        if not piece.size:
            return []
        active = self._segments.active
        if fetch_offset >= active.base_offset and not active.txn_index.entries:  # most often
            return []
        try:
            return self.aborted_transactions(fetch_offset, self.upper_bound_of(piece, bound))
        except OSError as error:
            raise self._context.read_error(error) from error

    def upper_bound_of(self, piece: LogSlice, bound: int) -> int:
        """Return an offset after the last record of a slice, precise enough to search for aborted transactions."""
        if piece.segment is None:
            return bound
        upper = piece.segment.upper_offset(piece.position, piece.size)
        if upper is not None:
            return upper
        following = self._after(piece.segment)
        return self._bounds.log_end_offset if following is None else following.base_offset

    def aborted_transactions(self, fetch_offset: int, upper_offset: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of aborted transactions with data in [fetch_offset, upper_offset).

        Ordered by their markers (transactions D.11).
        """
        aborted: list[tuple[int, int]] = []
        for segment in self._from_offset(fetch_offset):
            if not segment.txn_index.entries:
                continue
            transactions, is_complete = segment.txn_index.search(fetch_offset, upper_offset)
            aborted += [(transaction.producer_id, transaction.first_offset) for transaction in transactions]
            if is_complete:
                break
        return aborted

    # ------------------------------------------------------------------ times

    def offset_for_timestamp(self, timestamp_ms: int, bound: int) -> TimestampAnswer | None:
        """Run `search_timestamp` without pauses, and return its result."""
        return in_one_go(self.search_timestamp(timestamp_ms, bound))

    def max_timestamp_offset(self, bound: int) -> TimestampAnswer | None:
        """Run `search_max_timestamp` without pauses, and return its result."""
        return in_one_go(self.search_max_timestamp(bound))

    def search_timestamp(self, timestamp_ms: int, bound: int) -> TimestampSearch:
        """Find, in steps, the first record in log order at or after a time; None if not below `bound` (core E.8.5).

        Only the first segment that is recent enough is searched, even if its records are below the log's start by now.
        """
        start = self._bounds.log_start_offset
        # RemoteLogManager leaves out what is below the start.
        searched = self._segments if self.tier is None else self._from_offset(start)
        recent = (segment for segment in searched if segment.largest_time_ms >= timestamp_ms)
        if (segment := next(recent, None)) is None:
            return None
        self._context.use(segment)
        try:
            for batch in segment.batches_from_time(timestamp_ms, start):
                record = yield from _first_record(batch, timestamp_ms, start)
                if record is not None:
                    return record if record.offset < bound else None
        except OSError as error:
            raise self._context.read_error(error) from error
        except RecordsError as unreadable:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(unreadable)) from unreadable
        return None

    def search_max_timestamp(self, bound: int) -> TimestampSearch:
        """Find, in steps, the first record with the log's largest timestamp; None if not below `bound` (core E.8.8)."""
        latest = max(self._segments, key=lambda segment: segment.largest_timestamp_ms, default=None)
        if latest is None or not latest.size:
            return None
        try:
            batch = latest.batch_at(latest.position_of(latest.largest_offset))
            record = yield from _first_record(batch, latest.largest_timestamp_ms, 0)
        except OSError as error:
            raise self._context.read_error(error) from error
        except RecordsError as unreadable:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(unreadable)) from unreadable
        return record if record is not None and record.offset < bound else None


def _first_record(batch: RecordBatch, timestamp_ms: int, from_offset: int) -> TimestampSearch:
    """Find, in steps, the first record of a batch at or after a time and an offset."""
    try:
        for record in read_records(batch, _AT_ONCE):
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return TimestampAnswer(record.offset, record.timestamp_ms, batch.partition_leader_epoch)
        return None
    except DecompressedTooLargeError:
        pass  # then piece by piece
    for each in portions(batch.codec, batch.records_view, batch.record_count, most=_UNLIMITED, most_in_one=_UNLIMITED):
        spans = each.spans() if isinstance(each, Portion) else (each.span,) if isinstance(each, LongEnd) else ()
        for span in spans:
            offset, at_ms = batch.base_offset + span.offset_delta, batch.base_timestamp_ms + span.timestamp_delta
            at_ms = batch.max_timestamp_ms if batch.is_log_append_time else at_ms
            if at_ms >= timestamp_ms and offset >= from_offset:
                return TimestampAnswer(offset, at_ms, batch.partition_leader_epoch)
        yield
    return None
