"""Merging of state batches into a list that covers each offset once, after Kafka's ``PersisterStateBatchCombiner``.

For each offset, the batch with the highest delivery count wins, then the one with the highest delivery state
(groups D.9).
"""

import heapq
from collections.abc import Iterable

from broker.coordination.share_state.persister import StateBatch

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
    found: list[_Sorted] = []
    for each in settled:
        if found and _touches(found[-1], each):
            found[-1] = (found[-1][0], *each[1:])
        else:
            found.append(each)
    return found


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
