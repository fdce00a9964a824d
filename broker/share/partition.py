"""A share partition at its leader: the machine, with a clock, a log and a persister (groups D.8)."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from broker.clock import in_slices
from broker.cluster_state import ClusterState
from broker.coordination.share.persister import UNINITIALIZED_OFFSET, SharePartitionKey, StateBatch, StateResult
from broker.replication.partition import ReplicatedPartition
from broker.settings import BrokerSettings
from broker.share.dead_letters import DeadLetters
from broker.share.machine.acknowledge import (
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
from broker.share.machine.inflight import InFlight
from broker.share.settings import BY_DURATION, EARLIEST, offset_reset, share_settings
from broker.timers import Timer
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
"""Errors after which a share partition is dropped from memory (groups D.6 A6)."""


def leader_error(result: StateResult) -> KafkaError:
    """The share coordinator's error as members see it (groups D.6 A6, ``fetchPersisterError``)."""
    return KafkaError(_CODES.get(result.error, ErrorCode.UNKNOWN_SERVER_ERROR), result.message)


class SharePartition:
    """A partition that one share group consumes, at its leader.

    ``run`` starts a task that outlives the request or timer that asks for it. ``dropped`` is called when the share
    coordinator's answer, or a new leader, ends the partition.
    """

    def __init__(
        self,
        cluster: ClusterState,
        broker_id: int,
        settings: BrokerSettings,
        key: SharePartitionKey,
        partition: ReplicatedPartition,
        run: Callable[[Coroutine[Any, Any, None]], None],
        dropped: Callable[["SharePartition"], None],
    ) -> None:
        self._cluster, self._broker_id, self.run, self._dropped = cluster, broker_id, run, dropped
        self.key, self.partition, self._persister = key, partition, cluster.persister
        self.leader_epoch = partition.state.leader_epoch
        self.state_epoch = 0
        self._dead_letters = DeadLetters(cluster, broker_id, settings)
        self.inflight = InFlight(lambda: share_settings(cluster, settings, key.group_id))
        self.active = False
        """Whether it is loaded and still this broker's."""
        self.failure: KafkaError | None = None
        """Why it could not be loaded."""
        self._closed = False
        self.placed_offset = -1
        """The offset that was last looked up in the log (``SharePartition.fetchOffsetMetadata``)."""
        self._watchers: dict[Callable[[], None], None] = {}
        self._timer: Timer | None = None
        partition.watch(self._look)

    # --- life --------------------------------------------------------------------------------------------------------

    def begin_loading(self) -> None:
        """Read the state from the share coordinator; those that wait are woken when it is there."""
        self.run(self._load())

    async def _load(self) -> None:
        try:
            result = await self._persister.read(self.key, self.leader_epoch)
            if result.failed:
                raise leader_error(result)
            start = result.start_offset
            if start == UNINITIALIZED_OFFSET and not self._closed:
                start = await self._first_offset()
            if self._closed:  # meanwhile; there may be another one by now
                return
            self.inflight.load(start, result.batches)
            self.state_epoch, self.active = result.state_epoch, True
            self._bury(dead_records(self.inflight))
            self.wake()
        except KafkaError as error:
            self.failure = error
            self.drop()

    async def _first_offset(self) -> int:
        """The first offset of a group that has none (``share.auto.offset.reset``).

        Raises:
            KafkaError: OFFSET_NOT_AVAILABLE if ``by_duration`` finds no record.
        """
        log = self.partition.led_by(self._broker_id)
        strategy, behind_ms = offset_reset(self._cluster, self.key.group_id)
        if strategy == EARLIEST:
            return log.log_start_offset
        if strategy == BY_DURATION:
            since_ms = self._cluster.clock.now_ms() - behind_ms
            found = await in_slices(log.reader.search_timestamp(since_ms, log.high_watermark))
            if found is None:
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
            return found.offset
        return log.high_watermark

    def _look(self) -> None:
        """The partition has changed: only its leader keeps it."""
        known = self._cluster.partitions.get((self.partition.topic, self.partition.index))
        if known is not self.partition or self.partition.state.leader != self._broker_id:
            self.drop()

    def drop(self) -> None:
        """Forget it: the state comes back from the share coordinator. Those that wait are woken."""
        self.active = False
        self._dropped(self)
        self.close()
        self.wake()

    def close(self) -> None:
        """Follow nothing any more."""
        self.active, self._closed = False, True
        self.partition.unwatch(self._look)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- acknowledgements --------------------------------------------------------------------------------------------

    def begin_acknowledging(self, member: str, asked: Sequence[Acknowledgement]) -> Change:
        """Begin to acknowledge all or nothing; :meth:`write` does the rest.

        Raises:
            KafkaError: INVALID_RECORD_STATE or INVALID_REQUEST (groups D.6).
        """
        return acknowledge(self.inflight, member, asked, self._cluster.clock.now_ms())

    async def release(self, member: str) -> None:
        """Release what a member holds; see :meth:`write`."""
        await self.write(release(self.inflight, member, self._cluster.clock.now_ms()))

    async def write(self, change: Change) -> None:
        """Write a change to the share coordinator, then commit it or roll it back.

        Raises:
            KafkaError: the share coordinator's, as members see it (groups D.6 A6).
        """
        self.follow_locks()
        if not change:
            return
        result = await self._persist(change.batches)
        if result.failed:
            roll_back(self.inflight, change, self._cluster.clock.now_ms())
        else:
            commit(self.inflight, change)
            self._bury(change.dead)
        self.follow_locks()
        error = leader_error(result)
        if result.failed and error.code in FENCING:
            self.drop()
        self.wake()
        if result.failed:
            raise error

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
        """Set the timer to the end of the first lock."""
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
        """Expired locks stay expired, whether that is written or not (groups D.7)."""
        await self._persist(change.batches)
        self.inflight.move_start()
        self._bury(change.dead)
        self.wake()

    # --- dead letters ------------------------------------------------------------------------------------------------

    def _bury(self, dead: Sequence[DeadRecords]) -> None:
        for each in dead:
            self.run(self._write_dead(each))

    async def _write_dead(self, dead: DeadRecords) -> None:
        """Write records to the dead-letter queue; they are archived then, whether that succeeded or not (KIP-1191).

        Also if the partition was closed meanwhile: what stays ARCHIVING is written once more when it is loaded.
        """
        await self._dead_letters.write(self.key, self.partition, dead)
        await self._persist([archive_dead(self.inflight, dead)])
        self.inflight.move_start()
        self.wake()

    # --- waiting -----------------------------------------------------------------------------------------------------

    def watch(self, call: Callable[[], None]) -> None:
        """Call when records may have become available, until :meth:`unwatch`."""
        self._watchers[call] = None

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        self._watchers.pop(call, None)

    def wake(self) -> None:
        """Wake the fetches that wait."""
        for call in tuple(self._watchers):
            call()
