"""Loading an existing log: clean up files, recover, rebuild memory state (core F.7; Kafka: LogLoader).

After a clean shutdown nothing is scanned. Otherwise every segment from the one with the recovery point on is read and
checked; the log is truncated at the first batch that is incomplete or damaged.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from protocol.deferred import dataclass
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch, batch_size, magic_of
from protocol.records.message_set import begins_with_message
from storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    CheckpointError,
    EpochEntry,
    decode_epochs,
    decode_partition_metadata,
)
from storage.files import File
from storage.log import tiering
from storage.log.config import LogConfig
from storage.log.context import Cut, LogContext
from storage.log.offsets import LeaderEpochs
from storage.log.partition_log import PartitionLog, replay
from storage.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIERED_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
    Segments,
)
from storage.producers.state import ProducerStates

_WINDOW: Final = 1024 * 1024
"""Bytes of a segment that are checked together: arbitrary, few reads and bounded memory."""


class OldRecordsError(RuntimeError):
    """Log with records of message format v0 or v1; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Offsets of one log from the checkpoints of its data directory."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0


def load(
    context: LogContext,
    directory: str,
    topic: str,
    partition: int,
    *,
    config: LogConfig,
    checkpointed: Checkpointed,
    clean: bool,
    now_ms: int,
) -> PartitionLog:
    """Load the log in `directory`.

    Args:
        context: shared by the logs of the data directory.
        directory: the partition's directory.
        topic: the topic's name.
        partition: the partition's number.
        config: the topic's settings.
        checkpointed: the log's offsets from the checkpoints.
        clean: whether the last shutdown was clean.
        now_ms: the cluster's time.

    Raises:
        OSError: the disk failed.
        OldRecordsError: the log begins with records that only Kafka can read.
    """
    files = context.files
    names = _clean_up(context, directory, files.list(directory))
    log = PartitionLog(
        context,
        topic,
        partition,
        topic_id=_topic_id(context, directory, names),
        config=config,
        directory=directory,
        epochs=_epochs(context, directory, names),
    )
    damaged = _open_segments(context, directory, names, log.segments, config)
    if log.segments:
        check_format(log.segments.first.log, directory)
    log.producer_log.found_snapshots(_base_offset(name) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    tiering.load(log, _bases(names, LOG_SUFFIX + TIERED_SUFFIX))
    first = log.tier.segments.first if log.tier is not None else log.segments.first if log.segments else None
    log_start_offset = max(checkpointed.log_start_offset, 0 if first is None else first.base_offset)
    last_states = _recover(log, damaged, log_start_offset, checkpointed.recovery_point, clean=clean, now_ms=now_ms)
    _finish(log, log_start_offset, checkpointed, clean=clean, now_ms=now_ms)
    _restore_producers(log, last_states, now_ms)
    log.restore_high_watermark(checkpointed.high_watermark)
    return log


# ---------------------------------------------------------------------- files


def _clean_up(context: LogContext, directory: str, names: Sequence[str]) -> list[str]:
    """Undo or finish interrupted changes of segment files; return the remaining names (core F.7.2)."""
    files = context.files
    cleaned = [_base_offset(name) for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min(cleaned, default=None)
    left: list[str] = []
    swapped: list[str] = []
    for name in names:
        # Files become .swap in descending order, so with a .cleaned file left the swap is not complete, and the
        # segments that it replaces are still there (KAFKA-6264).
        unfinished = name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)) or (
            name.endswith(SWAP_SUFFIX) and first_cleaned is not None and _base_offset(name) >= first_cleaned
        )
        if unfinished:
            files.remove(f"{directory}/{name}")
        else:
            (swapped if name.endswith(SWAP_SUFFIX) else left).append(name)
    if not swapped:
        return left
    return _finish_swap(context, directory, left, swapped)


def _finish_swap(context: LogContext, directory: str, names: Sequence[str], swapped: Sequence[str]) -> list[str]:
    """Replace segments by the complete cleaned ones that cover them."""
    files = context.files
    spans = []
    for name in swapped:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            segment = Segment(context.files, directory, _base_offset(name), 0, SWAP_SUFFIX)
            end = max((batch.next_offset for _, batch in segment.headers()), default=segment.base_offset)
            spans.append((segment.base_offset, end))
            segment.close()
    low, high = min((low for low, _ in spans), default=0), max((high for _, high in spans), default=0)
    left = []
    for name in names:
        covered = name.endswith(SEGMENT_SUFFIXES) and low <= _base_offset(name) < high
        if covered:
            files.remove(f"{directory}/{name}")
        else:
            left.append(name)
    for name in swapped:
        final = name.removesuffix(SWAP_SUFFIX)
        files.rename(f"{directory}/{name}", f"{directory}/{final}")
        left.append(final)
    return sorted(set(left))


def _base_offset(name: str) -> int:
    """Return the offset in a segment file's name; -1 for another name."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


def _bases(names: Sequence[str], suffix: str) -> list[int]:
    """Return the base offsets of the segment files with a suffix; a file that is none has no number as its name."""
    return [_base_offset(name) for name in names if name.endswith(suffix) and _base_offset(name) >= 0]


def _epochs(context: LogContext, directory: str, names: Sequence[str]) -> Sequence[EpochEntry]:
    if LEADER_EPOCHS not in names:
        return ()
    try:
        return decode_epochs(context.files.read_file(f"{directory}/{LEADER_EPOCHS}"))
    except CheckpointError:
        return ()  # rebuilt from the batches


def _topic_id(context: LogContext, directory: str, names: Sequence[str]) -> UUID | None:
    if PARTITION_METADATA not in names:
        return None
    try:
        return decode_partition_metadata(context.files.read_file(f"{directory}/{PARTITION_METADATA}"))
    except CheckpointError:
        return None


def _open_segments(
    context: LogContext, directory: str, names: Sequence[str], segments: Segments, config: LogConfig
) -> set[int]:
    """Open all segments; return the base offsets of those whose indexes are missing or invalid."""
    files = context.files
    present = set(names)
    bases = _bases(names, LOG_SUFFIX)
    for name in names:
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)) and _base_offset(name) not in bases:
            files.remove(f"{directory}/{name}")
    damaged = set()
    for base in bases:
        without_index = any(f"{base:020d}{suffix}" not in present for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX))
        segment = Segment(files, directory, base, config.segment_index_bytes)
        segment.created_ms = segment.modified_ms = files.mtime_ms(segment.path_of(LOG_SUFFIX))
        segments.add(segment)
        if without_index or segment.indexes_are_torn:
            damaged.add(base)
    return damaged


def check_format(file: File, directory: str) -> None:
    """Reject a log whose first segment begins with records of an older format: recovery would truncate them.

    Raises:
        OldRecordsError: the log begins with records that only Kafka can read.
    """
    head = file.view(0, BATCH_HEADER_SIZE)
    magic = magic_of(head)
    if 0 <= magic < MAGIC_V2:
        size = batch_size(head, 0)
        if 0 < size <= file.size and begins_with_message(file.view(0, size)):
            raise OldRecordsError(
                f"{directory} begins with records as brokers before 0.11 wrote them (message format "
                f"v{magic}), which only Kafka can read; move the partition out of the data directory"
            )


# ---------------------------------------------------------------------- contents


def _recover(
    log: PartitionLog,
    damaged: set[int],
    log_start_offset: int,
    recovery_point: int,
    *,
    clean: bool,
    now_ms: int,
) -> ProducerStates | None:
    """Check segments that may be damaged; truncate the log at the first damage (core F.7.3, F.7.4).

    Returns the producer state at the end of the last segment, if that was checked.
    """
    segments = log.segments
    floor = segments.floor(recovery_point)
    unflushed_from = None if clean or floor is None else floor.base_offset
    states: ProducerStates | None = None
    cut = False
    lost_bytes = removed = 0
    lost_from: int | None = None
    for segment in segments:
        unflushed = unflushed_from is not None and segment.base_offset >= unflushed_from
        if cut:
            lost_bytes, removed = lost_bytes + segment.size, removed + 1
            segments.remove(segment)
            segment.remove()
        elif unflushed or segment.base_offset in damaged:
            if states is None:
                states = log.producer_log.states_at(segment.base_offset, log_start_offset, now_ms)
            before = segment.size
            cut = not rebuild(segment, states, log.epochs, log.config.index_interval_bytes) and unflushed
            if lost_from is None and before != segment.size:
                lost_from = segment.next_offset()
            lost_bytes += before - segment.size
        else:
            segment.restore_largest_timestamp()
            states = None
    if lost_from is not None:
        log.context.on_cut(Cut(log.topic, log.partition, lost_from, lost_bytes, removed))
    return states


def rebuild(segment: Segment, states: ProducerStates, epochs: LeaderEpochs, index_interval_bytes: int) -> bool:
    """Check every batch of a segment, truncate the file after the last valid one, rebuild the indexes.

    `states` is the producer state before the segment, and after it on return. False: the file was truncated.
    """
    segment.begin_rebuild()
    end = 0
    for position, batch in sound_batches(segment):
        # An epoch has one entry, at its first batch.
        if batch.partition_leader_epoch > epochs.latest:
            epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        segment.note(batch, position, index_interval_bytes)
        if batch.producer_id >= 0:
            replay(states, segment, batch)
        end = position + batch.size
    whole = end == segment.size
    if not whole:
        segment.log.truncate(end)
    segment.end_rebuild()
    return whole


def sound_batches(segment: Segment) -> Iterator[tuple[int, RecordBatch]]:
    """Yield positions and headers of the segment's batches, up to the first incomplete, damaged or misplaced one."""
    log, position, end = segment.log, 0, segment.log.size
    expected, limit = segment.base_offset, segment.base_offset + MAX_RELATIVE_OFFSET
    while position + BATCH_HEADER_SIZE <= end:
        window = log.contiguous(position, _WINDOW)
        if len(window) < BATCH_HEADER_SIZE:
            window = log.view(position, BATCH_HEADER_SIZE)
        size = RecordBatch(window).size
        if size > len(window):
            window = log.view(position, size)
        at, length = 0, len(window)
        while at + BATCH_HEADER_SIZE <= length:
            batch = RecordBatch(window, at)
            if batch.magic != MAGIC_V2 or batch.size < BATCH_HEADER_SIZE:
                return
            if at + batch.size > length:
                break
            if batch.base_offset < expected or batch.last_offset > limit or batch.compute_crc() != batch.crc:
                return
            expected = batch.next_offset
            yield position + at, batch
            at += batch.size
        if not at:
            return  # its length field points beyond the file
        position += at


def _finish(log: PartitionLog, log_start_offset: int, checkpointed: Checkpointed, *, clean: bool, now_ms: int) -> None:
    """Set the bounds and make the last segment the active one (core F.7.5 to F.7.7)."""
    segments = log.segments
    end = segments.active.next_offset() if segments else log_start_offset
    # The checkpoint of the start outlived the records behind it: DeleteRecords came before the crash that cut the log.
    if end < log_start_offset:
        log.context.on_cut(Cut(log.topic, log.partition, log_start_offset, segments.size, len(segments)))
        for segment in segments:
            segments.remove(segment)
            segment.remove()
        end = log_start_offset
    log.bounds.load(log_start_offset, end, end if clean else checkpointed.recovery_point)
    if not segments:
        log.begin(now_ms)
    else:
        segments.active.reopen_indexes()
        segments.draw_jitter(segments.active, log.config)
    log.epochs.truncate_from_end(end)
    log.epochs.truncate_from_start(log_start_offset)


def _restore_producers(log: PartitionLog, states: ProducerStates | None, now_ms: int) -> None:
    """Drop invalid snapshots, restore the state at the log's end, and write a snapshot of it (transactions D.8)."""
    bounds, producers = log.bounds, log.producer_log
    producers.drop_snapshots_outside(bounds.log_start_offset, bounds.log_end_offset)
    producers.drop_strays()
    if states is None:
        states = producers.states_at(bounds.log_end_offset, bounds.log_start_offset, now_ms)
    if states.producers:
        producers.states = states
    producers.take_snapshot(bounds.log_end_offset)
