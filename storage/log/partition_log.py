"""The log of one partition: its parts, and the operations that change several of them.

`bounds` are the offsets that bound it, `segments` hold its batches, `reader` reads them, `producer_log` has the state
of its producers, `epochs` the leader epochs, `flusher` makes it durable. The owner of the partition decides when the
high watermark moves; everything else is decided here, in `truncation` and in `retention`. Time is an argument.

Kafka: UnifiedLog, LocalLog.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import RecordBatch, batches
from protocol.records.records import parse_marker
from storage.append_info import NO_RULE, AppendInfo, AppendOrigin
from storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, EpochEntry, encode_epochs, encode_partition_metadata
from storage.files import Buffer
from storage.indexes.txn_index import AbortedTransaction
from storage.log.config import DEFAULT_LOG_CONFIG, MAX_LONG, LogConfig
from storage.log.context import SYNC_EVERY, SYNC_NEVER, LogContext
from storage.log.flusher import Flusher
from storage.log.large_batches import CheckedRecords
from storage.log.offsets import LeaderEpochs, LogBounds
from storage.log.reader import LogReader, LogSlice, TimestampAnswer
from storage.log.segment import DELETED_SUFFIX, SNAPSHOT_SUFFIX, Segment, Segments, offset_name, roll_is_due
from storage.log.tier import Tier
from storage.log.validation import validate_append
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot, encode_snapshot
from storage.producers.state import Accept, CompletedTransaction, Duplicate, ProducerEntry, ProducerStates

__all__ = ["AppendInfo", "AppendOrigin", "LogContext", "LogSlice", "PartitionLog", "TimestampAnswer"]

_HIGH_WATERMARK: Final = -1  # DeleteRecords up to the high watermark


# --- producers -------------------------------------------------------------------------------------------------------


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


# --- the log ---------------------------------------------------------------------------------------------------------


class PartitionLog:
    """The log of one partition.

    Args:
        context: shared by the logs of a data directory.
        topic: the topic's name.
        partition: the partition's number.
        topic_id: the topic's id; None for a log whose directory has none.
        config: the topic's settings; changes apply from the next append on.
        directory: the partition's directory in the tree; default `<topic>-<partition>`.
        epochs: entries of the leader epoch checkpoint.
    """

    __slots__ = (
        "_stable_offset",
        "bounds",
        "config",
        "context",
        "directory",
        "epochs",
        "flusher",
        "partition",
        "producer_log",
        "reader",
        "segments",
        "tier",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        context: LogContext,
        topic: str,
        partition: int,
        *,
        topic_id: UUID | None = None,
        config: LogConfig = DEFAULT_LOG_CONFIG,
        directory: str | None = None,
        epochs: Sequence[EpochEntry] = (),
    ) -> None:
        self.context, self.config = context, config
        self.topic, self.partition, self.topic_id = topic, partition, topic_id
        self.directory = directory or f"{topic}-{partition}"
        self.bounds = LogBounds()
        self.segments = Segments(context, self.directory)
        self.reader = LogReader(context, f"{topic}-{partition}", self.segments, self.bounds)
        self.producer_log = ProducerLog(context, self.directory, self.segments)
        self.tier: Tier | None = None  # since the first segment was copied
        self.flusher = Flusher(context, self.segments, self.bounds)
        self.epochs = LeaderEpochs(epochs, write=self._write_epochs)
        self._stable_offset = (-1, -1)  # if the transaction began below the log's start: (log start, stable offset)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}{self.bounds}"

    # ------------------------------------------------------------------ state

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self.bounds.log_start_offset

    @property
    def local_log_start_offset(self) -> int:
        """The first offset that is not read from the remote tier."""
        tier = self.tier
        if tier is None or not tier.segments:
            return self.bounds.log_start_offset
        return max(self.bounds.log_start_offset, self.segments.first.base_offset)

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is replicated; consumers read up to here."""
        return self.bounds.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which no transaction is open (transactions D.9)."""
        bounds, states = self.bounds, self.producer_log.states
        first = None if states is None else states.first_unstable_offset
        if first is None or first >= bounds.high_watermark:
            return bounds.high_watermark
        if first >= bounds.log_start_offset:
            return first
        if self._stable_offset[0] != bounds.log_start_offset:
            self._stable_offset = (bounds.log_start_offset, self.reader.batch_start(bounds.log_start_offset))
        return min(self._stable_offset[1], bounds.high_watermark)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.bounds.log_end_offset

    @property
    def offline(self) -> bool:
        """Whether the log's directory has failed."""
        return self.context.offline is not None

    @property
    def producers(self) -> ProducerStates:
        """State of idempotent and transactional producers."""
        return self.producer_log.known()

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, at most to the log's end, never down; return whether it moved."""
        if not self.bounds.advance_high_watermark(offset):
            return False
        if (states := self.producer_log.states) is not None:
            states.high_watermark_advanced(self.bounds.high_watermark)
        return True

    def restore_high_watermark(self, offset: int) -> None:
        """Set the high watermark, kept within the log's bounds."""
        self.bounds.set_high_watermark(offset)
        self.producer_log.high_watermark_advanced(self.bounds.high_watermark)

    # ------------------------------------------------------------------ append

    def append_as_leader(
        self,
        records: RecordBatch | bytearray | memoryview | bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: object = None,
        transaction_version: int = 0,
        checked: CheckedRecords | None = None,
        at_once: bool = True,
    ) -> AppendInfo:
        """Check, stamp and append one batch (core D.2, D.3). The high watermark stays where it is.

        The buffer becomes the log's, stamped and perhaps kept, or is copied if it is read-only. A rejected batch leaves
        only its leader epoch behind (transactions D.3).

        Args:
            records: one whole batch; or bytes that begin with one (see `check_partition_records`).
            leader_epoch: stamped into the batch.
            now_ms: the cluster's time.
            origin: which rules apply.
            guard: the verification guard of a transactional batch (transactions D.5).
            transaction_version: of a transaction marker (transactions D.6).
            checked: as in `validate_append`.
            at_once: as in `validate_append`; if False, a large batch raises LargeBatchError.

        Raises:
            KafkaError: with the code of the partition's response; nothing was appended.
        """
        context, config, bounds = self.context, self.config, self.bounds
        if context.offline is not None:
            raise context.storage_error(context.offline)
        batch = validate_append(
            records if isinstance(records, RecordBatch) else RecordBatch(records),
            config,
            base_offset=bounds.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            topic_partition=self.directory,
            origin=origin,
            checked=checked,
            decompressed_limit=context.decompressed_limit,
            at_once=at_once,
        )
        # Assigned even if the producer's rules reject the batch (transactions D.3.2).
        self.epochs.assign(leader_epoch, bounds.log_end_offset)
        decision: Accept | None = None
        if batch.producer_id >= 0:
            sequence_check = self.producers.check(
                batch, origin=origin, guard=guard, transaction_version=transaction_version
            )
            if isinstance(sequence_check, Duplicate):
                return _already_appended(batch, sequence_check, bounds.log_start_offset)
            decision = sequence_check
        self._write(batch, decision, now_ms)
        return _appended(batch, decision, now_ms if config.log_append_time else -1, bounds.log_start_offset)

    def append_as_follower(self, records: Sequence[Buffer] | Buffer, now_ms: int) -> AppendInfo | None:
        """Append batches of a leader's log byte for byte, without checks; leader epochs are those of the batches.

        Args:
            records: whole batches, in order, beginning at or after the log's end; an incomplete tail is ignored.
            now_ms: the cluster's time.

        Returns:
            The first and last offset; None if there was no whole batch.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; CORRUPT_MESSAGE, the batches do not continue the log.
        """
        self.context.check()
        bounds, first = self.bounds, None
        for buffer in (records,) if isinstance(records, (bytes, bytearray, memoryview)) else records:
            for batch in batches(buffer):
                if batch.base_offset < bounds.log_end_offset:
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{batch!r} does not continue {self!r}")
                if first is None:
                    first = batch.base_offset
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
                decision = None
                if batch.producer_id >= 0:
                    decision = Accept(batch, parse_marker(batch) if batch.is_control else None)
                self._write(batch, decision, now_ms)
        return None if first is None else AppendInfo(first, bounds.log_end_offset - 1, -1, bounds.log_start_offset)

    def _write(self, batch: RecordBatch, decision: Accept | None, now_ms: int) -> None:
        """Write a stamped batch: roll if need be, append, sync as configured, and move the log's end."""
        context, config, segments, bounds, position = self.context, self.config, self.segments, self.bounds, -1
        end_offset = bounds.end_behind(batch)
        try:
            if not segments:
                self.materialise(now_ms)
            segment = segments.active
            if roll_is_due(segment, batch, config, now_ms):
                segment = self._roll(now_ms, batch.base_offset)
            before = segment.log.size
            try:
                position = segment.append(batch.view, batch, config.index_interval_bytes)
                if context.sync == SYNC_EVERY:
                    segment.log.sync()
            except OSError:
                segment.undo(before)
                raise
            segment.modified_ms = now_ms
            if decision is not None:
                index_aborted(segment, self.producers.apply(decision))
        except OSError as error:
            raise context.storage_error(error, fatal=position >= 0) from error
        segments.tail = (batch.base_offset, position)
        bounds.extend(end_offset)
        if config.flush_ms != MAX_LONG or end_offset - bounds.recovery_point >= config.flush_messages:
            self.flusher.appended(config, now_ms)

    # ------------------------------------------------------------------ segments

    def begin(self, now_ms: int) -> None:
        """Create the files of a log without segments. In memory, a log that starts at 0 waits for its first record."""
        if self.bounds.log_end_offset or not self.context.files.lazy:
            self.materialise(now_ms)

    def materialise(self, now_ms: int) -> None:
        """Create the partition's directory, small files and first segment."""
        context = self.context
        self.segments.make_directory()
        if self.topic_id is not None:
            context.files.replace(
                f"{self.directory}/{PARTITION_METADATA}",
                encode_partition_metadata(self.topic_id),
                durable=context.durable,
            )
        self.segments.begin(self.bounds.log_end_offset, self.config, now_ms)
        self._write_epochs(self.epochs.entries)

    def _write_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Write `leader-epoch-checkpoint`, once the partition has a directory."""
        if self.segments:
            path = f"{self.directory}/{LEADER_EPOCHS}"
            with self.context.guard():
                self.context.files.replace(path, encode_epochs(entries), durable=self.context.durable)

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin the next one, unless it is empty.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        if self.segments and self.segments.active.size:
            with self.context.guard():
                self._roll(now_ms)

    def _roll(self, now_ms: int, first_offset: int = 0) -> Segment:
        """Close the active segment and begin the next one at the log's end, or at the next batch's base offset.

        A snapshot of the producer state at that offset is written too, so that nothing before it is read when the log
        is opened.
        """
        segments, bounds = self.segments, self.bounds
        old = segments.active
        base_offset = max(first_offset, bounds.log_end_offset)
        old.close_indexes()
        self.producer_log.take_snapshot(base_offset)
        synced = self.flusher.synced_at_roll()
        segments.retire(old)
        if base_offset == old.base_offset:
            segments.remove(
                old
            )  # empty, and its files have the name of the new one, for a batch that lies too far ahead
            old.remove()
        segment = segments.begin(base_offset, self.config, now_ms)
        if synced:
            bounds.flushed(bounds.log_end_offset)
        else:
            self.flusher.flush_later([old])
        return segment

    def delete_segments(self, doomed: Sequence[Segment], now_ms: int, *, replaced_by: Segment | None = None) -> None:
        """Delete segments with their files (core F.5) and producer snapshots.

        The snapshot of a replaced segment is kept. Files are renamed `.deleted` immediately and removed
        after `file.delete.delay.ms`.
        """
        due_ms = now_ms + self.config.file_delete_delay_ms
        for segment in doomed:
            paths = self.segments.detach(segment)
            if replaced_by is None or segment.base_offset != replaced_by.base_offset:
                paths += self.producer_log.detach_snapshot(segment.base_offset)
            self.context.remove_at(due_ms, paths)

    # ------------------------------------------------------------------ start and end

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start up to `offset` (-1: the high watermark); return the new start (core E.10).

        Segments below stay on disk until retention runs; producer state is retained (KIP-360).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, above the high watermark or below -1.
        """
        bounds = self.bounds
        if offset == _HIGH_WATERMARK:
            offset = bounds.high_watermark
        if offset < 0 or offset > bounds.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The requested offset {offset} is outside of the range of offsets "
                f"{bounds.log_start_offset} to {bounds.high_watermark}",
            )
        self.raise_start(offset)
        return bounds.log_start_offset

    def raise_start(self, offset: int) -> None:
        """Move the log's start up to `offset`; segments below stay until retention runs."""
        if self.bounds.raise_start(offset):
            self.epochs.truncate_from_start(offset)
            self.producer_log.records_deleted(offset)

    def close(self, *, clean: bool) -> None:
        """Close the log's files; `clean`: leave everything on disk as a clean shutdown does."""
        bounds = self.bounds
        if clean and self.segments:
            with self.context.guard():
                self.segments.active.close_indexes()
                self.producer_log.take_snapshot(bounds.log_end_offset)
            if self.context.sync != SYNC_NEVER:
                self.flusher.flush()
            bounds.flushed(bounds.log_end_offset)
        self.segments.close()
        if self.tier is not None:
            self.tier.close()


def _appended(
    batch: RecordBatch, decision: Accept | None, log_append_time_ms: int, log_start_offset: int
) -> AppendInfo:
    return AppendInfo(
        batch.base_offset,
        batch.base_offset + batch.last_offset_delta,
        log_append_time_ms,
        log_start_offset,
        batch.max_timestamp_ms,
        batch.size,
        producer_epoch_before=-1 if decision is None else decision.producer_epoch_before,
        rule=NO_RULE if decision is None else decision.rule,
    )


def _already_appended(batch: RecordBatch, known: Duplicate, log_start_offset: int) -> AppendInfo:
    """Return the result of the first append of a duplicate batch."""
    return AppendInfo(
        known.base_offset,
        known.last_offset,
        known.timestamp_ms,
        log_start_offset,
        known.timestamp_ms,
        duplicate=True,
        producer_epoch_before=batch.producer_epoch,
        rule=known.rule,
    )
