"""Share partition on its leader: the in-memory state with a clock, a log and a persister (groups D.8)."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from broker.coordination.share_state.persister import (
    UNINITIALIZED_OFFSET,
    Persister,
    SharePartitionKey,
    StateBatch,
    StateResult,
)
from broker.partitions.share_partition.dead_letters import DeadLetters
from broker.partitions.share_partition.machine.acknowledge import (
    Acknowledgement,
    Change,
    DeadRecords,
    acknowledge,
    archive_dead,
    commit,
    dead_records,
    expire,
    release,
    roll_back,
)
from broker.partitions.share_partition.machine.inflight import InFlight
from broker.partitions.share_partition.settings import BY_DURATION, EARLIEST, offset_reset, share_settings
from broker.replication.partition import ReplicatedPartition
from broker.request.context import ClusterView
from broker.settings import BrokerSettings
from broker.time.clock import in_slices
from broker.time.timers import Timer
from protocol.errors import ErrorCode, KafkaError

_CODES = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
FENCING = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Errors that remove a share partition from memory (groups D.6 A6)."""


def leader_error(result: StateResult) -> KafkaError:
    """Return the error for members after one of the share coordinator (groups D.6 A6, ``fetchPersisterError``)."""
    return KafkaError(_CODES.get(result.error, ErrorCode.UNKNOWN_SERVER_ERROR), result.message)


class SharePartition:
    """A partition of one share group, on its leader.

    ``run`` starts a background task. ``dropped`` is called when the partition must be removed from memory: after an
    error of the share coordinator, or when another broker leads.
    """

    def __init__(
        self,
        cluster: ClusterView,
        broker_id: int,
        settings: BrokerSettings,
        persister: Persister,
        key: SharePartitionKey,
        partition: ReplicatedPartition,
        run: Callable[[Coroutine[Any, Any, None]], None],
        dropped: Callable[["SharePartition"], None],
    ) -> None:
        self._cluster, self._broker_id, self.run, self._dropped = cluster, broker_id, run, dropped
        self.key, self.partition, self._persister = key, partition, persister
        self.leader_epoch = partition.state.leader_epoch
        self.state_epoch = 0
        self._dead_letters = DeadLetters(cluster, broker_id, settings)
        self.inflight = InFlight(lambda: share_settings(cluster, settings, key.group_id))
        self.active = False
        """Whether the partition is loaded and this broker still leads it."""
        self.failure: KafkaError | None = None
        """The error of a failed load."""
        self._closed = False
        self.placed_offset = -1
        """The offset that was last looked up in the log (``SharePartition.fetchOffsetMetadata``)."""
        self._watchers: dict[Callable[[], None], None] = {}
        self._timer: Timer | None = None
        partition.watch(self._look)

    # --- lifecycle ---------------------------------------------------------------------------------------------------

    def begin_loading(self) -> None:
        """Begin to read the state from the share coordinator; waiting fetches are woken at the end."""
        self.run(self._load())

    async def _load(self) -> None:
        try:
            result = await self._persister.read(self.key, self.leader_epoch)
            if result.failed:
                raise leader_error(result)
            start = result.start_offset
            if start == UNINITIALIZED_OFFSET and not self._closed:
                start = await self._first_offset()
            if self._closed:  # meanwhile; another instance may exist by now
                return
            self.inflight.load(start, result.batches)
            self.state_epoch, self.active = result.state_epoch, True
            self._bury(dead_records(self.inflight))
            self.wake()
        except KafkaError as error:
            self.failure = error
            self.drop()

    async def _first_offset(self) -> int:
        """Return the first offset of a group without a start offset (``share.auto.offset.reset``).

        Raises:
            KafkaError: OFFSET_NOT_AVAILABLE if ``by_duration`` finds no record.
        """
        log = self.partition.led_by(self._broker_id)
        strategy, behind_ms = offset_reset(self._cluster, self.key.group_id)
        if strategy == EARLIEST:
            return log.log_start_offset
        if strategy == BY_DURATION:
            since_ms = self._cluster.clock.now_ms() - behind_ms
            record = await in_slices(log.reader.search_timestamp(since_ms, log.high_watermark))
            if record is None:
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
            return record.offset
        return log.high_watermark

    def _look(self) -> None:
        """Handle a change of the partition: drop this if the broker no longer leads it."""
        known = self._cluster.partitions.get((self.partition.topic, self.partition.index))
        if known is not self.partition or self.partition.state.leader != self._broker_id:
            self.drop()

    def drop(self) -> None:
        """Remove the partition from memory and wake waiting fetches; the share coordinator keeps the state."""
        self.active = False
        self._dropped(self)
        self.close()
        self.wake()

    def close(self) -> None:
        """Stop watching the partition, and cancel the timer."""
        self.active, self._closed = False, True
        self.partition.unwatch(self._look)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- acknowledgements --------------------------------------------------------------------------------------------

    def begin_acknowledging(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> Change:
        """Begin acknowledgements, all or none; :meth:`write` completes them.

        Raises:
            KafkaError: INVALID_RECORD_STATE or INVALID_REQUEST (groups D.6).
        """
        try:
            return acknowledge(self.inflight, member, acknowledgements, self._cluster.clock.now_ms())
        finally:
            self.wake()

    async def release(self, member: str) -> None:
        """Release a member's acquired records; raises as :meth:`write`."""
        change = release(self.inflight, member, self._cluster.clock.now_ms())
        self.wake()
        await self.write(change)

    async def write(self, change: Change) -> None:
        """Write a change to the share coordinator, then commit it or roll it back.

        Waiting fetches are woken if the start offset moves, not if records are available again
        (``SharePartition.rollbackOrProcessStateUpdates``): those are for the next attempt of any fetch.

        Raises:
            KafkaError: the share coordinator's error in the form for members (groups D.6 A6).
        """
        self.follow_locks()
        if not change:
            return
        result = await self._persist(change.batches)
        if result.failed:
            roll_back(self.inflight, change, self._cluster.clock.now_ms())
            self.follow_locks()
            error = leader_error(result)
            if error.code in FENCING:
                self.drop()
            raise error
        start_offset = self.inflight.start_offset
        commit(self.inflight, change)
        self._bury(change.dead)
        self.follow_locks()
        if self.inflight.start_offset != start_offset:
            self.wake()

    async def _persist(self, batches: Sequence[StateBatch]) -> StateResult:
        return await self._persister.write(
            self.key,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.inflight.start_offset,
            delivery_complete_count=self.inflight.delivery_complete_count,
            batches=batches,
        )

    # --- locks -------------------------------------------------------------------------------------------------------

    def follow_locks(self) -> None:
        """Set the timer to the expiry of the next lock."""
        end_ms = self.inflight.next_lock_end_ms
        timer = self._timer
        if timer is not None and (end_ms is None or timer.call is None or timer.at_ms != end_ms):
            timer.cancel()
            self._timer = timer = None
        if timer is None and end_ms is not None and self.active:
            self._timer = self._cluster.clock.call_at(end_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self.active:
            return
        change = expire(self.inflight, self._cluster.clock.now_ms())
        self.follow_locks()
        if change:
            self.run(self._write_expired(change))
            self.wake()

    async def _write_expired(self, change: Change) -> None:
        """Persist expired locks, which stay expired even if that fails (groups D.7)."""
        await self._persist(change.batches)
        self.inflight.move_start()
        self._bury(change.dead)
        self.wake()

    # --- dead letters ------------------------------------------------------------------------------------------------

    def _bury(self, dead: Sequence[DeadRecords]) -> None:
        for each in dead:
            self.run(self._write_dead(each))

    async def _write_dead(self, dead: DeadRecords) -> None:
        """Write records to the dead-letter queue, then archive them even if the write failed (KIP-1191).

        This continues after the partition is closed; records that stay ARCHIVING are written again after the next load.
        """
        await self._dead_letters.write(self.key, self.partition, dead)
        await self._persist([archive_dead(self.inflight, dead)])
        self.inflight.move_start()
        self.wake()

    # --- waiting -----------------------------------------------------------------------------------------------------

    def watch(self, call: Callable[[], None]) -> None:
        """Run ``call`` when records may have become available, until :meth:`unwatch`."""
        self._watchers[call] = None

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop running ``call``."""
        self._watchers.pop(call, None)

    def wake(self) -> None:
        """Let the waiting fetches look again."""
        for call in tuple(self._watchers):
            call()
