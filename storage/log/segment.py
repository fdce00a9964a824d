"""One segment of a log, and all of them in offset order, with the rule for rolling.

A segment is `<base>.log` with its indexes. Base offset: the first offset the segment may contain; 20 digits in the file
names (core F.1 to F.3; Kafka: LogSegment, LogSegments, LocalLog.roll).
"""

from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BATCH_HEADER_SIZE, LOG_OVERHEAD, RecordBatch
from storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from storage.files import Buffer, File, Files, sync_file
from storage.indexes.offset_index import OffsetIndex
from storage.indexes.segment_index import IndexCorruptError
from storage.indexes.time_index import TimeIndex, TimestampOffset
from storage.indexes.txn_index import TransactionIndex
from storage.log.config import LogConfig
from storage.log.context import LogContext

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
TIERED_SUFFIX: Final = ".tiered"
"""Of the files of a segment that is in the remote tier only; Kafka ignores them."""

SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

MAX_RELATIVE_OFFSET: Final = 2**31 - 1  # an int32 in indexes and batches (core F.3)

_SPAN: Final = Struct(">qi11xi")  # base offset, length field, last offset delta
_SPAN_SIZE: Final = 27  # bytes up to the last offset delta of a batch, its end
_SHORTEST: Final = BATCH_HEADER_SIZE - LOG_OVERHEAD  # of a length field, which does not count offset and itself
_WINDOW: Final = 8192
"""Bytes that are read together when batch headers are walked: about two index intervals."""


class Located(NamedTuple):
    """Position of a batch in its segment."""

    position: int
    size: int
    base_offset: int


def offset_name(offset: int, suffix: str) -> str:
    """Return a file name of 20 digits and a suffix."""
    return f"{offset:020d}{suffix}"


class Segment:
    """A segment that is open for reading and, while it is the last one, for appending.

    `largest` is the largest batch timestamp and the last offset of its batch; -1 when no record has a time.
    `is_index_full`: no more entry fits, the segment must be rolled (core F.3.3 and F.3.4).
    `created_ms` and `modified_ms` are on the cluster's clock.
    """

    __slots__ = (
        "_files",
        "_first_timestamp_ms",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "index",
        "is_index_full",
        "largest_offset",
        "largest_timestamp_ms",
        "log",
        "modified_ms",
        "roll_jitter_ms",
        "suffix",
        "time_index",
        "txn_index",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, index_bytes: int, suffix: str = "") -> None:
        """Open the segment's files, creating missing ones."""
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.log: File = files.open(self.path_of(LOG_SUFFIX))
        entries = self.log.size > 0
        self.index = OffsetIndex(files.open(self.path_of(INDEX_SUFFIX)), base_offset, index_bytes, entries=entries)
        self.time_index = TimeIndex(
            files.open(self.path_of(TIME_INDEX_SUFFIX)), base_offset, index_bytes, entries=entries
        )
        self.txn_index = TransactionIndex(files, self.path_of(TXN_INDEX_SUFFIX))
        self.is_index_full = False
        self.bytes_since_index = 0
        self.largest_timestamp_ms = -1
        self.largest_offset = base_offset
        self.created_ms = 0
        self.modified_ms = 0
        self.roll_jitter_ms = 0
        self._first_timestamp_ms: int | None = None

    def path_of(self, suffix: str) -> str:
        """Return the path of one of the segment's files."""
        return f"{self.directory}/{self.base_offset:020d}{suffix}{self.suffix}"

    def paths(self) -> list[str]:
        """List the paths of the segment's files."""
        return [path for path in map(self.path_of, SEGMENT_SUFFIXES) if self._files.exists(path)]

    @property
    def size(self) -> int:
        """Bytes in the `.log` file."""
        return self.log.size

    @property
    def first_timestamp_ms(self) -> int:
        """Largest timestamp of the first batch, which determines the segment's age (core F.3); -1 if unknown."""
        if self._first_timestamp_ms is None:
            if self.log.size < BATCH_HEADER_SIZE:
                return -1
            self._first_timestamp_ms = self.header_at(0).max_timestamp_ms
        return self._first_timestamp_ms

    @property
    def largest_time_ms(self) -> int:
        """Largest timestamp; without any, the time of the file's last change (core F.2.3)."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.modified_ms

    # ------------------------------------------------------------------ append

    def append(self, buffer: Buffer, batch: RecordBatch, index_interval_bytes: int) -> int:
        """Append one batch and return its position. Index entries by core F.2.1.

        Raises:
            OSError: the disk failed; no part of the batch counts as appended.
        """
        position = self.log.append(buffer)
        self.note(batch, position, index_interval_bytes)
        return position

    def note(self, batch: RecordBatch, position: int, index_interval_bytes: int) -> None:
        """Add a batch at `position` to the indexes and the largest timestamp."""
        last_offset = batch.base_offset + batch.last_offset_delta
        if batch.max_timestamp_ms > self.largest_timestamp_ms:
            self.largest_timestamp_ms = batch.max_timestamp_ms
            self.largest_offset = last_offset
        if self.bytes_since_index > index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.append(self.largest_timestamp_ms, self.largest_offset)
            self.bytes_since_index = 0
            self.is_index_full = self.index.is_full or self.time_index.is_full
        self.bytes_since_index += batch.size

    def undo(self, size: int) -> None:
        """Truncate the log to `size` bytes after a failed append, if the disk still works."""
        with suppress(OSError):
            self.log.truncate(size)

    # ------------------------------------------------------------------ look up

    def locate(self, offset: int) -> Located | None:
        """Find the first batch that ends at or after `offset` through the index; None if the segment has none.

        Raises:
            KafkaError: CORRUPT_MESSAGE, as for all methods that walk over batches.
        """
        position = self.index.lookup(offset)
        end = self.log.size
        while position < end:
            window = self.log.contiguous(position, _WINDOW)
            if len(window) < _SPAN_SIZE:
                window = self.log.view(position, _SPAN_SIZE)
                if len(window) < _SPAN_SIZE:
                    return None
            at, limit = 0, len(window) - _SPAN_SIZE
            while at <= limit:
                base_offset, length, delta = _SPAN.unpack_from(window, at)
                if length < _SHORTEST:
                    raise self._damaged(position + at)
                if base_offset + delta >= offset:
                    return Located(position + at, LOG_OVERHEAD + length, base_offset)
                at += LOG_OVERHEAD + length
            position += at
        return None

    def _damaged(self, position: int) -> KafkaError:
        """Return the error for bytes that are no batch: damage since the last recovery."""
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no batch at byte {position} of {self.log.path}")

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch that ends at or after `offset`; the segment's size without one."""
        located = self.locate(offset)
        return self.log.size if located is None else located.position

    def header_at(self, position: int) -> RecordBatch:
        """Read the header of the batch at a position."""
        return RecordBatch(self.log.view(position, BATCH_HEADER_SIZE))

    def batch_at(self, position: int) -> RecordBatch:
        """Read the batch at a position, with its records."""
        size = self.header_at(position).size
        if not BATCH_HEADER_SIZE <= size <= self.log.size - position:
            raise self._damaged(position)
        return RecordBatch(self.log.view(position, size))

    def headers(self, position: int = 0) -> Iterator[tuple[int, RecordBatch]]:
        """Yield positions and headers of the batches from `position` on, without their records."""
        end = self.log.size
        while position + BATCH_HEADER_SIZE <= end:
            window = self.log.contiguous(position, _WINDOW)
            if len(window) < BATCH_HEADER_SIZE:
                window = self.log.view(position, BATCH_HEADER_SIZE)
            at, limit = 0, len(window) - BATCH_HEADER_SIZE
            while at <= limit:
                batch = RecordBatch(window, at)
                if batch.size < BATCH_HEADER_SIZE:
                    raise self._damaged(position + at)
                yield position + at, batch
                at += batch.size
            position += at

    def batches(self, position: int = 0) -> Iterator[RecordBatch]:
        """Yield the batches from `position` on, with their records."""
        end = self.log.size
        while position + BATCH_HEADER_SIZE <= end:
            batch = self.batch_at(position)
            yield batch
            position += batch.size

    def batches_from_time(self, timestamp_ms: int, from_offset: int) -> Iterator[RecordBatch]:
        """Yield the batches that may contain the first record at or after a time: those with a late enough maximum."""
        start = max(self.time_index.lookup(timestamp_ms).offset, from_offset)
        for position, header in self.headers(self.position_of(start)):
            if header.max_timestamp_ms >= timestamp_ms:
                yield self.batch_at(position)

    def upper_offset(self, position: int, size: int) -> int | None:
        """Return an indexed offset after `size` bytes from `position`; None without one (transactions D.11)."""
        return self.index.offset_at_or_after(position + size)

    def next_offset(self) -> int:
        """Return the offset after the last batch; the base offset of an empty segment."""
        end = self.base_offset
        for _, batch in self.headers(self.index.lookup(MAX_RELATIVE_OFFSET + self.base_offset)):
            end = batch.next_offset
        return end

    # ------------------------------------------------------------------ states

    @property
    def indexes_are_torn(self) -> bool:
        """Whether an index file ends within an entry, or has an invalid one (core F.7.3)."""
        try:
            self.txn_index.check(self.base_offset)
        except IndexCorruptError:
            return True
        return self.index.is_torn or self.time_index.is_torn

    def begin_rebuild(self) -> None:
        """Clear indexes and largest timestamp before every batch is added again. Files are written at the end."""
        self.index.begin_rebuild()
        self.time_index.begin_rebuild()
        self.txn_index.clear()
        self.bytes_since_index = 0
        self.largest_timestamp_ms, self.largest_offset = -1, self.base_offset
        self._first_timestamp_ms = None

    def end_rebuild(self) -> None:
        """Write the rebuilt indexes, with the final time entry."""
        if self.largest_timestamp_ms >= 0:
            self.time_index.append(self.largest_timestamp_ms, self.largest_offset)
        self.index.end_rebuild()
        self.time_index.end_rebuild()

    def restore_largest_timestamp(self) -> None:
        """Read the largest timestamp from the time index, as a clean shutdown left it (core F.2.3)."""
        self.largest_timestamp_ms, self.largest_offset = self.time_index.last

    def close_indexes(self) -> None:
        """Add the final time entry and trim the files, at a roll and at a clean close (core F.3)."""
        if self.largest_timestamp_ms >= 0:
            self.time_index.append(self.largest_timestamp_ms, self.largest_offset)
        self.index.trim()
        self.time_index.trim()
        self.log.trim()

    def reopen_indexes(self) -> None:
        """Extend the indexes to their full size again, for the active segment."""
        self.index.preallocate()
        self.time_index.preallocate()
        self.is_index_full = self.index.is_full or self.time_index.is_full

    def truncate_to(self, offset: int) -> int:
        """Drop the batches that reach `offset` or beyond, with their index entries; return the dropped bytes."""
        located = self.locate(offset)
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.bytes_since_index = 0
        if located is None:
            return 0
        dropped = self.log.size - located.position
        self.log.truncate(located.position)
        if located.position == 0:
            self._first_timestamp_ms = None
        self.restore_largest_timestamp_by_scan()
        return dropped

    def restore_largest_timestamp_by_scan(self) -> None:
        """Find the largest timestamp from the time index and the batches after its last entry."""
        self.restore_largest_timestamp()
        for _, batch in self.headers(self.position_of(self.time_index.last.offset)):
            if batch.max_timestamp_ms > self.largest_timestamp_ms:
                self.largest_timestamp_ms = batch.max_timestamp_ms
                self.largest_offset = batch.last_offset

    def largest(self) -> TimestampOffset:
        """Return the largest timestamp and the last offset of its batch."""
        return TimestampOffset(self.largest_timestamp_ms, self.largest_offset)

    def sync(self) -> None:
        """Make the segment survive a power cut."""
        self.log.sync()
        self.index.file.sync()
        self.time_index.file.sync()
        self.txn_index.sync()

    def unload(self) -> None:
        """Unload the index entries until they are needed."""
        self.index.unload()
        self.time_index.unload()
        self.txn_index.unload()

    def close(self) -> None:
        """Close the descriptors."""
        for file in (self.log, self.index.file, self.time_index.file):
            file.close()
        self.txn_index.close()

    def rename_suffix(self, suffix: str) -> None:
        """Give all files another suffix after their own (`.deleted`, `.swap`, or none)."""
        for kind in SEGMENT_SUFFIXES:
            old = self.path_of(kind)
            new = f"{self.directory}/{self.base_offset:020d}{kind}{suffix}"
            if self._files.exists(old):
                self._files.rename(old, new)
        self.suffix = suffix
        self.moved(self.directory)

    def moved(self, directory: str) -> None:
        """Set the new directory of the segment's files, after they were moved."""
        self.directory = directory
        self.log.path = self.path_of(LOG_SUFFIX)
        self.index.file.path = self.path_of(INDEX_SUFFIX)
        self.time_index.file.path = self.path_of(TIME_INDEX_SUFFIX)
        self.txn_index.moved(self.path_of(TXN_INDEX_SUFFIX))

    def remove(self) -> None:
        """Remove all files."""
        self.close()
        for kind in SEGMENT_SUFFIXES:
            self._files.remove(self.path_of(kind))


# --- the segments of a log --------------------------------------------------------------------------------------------

UNKNOWN_TAIL: Final = (-1, 0)


class Segments:
    """Segments by base offset, looked up by bisection.

    Attributes:
        active: the last one; may only be read if there is one.
        tail: offset and position of the newest batch, which most consumers fetch next, or `UNKNOWN_TAIL`.
        names_are_new: whether a segment was created since :meth:`sync_names`.
    """

    __slots__ = ("_bases", "_by_base", "_context", "_directory", "active", "names_are_new", "tail")

    active: Segment

    def __init__(self, context: LogContext, directory: str) -> None:
        self._context, self._directory = context, directory
        self._bases: list[int] = []
        self._by_base: dict[int, Segment] = {}
        self.tail = UNKNOWN_TAIL
        self.names_are_new = False

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        for base in tuple(self._bases):
            yield self._by_base[base]

    # ------------------------------------------------------------------ look up

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._by_base[self._bases[0]]

    def floor(self, offset: int) -> Segment | None:
        """Return the segment with the greatest base at or below `offset`; the first one for smaller offsets."""
        bases = self._bases
        if not bases:
            return None
        return self._by_base[bases[max(bisect_right(bases, offset) - 1, 0)]]

    def after(self, segment: Segment) -> Segment | None:
        """Return the next segment; None for the active one."""
        bases = self._bases
        index = bisect_right(bases, segment.base_offset)
        return self._by_base[bases[index]] if index < len(bases) else None

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """Yield the segment of `offset` and all later ones."""
        bases = self._bases
        for base in bases[max(bisect_right(bases, offset) - 1, 0) :]:
            segment = self._by_base.get(base)
            if segment is not None:
                yield segment

    @property
    def size(self) -> int:
        """Bytes in all `.log` files."""
        return sum(segment.size for segment in self._by_base.values())

    # ------------------------------------------------------------------ change

    def add(self, segment: Segment) -> None:
        """Add a segment, replacing one with the same base offset."""
        if segment.base_offset not in self._by_base:
            insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment
        self.active = self._by_base[self._bases[-1]]

    def remove(self, segment: Segment) -> None:
        """Remove a segment, unless another one has replaced it."""
        if self._by_base.get(segment.base_offset) is segment:
            del self._by_base[segment.base_offset]
            self._bases.remove(segment.base_offset)
            if self._bases:
                self.active = self._by_base[self._bases[-1]]

    def make_directory(self) -> None:
        """Create the log's directory, durably where all small files are durable."""
        files = self._context.files
        files.make_directory(self._directory)
        if self._context.durable:
            files.sync_directory("")

    def begin(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Create the next active segment. Raises OSError, after it has removed the files that it created."""
        files = self._context.files
        paths = [f"{self._directory}/{offset_name(base_offset, suffix)}" for suffix in SEGMENT_SUFFIXES]
        new = [path for path in paths if not files.exists(path)]
        try:
            segment = Segment(files, self._directory, base_offset, config.segment_index_bytes)
            segment.created_ms = segment.modified_ms = now_ms
            segment.reopen_indexes()
            if config.preallocate:
                segment.log.reserve(config.segment_size)
        except OSError:
            # Without a descriptor, appends continue in the previous segment: the next start must not find a later one.
            for path in new:
                with suppress(OSError):
                    files.remove(path)
            raise
        self.draw_jitter(segment, config)
        self.add(segment)
        if self._context.durable:
            self._context.files.sync_directory(self._directory)
        else:
            self.names_are_new = True
        return segment

    def names(self) -> list[str]:
        """List the small files and directories that have to be synced so that synced segments survive a power cut."""
        paths = [f"{self._directory}/{name}" for name in (PARTITION_METADATA, LEADER_EPOCHS)]
        return [*(path for path in paths if self._context.files.exists(path)), self._directory, ""]

    def sync_names(self) -> None:
        """Sync what :meth:`names` lists."""
        files = self._context.files
        for path in self.names():
            if files.is_directory(path):
                files.sync_directory(path)
            else:
                sync_file(files, path)
        self.names_are_new = False

    def draw_jitter(self, segment: Segment, config: LogConfig) -> None:
        """Draw the random part of the age at which a segment is rolled."""
        if config.segment_jitter_ms:
            segment.roll_jitter_ms = self._context.jitter(min(config.segment_jitter_ms, config.segment_ms))

    def retire(self, segment: Segment) -> None:
        """Close a segment that is no longer the active one."""
        self._keep_time(segment)
        segment.close()
        segment.unload()

    def _keep_time(self, segment: Segment) -> None:
        """Set the file's mtime to the last append, on the cluster's clock: the age of records without timestamps."""
        self._context.files.set_mtime_ms(segment.path_of(LOG_SUFFIX), segment.modified_ms)

    def close(self) -> None:
        """Release the descriptors of all segments, which may be opened again, or loaded from the remaining files."""
        if self._bases:
            with suppress(OSError):  # the disk has failed, or the files are gone
                self._keep_time(self.active)
        for segment in self:
            segment.close()

    def detach(self, segment: Segment) -> list[str]:
        """Remove a segment and rename its files to `.deleted`; return the paths to delete."""
        self.remove(segment)
        segment.close()
        segment.rename_suffix(DELETED_SUFFIX)
        return [segment.path_of(suffix) for suffix in SEGMENT_SUFFIXES]


def roll_is_due(segment: Segment, batch: RecordBatch, config: LogConfig, now_ms: int) -> bool:
    """Whether a stamped batch has to go to a new segment (Kafka: LogSegment.shouldRoll)."""
    last_offset = batch.base_offset + batch.last_offset_delta
    if not 0 <= last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET:
        return True
    size = segment.log.size
    if not size:
        return False
    if size > config.segment_size - batch.size or segment.is_index_full:
        return True
    first = segment.first_timestamp_ms
    age_ms = batch.max_timestamp_ms - first if first >= 0 else now_ms - segment.created_ms
    return age_ms > config.max_segment_ms - segment.roll_jitter_ms
