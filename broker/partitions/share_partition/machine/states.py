"""States of records in flight, after Kafka's ``InFlightState`` and ``InFlightBatch`` (groups D.7).

A batch has one state for all of its offsets until they differ, then one state for each offset.
Offsets are log offsets; times are the cluster's, in milliseconds.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

NO_MEMBER = ""


class RecordState(IntEnum):
    """The delivery state of a record; the numbers are those of ``__share_group_state``."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3  # being written to the group's dead-letter queue (KIP-1191)
    ARCHIVED = 4

    @property
    def terminal(self) -> bool:
        """Whether the record is never delivered again: acknowledged or archived."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class _Before(NamedTuple):
    """The state before a change that is being written."""

    state: RecordState
    member: str
    limit: "DeliveryLimit"
    last: "LastDelivery | None"


class DeliveryLimit(NamedTuple):
    """The delivery limit, and the state after it: ARCHIVED, or ARCHIVING with a dead-letter queue."""

    deliveries: int = 5  # the default of group.share.delivery.count.limit
    then: RecordState = RecordState.ARCHIVED


class LastDelivery(NamedTuple):
    """An ended acquisition: the member, when it began and ended (ms), and why it ended."""

    member: str
    since_ms: int | None
    ended_ms: int
    why: str


class InFlightState:
    """The state of a batch or of one offset.

    Attributes:
        delivery_count: the number of deliveries.
        member: the id of the member that has acquired it; "" for none.
        lock_until_ms: when the acquisition lock ends; ``None`` without a lock.
        since_ms: when it was last acquired; ``None`` if that was before the partition was loaded.
        last: the last ended acquisition; ``None`` if there was none since the partition was loaded.
    """

    __slots__ = ("_archived", "_before", "delivery_count", "last", "lock_until_ms", "member", "since_ms", "state")

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member: str = NO_MEMBER,
        lock_until_ms: int | None = None,
        since_ms: int | None = None,
    ) -> None:
        self.state, self.delivery_count, self.member = state, delivery_count, member
        self.lock_until_ms, self.since_ms = lock_until_ms, since_ms
        self.last: LastDelivery | None = None
        self._before: _Before | None = None
        self._archived = False

    @property
    def changing(self) -> bool:
        """Whether a change is being written to the share coordinator."""
        return self._before is not None

    @property
    def acquirable(self) -> bool:
        """Whether a member can acquire it now."""
        return self.state is RecordState.AVAILABLE and self._before is None

    def copy(self) -> "InFlightState":
        """Return a copy for one offset of a batch."""
        copied = InFlightState(self.state, self.delivery_count, self.member, self.lock_until_ms, self.since_ms)
        copied.last = self.last
        return copied

    def note_end(self, member: str, now_ms: int, why: str) -> None:
        """Note how the acquisition of a member ended."""
        self.last = LastDelivery(member, self.since_ms, now_ms, why)

    def acquire(self, member: str, lock_until_ms: int, now_ms: int) -> None:
        """Acquire for a member, and count the delivery."""
        self.state, self.member, self.delivery_count = RecordState.ACQUIRED, member, self.delivery_count + 1
        self.lock_until_ms, self.since_ms = lock_until_ms, now_ms

    def end(self, state: RecordState, limit: DeliveryLimit) -> bool:
        """End an acquisition with a new state; return false if a change is being written already.

        At the delivery limit the record becomes ``limit.then`` instead of AVAILABLE.
        """
        if self._before is not None or self.state is not RecordState.ACQUIRED:
            return False
        if state is RecordState.AVAILABLE and self.delivery_count >= limit.deliveries:
            state = limit.then
        self.state, self.member = state, NO_MEMBER
        return True

    def begin_change(self, state: RecordState, limit: DeliveryLimit) -> bool:
        """Begin :meth:`end`, to be committed or rolled back after the share coordinator's response."""
        before = _Before(self.state, self.member, limit, self.last)
        if not self.end(state, limit):
            return False
        self._before = before
        return True

    def commit(self) -> None:
        """Commit a written change: the lock ends."""
        self._before, self.lock_until_ms = None, None

    def roll_back(self, now_ms: int) -> None:
        """Undo a change that could not be written; if the lock has expired meanwhile, end the acquisition.

        Such a record is ARCHIVED at the delivery limit, even if the group has a dead-letter queue.
        """
        before, self._before = self._before, None
        if self._archived or before is None:
            self.lock_until_ms = None
            return
        if self.lock_until_ms is not None and self.lock_until_ms <= now_ms:
            limit_reached = self.delivery_count >= before.limit.deliveries
            self.state = RecordState.ARCHIVED if limit_reached else RecordState.AVAILABLE
            self.member, self.lock_until_ms = NO_MEMBER, None
        else:
            self.state, self.member, self.last = before.state, before.member, before.last

    def archive(self) -> None:
        """Archive the record, even while a change is being written."""
        self._archived = True
        self.state, self.member, self.lock_until_ms = RecordState.ARCHIVED, NO_MEMBER, None


class InFlightBatch:
    """A range of offsets in flight. Exactly one of ``whole`` (one state for all) and ``offsets`` is set."""

    __slots__ = ("first", "last", "offsets", "whole")

    def __init__(self, first: int, last: int, whole: InFlightState) -> None:
        self.first, self.last = first, last
        self.whole: InFlightState | None = whole
        self.offsets: dict[int, InFlightState] | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def by_offset(self) -> dict[int, InFlightState]:
        """Switch to one state for each offset, in ascending order, and return them."""
        if self.offsets is None:
            assert self.whole is not None
            self.offsets = {offset: self.whole.copy() for offset in range(self.first, self.last + 1)}
            self.whole = None
        return self.offsets

    def runs(self) -> Iterator[tuple[int, int, InFlightState]]:
        """Iterate over (first offset, last offset, state)."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        for offset, state in (self.offsets or {}).items():
            yield offset, offset, state

    def is_within(self, first: int, last: int) -> bool:
        """Return whether all offsets of the batch are in the range."""
        return self.first >= first and self.last <= last

    def within(self, first: int, last: int) -> range:
        """Return the offsets of the batch that are in the range."""
        return range(max(self.first, first), min(self.last, last) + 1)
