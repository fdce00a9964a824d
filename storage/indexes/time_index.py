"""`<base>.timeindex`: maps timestamps to offsets; no record before the offset is as late.

12-byte entries: the largest timestamp so far, and the last offset of the batch that holds it, relative to the
segment's base. Timestamps strictly increase (core F.2, transactions F.7; Kafka: TimeIndex).
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final, NamedTuple

from storage.indexes.segment_index import SegmentIndex

_ENTRY: Final = Struct(">qI")
ENTRY_SIZE: Final = _ENTRY.size


class TimestampOffset(NamedTuple):
    """A timestamp (ms; -1: none) and its offset."""

    timestamp_ms: int
    offset: int


class TimeIndex(SegmentIndex):
    """The time index of one segment: timestamp -> relative offset."""

    __slots__ = ()
    ENTRY_SIZE = ENTRY_SIZE
    KEY_TYPE = "q"

    def _split(self, numbers: "array[int]") -> "tuple[array[int], array[int]]":
        pairs = zip(numbers[0::3], numbers[1::3], strict=True)  # a timestamp is two of an entry's three numbers
        return array("q", (high << 32 | low for high, low in pairs)), numbers[2::3]

    def _joined(self) -> bytes:
        entries = zip(self._loaded(), self._values, strict=True)
        return b"".join(_ENTRY.pack(timestamp_ms, offset) for timestamp_ms, offset in entries)

    @property
    def is_full(self) -> bool:
        """Whether the segment must be rolled; one entry is reserved for the roll (core F.3.4)."""
        return len(self._loaded()) >= self._max_entries - 1

    @property
    def last(self) -> TimestampOffset:
        """The last entry; (-1, base) without entries."""
        if self._keys is None and 0 < self.file.size < self._max_entries * ENTRY_SIZE:
            # Opening a log needs only the last entry of each segment.
            timestamp_ms, relative = _ENTRY.unpack(self.file.view(self.file.size - ENTRY_SIZE, ENTRY_SIZE))
            return TimestampOffset(timestamp_ms, self._base_offset + relative)
        timestamps = self._loaded()
        if not timestamps:
            return TimestampOffset(-1, self._base_offset)
        return TimestampOffset(timestamps[-1], self._base_offset + self._values[-1])

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if the timestamp is larger than the last one's."""
        timestamps = self._loaded()
        if timestamp_ms <= (timestamps[-1] if timestamps else -1):
            return
        relative = offset - self._base_offset
        if not self._rebuilding:
            self.file.write_at(len(timestamps) * ENTRY_SIZE, _ENTRY.pack(timestamp_ms, relative))
        timestamps.append(timestamp_ms)
        self._values.append(relative)

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """Return the last entry with a timestamp at or before `timestamp_ms`; (-1, base) without one."""
        timestamps = self._loaded()
        index = bisect_right(timestamps, timestamp_ms) - 1
        if index < 0:
            return TimestampOffset(-1, self._base_offset)
        return TimestampOffset(timestamps[index], self._base_offset + self._values[index])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        self._loaded()
        self._truncate(bisect_left(self._values, max(offset - self._base_offset, 0)))

    @property
    def is_torn(self) -> bool:
        """Whether the file ends within an entry: then the index is rebuilt."""
        return bool(self.file.size % ENTRY_SIZE)
