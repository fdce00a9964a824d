"""The offsets that bound a log (core F.9; Kafka: UnifiedLog, LogOffsetMetadata)."""

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch
from storage.append_errors import RecordsRejectedError
from storage.log.config import MAX_LONG


class LogBounds:
    """Offsets where a log starts and ends, up to which it is replicated, and up to which it is on disk.

    `log_start_offset <= high_watermark <= log_end_offset`, and `recovery_point <= log_end_offset`: every method that
    moves a bound keeps this. The last stable offset lies between start and high watermark; see `PartitionLog`.

    Attributes:
        log_start_offset: the first offset that may be read.
        high_watermark: the offset below which everything is replicated; consumers read up to here.
        log_end_offset: the offset of the next record.
        recovery_point: the offset below which nothing needs a check when the log is opened again.
        cuts: how often the log was truncated, which invalidates long work on its segments.
    """

    __slots__ = ("_lowest_cut", "cuts", "high_watermark", "log_end_offset", "log_start_offset", "recovery_point")

    def __init__(self) -> None:
        self.log_start_offset = self.high_watermark = self.log_end_offset = self.recovery_point = 0
        self.cuts = 0
        self._lowest_cut = MAX_LONG

    def __repr__(self) -> str:
        return f"[{self.log_start_offset}, {self.log_end_offset})"

    def _check(self) -> None:
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, (self, self.high_watermark)
        assert self.recovery_point <= self.log_end_offset, (self, self.recovery_point)

    def load(self, log_start_offset: int, log_end_offset: int, recovery_point: int) -> None:
        """Set the bounds of a log that was opened; the high watermark starts at the log's start."""
        self.log_start_offset = self.high_watermark = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = min(recovery_point, log_end_offset)
        self._check()

    @staticmethod
    def end_behind(batch: RecordBatch) -> int:
        """Return the log's end after the append of a stamped batch.

        Raises:
            RecordsRejectedError: UNKNOWN_SERVER_ERROR: no offsets are left for it (Kafka: LogSegment.append, whose
                LogSegmentOffsetOverflowException has no error code).
        """
        end_offset = batch.base_offset + batch.last_offset_delta + 1
        if end_offset > MAX_LONG:
            raise RecordsRejectedError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"no offsets are left from {batch.base_offset} on"
            )
        return end_offset

    def extend(self, log_end_offset: int) -> None:
        """Move the log's end up after an append."""
        assert log_end_offset > self.log_end_offset, (self, log_end_offset)
        self.log_end_offset = log_end_offset

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, at most to the log's end, never down; return whether it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def set_high_watermark(self, offset: int) -> None:
        """Set the high watermark, kept within the log's bounds."""
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))

    def raise_start(self, offset: int) -> bool:
        """Move the log's start up to `offset`, at most to the high watermark; return whether it moved."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self._check()
        return True

    def cut(self, log_end_offset: int) -> None:
        """Move the log's end down after a truncation."""
        self.log_end_offset = log_end_offset
        self.log_start_offset = min(self.log_start_offset, log_end_offset)
        self.high_watermark = min(self.high_watermark, log_end_offset)
        self.recovery_point = min(self.recovery_point, log_end_offset)
        self._note_cut(log_end_offset)
        self._check()

    def restart(self, offset: int) -> None:
        """Set the bounds of a log that was emptied and starts at `offset`."""
        self.log_start_offset = self.high_watermark = self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self._note_cut(offset)

    def _note_cut(self, offset: int) -> None:
        self.cuts += 1
        self._lowest_cut = min(self._lowest_cut, offset)

    def take_lowest_cut(self) -> int:
        """Return the lowest offset that the log was truncated to since the last call; 2^63 - 1 without any."""
        lowest, self._lowest_cut = self._lowest_cut, MAX_LONG
        return lowest

    def flushed(self, offset: int) -> None:
        """Move the recovery point: everything below `offset` is on disk."""
        self.recovery_point = offset
        self._check()
