"""The offsets that bound a log, and those at which its leader epochs start (core F.8, F.9, E.9).

Kafka: UnifiedLog, LogOffsetMetadata, LeaderEpochFileCache.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch
from storage.append_errors import RecordsRejectedError
from storage.checkpoints import EpochEntry
from storage.log.config import MAX_LONG

# --- bounds -----------------------------------------------------------------------------------------------------------


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


# --- leader epochs ----------------------------------------------------------------------------------------------------

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class LeaderEpochs:
    """The epochs of one log, strictly increasing in epoch and in start offset.

    Args:
        entries: the entries of the checkpoint.
        write: called with all entries after each change.
    """

    __slots__ = ("_entries", "_write")

    def __init__(self, entries: Sequence[EpochEntry] = (), *, write: Callable[[Sequence[EpochEntry]], None]) -> None:
        self._entries = list(entries)
        self._write = write

    @property
    def entries(self) -> Sequence[EpochEntry]:
        """All entries, oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 without entries."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    @property
    def newest(self) -> EpochEntry | None:
        """The newest entry."""
        return self._entries[-1] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch that starts at `start_offset`; conflicting entries are dropped. The same epoch is a no-op."""
        entries = self._entries
        if entries:
            last = entries[-1]
            if last.epoch == epoch and start_offset >= last.start_offset:
                return
        kept = [entry for entry in entries if entry.epoch < epoch and entry.start_offset < start_offset]
        kept.append(EpochEntry(epoch, start_offset))
        self._entries = kept
        self._write(kept)

    def earliest(self, log_start_offset: int) -> int:
        """Return the epoch at the log's start, which ListOffsets EARLIEST returns (core E.8.7); -1 if unknown."""
        entries = self._entries
        return entries[0].epoch if entries and entries[0].start_offset <= log_start_offset else NO_EPOCH

    def at(self, offset: int) -> int:
        """Return the epoch of an offset; -1 if unknown (LeaderEpochFileCache.epochForOffset)."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset) - 1
        return self._entries[index].epoch if index >= 0 else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest epoch at or below `epoch` and its end offset; (-1, -1) if unknown (core E.9)."""
        entries = self._entries
        if epoch == NO_EPOCH or not entries or epoch > entries[-1].epoch:
            return NO_EPOCH, NO_OFFSET
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        index = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if index == 0:
            # Older than all known epochs: it ended where the first known one starts.
            return epoch, entries[0].start_offset
        return entries[index - 1].epoch, entries[index].start_offset

    def truncate_from_end(self, offset: int) -> None:
        """Drop entries that start at or after `offset`, the log's new end."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        if len(kept) != len(self._entries):
            self._entries = kept
            self._write(kept)

    def truncate_from_start(self, offset: int) -> None:
        """Drop entries below `offset`, the log's new start; the entry that covers it starts there."""
        entries = self._entries
        index = bisect_right(entries, offset, key=lambda entry: entry.start_offset) - 1
        if index < 0 or (index == 0 and entries[0].start_offset == offset):
            return
        self._entries = [EpochEntry(entries[index].epoch, offset), *entries[index + 1 :]]
        self._write(self._entries)

    def clear(self) -> None:
        """Drop all entries."""
        if self._entries:
            self._entries = []
            self._write(())
