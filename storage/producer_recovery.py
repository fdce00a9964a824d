"""Producer states and the files that bring them back: snapshots, then the batches behind them (transactions D.8).

Kafka: ProducerStateManager.takeSnapshot, UnifiedLog.rebuildProducerState.
"""

from typing import TYPE_CHECKING

from protocol.records.batch import RecordBatch
from storage.producer_snapshot import SnapshotCorruptError, decode_snapshot, encode_snapshot
from storage.producer_state import CompletedTransaction, ProducerStates
from storage.segment import SNAPSHOT_SUFFIX, Segment, offset_name
from storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


def snapshot_path(log: "PartitionLog", offset: int) -> str:
    """Where the snapshot of an offset lies."""
    return f"{log.directory}/{offset_name(offset, SNAPSHOT_SUFFIX)}"


def take_snapshot(log: "PartitionLog", offset: int) -> None:
    """Write the producers' state as it is, as the state before `offset`; a newer snapshot makes that needless."""
    offsets = log.snapshot_offsets
    if offset <= (offsets[-1] if offsets else 0):
        return
    contents = encode_snapshot(log.producers.producers.values() if log.has_producers else ())
    log.environment.files.replace(snapshot_path(log, offset), contents, durable=log.environment.durable)
    offsets.append(offset)


def drop_snapshot(log: "PartitionLog", offset: int) -> None:
    """Remove one snapshot, if it is there."""
    if offset in log.snapshot_offsets:
        log.snapshot_offsets.remove(offset)
        log.environment.files.remove(snapshot_path(log, offset))


def drop_strays(log: "PartitionLog") -> None:
    """Of the snapshots that belong to no segment keep the newest, if it is newer than all segments."""
    bases = {segment.base_offset for segment in log.segments}
    newest_base = max(bases, default=-1)
    strays = [offset for offset in log.snapshot_offsets if offset not in bases]
    for offset in strays[:-1] if strays and strays[-1] > newest_base else strays:
        drop_snapshot(log, offset)


def states_at(log: "PartitionLog", offset: int, now_ms: int) -> ProducerStates:
    """The producers as the log had them before `offset`: newest usable snapshot, then the batches behind it."""
    environment = log.environment
    states = ProducerStates(environment.producer_rules)
    start = log.log_start_offset
    for candidate in reversed([known for known in log.snapshot_offsets if start < known <= offset]):
        try:
            entries = decode_snapshot(environment.files.read_file(snapshot_path(log, candidate)))
        except (SnapshotCorruptError, FileNotFoundError):
            drop_snapshot(log, candidate)
            continue
        states.restore(entries, now_ms, environment.producer_id_expiration_ms)
        start = candidate
        break
    if start < offset:
        for segment in log.segments.from_offset(start):
            if segment.base_offset >= offset or not _replay_segment(states, segment, start, offset):
                break
    states.records_deleted(log.log_start_offset)
    return states


def _replay_segment(states: ProducerStates, segment: Segment, start: int, end: int) -> bool:
    """Take a segment's batches in [start, end) into the states; False at the end."""
    for position, batch in segment.headers(segment.position_of(start)):
        if batch.base_offset >= end:
            return False
        if batch.producer_id >= 0:
            # Only a marker's record is looked at, everything else stands in the header.
            states.replay(segment.batch_at(position) if batch.is_control else batch)
    return True


def replay(states: ProducerStates, segment: Segment, batch: RecordBatch) -> None:
    """Take a batch that stands in `segment` into the states, and an aborted transaction into its index."""
    note(segment, states.replay(batch))


def note(segment: Segment, completed: CompletedTransaction | None) -> None:
    """Write down a transaction that a marker in `segment` aborted (transactions D.10)."""
    if completed is not None and completed.is_aborted:
        segment.txn_index.append(
            AbortedTransaction(
                completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
            )
        )
