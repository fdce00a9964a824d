"""Acknowledgements, releases and expired locks (groups D.6, D.7; Kafka's ``SharePartition.acknowledge``).

Each returns a :class:`Change` to be written to the share coordinator. Acknowledged and released records keep their
locks until :func:`commit`; :func:`roll_back` restores their state.
"""

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from typing import NamedTuple

from broker.coordination.share_state.persister import StateBatch
from broker.partitions.share_partition.machine.inflight import InFlight, ShareSettings
from broker.partitions.share_partition.machine.states import DeliveryLimit, InFlightBatch, InFlightState, RecordState
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError


class AcknowledgeType(IntEnum):
    """A member's acknowledgement of a record; 0 is for offsets without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
}


_WHY = {
    AcknowledgeType.GAP: "acknowledged as a gap",
    AcknowledgeType.ACCEPT: "accepted",
    AcknowledgeType.RELEASE: "released by its member",
    AcknowledgeType.REJECT: "rejected by its member",
}
"""Acknowledgement type -> why the acquisition ended, for descriptions."""
LOCK_ENDED, SESSION_CLOSED = "its lock ended", "the member's share session was closed"


class Acknowledgement(NamedTuple):
    """A range of offsets in a request, with one type for all of them, or one for each offset."""

    first: int
    last: int
    types: Sequence[int]


REJECTED = "Offset rejected by client."
LIMIT_REACHED = "Offset delivery count exceeded the threshold."


class DeadRecords(NamedTuple):
    """A range of ARCHIVING records to write to the dead-letter queue, with the ``cause`` (KIP-1191)."""

    first: int
    last: int
    delivery_count: int
    cause: str


@dataclass(slots=True)
class Change:
    """A change of records' states, with the batches to write and the records for the dead-letter queue."""

    states: list[InFlightState] = field(default_factory=list)
    batches: list[StateBatch] = field(default_factory=list)
    dead: list[DeadRecords] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.batches)

    def add(self, first: int, last: int, state: InFlightState, cause: str = LIMIT_REACHED) -> None:
        """Add the new state of a range; ``cause`` is for its dead-letter records, if it becomes ARCHIVING."""
        self.states.append(state)
        if state.state is RecordState.ARCHIVING:
            self.dead.append(DeadRecords(first, last, state.delivery_count, cause))
        self.batches.append(StateBatch(first, last, int(state.state), state.delivery_count))


def acknowledge(inflight: InFlight, member: str, acknowledgements: Sequence[Acknowledgement], now_ms: int) -> Change:
    """Begin a member's acknowledgements of a partition, all or none; renewals take effect immediately.

    Raises:
        KafkaError: INVALID_RECORD_STATE: not acquired, acquired by another member, or a change is being written;
            INVALID_REQUEST: offsets after those in flight; UNKNOWN_SERVER_ERROR: the start offset is in the range, and
            no batch in flight begins at or below it.
    """
    verdicts = _Verdicts(inflight, inflight.settings, member, now_ms)
    try:
        for each in acknowledgements:
            if each.last >= inflight.start_offset:
                for batch in _touched(inflight, each):
                    if batch.last >= inflight.start_offset:
                        verdicts.on_batch(each, batch)
    except KafkaError:
        roll_back(inflight, verdicts.change, now_ms)
        raise
    return verdicts.change


def _invalid_state(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)


def _touched(inflight: InFlight, acknowledgement: Acknowledgement) -> list[InFlightBatch]:
    place = inflight.floor(acknowledgement.first)
    if place < 0 and acknowledgement.first < inflight.start_offset <= acknowledgement.last:
        place = inflight.floor(inflight.start_offset)
        if place < 0:  # a NullPointerException in Kafka, which fails the whole request (groups D.6 A2)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if place < 0:
        raise _invalid_state("Batch record not found. The request batch offsets are not found in the cache.")
    batches = inflight.batches[place : inflight.floor(acknowledgement.last) + 1]
    for name, offset in (("first", acknowledgement.first), ("last", acknowledgement.last)):
        if batches[-1].last < offset:
            message = f"Batch record not found. The {name} offset in request is past acquired records."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return batches


@dataclass(slots=True)
class _Verdicts:
    """Begins the acknowledgements of one member, one after another, with the current settings."""

    inflight: InFlight
    settings: ShareSettings
    member: str
    now_ms: int
    change: Change = field(default_factory=Change)

    def on_batch(self, acknowledgement: Acknowledgement, batch: InFlightBatch) -> None:
        """Begin an acknowledgement of one batch, as a whole or by offset."""
        inflight, state = self.inflight, batch.whole
        if state is not None:
            _check_owner(state, self.member)
            starts_within = batch.first < inflight.start_offset <= batch.last
            if (
                batch.is_within(acknowledgement.first, acknowledgement.last)
                and len(acknowledgement.types) == 1
                and not starts_within
            ):
                self._begin(acknowledgement.types[0], batch, batch.first, batch.last, state)
                return
        offsets, first = inflight.split(batch), max(acknowledgement.first, inflight.start_offset)
        for offset in batch.within(first, acknowledgement.last):
            each = offsets[offset]
            _check_owner_of_offset(each, self.member)
            kind = acknowledgement.types[offset - acknowledgement.first if len(acknowledgement.types) > 1 else 0]
            self._begin(kind, batch, offset, offset, each)

    def _begin(self, kind: int, batch: InFlightBatch, first: int, last: int, state: InFlightState) -> None:
        inflight, limit = self.inflight, self.settings.limit
        if kind == AcknowledgeType.RENEW:
            if not self.settings.renew_enabled:
                raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
            state.lock_until_ms = self.now_ms + self.settings.lock_ms
            inflight.lock(batch, state, first)
            return
        member, rejected = state.member, kind == AcknowledgeType.REJECT
        if not state.begin_change(limit.then if rejected else _STATES[AcknowledgeType(kind)], limit):
            raise _invalid_state("Unable to acknowledge records for the batch")
        state.note_end(member, self.now_ms, _WHY[AcknowledgeType(kind)])
        self.change.add(first, last, state, REJECTED if rejected else LIMIT_REACHED)
        if state.state.terminal:
            inflight.delivery_complete_count += inflight.counted(first, last)


def _check_owner(state: InFlightState, member: str) -> None:
    if not state.member:
        raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
    # SharePartition checks the owner of a batch before a change in progress, and that of an offset after it.
    if state.member != member:
        raise _invalid_state("Member is not the owner of batch record")
    if state.changing:
        raise _changing()


def _check_owner_of_offset(state: InFlightState, member: str) -> None:
    if state.state is not RecordState.ACQUIRED:
        raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
    if state.changing:
        raise _changing()
    if state.member != member:
        raise _invalid_state("Member is not the owner of offset")


def _changing() -> KafkaError:
    return _invalid_state("The record state is invalid. The acknowledgement of delivery could not be completed.")


def release(inflight: InFlight, member: str, now_ms: int) -> Change:
    """Begin to release a member's acquired records, because its share session is closed."""
    change, limit = Change(), inflight.settings.limit
    for batch in inflight.batches:
        whole = batch.whole
        if whole is not None and whole.member == member and batch.first < inflight.start_offset <= batch.last:
            inflight.split(batch)
        for first, last, state in batch.runs():
            if state.member != member or state.state is not RecordState.ACQUIRED:
                continue
            below = last < inflight.start_offset
            if state.begin_change(RecordState.ARCHIVED if below else RecordState.AVAILABLE, limit):
                state.note_end(member, now_ms, SESSION_CLOSED)
                change.add(first, last, state)
                if state.state.terminal:
                    inflight.delivery_complete_count += inflight.counted(first, last)
    return change


def expire(inflight: InFlight, now_ms: int) -> Change:
    """End the expired locks immediately; the returned change is only to be written, without :func:`commit`."""
    change, limit = Change(), inflight.settings.limit
    for batch, offset in inflight.due_locks(now_ms):
        if batch.whole is not None and batch.first < inflight.start_offset <= batch.last:
            for each in inflight.split(batch):
                _expire_one(inflight, batch, each, limit, change)
        else:
            _expire_one(inflight, batch, offset, limit, change)
    return change


def _expire_one(inflight: InFlight, batch: InFlightBatch, offset: int, limit: DeliveryLimit, change: Change) -> None:
    whole = batch.whole
    first, last = (batch.first, batch.last) if whole is not None else (offset, offset)
    state = whole if batch.offsets is None else batch.offsets[offset]
    assert state is not None
    below, member, ended_ms = last < inflight.start_offset, state.member, state.lock_until_ms
    if not state.end(RecordState.ARCHIVED if below else RecordState.AVAILABLE, limit):
        return
    if ended_ms is not None:
        state.note_end(member, ended_ms, LOCK_ENDED)
    state.lock_until_ms = None
    change.add(first, last, state)
    if state.state.terminal:
        inflight.delivery_complete_count += inflight.counted(first, last)
    elif state.state is RecordState.AVAILABLE:
        inflight.note_available()


def commit(inflight: InFlight, change: Change) -> None:
    """Commit a written change: end the locks and move the start offset."""
    for state in change.states:
        state.commit()
        if state.state is RecordState.AVAILABLE:
            inflight.note_available()
    inflight.move_start()


def roll_back(inflight: InFlight, change: Change, now_ms: int) -> None:
    """Undo a change that could not be written."""
    for state, batch in zip(change.states, change.batches, strict=True):
        state.roll_back(now_ms)
        if state.state is RecordState.AVAILABLE:
            inflight.note_available()
        written = RecordState(batch.delivery_state)
        if written.terminal and not state.state.terminal:
            inflight.delivery_complete_count -= inflight.counted(batch.first_offset, batch.last_offset)
        elif written is RecordState.ARCHIVING and state.state is RecordState.ARCHIVED:  # its lock has expired meanwhile
            inflight.delivery_complete_count += inflight.counted(batch.first_offset, batch.last_offset)


def archive_dead(inflight: InFlight, dead: DeadRecords) -> StateBatch:
    """Archive a range after its write to the dead-letter queue, successful or not; return the batch to persist."""
    batches = inflight.batches[max(inflight.floor(dead.first), 0) : inflight.floor(dead.last) + 1]
    inflight.archive(dead.first, dead.last, RecordState.ARCHIVING, batches)
    inflight.delivery_complete_count += inflight.counted(dead.first, dead.last)
    return StateBatch(dead.first, dead.last, int(RecordState.ARCHIVED), dead.delivery_count)


def dead_records(inflight: InFlight) -> list[DeadRecords]:
    """Return the ARCHIVING ranges of a loaded partition, which an earlier leader has not finished."""
    most = inflight.settings.max_delivery_count
    return [
        DeadRecords(first, last, state.delivery_count, LIMIT_REACHED if state.delivery_count >= most else REJECTED)
        for first, last, state in inflight.runs()
        if state.state is RecordState.ARCHIVING
    ]
