"""Share coordinator of one partition of ``__share_group_state``, after Kafka's ``ShareCoordinatorShard``.

A share partition has a state from its initialization to its deletion (groups D.9).

1. The state is the last snapshot, merged with the updates since then; only :meth:`ShareMachine.replay` changes it. An
   operation writes one record: an update, or a snapshot after
   ``share.coordinator.snapshot.update.records.per.snapshot`` updates.
2. Refusals are results, not exceptions: each is about one share partition. Only errors of the log are raised.
3. Leaders are fenced by the highest leader epoch that has read the state, earlier initializations by the state epoch.
4. No request is parked. Two timers run while they have work: one repeats snapshots of idle share partitions, the other
   has the log pruned (:class:`Rounds`).

Exception: the highest epochs are kept after a snapshot that lowers them, as in Kafka, until the coordinator moves.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from uuid import UUID

from broker.coordination.outcome import Outcome, RepliesInOrder, Reply, SetTimer, TransactionalAppend
from broker.coordination.settings import Settings
from broker.coordination.share_state.persister import (
    UNINITIALIZED_OFFSET,
    ReadResult,
    SharePartitionKey,
    StateBatch,
    StateResult,
    SummaryResult,
)
from broker.coordination.share_state.state import (
    NO_EPOCH,
    ShareState,
    combine,
    initialized,
    of_snapshot,
    of_update,
    write_batches,
)
from broker.settings.releases import Behaviour, newest_behaves
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, texts_of
from protocol.log_records.share_state import ShareRecord, ShareSnapshot, ShareUpdate

_SNAPSHOT_INTERVAL = "share.coordinator.cold.partition.snapshot.interval.ms"
_PRUNE_INTERVAL = "share.coordinator.state.topic.prune.interval.ms"


@dataclass(frozen=True, slots=True)
class PruneLog:
    """Delete the log's records below ``offset``, which later snapshots have replaced."""

    offset: int


ShareOutcome = Outcome[PruneLog]


class Rounds:
    """Periodic work over the ``states`` of one machine (groups D.9): repeated snapshots, and pruning of the log.

    Kafka runs it every ``share.coordinator.cold.partition.snapshot.interval.ms`` and
    ``share.coordinator.state.topic.prune.interval.ms``. Here a timer runs only if there may be work, so that idle
    coordinators do not slow down an advance of the clock.
    """

    def __init__(self, settings: Settings, states: Mapping[SharePartitionKey, ShareState]) -> None:
        self._settings, self._states = settings, states
        self._snapshots: dict[SharePartitionKey, int] = {}
        """Share partition -> log offset of its last snapshot."""
        self._last_offset = 0
        self._pruned = 0
        self._due_ms: dict[str, int] = {}
        """When each armed timer fires (ms); a time in the past, left by a refused record, does not count."""

    # --- replay ------------------------------------------------------------------------------------------------------

    def snapshot_at(self, key: SharePartitionKey, offset: int) -> None:
        """Note a snapshot record."""
        self._snapshots[key] = self._last_offset = offset

    def deleted_at(self, key: SharePartitionKey, offset: int) -> None:
        """Note a tombstone."""
        self._snapshots.pop(key, None)
        self._last_offset = offset

    @property
    def last_redundant_offset(self) -> int:
        """The offset below which later records replace all others (Kafka's ``ShareCoordinatorOffsetsManager``)."""
        return min(self._snapshots.values(), default=self._last_offset)

    # --- timers ------------------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the timers after the log was read, if there are snapshots."""
        self._due_ms.clear()
        if not self._snapshots:
            return ()
        return self.watch(now_ms)

    def watch(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the timers that are not armed, as a record is being written."""
        timers = []
        for interval, then in ((_SNAPSHOT_INTERVAL, self.repeat_snapshots), (_PRUNE_INTERVAL, self.prune)):
            if self._due_ms.get(interval, -1) < now_ms:
                self._due_ms[interval] = now_ms + self._settings.int(interval)
                timers.append(SetTimer(interval, self._due_ms[interval], then))
        return tuple(timers)

    def repeat_snapshots(self, now_ms: int) -> ShareOutcome:
        """Write snapshots of share partitions without recent writes, unless the last snapshots of all are repeats."""
        self._due_ms.pop(_SNAPSHOT_INTERVAL, None)
        if all(state.is_cold for state in self._states.values()):
            return Outcome()
        interval_ms = self._settings.int(_SNAPSHOT_INTERVAL)
        records = tuple(
            replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms).snapshot_record(key)
            for key, state in self._states.items()
            if now_ms - state.write_timestamp_ms >= interval_ms
        )
        return Outcome(records, self.watch(now_ms))

    def prune(self, now_ms: int) -> ShareOutcome:
        """Have the log pruned, if more records have become redundant since the last time."""
        self._due_ms.pop(_PRUNE_INTERVAL, None)
        offset = self.last_redundant_offset
        if offset <= self._pruned:
            return Outcome()
        self._pruned = offset
        return Outcome(effects=(*self.watch(now_ms), PruneLog(offset)))


_NEGATIVE_PARTITION = "The partition id cannot be a negative number."
_NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
_NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
_WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
_READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."
_TEXTS = texts_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_FENCED_BEFORE_4_4 = "The share coordinator rejected the request because the share-group state epoch did not match."


@dataclass(frozen=True, slots=True)
class StateWrite:
    """The change of a WriteShareGroupState; see :meth:`broker.coordination.share_state.persister.Persister.write`."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = field(default=())


class ShareMachine(RepliesInOrder):
    """State of the share partitions of one coordinator.

    ``partition_count(topic_id)`` is a topic's number of partitions, 0 if there is no such topic; ``behaves``: whether
    the emulated release has a behaviour.
    """

    def __init__(
        self,
        settings: Settings,
        partition_count: Callable[[UUID], int],
        behaves: Callable[[Behaviour], bool] = newest_behaves,
    ) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._settings, self._partition_count, self._behaves = settings, partition_count, behaves
        self._updates: dict[SharePartitionKey, int] = {}
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._rounds = Rounds(settings, self.states)

    # --- requests ----------------------------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int, to: Hashable
    ) -> ShareOutcome:
        """InitializeShareGroupState: replies with a StateResult."""
        refused = (
            _malformed(key)
            or self._negative(_NEGATIVE_STATE_EPOCH, state_epoch)
            or self._stale_state(key, state_epoch)
            or self._unknown(key)
        )
        if refused is not None:
            return _answered(to, refused)
        known = self.states.get(key)
        snapshot_epoch = 0 if known is None else known.snapshot_epoch + 1
        state = initialized(snapshot_epoch, state_epoch, start_offset, now_ms)
        return self._written(to, StateResult(), state.snapshot_record(key), now_ms)

    def write(self, key: SharePartitionKey, change: StateWrite, now_ms: int, to: Hashable) -> ShareOutcome:
        """WriteShareGroupState: replies with a StateResult."""
        refused = (
            _malformed(key)
            or self._negative(_NEGATIVE_LEADER_EPOCH, change.leader_epoch)
            or self._negative(_NEGATIVE_STATE_EPOCH, change.state_epoch)
        )
        if refused is None and key not in self.states:
            refused = StateResult(ErrorCode.INVALID_REQUEST, _WRITE_UNINITIALIZED)
        refused = (
            refused
            or self._stale_leader(key, change.leader_epoch)
            or self._stale_state(key, change.state_epoch)
            or self._unknown(key)
        )
        if refused is not None:
            return _answered(to, refused)
        record = self._changed(key, change, self.states[key].leader_epoch, now_ms)
        return self._written(to, StateResult(), record, now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int, to: Hashable) -> ShareOutcome:
        """ReadShareGroupState: replies with a ReadResult. Records the leader epoch if it is new."""
        refused = _malformed(key) or self._negative(_NEGATIVE_LEADER_EPOCH, leader_epoch)
        if refused is None and key not in self.states:
            refused = StateResult(ErrorCode.INVALID_REQUEST, _READ_UNINITIALIZED)
        refused = refused or self._stale_leader(key, leader_epoch) or self._unknown(key)
        if refused is not None:
            return _answered(to, ReadResult(refused.error, refused.message))
        state = self.states[key]
        result = ReadResult(state_epoch=state.state_epoch, start_offset=state.start_offset, batches=state.batches)
        if leader_epoch in (NO_EPOCH, self._leader_epochs.get(key)):
            return _answered(to, result)
        change = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count)
        return self._written(to, result, self._changed(key, change, leader_epoch, now_ms), now_ms)

    def summarize(self, key: SharePartitionKey, to: Hashable) -> ShareOutcome:
        """ReadShareGroupStateSummary: replies with a SummaryResult, and changes nothing."""
        return _answered(to, self._summary(key))

    def _summary(self, key: SharePartitionKey) -> SummaryResult:
        refused = _malformed(key) or self._unknown(key)
        if refused is not None:
            return SummaryResult(refused.error, refused.message)
        state = self.states.get(key)
        if state is None:
            return SummaryResult()
        return SummaryResult(
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )

    def delete(self, key: SharePartitionKey, now_ms: int, to: Hashable) -> ShareOutcome:
        """DeleteShareGroupState: replies with a StateResult, also if there is no state."""
        refused = _malformed(key) or self._unknown(key)
        if refused is not None:
            return _answered(to, refused)
        if key not in self.states:
            return _answered(to, StateResult())
        return self._written(to, StateResult(), ShareRecord(*key), now_ms)

    def topics_deleted(self, topic_ids: Iterable[UUID], now_ms: int) -> ShareOutcome:
        """Delete the states of share partitions of deleted topics."""
        gone = frozenset(topic_ids)
        records = tuple(ShareRecord(*key) for key in self.states if key.topic_id in gone)
        return Outcome(records, self._rounds.watch(now_ms)) if records else Outcome()

    # --- checks, in Kafka's order ------------------------------------------------------------------------------------

    def _negative(self, text: str, epoch: int) -> StateResult | None:
        if epoch < 0 and self._behaves(Behaviour.SHARE_STATE_NEVER_GOES_BACK):
            return StateResult(ErrorCode.INVALID_REQUEST, text)
        return None

    def _stale_leader(self, key: SharePartitionKey, leader_epoch: int) -> StateResult | None:
        if leader_epoch != NO_EPOCH and self._leader_epochs.get(key, leader_epoch) > leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH)
        return None

    def _stale_state(self, key: SharePartitionKey, state_epoch: int) -> StateResult | None:
        if state_epoch != NO_EPOCH and self._state_epochs.get(key, state_epoch) > state_epoch:
            refused = _refused(ErrorCode.FENCED_STATE_EPOCH)
            newer = self._behaves(Behaviour.SHARE_STATE_NEVER_GOES_BACK)
            return refused if newer else replace(refused, message=_FENCED_BEFORE_4_4)
        return None

    def _unknown(self, key: SharePartitionKey) -> StateResult | None:
        if key.partition >= self._partition_count(key.topic_id):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return None

    # --- records -----------------------------------------------------------------------------------------------------

    def _changed(self, key: SharePartitionKey, change: StateWrite, leader_epoch: int, now_ms: int) -> ShareRecord:
        """Return an update record, or after many updates a snapshot with the change merged."""
        state = self.states[key]
        if self._behaves(Behaviour.SHARE_STATE_NEVER_GOES_BACK):
            change = _forward(change, state)
        if self._updates.get(key, 0) < self._updates_per_snapshot:
            update = ShareUpdate(
                state.snapshot_epoch,
                leader_epoch,
                change.start_offset,
                write_batches(combine(change.batches, change.start_offset, joined=self._joins)),
                change.delivery_complete_count,
            )
            return ShareRecord(*key, update)
        start = state.start_offset if change.start_offset == UNINITIALIZED_OFFSET else change.start_offset
        merged = replace(
            state,
            snapshot_epoch=state.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=change.delivery_complete_count,
            batches=combine((*state.batches, *change.batches), start, joined=self._joins),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )
        return merged.snapshot_record(key)

    @property
    def _joins(self) -> bool:
        return self._behaves(Behaviour.SHARE_STATE_BATCHES_JOINED)

    @property
    def _updates_per_snapshot(self) -> int:
        return self._settings.int("share.coordinator.snapshot.update.records.per.snapshot")

    def _written(self, to: Hashable, result: StateResult, record: ShareRecord, now_ms: int) -> ShareOutcome:
        timers: tuple[SetTimer, ...] = self._rounds.watch(now_ms)
        return Outcome((record,), (Reply(to, result), *timers))

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: ShareRecord, offset: int, _transaction: TransactionalAppend | None = None) -> None:
        """Apply a record."""
        key = SharePartitionKey(record.group_id, record.topic_id, record.partition)
        match record.value:
            case ShareSnapshot() as snapshot:
                self._see(self._leader_epochs, key, snapshot.leader_epoch)
                self._see(self._state_epochs, key, snapshot.state_epoch)
                self.states[key] = of_snapshot(snapshot)
                if self._updates.get(key, 0) >= self._updates_per_snapshot:
                    self._updates[key] = 0
                self._rounds.snapshot_at(key, offset)
            case ShareUpdate() as update:
                self._see(self._leader_epochs, key, update.leader_epoch)
                known = self.states.get(key)
                self.states[key] = of_update(update) if known is None else known.updated(update, joined=self._joins)
                self._updates[key] = self._updates.get(key, 0) + 1
            case None:
                for table in (self.states, self._leader_epochs, self._state_epochs, self._updates):
                    table.pop(key, None)
                self._rounds.deleted_at(key, offset)

    @staticmethod
    def _see(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int) -> None:
        epochs[key] = max(epochs.get(key, epoch), epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Do nothing: the topic has no transactions."""

    def loaded(self, now_ms: int) -> ShareOutcome:
        """Arm the timers of the rounds."""
        return Outcome(effects=self._rounds.start(now_ms))

    def unloaded(self) -> ShareOutcome:
        """Do nothing: no request is parked."""
        return Outcome()


def _forward(change: StateWrite, state: ShareState) -> StateWrite:
    """Return the change with start offset and delivery-complete count not lower than the stored ones."""
    start, count = max(change.start_offset, state.start_offset), change.delivery_complete_count
    if change.start_offset == state.start_offset:
        count = max(count, state.delivery_complete_count)
    elif change.start_offset < state.start_offset:
        count = state.delivery_complete_count
    return replace(change, start_offset=start, delivery_complete_count=count)


def _answered(to: Hashable, result: StateResult) -> ShareOutcome:
    return Outcome(effects=(Reply(to, result),))


def _refused(code: ErrorCode) -> StateResult:
    return StateResult(code, _TEXTS[code])


def _malformed(key: SharePartitionKey) -> StateResult | None:
    if key.partition < 0:
        return StateResult(ErrorCode.INVALID_REQUEST, _NEGATIVE_PARTITION)
    return None
