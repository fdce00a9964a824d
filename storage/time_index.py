"""`<base>.timeindex`: from a time to an offset before which no record is as late.

12-byte entries: the largest timestamp so far, and the last offset of the batch that holds it, relative to the
segment's base. Timestamps strictly increase (core F.2, transactions F.7; Kafka: TimeIndex).
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import NamedTuple

from storage.files import File
from storage.offset_index import IndexCorruptError

_ENTRY = Struct(">qI")
ENTRY_SIZE = 12


class TimestampOffset(NamedTuple):
    """A timestamp (ms; -1: none) and the offset that goes with it."""

    timestamp_ms: int
    offset: int


class TimeIndex:
    """The time index of one segment.

    Args:
        file: `<base>.timeindex`.
        base_offset: the segment's.
        max_bytes: `segment.index.bytes`.
        entries: whether the file may hold entries; False for one just made.
    """

    __slots__ = ("_base_offset", "_max_entries", "_offsets", "_rebuilding", "_timestamps", "file")

    def __init__(self, file: File, base_offset: int, max_bytes: int, *, entries: bool) -> None:
        self.file = file
        self._base_offset = base_offset
        self._max_entries = max_bytes // ENTRY_SIZE
        self._timestamps: array[int] | None = None
        self._offsets: array[int] = array("I")
        self._rebuilding = False
        if not entries:
            self._timestamps = array("q")

    def _loaded(self) -> "array[int]":
        timestamps = self._timestamps
        return self._load() if timestamps is None else timestamps

    def _load(self) -> "array[int]":
        size = self.file.size
        if size % ENTRY_SIZE:
            raise IndexCorruptError(f"{self.file.path} has {size} bytes, not a multiple of {ENTRY_SIZE}")
        contents = bytes(self.file.view(0, size))
        if size == self._max_entries * ENTRY_SIZE:
            used = len(contents.rstrip(b"\0"))  # as in the offset index: zeros follow the entries
            contents = contents[: used + -used % ENTRY_SIZE]
        words = array("I", contents)
        if sys.byteorder == "little":
            words.byteswap()
        offsets = words[2::3]
        timestamps = array("q", (high << 32 | low for high, low in zip(words[0::3], words[1::3], strict=True)))
        self._timestamps, self._offsets = timestamps, offsets
        return timestamps

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._loaded())

    @property
    def is_full(self) -> bool:
        """Whether the segment must be rolled; one place stays for the entry of the roll (core F.3 rule 4)."""
        return len(self._loaded()) >= self._max_entries - 1

    @property
    def last(self) -> TimestampOffset:
        """The last entry; (-1, base) without entries."""
        if self._timestamps is None and 0 < self.file.size < self._max_entries * ENTRY_SIZE:
            # One entry is asked of each segment when a log is opened: no need for the others.
            timestamp_ms, relative = _ENTRY.unpack(self.file.view(self.file.size - ENTRY_SIZE, ENTRY_SIZE))
            return TimestampOffset(timestamp_ms, self._base_offset + relative)
        timestamps = self._loaded()
        if not timestamps:
            return TimestampOffset(-1, self._base_offset)
        return TimestampOffset(timestamps[-1], self._base_offset + self._offsets[-1])

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if the timestamp is larger than the last one's."""
        timestamps = self._loaded()
        if timestamp_ms <= (timestamps[-1] if timestamps else -1):
            return
        relative = offset - self._base_offset
        if not self._rebuilding:
            self.file.write_at(len(timestamps) * ENTRY_SIZE, _ENTRY.pack(timestamp_ms, relative))
        timestamps.append(timestamp_ms)
        self._offsets.append(relative)

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """The last entry with a timestamp at or before `timestamp_ms`; (-1, base) without one."""
        timestamps = self._loaded()
        index = bisect_right(timestamps, timestamp_ms) - 1
        if index < 0:
            return TimestampOffset(-1, self._base_offset)
        return TimestampOffset(timestamps[index], self._base_offset + self._offsets[index])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        timestamps = self._loaded()
        kept = bisect_left(self._offsets, max(offset - self._base_offset, 0))
        del timestamps[kept:], self._offsets[kept:]
        self.trim()

    def clear(self) -> None:
        """Drop every entry, whatever the file holds."""
        self._timestamps, self._offsets = array("q"), array("I")
        self.file.truncate(0)

    def preallocate(self) -> None:
        """Give the file its full size, as the active segment has it."""
        entries = self._loaded()
        size = self._max_entries * ENTRY_SIZE
        if self.file.size != size:
            self.file.truncate(max(size, len(entries) * ENTRY_SIZE))

    def trim(self) -> None:
        """Cut the file to its entries."""
        size = len(self._loaded()) * ENTRY_SIZE
        if self.file.size != size:
            self.file.truncate(size)

    @property
    def is_torn(self) -> bool:
        """Whether the file ends within an entry: then the index is rebuilt."""
        return bool(self.file.size % ENTRY_SIZE)

    def begin_rebuild(self) -> None:
        """Forget all entries; those that are appended now reach the file at `end_rebuild`."""
        self.clear()
        self._rebuilding = True

    def end_rebuild(self) -> None:
        """Write what was appended since `begin_rebuild`."""
        self._rebuilding = False
        entries = zip(self._loaded(), self._offsets, strict=True)
        self.file.write_at(0, b"".join(_ENTRY.pack(timestamp_ms, offset) for timestamp_ms, offset in entries))

    def unload(self) -> None:
        """Forget the entries until they are needed (closed segments)."""
        self._timestamps, self._offsets = None, array("I")
