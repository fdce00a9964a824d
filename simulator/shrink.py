"""Shrink the faults of a run to the fewest that still break a promise (Zeller's delta debugging)."""

from collections.abc import Callable, Sequence

_MOST_RUNS = 80


def shrink(numbers: Sequence[int], breaks: Callable[[frozenset[int]], bool]) -> tuple[list[int], int]:
    """Return the numbers that remain when none can be left out, and the number of runs that this took.

    ``breaks``: whether a run with only these faults breaks a promise.
    """
    left, runs = list(numbers), 0
    size = max(len(left) // 2, 1)
    while left and runs < _MOST_RUNS:
        at, before = 0, len(left)
        while at < len(left) and runs < _MOST_RUNS:
            without = left[:at] + left[at + size :]
            runs += 1
            if breaks(frozenset(without)):
                left = without
            else:
                at += size
        if size == 1 and len(left) == before:
            break
        size = max(size // 2, 1)
    return left, runs
