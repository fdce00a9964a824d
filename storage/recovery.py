"""Opening a log that exists: clean up, recover, rebuild what was in memory (core F.7; Kafka: LogLoader).

After a clean stop nothing is scanned. Otherwise every segment from the one that holds the recovery point is read and
checked; at the first batch that is not whole and sound the log ends, and what follows is deleted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch, batch_size
from protocol.records.message_set import begins_with_message
from storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    CheckpointError,
    decode_epochs,
    decode_partition_metadata,
)
from storage.config import LogConfig
from storage.environment import LogEnvironment
from storage.leader_epochs import EpochEntry
from storage.partition_log import PartitionLog
from storage.producer_recovery import drop_snapshot, drop_strays, replay, states_at, take_snapshot
from storage.producer_state import ProducerStates
from storage.rolling import begin, draw_jitter
from storage.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    MAX_RELATIVE_OFFSET,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
)

_WINDOW: Final = 1024 * 1024
"""Bytes of a segment that are checked together."""
_MAGIC_POSITION: Final = 16


class OldRecordsError(RuntimeError):
    """A log holds records of message format v0 or v1; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What the checkpoints of the data directory say about one log."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0


def load(
    environment: LogEnvironment,
    directory: str,
    topic: str,
    partition: int,
    *,
    config: LogConfig,
    checkpointed: Checkpointed,
    clean: bool,
    now_ms: int,
) -> PartitionLog:
    """Open the log that lies in `directory`.

    Args:
        environment: what the logs of the data directory share.
        directory: the partition's directory.
        topic: the topic's name.
        partition: the partition's number.
        config: the topic's settings.
        checkpointed: what the checkpoints say.
        clean: whether the last stop was clean.
        now_ms: the cluster's time.

    Raises:
        OSError: the disk refused.
        OldRecordsError: the log begins with records that only Kafka can read.
    """
    files = environment.files
    names = _clean_up(environment, directory, files.list(directory))
    log = PartitionLog(
        environment,
        topic,
        partition,
        topic_id=_topic_id(environment, directory, names),
        config=config,
        directory=directory,
        epochs=_epochs(environment, directory, names),
    )
    damaged = _open_segments(log, names)
    _check_format(log)
    log.snapshot_offsets = sorted(_base_offset(name) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    log.log_start_offset = checkpointed.log_start_offset
    if len(log.segments):
        log.log_start_offset = max(log.log_start_offset, log.segments.first.base_offset)
    states = _recover(log, damaged, checkpointed.recovery_point, clean=clean, now_ms=now_ms)
    _finish(log, checkpointed, clean=clean, now_ms=now_ms)
    _restore_producers(log, states, now_ms)
    log.restore_high_watermark(checkpointed.high_watermark)
    return log


# ---------------------------------------------------------------------- files


def _clean_up(environment: LogEnvironment, directory: str, names: Sequence[str]) -> list[str]:
    """Undo or finish what was going on with segment files; the names that are left (core F.7.2)."""
    files = environment.files
    cleaned = [_base_offset(name) for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min(cleaned, default=None)
    left: list[str] = []
    swapped: list[str] = []
    for name in names:
        unfinished = name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)) or (
            name.endswith(SWAP_SUFFIX) and first_cleaned is not None and _base_offset(name) >= first_cleaned
        )
        if unfinished:
            files.remove(f"{directory}/{name}")
        else:
            (swapped if name.endswith(SWAP_SUFFIX) else left).append(name)
    if not swapped:
        return left
    return _finish_swap(environment, directory, left, swapped)


def _finish_swap(
    environment: LogEnvironment, directory: str, names: Sequence[str], swapped: Sequence[str]
) -> list[str]:
    """Put complete cleaned segments in the place of those that they cover."""
    files = environment.files
    spans = []
    for name in swapped:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            segment = Segment(environment.files, directory, _base_offset(name), 0, SWAP_SUFFIX)
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
    """The offset in a segment file's name; -1 for another name."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isdecimal() else -1


def _epochs(environment: LogEnvironment, directory: str, names: Sequence[str]) -> Sequence[EpochEntry]:
    if LEADER_EPOCHS not in names:
        return ()
    try:
        return decode_epochs(environment.files.read_file(f"{directory}/{LEADER_EPOCHS}"))
    except CheckpointError:
        return ()  # the batches tell them again


def _topic_id(environment: LogEnvironment, directory: str, names: Sequence[str]) -> UUID | None:
    if PARTITION_METADATA not in names:
        return None
    try:
        return decode_partition_metadata(environment.files.read_file(f"{directory}/{PARTITION_METADATA}"))
    except CheckpointError:
        return None


def _open_segments(log: PartitionLog, names: Sequence[str]) -> set[int]:
    """Open all segments; the base offsets of those whose indexes are missing or cannot be true."""
    files = log.environment.files
    present = set(names)
    bases = [_base_offset(name) for name in names if name.endswith(LOG_SUFFIX) and _base_offset(name) >= 0]
    for name in names:
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)) and _base_offset(name) not in bases:
            files.remove(f"{log.directory}/{name}")
    damaged = set()
    for base in bases:
        without_index = f"{base:020d}{INDEX_SUFFIX}" not in present
        segment = Segment(files, log.directory, base, log.config.segment_index_bytes)
        segment.created_ms = segment.modified_ms = files.mtime_ms(segment.path_of(LOG_SUFFIX))
        log.segments.add(segment)
        if without_index or segment.indexes_are_torn:
            damaged.add(base)
    return damaged


def _check_format(log: PartitionLog) -> None:
    """Recovery takes what is no batch of format v2 for damage and cuts it off: not where it is somebody's old data."""
    if not len(log.segments):
        return
    file = log.segments.first.log
    head = file.view(0, BATCH_HEADER_SIZE)
    if len(head) > _MAGIC_POSITION and head[_MAGIC_POSITION] < MAGIC_V2:
        size = batch_size(head, 0)
        if 0 < size <= file.size and begins_with_message(file.view(0, size)):
            raise OldRecordsError(
                f"{log.directory} begins with records as brokers before 0.11 wrote them (message format "
                f"v{head[_MAGIC_POSITION]}), which only Kafka can read; take the partition out of the data directory"
            )


# ---------------------------------------------------------------------- contents


def _recover(
    log: PartitionLog, damaged: set[int], recovery_point: int, *, clean: bool, now_ms: int
) -> ProducerStates | None:
    """Check what may be unsound; after the first damage the log ends (core F.7.3, F.7.4).

    The producers as they were at the end of the last segment, if it was among those checked.
    """
    floor = log.segments.floor(recovery_point)
    unflushed_from = None if clean or floor is None else floor.base_offset
    states: ProducerStates | None = None
    cut = False
    for segment in log.segments:
        unflushed = unflushed_from is not None and segment.base_offset >= unflushed_from
        if cut:
            log.segments.remove(segment)
            segment.remove()
        elif unflushed or segment.base_offset in damaged:
            if states is None:
                states = states_at(log, segment.base_offset, now_ms)
            cut = not rebuild(log, segment, states) and unflushed
        else:
            segment.restore_largest_timestamp()
            states = None
    return states


def rebuild(log: PartitionLog, segment: Segment, states: ProducerStates) -> bool:
    """Check every batch of a segment, cut the file behind the last sound one, make the indexes anew.

    `states` are the producers before the segment; they are brought to its end. False: something had to be cut off.
    """
    segment.begin_rebuild()
    end, interval = 0, log.config.index_interval_bytes
    for position, batch in sound_batches(segment):
        if batch.partition_leader_epoch > log.epochs.latest:
            log.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        segment.note(batch, position, interval)
        if batch.producer_id >= 0:
            replay(states, segment, batch)
        end = position + batch.size
    whole = end == segment.size
    if not whole:
        segment.log.truncate(end)
    segment.end_rebuild()
    return whole


def sound_batches(segment: Segment) -> Iterator[tuple[int, RecordBatch]]:
    """Positions and headers of the segment's batches, up to the first that is not whole, not sound or out of order."""
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
            return  # its length reaches beyond the file
        position += at


def _restore_producers(log: PartitionLog, states: ProducerStates | None, now_ms: int) -> None:
    """Snapshots that cannot be true go, the states of the log's end come, and are written down (transactions D.8)."""
    for offset in [known for known in log.snapshot_offsets if not log.log_start_offset < known <= log.log_end_offset]:
        drop_snapshot(log, offset)
    drop_strays(log)
    if states is None:
        states = states_at(log, log.log_end_offset, now_ms)
    if states.producers:
        log.replace_producers(states)
    take_snapshot(log, log.log_end_offset)


def _finish(log: PartitionLog, checkpointed: Checkpointed, *, clean: bool, now_ms: int) -> None:
    """Set the bounds and make the last segment the active one (core F.7.5 to F.7.7)."""
    end = log.segments.active.next_offset() if len(log.segments) else log.log_start_offset
    if end < log.log_start_offset:
        for segment in log.segments:
            log.segments.remove(segment)
            segment.remove()
        end = log.log_start_offset
    log.log_end_offset = end
    log.recovery_point = end if clean else min(checkpointed.recovery_point, end)
    if not len(log.segments):
        begin(log, now_ms)
    else:
        log.segments.active.reopen_indexes()
        draw_jitter(log, log.segments.active)
    log.epochs.truncate_from_end(end)
    log.epochs.truncate_from_start(log.log_start_offset)
    log.restore_high_watermark(checkpointed.high_watermark)
