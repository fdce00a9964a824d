"""`<base>.txnindex`: the aborted transactions whose markers lie in a segment.

34-byte entries in the order of the markers; the file exists only once it has an entry. Layout: transactions F.7;
contents: transactions D.10 (Kafka: TransactionIndex).
"""

from bisect import bisect_left
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from storage.files import File, Files
from storage.indexes.segment_index import IndexCorruptError

_VERSION: Final = 0
_ENTRY: Final = Struct(">hqqqq")
ENTRY_SIZE: Final = _ENTRY.size
_LAST_OFFSET: Final = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    """Entry of the index: an aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    last_stable_offset: int
    """First offset of the earliest transaction still open at the marker, else the offset after the marker."""


class TransactionSearch(NamedTuple):
    """Result of a search in one segment's index for a range of offsets."""

    transactions: list[AbortedTransaction]
    is_complete: bool
    """Whether the indexes of later segments have nothing to add."""


def decode_transactions(contents: bytes, path: str) -> list[AbortedTransaction]:
    """Decode the entries of a transaction index; `path` is for the errors.

    Raises:
        IndexCorruptError: an unknown version, entries out of order, or an incomplete entry.
    """
    if len(contents) % ENTRY_SIZE:
        raise IndexCorruptError(f"{path} has {len(contents)} bytes, not a multiple of {ENTRY_SIZE}")
    entries: list[AbortedTransaction] = []
    previous = -1
    for version, *fields in _ENTRY.iter_unpack(contents):
        entry = AbortedTransaction(*fields)
        if version != _VERSION:
            raise IndexCorruptError(f"{path} has an entry of version {version}")
        if entry.last_offset <= previous:
            raise IndexCorruptError(f"{path} has a marker at {entry.last_offset} after one at {previous}")
        previous = entry.last_offset
        entries.append(entry)
    return entries


class TransactionIndex:
    """The transaction index of one segment.

    The entries are read when they are first needed, and kept.

    Args:
        files: the tree.
        path: `<base>.txnindex`, which need not exist.
    """

    __slots__ = ("_entries", "_file", "_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path
        self._file: File | None = None
        self._entries: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries, in the order of their markers.

        Raises:
            IndexCorruptError: an unknown version, entries out of order, or an incomplete entry.
        """
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def append(self, transaction: AbortedTransaction) -> None:
        """Add the entry of a transaction whose ABORT marker was just appended.

        Raises:
            IndexCorruptError: its marker does not follow the existing ones.
            OSError: the disk failed.
        """
        entries = self.entries
        if entries and entries[-1].last_offset >= transaction.last_offset:
            raise IndexCorruptError(f"{self.path} ends at {entries[-1].last_offset}, next is {transaction.last_offset}")
        self._opened().append(_ENTRY.pack(_VERSION, *transaction))
        entries.append(transaction)

    def search(self, fetch_offset: int, upper_offset: int) -> TransactionSearch:
        """Return aborted transactions that may have records in [fetch_offset, upper_offset) (transactions D.11)."""
        entries = self.entries
        aborted: list[AbortedTransaction] = []
        for entry in entries[bisect_left(entries, fetch_offset, key=_LAST_OFFSET) :]:
            if entry.first_offset < upper_offset:
                aborted.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return TransactionSearch(aborted, is_complete=True)
        return TransactionSearch(aborted, is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose markers lie at or above `offset`."""
        entries = self.entries
        kept = bisect_left(entries, offset, key=_LAST_OFFSET)
        if kept < len(entries):
            del entries[kept:]
            self._opened().truncate(kept * ENTRY_SIZE)

    def check(self, base_offset: int) -> None:
        """Check that the entries are valid for a segment with this base offset.

        Raises:
            IndexCorruptError: they are not; the index is rebuilt from the log.
        """
        if self.entries and self.entries[0].last_offset < base_offset:
            raise IndexCorruptError(f"{self.path} has a marker at {self.entries[0].last_offset}")

    def clear(self) -> None:
        """Drop every entry, without reading the file, before the index is rebuilt."""
        self.close()
        self._entries, self._file = [], None
        self._files.remove(self.path)

    def unload(self) -> None:
        """Unload the entries until they are needed."""
        self._entries = None

    def moved(self, path: str) -> None:
        """Set the new path of the file, after it was renamed."""
        self.path = path
        if self._file is not None:
            self._file.path = path

    def sync(self) -> None:
        """Make the entries survive a power cut."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Close the descriptor, if it is open."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path)
        return self._file

    def _read(self) -> list[AbortedTransaction]:
        if not self._files.exists(self.path):
            return []
        return decode_transactions(self._files.read_file(self.path), self.path)
