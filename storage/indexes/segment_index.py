"""Base of a segment's offset index and time index (Kafka: AbstractIndex).

Entries are pairs of a key, which only grows and by which they are found, and a value. They are kept as machine integers
for bisection and written through to the file; a closed segment's entries can be dropped and are read again on demand.
"""

import sys
from array import array
from typing import ClassVar

from storage.files import File


class IndexCorruptError(ValueError):
    """Corrupt index file, which is rebuilt from the log."""


class SegmentIndex:
    """An index of one segment.

    Args:
        file: the index file.
        base_offset: the segment's.
        max_bytes: `segment.index.bytes`.
        entries: whether the file may hold entries; False for a new file.
    """

    __slots__ = ("_base_offset", "_keys", "_max_entries", "_rebuilding", "_values", "file")
    ENTRY_SIZE: ClassVar[int]
    KEY_TYPE: ClassVar[str]
    """The array type code of keys; values are "I"."""

    def __init__(self, file: File, base_offset: int, max_bytes: int, *, entries: bool) -> None:
        self.file = file
        self._base_offset = base_offset
        self._max_entries = max_bytes // self.ENTRY_SIZE
        self._keys: array[int] | None = None if entries else array(self.KEY_TYPE)
        self._values: array[int] = array("I")
        self._rebuilding = False

    def _split(self, numbers: "array[int]") -> "tuple[array[int], array[int]]":
        """Split a file's unsigned 32-bit numbers into keys and values."""
        raise NotImplementedError

    def _joined(self) -> bytes:
        """Return all entries in the format of the file."""
        raise NotImplementedError

    def _loaded(self) -> "array[int]":
        keys = self._keys
        return self._load() if keys is None else keys

    def _load(self) -> "array[int]":
        size = self.file.size
        if size % self.ENTRY_SIZE:
            raise IndexCorruptError(f"{self.file.path} has {size} bytes, not a multiple of {self.ENTRY_SIZE}")
        contents = bytes(self.file.view(0, size))
        if size == self._max_entries * self.ENTRY_SIZE:
            # Full size means never trimmed: zeros follow the entries. No entry is 0, 0: the first batch gets none.
            used = len(contents.rstrip(b"\0"))
            contents = contents[: used + -used % self.ENTRY_SIZE]
        numbers = array("I", contents)
        if sys.byteorder == "little":
            numbers.byteswap()
        keys, self._values = self._split(numbers)
        self._keys = keys
        return keys

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._loaded())

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory."""
        return self._keys is not None

    def _truncate(self, kept: int) -> None:
        """Keep the first `kept` entries, and drop the others."""
        del self._loaded()[kept:], self._values[kept:]
        self.trim()

    def clear(self) -> None:
        """Drop every entry, without reading the file."""
        self._keys, self._values = array(self.KEY_TYPE), array("I")
        self.file.truncate(0)

    def preallocate(self) -> None:
        """Extend the file to its full size with zeros that take no space, as for Kafka's active segment."""
        entries = self._loaded()
        size = self._max_entries * self.ENTRY_SIZE
        if self.file.size != size:
            self.file.truncate(max(size, len(entries) * self.ENTRY_SIZE))

    def trim(self) -> None:
        """Truncate the file to its entries."""
        size = len(self._loaded()) * self.ENTRY_SIZE
        if self.file.size != size:
            self.file.truncate(size)

    def begin_rebuild(self) -> None:
        """Drop all entries; new ones are written to the file by `end_rebuild`."""
        self.clear()
        self._rebuilding = True

    def end_rebuild(self) -> None:
        """Write the entries appended since `begin_rebuild`."""
        self._rebuilding = False
        self.file.write_at(0, self._joined())

    def unload(self) -> None:
        """Unload the entries until they are needed (closed segments)."""
        self._keys, self._values = None, array("I")
