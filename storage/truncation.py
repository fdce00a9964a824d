"""Cutting a log at either end (core F.5, F.8, E.10; Kafka: UnifiedLog.truncateTo, deleteSegments).

Cut from the end: what a follower does that has to forget what its leader never had. Cut from the start: retention and
DeleteRecords. Segments that go are renamed `.deleted` at once and removed after `file.delete.delay.ms`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, KafkaError
from storage import producer_recovery
from storage.rolling import begin
from storage.segment import DELETED_SUFFIX, SEGMENT_SUFFIXES, Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

HIGH_WATERMARK_OFFSET = -1
"""DeleteRecords up to the high watermark."""


def truncate_to(log: "PartitionLog", offset: int, now_ms: int) -> bool:
    """See `PartitionLog.truncate_to`."""
    if offset >= log.log_end_offset:
        # A leader's epoch may have been noted at the log's end without a record.
        log.epochs.truncate_from_end(offset)
        return False
    if not len(log.segments) or log.segments.first.base_offset > offset:
        truncate_fully_and_start_at(log, offset, now_ms)
        return True
    delete_segments(log, [segment for segment in log.segments if segment.base_offset > offset], now_ms)
    active = log.segments.active
    active.truncate_to(offset)
    active.reopen_indexes()
    log.epochs.truncate_from_end(offset)
    log.end_at(offset)
    _rebuild_producers(log, now_ms)
    return True


def truncate_fully_and_start_at(log: "PartitionLog", offset: int, now_ms: int) -> None:
    """See `PartitionLog.truncate_fully_and_start_at`."""
    # Renamed first: the new segment may have the same name as one of the old.
    delete_segments(log, list(log.segments), now_ms)
    log.epochs.clear()
    log.log_start_offset = offset
    log.end_at(offset)
    _rebuild_producers(log, now_ms)
    log.restore_high_watermark(offset)
    begin(log, now_ms)


def _rebuild_producers(log: "PartitionLog", now_ms: int) -> None:
    """What producers did above the log's new end never happened."""
    for offset in [known for known in log.snapshot_offsets if not log.log_start_offset < known <= log.log_end_offset]:
        producer_recovery.drop_snapshot(log, offset)
    if log.has_producers:
        log.replace_producers(producer_recovery.states_at(log, log.log_end_offset, now_ms))
        log.restore_high_watermark(log.high_watermark)


def delete_records_before(log: "PartitionLog", offset: int) -> int:
    """See `PartitionLog.delete_records_before`."""
    if offset == HIGH_WATERMARK_OFFSET:
        offset = log.high_watermark
    if offset < 0 or offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"The requested offset {offset} is outside of the range of offsets "
            f"{log.log_start_offset} to {log.high_watermark}",
        )
    raise_log_start(log, offset)
    return log.log_start_offset


def raise_log_start(log: "PartitionLog", offset: int) -> None:
    """Let the log start at `offset`, if that is later than it does; segments below stay until retention comes."""
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        log.epochs.truncate_from_start(offset)
        if log.has_producers:
            log.producers.records_deleted(offset)


def delete_segments(
    log: "PartitionLog", segments: Sequence[Segment], now_ms: int, *, replaced_by: Segment | None = None
) -> None:
    """Take segments out of the log and plan the removal of their files, the producers' snapshots with them.

    The snapshot of a segment that another one takes the place of stays.
    """
    due_ms = now_ms + log.config.file_delete_delay_ms
    for segment in segments:
        log.segments.remove(segment)
        segment.close()
        segment.rename_suffix(DELETED_SUFFIX)
        paths = [segment.path_of(suffix) for suffix in SEGMENT_SUFFIXES]
        replaced = replaced_by is not None and segment.base_offset == replaced_by.base_offset
        if segment.base_offset in log.snapshot_offsets and not replaced:
            log.snapshot_offsets.remove(segment.base_offset)
            snapshot = producer_recovery.snapshot_path(log, segment.base_offset)
            log.environment.files.rename(snapshot, snapshot + DELETED_SUFFIX)
            paths.append(snapshot + DELETED_SUFFIX)
        log.environment.remove_at(due_ms, paths)
