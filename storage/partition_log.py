"""The log of one partition: append, read, truncate, and the offsets that bound it.

`log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset`, always (core F.9). Whoever owns the
partition decides when the high watermark moves; everything else is decided here. Time is an argument.

Kafka: UnifiedLog, LocalLog.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from protocol.records.batch import RecordBatch
from storage import appending, lookups, retention, truncation
from storage.append import AppendInfo, AppendOrigin
from storage.checkpoints import LEADER_EPOCHS, encode_epochs
from storage.config import DEFAULT_LOG_CONFIG, MAX_LONG, LogConfig
from storage.environment import SYNC_NEVER, LogEnvironment
from storage.files import Buffer
from storage.leader_epochs import EpochEntry, LeaderEpochs
from storage.lookups import LogSlice, TimestampAnswer
from storage.producer_recovery import take_snapshot
from storage.producer_state import ProducerStates
from storage.rolling import roll, sync_later
from storage.segments import Segments

__all__ = ["AppendInfo", "AppendOrigin", "LogEnvironment", "LogSlice", "PartitionLog", "TimestampAnswer"]


class PartitionLog:
    """The log of one partition.

    Args:
        environment: what the logs of a data directory share.
        topic: the topic's name.
        partition: the partition's number.
        topic_id: the topic's id; None for a log whose directory names none.
        config: the topic's settings.
        directory: the partition's directory in the tree; default `<topic>-<partition>`.
    """

    __slots__ = (
        "_flush_due_ms",
        "_high_watermark",
        "_now_ms",
        "_producers",
        "_stable_offset",
        "config",
        "directory",
        "environment",
        "epochs",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "recovery_point",
        "segments",
        "snapshot_offsets",
        "tail",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        environment: LogEnvironment,
        topic: str,
        partition: int,
        *,
        topic_id: UUID | None = None,
        config: LogConfig = DEFAULT_LOG_CONFIG,
        directory: str | None = None,
        epochs: Sequence[EpochEntry] = (),
    ) -> None:
        self.environment = environment
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.directory = directory or f"{topic}-{partition}"
        self.segments = Segments()
        self.epochs = LeaderEpochs(epochs, write=self.write_epochs)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self._high_watermark = 0
        self.recovery_point = 0
        self._flush_due_ms: int | None = None
        self._now_ms = 0
        self._producers: ProducerStates | None = None
        self.snapshot_offsets: list[int] = []
        self._stable_offset = (-1, -1)  # of a transaction that began below the log's start: (log start, answer)
        self.tail = (-1, 0)  # offset and position of the newest batch, which most consumers ask for next

    def __repr__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.log_start_offset}, {self.log_end_offset})"

    # ------------------------------------------------------------------ bounds

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is replicated; consumers read up to here."""
        return self._high_watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, never beyond the log's end nor down; whether it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self._high_watermark:
            return False
        self._high_watermark = offset
        if self._producers is not None:
            self._producers.high_watermark_advanced(offset)
        return True

    def restore_high_watermark(self, offset: int) -> None:
        """Set the high watermark, kept within the log's bounds."""
        self._high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        if self._producers is not None:
            self._producers.high_watermark_advanced(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """The offset below which no transaction is open (transactions D.9)."""
        if self._producers is None:
            return self._high_watermark
        first = self._producers.first_unstable_offset
        if first is None or first >= self._high_watermark:
            return self._high_watermark
        if first >= self.log_start_offset:
            return first
        if self._stable_offset[0] != self.log_start_offset:
            self._stable_offset = (self.log_start_offset, lookups.batch_start(self, self.log_start_offset))
        return min(self._stable_offset[1], self._high_watermark)

    @property
    def offline(self) -> bool:
        """Whether the log's directory has failed."""
        return self.environment.offline is not None

    @property
    def size_bytes(self) -> int:
        """Bytes in all `.log` files."""
        return self.segments.size

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch the log knows; -1 if none."""
        return self.epochs.latest

    @property
    def earliest_epoch(self) -> int:
        """The leader epoch at the log's start, if it is known: what ListOffsets EARLIEST tells (core E.8.7); -1."""
        entries = self.epochs.entries
        return entries[0].epoch if entries and entries[0].start_offset <= self.log_start_offset else -1

    def assign_epoch(self, epoch: int, start_offset: int | None = None) -> None:
        """A leader of this epoch takes over at `start_offset` (default: the log's end; core B.2.3)."""
        self.epochs.assign(epoch, self.log_end_offset if start_offset is None else start_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` and its end offset; (-1, -1) if unknown (core E.9)."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        """Take new topic settings; they hold from the next append on."""
        self.config = config

    # ------------------------------------------------------------------ append

    def append_as_leader(
        self,
        batch: bytearray | memoryview | bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: object = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Check, stamp and append one batch (core D.2, D.3). The high watermark stays where it is.

        The buffer becomes the log's: offset, epoch and timestamps are stamped into it, and it may be kept. A
        read-only buffer is copied first.

        Args:
            batch: begins with one whole batch; what follows it is ignored (see `check_partition_records`).
            leader_epoch: stamped into the batch.
            now_ms: the cluster's time.
            origin: which rules apply.
            guard: of the verification of a transactional batch (transactions D.5).
            transaction_version: of a transaction marker (transactions D.6).

        Raises:
            KafkaError: with the code that the partition's answer carries; nothing was appended.
        """
        return appending.append_as_leader(
            self,
            batch,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )

    def append_as_follower(self, records: Sequence[Buffer] | Buffer, *, now_ms: int | None = None) -> AppendInfo | None:
        """Append what a leader's log has, byte for byte: no checks, epochs from the batches.

        Args:
            records: whole batches, in order, beginning at or after the log's end; an incomplete tail is ignored.
            now_ms: the cluster's time; by default the time that the log was told last.

        Returns:
            The first and last offset; None if there was no whole batch.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; CORRUPT_MESSAGE, the batches do not continue the log.
        """
        return appending.append_as_follower(self, records, self._now_ms if now_ms is None else now_ms)

    def appended(self, batch: RecordBatch, position: int, now_ms: int) -> None:
        """A batch stands in the active segment: the log ends behind it."""
        self._now_ms = now_ms
        self.tail = (batch.base_offset, position)
        self.log_end_offset = end = batch.base_offset + batch.last_offset_delta + 1
        if end - self.recovery_point >= self.config.flush_messages:
            self.flush()
        elif self.config.flush_ms != MAX_LONG and self._flush_due_ms is None:
            self._flush_due_ms = now_ms + self.config.flush_ms
            self.environment.flush_at(self._flush_due_ms)

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin the next one, if there is anything in it.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, as everything that writes.
        """
        if len(self.segments) and self.segments.active.size:
            with self.environment.guard():
                roll(self, now_ms)

    def write_epochs(self, entries: Sequence[EpochEntry]) -> None:
        """Write `leader-epoch-checkpoint`, once the partition has a directory."""
        if not len(self.segments):
            return
        path = f"{self.directory}/{LEADER_EPOCHS}"
        with self.environment.guard():
            self.environment.files.replace(path, encode_epochs(entries), durable=self.environment.durable)

    # ------------------------------------------------------------------ producers

    @property
    def has_producers(self) -> bool:
        """Whether any producer was remembered yet."""
        return self._producers is not None

    @property
    def producers(self) -> ProducerStates:
        """What is remembered of idempotent and transactional producers."""
        states = self._producers
        if states is None:
            states = self._producers = ProducerStates(self.environment.producer_rules)
        return states

    def replace_producers(self, states: ProducerStates | None) -> None:
        """Take states that were rebuilt from the log."""
        self._producers = states

    def expire_producers(self, now_ms: int) -> list[int]:
        """Forget idle producers (transactions D.7); their ids."""
        if self._producers is None:
            return []
        return self._producers.expire(now_ms, self.environment.producer_id_expiration_ms)

    def forget_producer(self, producer_id: int) -> bool:
        """Forget one producer, as if it had expired; whether it was known. For steering."""
        return self._producers is not None and self._producers.forget(producer_id)

    # ------------------------------------------------------------------ cut, flush, close

    def truncate_to(self, offset: int, now_ms: int | None = None) -> bool:
        """Forget everything at and above `offset`, which is a batch's first offset; whether anything went."""
        with self.environment.guard():
            return truncation.truncate_to(self, offset, self._now_ms if now_ms is None else now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int | None = None) -> None:
        """Forget everything; the log begins, empty, at `offset`."""
        with self.environment.guard():
            truncation.truncate_fully_and_start_at(self, offset, self._now_ms if now_ms is None else now_ms)

    def delete_records_before(self, offset: int, now_ms: int | None = None) -> int:
        """Let the log start at `offset` (-1: at the high watermark), and never before; the new start (core E.10).

        Segments below stay on disk until `run_retention`; what producers did stays remembered (KIP-360).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, above the high watermark or below -1.
        """
        self._now_ms = self._now_ms if now_ms is None else now_ms
        return truncation.delete_records_before(self, offset)

    def run_retention(self, now_ms: int) -> int:
        """Delete the segments that the topic's settings do not let stay; how many went (core F.4)."""
        with self.environment.guard():
            return retention.run(self, now_ms)

    def end_at(self, offset: int) -> None:
        """The log now ends at `offset`: bounds and remembered positions follow."""
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._high_watermark = min(self._high_watermark, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.tail = (-1, 0)

    def flushed_to(self, offset: int) -> None:
        """Everything below `offset` needs no check when the log is opened again."""
        self.recovery_point = offset

    def flush(self) -> None:
        """Make everything survive a power cut, whatever the sync policy."""
        with self.environment.guard():
            for segment in self.segments.from_offset(self.recovery_point):
                segment.sync()
        self._flush_due_ms = None
        self.flushed_to(self.log_end_offset)

    def flush_if_due(self, now_ms: int) -> int | None:
        """Flush, beside the loop if possible, what has waited for `flush.ms`; else say when it will have."""
        due_ms = self._flush_due_ms
        if due_ms is None or now_ms < due_ms:
            return due_ms
        self._flush_due_ms = None
        sync_later(self, list(self.segments.from_offset(self.recovery_point)))
        return None

    def close(self, now_ms: int, *, clean: bool) -> None:
        """Give back what the log holds; `clean`: leave everything on disk as a clean stop does."""
        self._now_ms = now_ms
        if clean and len(self.segments):
            with self.environment.guard():
                self.segments.active.close_indexes()
                take_snapshot(self, self.log_end_offset)
            if self.environment.sync != SYNC_NEVER:
                self.flush()
            self.flushed_to(self.log_end_offset)
        for segment in self.segments:
            segment.close()

    # ------------------------------------------------------------------ read

    def read(self, offset: int, max_bytes: int, *, bound: int, min_one: bool) -> LogSlice:
        """Stored batches from the one that contains `offset` on (core E.2, R1-R4 and the rules of size).

        Args:
            offset: where to begin; the first batch may begin before it.
            max_bytes: the slice is cut there, its last batch may be incomplete.
            bound: nothing at or above this offset is returned (high watermark, last stable offset or log end).
            min_one: return the first batch whole even if it is larger than `max_bytes`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE below the log's start or above its end; KAFKA_STORAGE_ERROR.
        """
        return lookups.read(self, offset, max_bytes, bound=bound, min_one=min_one)

    def bytes_available(self, offset: int, bound: int, cap: int) -> int:
        """Bytes between two offsets, at most `cap`, without reading them (core E.3 rule 4).

        `lookups.ANOTHER_SEGMENT`, larger than any minimum, when `bound` lies in a newer segment (rule 3).
        """
        return lookups.bytes_available(self, offset, bound, cap)

    def replay_from(self, offset: int) -> Iterator[RecordBatch]:
        """The batches from the one that contains `offset` to the log's end, with their records: for loading."""
        return lookups.replay_from(self, offset)

    def in_older_segment(self, offset: int, bound: int) -> bool:
        """Whether `bound` lies in a newer segment than `offset` (core E.3 rule 3)."""
        return lookups.in_older_segment(self, offset, bound)

    def upper_bound_of(self, piece: LogSlice, bound: int) -> int:
        """An offset behind the last record of a slice, near enough to look for aborted transactions."""
        return lookups.upper_bound_of(self, piece, bound)

    def aborted_transactions(self, fetch_offset: int, upper_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions that [fetch_offset, upper_offset) may have data of.

        Ordered by their markers (transactions D.11).
        """
        return lookups.aborted_transactions(self, fetch_offset, upper_offset)

    def offset_for_timestamp(self, timestamp_ms: int, bound: int) -> TimestampAnswer | None:
        """The first record in log order at or after a time, if it lies below `bound` (core E.8.5)."""
        return lookups.offset_for_timestamp(self, timestamp_ms, bound)

    def max_timestamp_offset(self, bound: int) -> TimestampAnswer | None:
        """The first record with the largest timestamp of the log, if it lies below `bound` (core E.8.8)."""
        return lookups.max_timestamp_offset(self, bound)
