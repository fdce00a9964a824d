"""Producer state of a log, and its recovery from snapshots and the batches after them (transactions D.8).

Kafka: ProducerStateManager, UnifiedLog.rebuildProducerState.
"""

from collections.abc import Iterable, Sequence

from protocol.records.batch import RecordBatch
from storage.indexes.txn_index import AbortedTransaction
from storage.log.context import LogContext
from storage.log.segment import DELETED_SUFFIX, SNAPSHOT_SUFFIX, Segment, Segments, offset_name
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot, encode_snapshot
from storage.producers.state import CompletedTransaction, ProducerEntry, ProducerStates


class ProducerLog:
    """The producers of one log: their states in memory, their snapshots beside the segments.

    `states` is None until there is a producer: most logs have none.
    """

    __slots__ = ("_context", "_directory", "_segments", "_snapshots", "states")

    def __init__(self, context: LogContext, directory: str, segments: Segments) -> None:
        self._context, self._directory, self._segments = context, directory, segments
        self._snapshots: list[int] = []  # their offsets, sorted
        self.states: ProducerStates | None = None

    # ------------------------------------------------------------------ states

    def known(self) -> ProducerStates:
        """Return the states, creating them if there are none."""
        states = self.states
        if states is None:
            states = self.states = ProducerStates(self._context.producer_rules)
        return states

    def entries(self) -> Sequence[ProducerEntry]:
        """List the state of each producer."""
        return [] if self.states is None else list(self.states.producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of one producer."""
        return None if self.states is None else self.states.producers.get(producer_id)

    def expire(self, now_ms: int) -> list[int]:
        """Remove idle producers (transactions D.7); return their ids."""
        return [] if self.states is None else self.states.expire(now_ms, self._context.producer_id_expiration_ms)

    def expiry_due_ms(self) -> int | None:
        """Return when time alone makes :meth:`expire` remove something; None for never."""
        return None if self.states is None else self.states.expiry_due_ms(self._context.producer_id_expiration_ms)

    def forget(self, producer_id: int) -> bool:
        """Remove one producer, as if it had expired; return whether it was known. For the control plane."""
        return self.states is not None and self.states.forget(producer_id)

    def forget_all(self) -> None:
        """Remove all producers, for a reset."""
        self.states = None

    def high_watermark_advanced(self, offset: int) -> None:
        """Release transactions whose marker is replicated."""
        if self.states is not None:
            self.states.high_watermark_advanced(offset)

    def records_deleted(self, log_start_offset: int) -> None:
        """Remove producers without records, if the rules require it, after the log's start moved."""
        if self.states is not None:
            self.states.records_deleted(log_start_offset)

    # ------------------------------------------------------------------ snapshots

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset_name(offset, SNAPSHOT_SUFFIX)}"

    def found_snapshots(self, offsets: Iterable[int]) -> None:
        """Set the offsets of the snapshots in the directory."""
        self._snapshots = sorted(offsets)

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot of the state before `offset`, unless there is a newer one."""
        if offset <= (self._snapshots[-1] if self._snapshots else 0):
            return
        self._context.files.replace(self._path(offset), encode_snapshot(self.entries()), durable=self._context.durable)
        self._snapshots.append(offset)

    def _drop_snapshot(self, offset: int) -> None:
        self._snapshots.remove(offset)
        self._context.files.remove(self._path(offset))

    def drop_snapshots_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Remove snapshots outside the log's bounds."""
        for offset in [known for known in self._snapshots if not log_start_offset < known <= log_end_offset]:
            self._drop_snapshot(offset)

    def drop_strays(self) -> None:
        """Remove snapshots that belong to no segment, except the newest if it is newer than all segments."""
        bases = {segment.base_offset for segment in self._segments}
        newest_base = max(bases, default=-1)
        strays = [offset for offset in self._snapshots if offset not in bases]
        for offset in strays[:-1] if strays and strays[-1] > newest_base else strays:
            self._drop_snapshot(offset)

    def detach_snapshot(self, offset: int) -> list[str]:
        """Rename the snapshot of a deleted segment, if there is one; return the path to remove."""
        if offset not in self._snapshots:
            return []
        self._snapshots.remove(offset)
        path = self._path(offset)
        self._context.files.rename(path, path + DELETED_SUFFIX)
        return [path + DELETED_SUFFIX]

    # ------------------------------------------------------------------ rebuilding

    def rebuild(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Rebuild the state after a truncation."""
        self.drop_snapshots_outside(log_start_offset, log_end_offset)
        if self.states is not None:
            self.states = self.states_at(log_end_offset, log_start_offset, now_ms)

    def states_at(self, offset: int, log_start_offset: int, now_ms: int) -> ProducerStates:
        """Return the producer state before `offset`: newest usable snapshot, then the batches after it."""
        context = self._context
        states = ProducerStates(context.producer_rules)
        start = log_start_offset
        for candidate in reversed([known for known in self._snapshots if start < known <= offset]):
            try:
                entries = decode_snapshot(context.files.read_file(self._path(candidate)))
            except (SnapshotCorruptError, FileNotFoundError):
                self._drop_snapshot(candidate)
                continue
            states.restore(entries, now_ms, context.producer_id_expiration_ms)
            start = candidate
            break
        if start < offset:
            for segment in self._segments.from_offset(start):
                if segment.base_offset >= offset or not _replay_segment(states, segment, start, offset):
                    break
        states.records_deleted(log_start_offset)
        return states


def _replay_segment(states: ProducerStates, segment: Segment, start: int, end: int) -> bool:
    """Replay a segment's batches in [start, end); False at the end."""
    for position, batch in segment.headers(segment.position_of(start)):
        if batch.base_offset >= end:
            return False
        if batch.producer_id >= 0:
            # Only a marker's record is read, everything else is in the header.
            states.replay(segment.batch_at(position) if batch.is_control else batch)
    return True


def replay(states: ProducerStates, segment: Segment, batch: RecordBatch) -> None:
    """Replay a batch of `segment`, and index the transaction that it aborts."""
    index_aborted(segment, states.replay(batch))


def index_aborted(segment: Segment, completed: CompletedTransaction | None) -> None:
    """Add a transaction that a marker in `segment` aborted to its index (transactions D.10)."""
    if completed is not None and completed.is_aborted:
        segment.txn_index.append(
            AbortedTransaction(
                completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
            )
        )
