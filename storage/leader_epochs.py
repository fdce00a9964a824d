"""Leader epochs of a log and their start offsets: `leader-epoch-checkpoint` (core F.8, E.9; LeaderEpochFileCache)."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


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
