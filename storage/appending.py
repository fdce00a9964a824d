"""Appending to a log: by its leader, with every check, or by a follower, as it comes (core D.2, D.3).

Nothing of a batch that is refused is left behind, but its leader epoch (transactions D.3). Kafka: UnifiedLog.append.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import RecordBatch, batches
from protocol.records.control import parse_marker
from storage.append import AppendInfo, AppendOrigin
from storage.environment import SYNC_EVERY
from storage.files import Buffer
from storage.producer_recovery import note
from storage.producer_state import Accept, Duplicate
from storage.rolling import segment_for
from storage.validation import validate_append

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


def append_as_leader(
    log: "PartitionLog",
    buffer: Buffer,
    *,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    guard: object,
    transaction_version: int,
) -> AppendInfo:
    """See `PartitionLog.append_as_leader`."""
    log.environment.check()
    batch = validate_append(
        RecordBatch(buffer),
        log.config,
        base_offset=log.log_end_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        topic_partition=log.directory,
        origin=origin,
    )
    # Noted even if the producer's rules refuse the batch (transactions D.3.2).
    log.epochs.assign(leader_epoch, log.log_end_offset)
    decision: Accept | None = None
    if batch.producer_id >= 0:
        checked = log.producers.check(batch, origin=origin, guard=guard, transaction_version=transaction_version)
        if isinstance(checked, Duplicate):
            return AppendInfo(
                checked.base_offset,
                checked.last_offset,
                checked.timestamp_ms,
                log.log_start_offset,
                checked.timestamp_ms,
                duplicate=True,
                producer_epoch_before=batch.producer_epoch,
            )
        decision = checked
    _write(log, batch, decision, now_ms)
    return AppendInfo(
        batch.base_offset,
        batch.base_offset + batch.last_offset_delta,
        now_ms if log.config.log_append_time else -1,
        log.log_start_offset,
        batch.max_timestamp_ms,
        batch.size,
        producer_epoch_before=-1 if decision is None else decision.producer_epoch_before,
    )


def append_as_follower(log: "PartitionLog", records: Sequence[Buffer] | Buffer, now_ms: int) -> AppendInfo | None:
    """See `PartitionLog.append_as_follower`."""
    log.environment.check()
    first: int | None = None
    for buffer in (records,) if isinstance(records, (bytes, bytearray, memoryview)) else records:
        for batch in batches(buffer):
            if batch.base_offset < log.log_end_offset:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{batch!r} does not continue {log!r}")
            if first is None:
                first = batch.base_offset
            log.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            decision = None
            if batch.producer_id >= 0:
                decision = Accept(batch, parse_marker(batch) if batch.is_control else None)
            _write(log, batch, decision, now_ms)
    return None if first is None else AppendInfo(first, log.log_end_offset - 1, -1, log.log_start_offset)


def _write(log: "PartitionLog", batch: RecordBatch, decision: Accept | None, now_ms: int) -> None:
    """Write a stamped batch: roll if need be, append, sync as told; then the log ends behind it."""
    try:
        segment = segment_for(log, batch, now_ms)
        before = segment.size
        try:
            position = segment.append(batch.view, batch, log.config.index_interval_bytes)
            if log.environment.sync == SYNC_EVERY:
                segment.log.sync()
        except OSError:
            segment.undo(before)
            raise
        segment.modified_ms = now_ms
        if decision is not None:
            note(segment, log.producers.apply(decision))
    except OSError as error:
        raise log.environment.refuse(error) from error
    log.appended(batch, position, now_ms)
