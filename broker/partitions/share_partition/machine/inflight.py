"""In-flight records of a share partition: their order, bounds and counts (groups D.7).

The part of Kafka's ``SharePartition`` that all operations use. Offsets are log offsets.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from broker.coordination.share_state.persister import StateBatch
from broker.partitions.share_partition.machine.states import DeliveryLimit, InFlightBatch, InFlightState, RecordState
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError

THROTTLED_FROM = 2
"""Smallest delivery count from which records are delivered in small portions.

MINIMUM_THROTTLE_RECORDS_DELIVERY_LIMIT of Kafka's ``SharePartition``, like the half of the limit for larger ones.
"""
_STATES = frozenset(map(int, RecordState))
_FEW_LOCKS = 64
"""Number of noted locks up to which ended ones are not removed early.

Arbitrary, a walk through so few costs nothing.
"""


class ShareSettings(NamedTuple):
    """The current settings of a share group that its partitions use; the defaults are those of `group.share.*`."""

    max_delivery_count: int = 5
    max_record_locks: int = 2000
    lock_ms: int = 30_000
    renew_enabled: bool = True
    dead_letters: bool = False
    """Whether records are written to a dead-letter queue before they are archived."""

    @property
    def limit(self) -> DeliveryLimit:
        """The delivery limit, and the state of a record that reaches it."""
        then = RecordState.ARCHIVING if self.dead_letters else RecordState.ARCHIVED
        return DeliveryLimit(self.max_delivery_count, then)

    @property
    def throttled_from(self) -> int:
        """The delivery count from which records are delivered in small portions."""
        return max(THROTTLED_FROM, -(-self.max_delivery_count // 2))


@dataclass(slots=True)
class Gap:
    """Offsets between stored batches, which are not in flight after loading and are still to be fetched.

    Valid only as long as the end offset is the loaded one.
    """

    end: int
    start: int


class InFlight:
    """The batches in flight in offset order, with their bounds and counts.

    Attributes:
        start_offset: the share-partition start offset: the first one that is not acknowledged or archived.
        end_offset: the last offset in flight; the next one to fetch if none is in flight.
        delivery_complete_count: number of acknowledged and archived offsets from ``start_offset`` on.
    """

    def __init__(self, settings: Callable[[], ShareSettings]) -> None:
        self._settings = settings
        self.batches: list[InFlightBatch] = []
        self.start_offset = self.end_offset = 0
        self.delivery_complete_count = 0
        self._gap: Gap | None = None
        self._may_be_available = False
        self._locks: list[tuple[int, int, InFlightBatch, int]] = []
        self._lock_order = count()
        self._most_locks = _FEW_LOCKS

    @property
    def settings(self) -> ShareSettings:
        """The group's current settings."""
        return self._settings()

    # --- loading -----------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, stored: Sequence[StateBatch]) -> None:
        """Load the state from the share coordinator (groups D.8).

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR if a batch begins below the start offset, ends before it begins, or has an
                unknown state.
        """
        self.start_offset = self.end_offset = start_offset
        gap, expected = -1, start_offset
        for batch in stored:
            if not start_offset <= batch.first_offset <= batch.last_offset or batch.delivery_state not in _STATES:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the stored state of the share partition is invalid")
            if gap < 0 and batch.first_offset > expected:
                gap = expected
            expected = batch.last_offset + 1
            state = InFlightState(RecordState(batch.delivery_state), batch.delivery_count)
            self.batches.append(InFlightBatch(batch.first_offset, batch.last_offset, state))
            if state.state.terminal:
                self.delivery_complete_count += batch.last_offset - batch.first_offset + 1
        if self.batches:
            self._may_be_available = True
            self.end_offset = self.batches[-1].last
            if gap >= 0:
                self._gap = Gap(self.end_offset, gap)
            self.move_start()

    @property
    def gap_start(self) -> int | None:
        """The first offset of the gaps that are still to be fetched, or ``None``."""
        gap = self._gap
        return gap.start if gap is not None and gap.end == self.end_offset else None

    def close_gap_before(self, offset: int) -> None:
        """Move the start of the gaps to an offset: those below were acquired or checked."""
        gap = self._gap
        if gap is not None:
            if gap.end == self.end_offset and offset <= gap.end:
                gap.start = offset
            else:
                self._gap = None

    # --- reading -----------------------------------------------------------------------------------------------------

    def floor(self, offset: int) -> int:
        """Return the index of the last batch that begins at or below the offset; -1 if there is none."""
        return bisect_right(self.batches, offset, key=lambda batch: batch.first) - 1

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that begin in a range."""
        begin = bisect_right(self.batches, first - 1, key=lambda batch: batch.first)
        return self.batches[begin : self.floor(last) + 1]

    @property
    def nothing_beyond_start(self) -> bool:
        """Whether no offset is in flight at or above the start offset."""
        return not self.batches or self.start_offset > self.batches[-1].last

    def next_fetch_offset(self) -> int:
        """Return the first offset that a member could acquire."""
        if self.nothing_beyond_start:
            self._may_be_available = False
            return self.end_offset
        if not self._may_be_available:
            return self.end_offset + 1
        gap = self.gap_start
        for batch in self.batches:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for first, _, state in batch.runs():
                if state.acquirable:
                    return first
        self._may_be_available = False
        return self.end_offset + 1

    @property
    def count(self) -> int:
        """The number of offsets in flight, as counted for ``share.partition.max.record.locks``."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def can_acquire(self) -> bool:
        """Return whether a fetch could acquire records if the log has some."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.count < self.settings.max_record_locks

    def runs(self) -> Iterator[tuple[int, int, InFlightState]]:
        """Iterate over (first offset, last offset, state) in offset order."""
        for batch in self.batches:
            yield from batch.runs()

    def note_available(self) -> None:
        """Note that a record may have become available."""
        self._may_be_available = True

    # --- changing ----------------------------------------------------------------------------------------------------

    def add(self, batch: InFlightBatch) -> None:
        """Put a batch in flight."""
        self.batches.insert(self.floor(batch.first) + 1, batch)

    def lock(self, batch: InFlightBatch, state: InFlightState, offset: int) -> None:
        """Note the end of the acquisition lock of a batch, or of one of its offsets."""
        assert state.lock_until_ms is not None
        heapq.heappush(self._locks, (state.lock_until_ms, next(self._lock_order), batch, offset))
        if len(self._locks) > self._most_locks:
            self._forget_ended_locks()

    def _forget_ended_locks(self) -> None:
        """Remove locks that were renewed or have ended early, once they may be half of all."""
        live: dict[tuple[int, InFlightBatch, int], tuple[int, int, InFlightBatch, int]] = {}
        for lock in sorted(self._locks):  # a lock renewed within a millisecond is listed more than once
            end_ms, _, batch, offset = lock
            if self._holder(*lock) is not None:
                live.setdefault((end_ms, batch, offset), lock)
        self._locks = [*live.values()]  # sorted, so it is a heap
        self._most_locks = max(_FEW_LOCKS, 2 * len(self._locks))

    def split(self, batch: InFlightBatch) -> dict[int, InFlightState]:
        """Switch a batch to states by offset, each with its own lock."""
        if batch.offsets is None:
            for offset, state in batch.by_offset().items():
                if state.lock_until_ms is not None:
                    self.lock(batch, state, offset)
        return batch.by_offset()

    @property
    def next_lock_end_ms(self) -> int | None:
        """The time (ms) at which the next lock expires; ``None`` without locks."""
        while self._locks and self._holder(*self._locks[0]) is None:
            heapq.heappop(self._locks)
        return self._locks[0][0] if self._locks else None

    def due_locks(self, now_ms: int) -> list[tuple[InFlightBatch, int]]:
        """Return batches and first offsets of the expired locks, in the order of their expiry."""
        due = []
        while (end_ms := self.next_lock_end_ms) is not None and end_ms <= now_ms:
            _, _, batch, offset = heapq.heappop(self._locks)
            due.append((batch, offset))
        return due

    @staticmethod
    def _holder(end_ms: int, _order: int, batch: InFlightBatch, offset: int) -> InFlightState | None:
        """Return the state that still has this lock, or ``None``."""
        state = batch.whole if batch.offsets is None else batch.offsets.get(offset)
        return state if state is not None and state.lock_until_ms == end_ms else None

    def counted(self, first: int, last: int) -> int:
        """Return the number of offsets of a range that are not below the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    def archive(self, first: int, last: int, state: RecordState, batches: Sequence[InFlightBatch]) -> int:
        """Archive the offsets of a range that are in a state; return their number."""
        archived = 0
        for batch in batches:
            if batch.first > last:
                break
            if batch.whole is not None and batch.whole.state is not state:
                continue
            if batch.whole is not None and batch.is_within(first, last):
                batch.whole.archive()
                archived += len(batch)
                continue
            offsets = self.split(batch)
            for each in (offsets[offset] for offset in batch.within(first, last)):
                if each.state is state:
                    each.archive()
                    archived += 1
        return archived

    # --- the start offset --------------------------------------------------------------------------------------------

    def move_start(self) -> bool:
        """Move the start offset past leading acknowledged and archived records; return whether it moved."""
        if not self._start_is_done():
            return False
        last, done = self._last_done()
        if last < 0:
            return False
        if last == self.batches[-1].last:
            self.start_offset = self.end_offset = last + 1
            self.batches.clear()
            self._locks.clear()
            self.delivery_complete_count = 0
            return True
        place = self.floor(last)
        if last == self.batches[place].last:
            self.start_offset = max(self.start_offset, self.batches[place + 1].first)
            if (gap := self.gap_start) is not None:
                self.start_offset = min(gap, self.start_offset)
            place += 1
        else:
            self.start_offset = max(self.start_offset, last + 1)
        self.delivery_complete_count -= done
        del self.batches[:place]
        return True

    def _start_is_done(self) -> bool:
        place = self.floor(self.start_offset)
        if place < 0:
            return False
        batch = self.batches[place]
        state = batch.whole if batch.offsets is None else batch.offsets.get(self.start_offset)
        return state is not None and not state.changing and state.state.terminal

    def _last_done(self) -> tuple[int, int]:
        """Return the last offset of the leading run of terminal records, and how many count as delivery-complete."""
        last, done, gap = -1, 0, self.gap_start
        for batch in self.batches:
            if gap is not None and batch.last >= gap:
                break
            for first, end, state in batch.runs():
                if state.changing or not state.state.terminal:
                    return last, done
                last = end
                done += self.counted(first, end)
        return last, done

    def begin_at(self, log_start_offset: int) -> None:
        """Raise the start offset to the log start offset; records below are no longer delivered."""
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        done = sum(
            self.counted(first, min(last, log_start_offset - 1))
            for first, last, state in self.runs()
            if state.state.terminal
        )
        if self.archive(self.start_offset, log_start_offset - 1, RecordState.AVAILABLE, self.batches):
            self.note_available()
        self.start_offset = log_start_offset
        self.delivery_complete_count -= done
        self.end_offset = max(self.end_offset, self.start_offset)
