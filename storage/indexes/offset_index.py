"""`<base>.index`: maps offsets to positions in the segment, at or before the batch.

8-byte entries: offset relative to the segment's base (the last offset of a batch), byte position of that batch
(core F.2, transactions F.7; Kafka: OffsetIndex).
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from storage.indexes.segment_index import SegmentIndex

_ENTRY: Final = Struct(">II")
ENTRY_SIZE: Final = _ENTRY.size


class OffsetIndex(SegmentIndex):
    """The offset index of one segment: relative offset -> position."""

    __slots__ = ()
    ENTRY_SIZE = ENTRY_SIZE
    KEY_TYPE = "I"

    def _split(self, numbers: "array[int]") -> "tuple[array[int], array[int]]":
        return numbers[0::2], numbers[1::2]

    def _joined(self) -> bytes:
        numbers = array("I", bytes(len(self) * ENTRY_SIZE))
        numbers[0::2], numbers[1::2] = self._loaded(), self._values
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    @property
    def is_full(self) -> bool:
        """Whether the segment must be rolled because no entry fits (core F.3.3)."""
        return len(self._loaded()) >= self._max_entries

    @property
    def last_offset(self) -> int:
        """The highest indexed offset; the segment's base without entries."""
        offsets = self._loaded()
        return self._base_offset + (offsets[-1] if offsets else 0)

    def append(self, offset: int, position: int) -> None:
        """Add an entry: the batch at `position` ends with `offset`. Offsets only grow."""
        offsets = self._loaded()
        relative = offset - self._base_offset
        if not self._rebuilding:
            self.file.write_at(len(offsets) * ENTRY_SIZE, _ENTRY.pack(relative, position))
        offsets.append(relative)
        self._values.append(position)

    def lookup(self, offset: int) -> int:
        """Return the position of the last indexed batch that ends at or before `offset`; 0 without one."""
        index = bisect_right(self._loaded(), offset - self._base_offset) - 1
        return self._values[index] if index >= 0 else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """Return the offset of the first entry at or behind a byte position; None if there is none."""
        offsets = self._loaded()
        index = bisect_left(self._values, position)
        return self._base_offset + offsets[index] if index < len(offsets) else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        self._truncate(bisect_left(self._loaded(), max(offset - self._base_offset, 0)))

    @property
    def is_torn(self) -> bool:
        """Whether the file ends within an entry, or its last entry is invalid: then the index is rebuilt."""
        size = self.file.size
        if not size or size % ENTRY_SIZE:
            return size > 0
        offset, position = _ENTRY.unpack(self.file.view(size - ENTRY_SIZE, ENTRY_SIZE))
        # Both are int32, and those of an entry are above 0.
        return not 0 < offset < 2**31 or not 0 < position < 2**31
