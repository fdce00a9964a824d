"""The records of a share partition that are in flight: their order, bounds and counts (groups D.7).

After the part of Kafka's ``SharePartition`` that the operations share. Offsets are log offsets.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from broker.coordination.share.persister import StateBatch
from broker.share.machine.states import DeliveryLimit, InFlightBatch, InFlightState, RecordState
from protocol.errors import ErrorCode, KafkaError

THROTTLED_FROM = 2
"""The fewest deliveries after which records are delivered in small portions."""
_STATES = frozenset(map(int, RecordState))
_FEW_LOCKS = 64
"""As long as there are no more, those that have ended stay noted until their time."""


class ShareSettings(NamedTuple):
    """The settings of a share group that its partitions follow, as of now."""

    max_delivery_count: int = 5
    max_record_locks: int = 2000
    lock_ms: int = 30_000
    renew_enabled: bool = True
    dead_letters: bool = False
    """Whether records that the group gives up on are written to a dead-letter queue first."""

    @property
    def limit(self) -> DeliveryLimit:
        """How often a record is delivered, and its state after that."""
        then = RecordState.ARCHIVING if self.dead_letters else RecordState.ARCHIVED
        return DeliveryLimit(self.max_delivery_count, then)

    @property
    def throttled_from(self) -> int:
        """The delivery count from which records are delivered in small portions."""
        return max(THROTTLED_FROM, -(-self.max_delivery_count // 2))


@dataclass(slots=True)
class Gap:
    """Offsets between stored batches, which are not in flight after loading and are fetched once.

    It counts only as long as the end offset is the loaded one.
    """

    end: int
    start: int


class InFlight:
    """The batches in flight, by offset, and what is counted over them.

    Attributes:
        start_offset: the first offset that the group is not done with.
        end_offset: the last offset in flight; the next one to fetch if nothing is in flight.
        delivery_complete_count: acknowledged and archived offsets from ``start_offset`` on.
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
        """The group's settings as of now."""
        return self._settings()

    # --- loading -----------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, stored: Sequence[StateBatch]) -> None:
        """Begin with the state that the share coordinator has (groups D.8).

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: a batch begins below the start, ends before it begins, or has a state
                that there is none of.
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
        """Where the gaps begin that are still to be fetched."""
        gap = self._gap
        return gap.start if gap is not None and gap.end == self.end_offset else None

    def close_gap_before(self, offset: int) -> None:
        """The offsets below are acquired or looked at."""
        gap = self._gap
        if gap is not None:
            if gap.end == self.end_offset and offset <= gap.end:
                gap.start = offset
            else:
                self._gap = None

    # --- looking -----------------------------------------------------------------------------------------------------

    def floor(self, offset: int) -> int:
        """The place of the last batch that begins at or below the offset; -1 without one."""
        return bisect_right(self.batches, offset, key=lambda batch: batch.first) - 1

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin in a range."""
        begin = bisect_right(self.batches, first - 1, key=lambda batch: batch.first)
        return self.batches[begin : self.floor(last) + 1]

    @property
    def nothing_beyond_start(self) -> bool:
        """Whether nothing in flight is left at or above the start offset."""
        return not self.batches or self.start_offset > self.batches[-1].last

    def next_fetch_offset(self) -> int:
        """The first offset that a member could acquire."""
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
        """Offsets in flight, as ``share.partition.max.record.locks`` counts them."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def can_acquire(self) -> bool:
        """Whether a fetch could acquire something, if the log had it."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.count < self.settings.max_record_locks

    def runs(self) -> Iterator[tuple[int, int, InFlightState]]:
        """First and last offset of each state in flight, in order of offsets."""
        for batch in self.batches:
            yield from batch.runs()

    def note_available(self) -> None:
        """Some record may have become available."""
        self._may_be_available = True

    # --- changing ----------------------------------------------------------------------------------------------------

    def add(self, batch: InFlightBatch) -> None:
        """Put a batch in flight."""
        self.batches.insert(self.floor(batch.first) + 1, batch)

    def lock(self, batch: InFlightBatch, state: InFlightState, offset: int) -> None:
        """Note when the lock of a batch, or of its offset, ends."""
        assert state.lock_until_ms is not None
        heapq.heappush(self._locks, (state.lock_until_ms, next(self._lock_order), batch, offset))
        if len(self._locks) > self._most_locks:
            self._forget_ended_locks()

    def _forget_ended_locks(self) -> None:
        """Leave out locks that were renewed or have ended early, once they may be half of all."""
        live: dict[tuple[int, InFlightBatch, int], tuple[int, int, InFlightBatch, int]] = {}
        for lock in sorted(self._locks):  # one that was renewed within a millisecond is there more than once
            end_ms, _, batch, offset = lock
            if self._holder(*lock) is not None:
                live.setdefault((end_ms, batch, offset), lock)
        self._locks = [*live.values()]  # in order, which is a heap
        self._most_locks = max(_FEW_LOCKS, 2 * len(self._locks))

    def split(self, batch: InFlightBatch) -> dict[int, InFlightState]:
        """Keep the states of a batch by offset; its lock becomes one of each offset."""
        if batch.offsets is None:
            for offset, state in batch.by_offset().items():
                if state.lock_until_ms is not None:
                    self.lock(batch, state, offset)
        return batch.by_offset()

    @property
    def next_lock_end_ms(self) -> int | None:
        """When :meth:`due_locks` has something to return."""
        while self._locks and self._holder(*self._locks[0]) is None:
            heapq.heappop(self._locks)
        return self._locks[0][0] if self._locks else None

    def due_locks(self, now_ms: int) -> list[tuple[InFlightBatch, int]]:
        """Batches and first offsets of the locks that have ended, in the order of their ends."""
        due = []
        while (end_ms := self.next_lock_end_ms) is not None and end_ms <= now_ms:
            _, _, batch, offset = heapq.heappop(self._locks)
            due.append((batch, offset))
        return due

    @staticmethod
    def _holder(end_ms: int, _order: int, batch: InFlightBatch, offset: int) -> InFlightState | None:
        """The state that still has this lock."""
        state = batch.whole if batch.offsets is None else batch.offsets.get(offset)
        return state if state is not None and state.lock_until_ms == end_ms else None

    def counted(self, first: int, last: int) -> int:
        """How many offsets of a range are not below the start."""
        return max(0, last - max(self.start_offset, first) + 1)

    def archive(self, first: int, last: int, state: RecordState, batches: Sequence[InFlightBatch]) -> int:
        """Archive the offsets of a range that have a state; return how many of them."""
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
        """Move the start over the leading records that the group is done with; true if anything changed."""
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
        """The last offset of the leading run of done records, and how many of them count as done."""
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
        """The log begins later than the share partition: nothing below is delivered any more."""
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
