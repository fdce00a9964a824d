"""The segments of one log in offset order, and the rule for rolling (core F.3; Kafka: LogSegments, LocalLog.roll)."""

from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import suppress

from protocol.records.batch import RecordBatch
from storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from storage.files import sync_file
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    SEGMENT_SUFFIXES,
    Segment,
    offset_name,
)

UNKNOWN_TAIL = (-1, 0)


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
