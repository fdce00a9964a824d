"""Detection of offset ranges that are out of order."""

from bisect import bisect_left
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEP: Final = 2**32
"""What a range more counts in a chain; that it fits the one before exactly counts 1."""


def disordered(starts: NDArray[np.int64], lasts: NDArray[np.int64], due: int, limit: int) -> list[int]:
    """Indexes of the ranges that do not lie in [due, limit), each after the one before.

    As few as possible are blamed: what is left is a longest chain that grows, and of several such chains the one with
    the fewest gaps that what is blamed cannot explain. So one wrong number condemns neither what follows it nor its
    neighbour.

    Args:
        starts: of each range.
        lasts: of each range, included; `starts - 1` lets the same number come again.
        due: the least start.
        limit: above the last.
    """
    if not len(starts):
        return []
    follows = starts[1:] > lasts[:-1]
    if starts[0] >= due and lasts[-1] < limit and follows.all() and (lasts >= starts - 1).all():
        return []
    chain = _longest(starts.tolist(), lasts.tolist(), due, limit)
    return [index for index in range(len(starts)) if index not in chain]


def _longest(starts: list[int], lasts: list[int], due: int, limit: int) -> set[int]:
    """The indexes of the best chain."""
    ends = sorted(set(lasts))
    best = _PrefixMaximum(len(ends))
    before = [-1] * len(starts)
    top = (0, -1)
    # Two ranges fit each other exactly if between their offsets is as much space as all ranges between them take: then
    # both are shifted alike against a log that begins at 0.
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
        found = (weight + _STEP + (shift == shift_at_end), index)
        before[index] = previous
        best.raise_to(bisect_left(ends, last), found)
        shifted_by[shift] = max(shifted_by.get(shift, found), found)
        top = max(top, found)
    chain: set[int] = set()
    index = top[1]
    while index >= 0:
        chain.add(index)
        index = before[index]
    return chain


class _PrefixMaximum:
    """The largest of the values below a place, as values grow (a Fenwick tree)."""

    def __init__(self, size: int) -> None:
        self._tree = [(0, -1)] * (size + 1)

    def below(self, place: int) -> tuple[int, int]:
        """The largest value at a place below this one; (0, -1) without any."""
        found = (0, -1)
        while place > 0:
            found = max(found, self._tree[place])
            place &= place - 1
        return found

    def raise_to(self, place: int, value: tuple[int, int]) -> None:
        """The value at a place is at least this."""
        place += 1
        while place < len(self._tree):
            self._tree[place] = max(self._tree[place], value)
            place += place & -place
