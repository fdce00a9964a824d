"""Truncation of a log at its end (core F.8; Kafka: UnifiedLog.truncateTo, truncateFullyAndStartAt).

A follower truncates records that its leader does not have.
"""

from storage.log import tiering
from storage.log.partition_log import PartitionLog
from storage.log.segment import UNKNOWN_TAIL


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> bool:
    """Remove everything at and above `offset`, a batch's first offset; return whether anything was removed.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
    """
    with log.context.guard():
        if offset >= log.bounds.log_end_offset:
            # A leader epoch may have been assigned at the log's end without a record.
            log.epochs.truncate_from_end(offset)
            return False
        segments = log.segments
        if not segments or segments.first.base_offset > offset:
            # Within the remote tier: the leader's log is copied again as a whole.
            _start_over(log, offset if log.tier is None else log.log_start_offset, now_ms)
            return True
        log.delete_segments([segment for segment in segments if segment.base_offset > offset], now_ms)
        segments.active.truncate_to(offset)
        segments.active.reopen_indexes()
        segments.tail = UNKNOWN_TAIL
        log.epochs.truncate_from_end(offset)
        log.bounds.cut(offset)
        if log.tier is not None:
            log.tier.copied = min(log.tier.copied, offset - 1)
        _forget_producers(log, now_ms)
        return True


def truncate_fully_and_start_at(log: PartitionLog, offset: int, now_ms: int) -> None:
    """Remove everything; the empty log starts at `offset`.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
    """
    with log.context.guard():
        _start_over(log, offset, now_ms)


def _start_over(log: PartitionLog, offset: int, now_ms: int) -> None:
    tiering.drop(log)
    # Renamed first: the new segment may have the same name as one of the old.
    log.delete_segments(list(log.segments), now_ms)
    log.segments.tail = UNKNOWN_TAIL
    log.epochs.clear()
    log.bounds.restart(offset)
    _forget_producers(log, now_ms)
    log.begin(now_ms)


def _forget_producers(log: PartitionLog, now_ms: int) -> None:
    """Drop producer state beyond the new log end."""
    bounds = log.bounds
    log.producer_log.rebuild(bounds.log_start_offset, bounds.log_end_offset, now_ms)
    log.producer_log.high_watermark_advanced(bounds.high_watermark)
