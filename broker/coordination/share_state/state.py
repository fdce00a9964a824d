"""State of one share partition and its records, after Kafka's ``ShareGroupOffset``.

The list of batches covers each offset once. For each offset, the batch with the highest delivery count wins, then the
one with the highest delivery state (groups D.9).
"""

import heapq
from collections.abc import Iterable
from dataclasses import replace

from broker.coordination.share_state.persister import (
    UNINITIALIZED_COUNT,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    StateBatch,
)
from protocol.deferred import dataclass
from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareState:
    """Offsets, epochs and batches of a share partition: the last snapshot, merged with the updates since then."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0

    @property
    def is_cold(self) -> bool:
        """Whether the last snapshot repeats an older one."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    def updated(self, change: ShareUpdate, *, joined: bool) -> "ShareState":
        """Return the state with an update record merged into it; ``joined``: equal neighbours become one batch."""
        start = self.start_offset if change.start_offset == UNINITIALIZED_OFFSET else change.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if change.leader_epoch == NO_EPOCH else change.leader_epoch,
            start_offset=start,
            delivery_complete_count=change.delivery_complete_count,
            batches=combine((*self.batches, *read_batches(change.state_batches)), start, joined=joined),
        )

    def snapshot_record(self, key: SharePartitionKey) -> ShareRecord:
        """Return the snapshot record of the state."""
        value = ShareSnapshot(
            self.snapshot_epoch,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.create_timestamp_ms,
            self.write_timestamp_ms,
            write_batches(self.batches),
            self.delivery_complete_count,
        )
        return ShareRecord(*key, value)


def initialized(snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int) -> ShareState:
    """Return the state that InitializeShareGroupState creates."""
    count = UNINITIALIZED_COUNT if start_offset == UNINITIALIZED_OFFSET else 0
    return ShareState(snapshot_epoch, state_epoch, 0, start_offset, count, (), now_ms, now_ms)


def of_snapshot(value: ShareSnapshot) -> ShareState:
    """Return the state in a snapshot record."""
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        read_batches(value.state_batches),
        value.create_timestamp_ms,
        value.write_timestamp_ms,
    )


def of_update(value: ShareUpdate) -> ShareState:
    """Return the state in an update record whose snapshot is not in the log."""
    return ShareState(
        value.snapshot_epoch,
        0,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        read_batches(value.state_batches),
    )


def read_batches(recorded: Iterable[RecordedBatch]) -> tuple[StateBatch, ...]:
    """Return the batches in a record."""
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in recorded
    )


def write_batches(batches: Iterable[StateBatch]) -> tuple[RecordedBatch, ...]:
    """Return batches in the form of a record."""
    return tuple(RecordedBatch(*each) for each in batches)


# --- merging of batches (PersisterStateBatchCombiner): the highest delivery count wins, then the highest state --------

# First and last offset, delivery count, delivery state: Kafka's sort order.
_Sorted = tuple[int, int, int, int]


def combine(batches: Iterable[StateBatch], start_offset: int, *, joined: bool) -> tuple[StateBatch, ...]:
    """Merge batches given in any order, without offsets below ``start_offset``; -1 keeps all.

    With ``joined``, as since 4.4, no two neighbours are equal. Without it, a batch that no later one overlaps or
    continues is final: it is not joined with the results of later merges, so adjacent equal batches may remain.
    """
    merged = _merged_all(_clipped(batches, start_offset))
    return tuple(_batch(each) for each in (_joined(merged) if joined else merged))


def _merged_all(waiting: list[_Sorted]) -> list[_Sorted]:
    if len(waiting) < 2:
        return waiting
    known = set(waiting)
    waiting = list(known)
    heapq.heapify(waiting)
    settled = []
    while waiting:
        first = heapq.heappop(waiting)
        known.remove(first)
        if not waiting or not _touches(first, waiting[0]):
            settled.append(first)
            continue
        second = heapq.heappop(waiting)
        known.remove(second)
        for piece in _merged(first, second):
            if piece not in known:
                known.add(piece)
                heapq.heappush(waiting, piece)
    return settled


def _joined(settled: list[_Sorted]) -> list[_Sorted]:
    """Return the batches with equal neighbours as one."""
    joined: list[_Sorted] = []
    for each in settled:
        if joined and _touches(joined[-1], each):
            joined[-1] = (joined[-1][0], *each[1:])
        else:
            joined.append(each)
    return joined


def _clipped(batches: Iterable[StateBatch], start_offset: int) -> list[_Sorted]:
    return [
        (max(first, start_offset), last, count, state)
        for first, last, state, count in batches
        if last >= start_offset or start_offset < 0
    ]


def _batch(piece: _Sorted) -> StateBatch:
    first, last, count, state = piece
    return StateBatch(first, last, state, count)


def _touches(first: _Sorted, second: _Sorted) -> bool:
    """Return whether the second batch overlaps the first, or continues it with the same count and state."""
    return second[0] <= first[1] or (second[0] == first[1] + 1 and second[2:] == first[2:])


def _merged(first: _Sorted, second: _Sorted) -> list[_Sorted]:
    """Return the merged pieces of two batches that touch; ``first`` does not begin after ``second``."""
    if first[2:] == second[2:]:
        return [(first[0], max(first[1], second[1]), *first[2:])]
    if second[2:] > first[2:]:
        pieces = [(first[0], second[0] - 1, *first[2:]), second, (second[1] + 1, first[1], *first[2:])]
    else:
        pieces = [first, (first[1] + 1, second[1], *second[2:])]
    return [piece for piece in pieces if piece[0] <= piece[1]]
