"""Compaction of one log: retains only the newest record of each key (core F.6.3 to F.6.6; Kafka: Cleaner).

`compact` is a generator that yields now and then, so that its caller can run other tasks in between. Appends continue
meanwhile; if the segments being cleaned are deleted, the round is abandoned without a change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from protocol.deferred import dataclass
from protocol.records.batch import NO_TIMESTAMP, RecordBatch
from protocol.records.errors import DecompressedTooLargeError
from protocol.records.records import Record, build_batch, read_records
from storage.cleaner.transactions import CleanedTransactions
from storage.indexes.txn_index import AbortedTransaction
from storage.log.context import SYNC_NEVER
from storage.log.segment import CLEANED_SUFFIX, LOG_SUFFIX, MAX_RELATIVE_OFFSET, SEGMENT_SUFFIXES, SWAP_SUFFIX, Segment

if TYPE_CHECKING:
    from storage.log.partition_log import PartitionLog

DEFAULT_MAP_ENTRIES: Final = int(134_217_728 * 0.9 / 24)
"""`log.cleaner.dedupe.buffer.size` x `io.buffer.load.factor` / 24 bytes an entry."""
_MOST_RECORDS: Final = 1_000_000
"""Most records in a batch that is compacted: arbitrary, memory has to hold them."""
_YIELD_INTERVAL_BYTES: Final = 64 * 1024
"""Most bytes that are processed between two yields: some milliseconds, in which no request is served."""
_WHOLE_KEY: Final = 32  # a digest has a byte more, so that no key equals one


@dataclass(slots=True)
class OffsetMap:
    """The highest offset of each key in the dirty part, up to `latest_offset`."""

    max_entries: int
    offsets: dict[bytes, int] = field(default_factory=dict)
    latest_offset: int = -1

    def put(self, key: bytes, offset: int) -> bool:
        """Add an offset; False when the map is full."""
        if len(self.offsets) >= self.max_entries:
            return False
        self.offsets[_short(key)] = offset
        return True

    def is_newest(self, key: bytes, offset: int) -> bool:
        """Whether the map has no later record with this key."""
        return offset >= self.offsets.get(_short(key), -1)


def _short(key: bytes) -> bytes:
    """Replace a long key by its digest, which is longer than all keys that are used unchanged."""
    return key if len(key) <= _WHOLE_KEY else blake2b(key, digest_size=_WHOLE_KEY + 1).digest()


@dataclass(slots=True)
class Round:
    """One cleaning round of one log: from the first dirty offset up to, not including, the upper bound."""

    log: "PartitionLog"
    first_dirty_offset: int
    upper_bound: int
    now_ms: int
    map: OffsetMap
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)
    last_records: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Producer id -> offset of its last data (-1: none) and epoch: their batches are retained, empty if necessary."""
    end_offset: int = -1
    """Set at the end: the log is clean below it."""
    given_up: bool = False
    """Whether the segments being cleaned were deleted meanwhile."""
    worked_bytes: int = 0
    """Bytes read so far, for the map and for the cleaned segments."""


def compact(work: Round) -> Iterator[None]:
    """Clean the log of a round; yields from time to time.

    Raises:
        OSError: the disk failed. Segments cleaned so far remain.
    """
    log = work.log
    yield from _build_map(work)
    if work.map.latest_offset < work.first_dirty_offset:
        work.end_offset = work.first_dirty_offset
        return
    end_offset = work.map.latest_offset + 1
    work.last_records = {
        entry.producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.producer_epoch)
        for entry in log.producer_log.entries()
    }
    segments = [segment for segment in log.segments if segment.base_offset < end_offset]
    for group in _groups(log, segments, work.upper_bound):
        yield from _clean_group(work, group)
        if work.given_up:
            return
    work.end_offset = end_offset


def _build_map(work: Round) -> Iterator[None]:
    """Map every key to its last offset between the first dirty offset and the upper bound (core F.6.3)."""
    log, offset_map = work.log, work.map
    transactions = CleanedTransactions()
    transactions.expect(aborted_between(log, work.first_dirty_offset, work.upper_bound))
    for segment in log.segments.from_offset(work.first_dirty_offset):
        if segment.base_offset >= work.upper_bound:
            return
        seen = 0
        for batch in segment.batches(segment.position_of(work.first_dirty_offset)):
            if not transactions.read(batch) and not batch.is_control and not _put_all(work, batch):
                return  # full: the round ends before this batch
            offset_map.latest_offset = max(offset_map.latest_offset, batch.last_offset)
            work.worked_bytes += batch.size
            seen += batch.size
            if seen >= _YIELD_INTERVAL_BYTES:
                seen = 0
                yield
        following = log.segments.after(segment)
        # Unused offsets up to the next segment are clean too.
        end = work.upper_bound if following is None else min(following.base_offset, work.upper_bound)
        offset_map.latest_offset = max(offset_map.latest_offset, end - 1)
        yield


def _put_all(work: Round, batch: RecordBatch) -> bool:
    try:
        return all(
            work.map.put(record.key, record.offset)
            for record in _records(batch)
            if record.key is not None and record.offset >= work.first_dirty_offset
        )
    except DecompressedTooLargeError:
        return True  # the batch is retained unchanged


def _records(batch: RecordBatch) -> Iterator[Record]:
    """Return the records of a batch. Raises DecompressedTooLargeError if reading them would block others for long."""
    if batch.codec and batch.record_count > _MOST_RECORDS:
        raise DecompressedTooLargeError(_MOST_RECORDS)
    return read_records(batch)


def aborted_between(log: "PartitionLog", start: int, end: int) -> list[AbortedTransaction]:
    """Return the aborted transactions that may have data in a range of offsets."""
    aborted: list[AbortedTransaction] = []
    for segment in log.segments.from_offset(start):
        transactions, is_complete = segment.txn_index.search(start, end)
        aborted += transactions
        if is_complete:
            break
    return aborted


def _groups(log: "PartitionLog", segments: Sequence[Segment], upper_bound: int) -> Iterator[list[Segment]]:
    """Group neighbouring segments that fit into one segment together (core F.6.6)."""
    config = log.config
    group: list[Segment] = []
    size = index_size = time_index_size = 0
    ends = [*(segment.base_offset - 1 for segment in segments[1:]), upper_bound - 1]
    for segment, last_offset in zip(segments, ends, strict=True):
        size += segment.size
        index_size += segment.index.file.size
        time_index_size += segment.time_index.file.size
        if group and (
            size > config.segment_size
            or max(index_size, time_index_size) > config.segment_index_bytes
            or (segment.size and last_offset - group[0].base_offset > MAX_RELATIVE_OFFSET)
        ):
            yield group
            group = []
            size, index_size, time_index_size = segment.size, segment.index.file.size, segment.time_index.file.size
        group.append(segment)
    if group:
        yield group


def _clean_group(work: Round, group: Sequence[Segment]) -> Iterator[None]:
    """Write the retained records of a group to one segment, and replace the group by it."""
    log = work.log
    files = log.context.files
    for suffix in SEGMENT_SUFFIXES:
        files.remove(group[0].path_of(suffix) + CLEANED_SUFFIX)  # of an abandoned round
    cleaned = Segment(files, log.directory, group[0].base_offset, log.config.segment_index_bytes, CLEANED_SUFFIX)
    work.transactions.index = cleaned.txn_index
    for segment in group:
        following = log.segments.after(segment)
        end = segment.next_offset() if following is None else following.base_offset
        work.transactions.expect(aborted_between(log, segment.base_offset, end))
        seen = 0
        for batch in segment.batches():
            kept = _kept(work, batch)
            if kept is not None:
                cleaned.append(kept, RecordBatch(kept), log.config.index_interval_bytes)
            work.worked_bytes += batch.size
            seen += batch.size
            if seen >= _YIELD_INTERVAL_BYTES:
                seen = 0
                yield
    if any(log.segments.floor(segment.base_offset) is not segment for segment in group):
        cleaned.remove()
        work.given_up = True
        return
    _replace(work, cleaned, group)
    yield


def _replace(work: Round, cleaned: Segment, group: Sequence[Segment]) -> None:
    """Swap in the cleaned segment; a crash at any point leaves the old ones or the new one (core F.7.2)."""
    log, files = work.log, work.log.context.files
    cleaned.close_indexes()
    if log.context.sync != SYNC_NEVER:
        cleaned.sync()
    cleaned.created_ms, cleaned.modified_ms = group[-1].created_ms, group[-1].modified_ms
    files.set_mtime_ms(cleaned.path_of(LOG_SUFFIX), cleaned.modified_ms)
    cleaned.rename_suffix(SWAP_SUFFIX)
    log.delete_segments(group, work.now_ms, replaced_by=cleaned)
    log.segments.add(cleaned)
    cleaned.rename_suffix("")
    cleaned.close()
    cleaned.unload()


# ---------------------------------------------------------------------- one batch


def _kept(work: Round, batch: RecordBatch) -> bytes | bytearray | None:
    """Return the retained part of a batch: all, some records, only the header, or nothing (core F.6.4, F.6.5)."""
    discardable = work.transactions.read(batch)
    if batch.is_control:
        drop_records = discardable and batch.has_delete_horizon and batch.base_timestamp_ms <= work.now_ms
    else:
        drop_records = discardable
    retain_if_empty = _is_last_of_producer(work, batch) or batch.next_offset == work.upper_bound
    if drop_records and not retain_if_empty:
        return None
    try:
        records = [] if drop_records else list(_records(batch))
    except DecompressedTooLargeError:
        return bytes(batch.view)
    kept = records if batch.is_control else [record for record in records if _is_retained(work, batch, record)]
    if not kept:
        return _empty(batch) if retain_if_empty else None
    has_tombstone = any(record.value is None for record in kept)
    needs_horizon = (has_tombstone or (discardable and batch.is_control)) and not batch.has_delete_horizon
    if len(kept) == batch.record_count and not needs_horizon:
        return bytes(batch.view)
    horizon_ms = batch.base_timestamp_ms if batch.has_delete_horizon else None
    return build_batch(
        kept,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        max_timestamp_ms=batch.max_timestamp_ms if batch.is_log_append_time else None,
        codec=batch.codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.is_transactional,
        control=batch.is_control,
        log_append_time=batch.is_log_append_time,
        delete_horizon_ms=work.now_ms + work.log.config.delete_retention_ms if needs_horizon else horizon_ms,
    )


def _is_retained(work: Round, batch: RecordBatch, record: Record) -> bool:
    if record.offset > work.map.latest_offset:
        return True
    if record.key is None or not work.map.is_newest(record.key, record.offset):
        return False
    return record.value is not None or not batch.has_delete_horizon or work.now_ms < batch.base_timestamp_ms


def _is_last_of_producer(work: Round, batch: RecordBatch) -> bool:
    """Whether a producer that is still remembered would lose its last sequence, or its epoch, with the batch."""
    last = work.last_records.get(batch.producer_id) if batch.producer_id >= 0 else None
    if last is None:
        return False
    last_offset, epoch = last
    return batch.last_offset == last_offset if last_offset >= 0 else batch.is_control and batch.producer_epoch == epoch


def _empty(batch: RecordBatch) -> bytearray:
    """Build a batch without records: the header that readers and recovery need (61 bytes)."""
    return build_batch(
        (),
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=batch.max_timestamp_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.is_transactional,
        control=batch.is_control,
        log_append_time=batch.is_log_append_time,
    )
