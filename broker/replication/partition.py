"""One partition over all its replicas: leadership, replication, and the requests that wait for either.

All brokers are in one process, so replication copies from the leader's log to those of the other replicas in the same
step as the append. The high watermark is the lowest end offset of the in-sync replicas (core F.9); with one replica it
is the log's end immediately. Followers can be kept from replicating; then appends with acks=-1 really wait.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from broker.coordination.metadata.image import NO_LEADER, Partition
from broker.time.clock import Clock
from protocol.errors import ErrorCode, KafkaError
from protocol.pauses import pause
from protocol.records.batch import RecordBatch
from protocol.records.records import build_marker
from storage.append_info import AppendInfo, AppendOrigin
from storage.log import truncation
from storage.log.large_batches import CheckedRecords
from storage.log.partition_log import PartitionLog

_MOST_MOVES: Final = 8
"""Kept for explanations: retention and DeleteRecords of a test move an offset a few times."""


class OffsetsMoved(NamedTuple):
    """A move of the leader's log start offset or end: why, when, and the offset before and after it."""

    why: str
    at_ms: int
    before: int
    after: int
    is_start: bool


_REPLICATION_BYTES = 8 * 1024 * 1024
"""Read in one piece: a follower that was held may have gigabytes to copy.

Ours, few reads and bounded memory.
"""


def _never(_broker_id: int) -> bool:
    """Return that a broker does not hang."""
    return False


class ReplicatedPartition:
    """A topic's partition with its replicas.

    ``logs`` has the replica of each broker that is up and has one. ``state`` is the partition's registration as applied
    last. ``moves`` are the latest moves of the log's start and
    end that removed records. ``held`` are followers that are kept from replicating; those whose broker ``hangs`` do not
    replicate either.
    """

    __slots__ = (
        "_absence",
        "_clock",
        "_end",
        "_hangs",
        "_starts",
        "_watchers",
        "held",
        "index",
        "logs",
        "min_isr",
        "moves",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        state: Partition,
        clock: Clock,
        hangs: Callable[[int], bool] = _never,
    ) -> None:
        self._clock, self._hangs = clock, hangs
        self.topic, self.index, self.topic_id, self.state = topic, index, topic_id, state
        self.logs: dict[int, PartitionLog] = {}
        self.min_isr = 1
        self.moves: deque[OffsetsMoved] = deque(maxlen=_MOST_MOVES)
        self._end = 0  # the high watermark of the last leader, when it went
        self._starts: dict[int, int] = {}  # where the log of a broker that is down began, as its leader remembers
        self.held: frozenset[int] = frozenset()
        self._absence = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._watchers: dict[Callable[[], None], None] = {}  # ordered: the same run wakes in the same order

    @property
    def name(self) -> str:
        """Topic and partition, such as ``orders-3``."""
        return f"{self.topic}-{self.index}"

    # --- leadership --------------------------------------------------------------------------------------------------

    def led_by(self, broker_id: int) -> PartitionLog:
        """Return the leader's log, provided that this broker leads.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if its log directory is offline, at followers too (HostedPartition);
                NOT_LEADER_OR_FOLLOWER if the broker does not lead, UNKNOWN_TOPIC_OR_PARTITION if the topic was deleted.
        """
        log = self.logs.get(broker_id)
        if log is not None and log.context.offline is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        if self.state.leader != broker_id or log is None:
            raise KafkaError(self._absence)
        return log

    def hosted_by(self, broker_id: int) -> PartitionLog:
        """Return this broker's replica, leader or not (preferred read replicas, debug consumers)."""
        log = self.logs.get(broker_id)
        if log is None:
            raise KafkaError(self._absence)
        if log.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return log

    def check_epoch(self, broker_id: int, current_leader_epoch: int) -> None:
        """Compare the client's leader epoch, before the check of leadership (core B.2.5); -1 means no check.

        A broker without a replica knows no epoch: it refuses as a broker that does not lead. One whose log is offline
        does not compare either (ReplicaManager.getPartitionOrError).
        """
        log = self.logs.get(broker_id)
        if log is None:
            raise KafkaError(self._absence)
        if current_leader_epoch in (-1, self.state.leader_epoch):
            return
        if log.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        older = current_leader_epoch < self.state.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def deleted(self) -> None:
        """Note the topic's deletion, which fails waiting requests and appends (ReplicaManager.getPartitionOrError)."""
        self._absence = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.wake()

    def apply(self, state: Partition) -> bool:
        """Apply a changed registration; return whether the leader or its epoch changed."""
        old, self.state = self.state, state
        if old.leader != state.leader and (log := self.logs.get(old.leader)) is not None:
            self._end = log.high_watermark
        changed = (old.leader, old.leader_epoch) != (state.leader, state.leader_epoch)
        if changed and state.leader != NO_LEADER:
            self._lead(state)
        self.replicate()
        if changed:
            self.wake()
        return changed

    def _lead(self, state: Partition) -> None:
        """Begin a leader epoch at the leader's end offset; truncate followers to the leader's history (core F.8)."""
        leader = self.logs.get(state.leader)
        if leader is None or leader.offline:
            return
        leader.epochs.assign(state.leader_epoch, leader.log_end_offset)
        if leader.log_end_offset < self._end:
            self.moved("another leader, which did not have all records", self._end, leader.log_end_offset, start=False)
        self._end = 0
        for broker_id, log in self.logs.items():
            if broker_id != state.leader and not log.offline:
                self._cut_to(leader, log)

    def host(self, broker_id: int, log: PartitionLog) -> None:
        """Add a broker's replica. Records beyond the leader's history were never committed, and are truncated."""
        self.logs[broker_id] = log
        self._starts.pop(broker_id, None)
        leader = self.logs.get(self.state.leader)
        if leader is log and not log.offline:
            self._lead(self.state)  # the epoch begins with the log, even if it is empty
        elif leader is not None and not leader.offline and not log.offline:
            self._cut_to(leader, log)

    def drop(self, broker_id: int) -> bool:
        """Remove the replica of a broker that is down or has it no longer; return whether there was one."""
        log = self.logs.pop(broker_id, None)
        if log is not None:
            self._starts[broker_id] = log.log_start_offset
            if broker_id == self.state.leader:
                self._end = log.high_watermark
        return log is not None

    def moved(self, why: str, before: int, after: int, *, start: bool = True) -> None:
        """Note a move of the log's start or end that removed records, for explanations."""
        if before != after:
            self.moves.append(OffsetsMoved(why, self._clock.now_ms(), before, after, start))

    def _cut_to(self, leader: PartitionLog, follower: PartitionLog) -> None:
        """Truncate a follower to the offset where its history and the leader's diverge (KIP-101, KIP-279)."""
        now_ms = self._clock.now_ms()
        if follower.log_end_offset < leader.log_start_offset:
            truncation.truncate_fully_and_start_at(follower, leader.log_start_offset, now_ms)
            return
        end = min(_common_end(leader, follower), leader.log_end_offset)
        if end < follower.log_end_offset:
            truncation.truncate_to(follower, end, now_ms)

    # --- appending ---------------------------------------------------------------------------------------------------

    def append(
        self,
        broker_id: int,
        batch: RecordBatch | bytearray | memoryview,
        now_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: object | None = None,
        all_in_sync: bool = False,
        checked: CheckedRecords | None = None,
        at_once: bool = True,
    ) -> AppendInfo:
        """Append one batch at its leader and replicate it. ``all_in_sync`` is acks=-1.

        Raises:
            KafkaError: this broker does not lead, too few in-sync replicas (NOT_ENOUGH_REPLICAS), or the log refuses
                the batch.
            LargeBatchError: as `PartitionLog.append_as_leader`.
        """
        log = self.led_by(broker_id)
        if all_in_sync and self.short_of_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        info = log.append_as_leader(
            batch,
            leader_epoch=self.state.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            guard=guard,
            checked=checked,
            at_once=at_once,
        )
        if not info.duplicate:
            self.replicate()
        return info

    def append_marker(
        self, broker_id: int, producer_id: int, producer_epoch: int, committed: bool, coordinator_epoch: int,
        transaction_version: int, now_ms: int, *, all_in_sync: bool = True,
    ) -> AppendInfo:  # fmt: skip
        """Append a transaction marker at the leader. ``all_in_sync`` is acks=-1.

        Raises:
            KafkaError: this broker does not lead; NOT_ENOUGH_REPLICAS; INVALID_PRODUCER_EPOCH or
                TRANSACTION_COORDINATOR_FENCED, UNKNOWN_SERVER_ERROR for version -1 (transactions D.6).
        """
        log = self.led_by(broker_id)
        if all_in_sync and self.short_of_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        batch = build_marker(producer_id, producer_epoch, committed, coordinator_epoch, now_ms)
        info = log.append_as_leader(
            batch,
            leader_epoch=self.state.leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self.replicate()
        return info

    @property
    def short_of_replicas(self) -> bool:
        """Whether there are fewer in-sync replicas than acks=-1 requires: never more than all replicas (core D.5.1)."""
        in_sync = len(self.state.isr)
        return in_sync < self.min_isr and in_sync < len(self.state.replicas)

    def replicate(self) -> None:
        """Copy to the followers the records that they do not have yet, and advance the high watermark.

        A leader that hangs gives its followers nothing, and its high watermark stays where it is.
        """
        leader = self.logs.get(self.state.leader)
        if leader is None or leader.context.offline is not None:
            return
        isr, bounds = self.state.isr, leader.bounds
        lowest = bounds.log_end_offset
        if len(isr) > 1 or len(self.logs) > 1:
            for broker_id, log in self.logs.items():
                if log is leader or log.offline or broker_id not in self.state.replicas or not self.follows(broker_id):
                    continue
                try:
                    self._copy(leader, log)
                except KafkaError:
                    if not log.offline:
                        raise
                    # Its directory has failed; the leader continues, and the follower leaves the ISR (KIP-858).
            # An in-sync replica whose broker is down or paused keeps the high watermark where it is until it leaves the
            # ISR (transactions LSO-03).
            ends = (self.logs[b].log_end_offset if b in self.logs else leader.high_watermark for b in isr)
            lowest = bounds.high_watermark if self._hangs(self.state.leader) else min(ends, default=lowest)
        if lowest > bounds.high_watermark and not self.short_of_replicas:
            leader.advance_high_watermark(lowest)
            for log in self.logs.values():
                if log is not leader:
                    log.advance_high_watermark(min(lowest, log.log_end_offset))
        self.wake()

    def follows(self, broker_id: int) -> bool:
        """Whether a follower replicates now."""
        return broker_id not in self.held and not self._hangs(broker_id) and not self._hangs(self.state.leader)

    def copy_to(self, future: PartitionLog, log: PartitionLog, most_bytes: int) -> bool:
        """Copy a piece of a replica's log to the one that is to replace it; return whether that had caught up before.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: one of the two directories has failed.
        """
        if future.log_end_offset > log.log_start_offset:
            self._cut_to(log, future)
        has_caught_up = future.log_end_offset == log.log_end_offset
        self._copy(log, future, most_bytes)
        return has_caught_up

    def _copy(self, leader: PartitionLog, follower: PartitionLog, most_bytes: int | None = None) -> None:
        """Copy what the follower does not have, or with ``most_bytes`` a piece of it, of at least one batch."""
        if follower.log_end_offset < leader.log_start_offset:
            truncation.truncate_fully_and_start_at(follower, leader.log_start_offset, self._clock.now_ms())
        while follower.log_end_offset < leader.log_end_offset:
            piece = leader.reader.read(
                follower.log_end_offset, most_bytes or _REPLICATION_BYTES, bound=leader.log_end_offset, min_one=True
            )
            if not piece.size:
                return
            if follower.log_end_offset == follower.log_start_offset:
                first = RecordBatch(piece.buffers[0]).base_offset
                if first < follower.log_end_offset:
                    # The leader's log begins inside a batch, after DeleteRecords: the whole batch is copied.
                    truncation.truncate_fully_and_start_at(follower, first, self._clock.now_ms())
            follower.append_as_follower(piece.buffers, now_ms=self._clock.now_ms())
            if most_bytes is not None:
                break
        if follower.high_watermark < leader.high_watermark:  # it was down, and has its old one
            follower.advance_high_watermark(min(leader.high_watermark, follower.log_end_offset))
        if follower.log_start_offset < leader.log_start_offset <= leader.high_watermark:
            follower.delete_records_before(leader.log_start_offset)

    def delete_records_before(self, broker_id: int, offset: int) -> int:
        """Delete records before an offset at the leader and on followers that replicate; return the offset (core E.10).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside 0 to the high watermark; ``-1`` means the high watermark.
        """
        log = self.led_by(broker_id)
        target = log.high_watermark if offset == -1 else offset
        if target < 0 or target > log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.moved("DeleteRecords", log.log_start_offset, max(target, log.log_start_offset))
        for replica_id, replica in self.logs.items():
            if not replica.offline and self.follows(replica_id):  # others do it when they follow again
                replica.delete_records_before(min(target, replica.log_end_offset))
        self.wake()
        return target

    def low_watermark(self, broker_id: int) -> int:
        """Return the lowest log start offset of the replicas on live brokers. Raises KafkaError if not led here.

        A broker that hangs or is down counts until it is fenced (Partition.lowWatermarkIfLeader).
        """
        leader = self.led_by(broker_id)
        isr = self.state.isr
        starts = [log.log_start_offset for each, log in self.logs.items() if each in isr or not self._hangs(each)]
        starts += [start for each, start in self._starts.items() if each in isr]
        return min(starts, default=leader.log_start_offset)

    def progress(self, broker_id: int) -> "Progress | None":
        """Return how far the replicas are, as the leader knows it; None if this broker does not lead."""
        try:
            leader = self.led_by(broker_id)
        except KafkaError:
            return None
        starts = {each: log.log_start_offset for each, log in self.logs.items() if log is not leader}
        return Progress(leader.high_watermark, {**self._starts, **starts})

    # --- writing at given offsets ------------------------------------------------------------------------------------

    def append_at(self, broker_id: int, batch: bytearray, now_ms: int) -> AppendInfo | None:
        """Append a batch with its own offsets at the leader, after a gap if they are later than the log's end.

        Raises:
            KafkaError: this broker does not lead; CORRUPT_MESSAGE, the log already has these offsets.
        """
        info = self.led_by(broker_id).append_as_follower(batch, now_ms)
        self.replicate()
        return info

    def start_at(self, broker_id: int, offset: int, now_ms: int) -> None:
        """Empty the logs of all replicas, which then continue at `offset`. Raises KafkaError if not led here."""
        leader = self.led_by(broker_id)
        self.moved("the control plane", leader.log_start_offset, offset)
        for log in self.logs.values():
            if not log.offline:
                truncation.truncate_fully_and_start_at(log, offset, now_ms)
        leader.epochs.assign(self.state.leader_epoch, offset)
        self.wake()

    # --- waiting -----------------------------------------------------------------------------------------------------

    def watch(self, call: Callable[[], None]) -> None:
        """Call whenever offsets or leadership may have changed, until :meth:`unwatch`."""
        self._watchers[call] = None

    @property
    def watched(self) -> bool:
        """Whether any request waits on this partition."""
        return bool(self._watchers)

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop calling."""
        self._watchers.pop(call, None)

    def wake(self) -> None:
        """Wake all requests that wait on this partition."""
        if self._watchers:
            for call in tuple(self._watchers):
                call()


class Progress(NamedTuple):
    """A leader's high watermark, and the log start offsets of its followers."""

    high_watermark: int
    starts: dict[int, int]

    def is_beyond(self, other: "Progress") -> bool:
        """Whether the high watermark or a follower has advanced since."""
        advanced = any(start > other.starts.get(each, -1) for each, start in self.starts.items())
        return advanced or self.high_watermark > other.high_watermark


def wake_all(waiting: list[ReplicatedPartition]) -> None:
    """Wake the requests that wait on partitions from before a reset or restore; the list is empty afterwards."""
    waiting.reverse()
    while waiting:  # one by one, since each is then freed with its logs
        waiting.pop().wake()
        pause()


def _common_end(leader: PartitionLog, follower: PartitionLog) -> int:
    """Return the offset where two logs diverge: the end of the newest common epoch, in the log where it ends first."""
    end, epoch = follower.log_end_offset, follower.epochs.latest
    while True:
        known, leader_end = leader.epochs.end_offset_for(epoch, leader.log_end_offset)
        if leader_end < 0:
            return end
        own, own_end = (
            (epoch, end) if known == epoch else follower.epochs.end_offset_for(known, follower.log_end_offset)
        )
        if own_end < 0:
            return min(end, leader_end)
        end = min(end, own_end)
        if own == known:
            return min(end, leader_end)
        epoch = own  # an epoch that only the leader has: try the one before it


def known_partition(
    partitions: Mapping[tuple[str, int], ReplicatedPartition], topic: str, index: int
) -> ReplicatedPartition:
    """Return a partition of the cluster.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    partition = partitions.get((topic, index))
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition
