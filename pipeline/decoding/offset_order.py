"""Detects offset ranges that are out of order."""

from bisect import bisect_left
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEP: Final = 2**32
"""Weight of one more range in a chain; adjoining the previous range exactly adds 1."""


def disordered(starts: NDArray[np.int64], lasts: NDArray[np.int64], due: int, limit: int) -> list[int]:
    """Return the indexes of the ranges that break the order: each within [due, limit), after the one before.

    As few ranges as possible are blamed: the others form a longest increasing chain, and among such chains the one with
    the fewest gaps that the blamed ranges cannot explain. So one wrong number condemns neither its successors nor its
    neighbour.

    Args:
        starts: first offset of each range.
        lasts: last offset of each range, inclusive; `starts - 1` lets the same number occur again.
        due: the lowest allowed start.
        limit: all last offsets must be below it.
    """
    if not len(starts):
        return []
    follows = starts[1:] > lasts[:-1]
    if starts[0] >= due and lasts[-1] < limit and follows.all() and (lasts >= starts - 1).all():
        return []
    chain = _longest(starts.tolist(), lasts.tolist(), due, limit)
    return [index for index in range(len(starts)) if index not in chain]


def _longest(starts: list[int], lasts: list[int], due: int, limit: int) -> set[int]:
    """Return the indexes of the best chain."""
    ends = sorted(set(lasts))
    best = _PrefixMaximum(len(ends))
    before = [-1] * len(starts)
    top = (0, -1)
    # Two ranges adjoin exactly if the gap between their offsets equals the size of all ranges between them. Then both
    # are shifted by the same amount against a log that starts at 0.
    shifted_by: dict[int, tuple[int, int]] = {due: (0, -1)}
    taken = 0
    shift_at_end = limit - sum(last - start + 1 for start, last in zip(starts, lasts, strict=True) if last >= start)
    for index, (start, last) in enumerate(zip(starts, lasts, strict=True)):
        shift = start - taken
        taken += max(last - start + 1, 0)
        if start < due or last >= limit or last < start - 1:
            continue
        weight, previous = best.below(bisect_left(ends, start))
        if (exact := shifted_by.get(shift)) is not None and exact[0] + 1 > weight:
            weight, previous = exact[0] + 1, exact[1]
        longest = (weight + _STEP + (shift == shift_at_end), index)
        before[index] = previous
        best.raise_to(bisect_left(ends, last), longest)
        shifted_by[shift] = max(shifted_by.get(shift, longest), longest)
        top = max(top, longest)
    chain: set[int] = set()
    index = top[1]
    while index >= 0:
        chain.add(index)
        index = before[index]
    return chain


class _PrefixMaximum:
    """Maximum over all positions below a given one, as values are raised (a Fenwick tree)."""

    def __init__(self, size: int) -> None:
        self._tree = [(0, -1)] * (size + 1)

    def below(self, place: int) -> tuple[int, int]:
        """Return the largest value at a position below this one; (0, -1) if there is none."""
        greatest = (0, -1)
        while place > 0:
            greatest = max(greatest, self._tree[place])
            place &= place - 1
        return greatest

    def raise_to(self, place: int, value: tuple[int, int]) -> None:
        """Raise the value at a position to at least this."""
        place += 1
        while place < len(self._tree):
            self._tree[place] = max(self._tree[place], value)
            place += place & -place
