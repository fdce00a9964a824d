"""The active segment: when it is closed and the next one begun (core F.3; Kafka: LogSegment.shouldRoll)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from protocol.records.batch import RecordBatch
from storage import producer_recovery
from storage.checkpoints import PARTITION_METADATA, encode_partition_metadata
from storage.environment import SYNC_NEVER, SYNC_ROLL
from storage.segment import LOG_SUFFIX, MAX_RELATIVE_OFFSET, Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


def segment_for(log: "PartitionLog", batch: RecordBatch, now_ms: int) -> Segment:
    """The segment that a stamped batch goes to: the active one, after a roll if one is due."""
    segments = log.segments
    if not segments:
        materialise(log, now_ms)
    segment = segments.active
    size = segment.log.size
    last_offset = batch.base_offset + batch.last_offset_delta
    if not 0 <= last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET or (
        size
        and (
            size > log.config.segment_size - batch.size
            or segment.is_index_full
            or _is_too_old(log, segment, batch.max_timestamp_ms, now_ms)
        )
    ):
        return roll(log, now_ms, batch.base_offset)
    return segment


def _is_too_old(log: "PartitionLog", segment: Segment, timestamp_ms: int, now_ms: int) -> bool:
    first = segment.first_timestamp_ms
    age_ms = timestamp_ms - first if timestamp_ms >= 0 and first >= 0 else now_ms - segment.created_ms
    return age_ms > log.config.max_segment_ms - segment.roll_jitter_ms


def roll(log: "PartitionLog", now_ms: int, first_offset: int = 0) -> Segment:
    """Close the active segment and begin the next one at the log's end, or where the next batch begins.

    The producers' state at that offset is written beside it, so that nothing before it is read when the log is opened.
    """
    old, environment = log.segments.active, log.environment
    base_offset = max(first_offset, log.log_end_offset)
    old.close_indexes()
    producer_recovery.take_snapshot(log, base_offset)
    synced = environment.sync != SYNC_ROLL or environment.sync_later is None
    if synced and environment.sync != SYNC_NEVER:
        old.sync()
    if not environment.files.lazy:
        environment.files.set_mtime_ms(old.path_of(LOG_SUFFIX), old.modified_ms)
    old.close()
    old.unload()
    if base_offset == old.base_offset:
        log.segments.remove(old)  # empty, and in the way of a batch that lies too far ahead
        old.remove()
    segment = _begin(log, base_offset, now_ms)
    if synced:
        log.flushed_to(log.log_end_offset)
    else:
        sync_later(log, [old])
    return segment


def sync_later(log: "PartitionLog", segments: Sequence[Segment]) -> None:
    """Sync segments while appends go on; the recovery point follows (UnifiedLog.roll: flush-log).

    Without anybody to do that, they are synced at once.
    """
    environment, end_offset = log.environment, log.log_end_offset

    def done(error: OSError | None) -> None:
        if isinstance(error, FileNotFoundError):
            return  # deleted in the meantime
        if error is not None:
            environment.refuse(error)
        elif log.recovery_point < end_offset <= log.log_end_offset:
            log.flushed_to(end_offset)

    if environment.sync_later is None:
        with environment.guard():
            for segment in segments:
                segment.sync()
        done(None)
    else:
        environment.sync_later([path for segment in segments for path in segment.paths()], done)


def _begin(log: "PartitionLog", base_offset: int, now_ms: int) -> Segment:
    segment = Segment(log.environment.files, log.directory, base_offset, log.config.segment_index_bytes)
    segment.created_ms = segment.modified_ms = now_ms
    segment.reopen_indexes()
    if log.config.preallocate:
        segment.log.reserve(log.config.segment_size)
    draw_jitter(log, segment)
    log.segments.add(segment)
    return segment


def draw_jitter(log: "PartitionLog", segment: Segment) -> None:
    """Give a segment its random part of the age at which it is rolled."""
    config = log.config
    if config.segment_jitter_ms:
        segment.roll_jitter_ms = log.environment.jitter(min(config.segment_jitter_ms, config.segment_ms))


def begin(log: "PartitionLog", now_ms: int) -> None:
    """Make the files of a log without segments. In memory those of a log from 0 wait for its first record."""
    if log.log_end_offset or not log.environment.files.lazy:
        materialise(log, now_ms)


def materialise(log: "PartitionLog", now_ms: int) -> None:
    """Make the partition's directory, small files and first segment."""
    environment = log.environment
    environment.files.make_directory(log.directory)
    if log.topic_id is not None:
        environment.files.replace(
            f"{log.directory}/{PARTITION_METADATA}",
            encode_partition_metadata(log.topic_id),
            durable=environment.durable,
        )
    _begin(log, log.log_end_offset, now_ms)
    log.write_epochs(log.epochs.entries)
