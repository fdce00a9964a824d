"""`<base>.index`: from an offset to a place in the segment at or before it.

8-byte entries: offset relative to the segment's base (the last offset of a batch), byte position of that batch
(core F.2, transactions F.7; Kafka: OffsetIndex). Entries are kept as machine integers for bisection and written
through to the file; a closed segment's entries can be dropped and are read again on demand.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from storage.files import File

_ENTRY = Struct(">II")
ENTRY_SIZE = 8


class IndexCorruptError(ValueError):
    """An index file that cannot be one: it is rebuilt from the log."""


class OffsetIndex:
    """The offset index of one segment.

    Args:
        file: `<base>.index`.
        base_offset: the segment's.
        max_bytes: `segment.index.bytes`.
        entries: whether the file may hold entries; False for one just made.
    """

    __slots__ = ("_base_offset", "_max_entries", "_offsets", "_positions", "_rebuilding", "file")

    def __init__(self, file: File, base_offset: int, max_bytes: int, *, entries: bool) -> None:
        self.file = file
        self._base_offset = base_offset
        self._max_entries = max_bytes // ENTRY_SIZE
        self._offsets: array[int] | None = None
        self._positions: array[int] = array("I")
        self._rebuilding = False
        if not entries:
            self._offsets = array("I")

    def _loaded(self) -> "array[int]":
        offsets = self._offsets
        return self._load() if offsets is None else offsets

    def _load(self) -> "array[int]":
        size = self.file.size
        if size % ENTRY_SIZE:
            raise IndexCorruptError(f"{self.file.path} has {size} bytes, not a multiple of {ENTRY_SIZE}")
        contents = bytes(self.file.view(0, size))
        if size == self._max_entries * ENTRY_SIZE:
            # Full size means never trimmed: zeros follow the entries. No entry is 0, 0: the first batch gets none.
            used = len(contents.rstrip(b"\0"))
            contents = contents[: used + -used % ENTRY_SIZE]
        words = array("I", contents)
        if sys.byteorder == "little":
            words.byteswap()
        offsets, positions = words[0::2], words[1::2]
        self._offsets, self._positions = offsets, positions
        return offsets

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._loaded())

    @property
    def is_full(self) -> bool:
        """Whether the segment must be rolled for want of entries (core F.3 rule 3)."""
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
        self._positions.append(position)

    def lookup(self, offset: int) -> int:
        """Position of the last indexed batch that ends at or before `offset`; 0 without one."""
        index = bisect_right(self._loaded(), offset - self._base_offset) - 1
        return self._positions[index] if index >= 0 else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """Offset of the first entry at or behind a byte position; None if there is none."""
        offsets = self._loaded()
        index = bisect_left(self._positions, position)
        return self._base_offset + offsets[index] if index < len(offsets) else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and above `offset`."""
        offsets = self._loaded()
        kept = bisect_left(offsets, max(offset - self._base_offset, 0))
        del offsets[kept:], self._positions[kept:]
        self.trim()

    def clear(self) -> None:
        """Drop every entry, whatever the file holds."""
        self._offsets, self._positions = array("I"), array("I")
        self.file.truncate(0)

    def preallocate(self) -> None:
        """Give the file its full size, zeros that take no space, as Kafka's active segment has it."""
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
        """Whether the file ends within an entry, or its last entry cannot be true: then the index is rebuilt."""
        size = self.file.size
        if not size:
            return False
        offset, position = _ENTRY.unpack(self.file.view(size - ENTRY_SIZE, ENTRY_SIZE))
        return bool(size % ENTRY_SIZE) or not 0 < offset < 2**31 or not 0 < position < 2**31

    def begin_rebuild(self) -> None:
        """Forget all entries; those that are appended now reach the file at `end_rebuild`."""
        self.clear()
        self._rebuilding = True

    def end_rebuild(self) -> None:
        """Write what was appended since `begin_rebuild`."""
        self._rebuilding = False
        words = array("I", bytes(len(self) * ENTRY_SIZE))
        words[0::2], words[1::2] = self._loaded(), self._positions
        if sys.byteorder == "little":
            words.byteswap()
        self.file.write_at(0, words.tobytes())

    def unload(self) -> None:
        """Forget the entries until they are needed (closed segments)."""
        self._offsets, self._positions = None, array("I")
