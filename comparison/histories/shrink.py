"""Shrinking a history that shows a difference (delta debugging: Zeller and Hildebrandt's ddmin)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def shrunk(steps: Sequence[Step], shows: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Return a minimal list of steps that shows the difference: no single step can be left out.

    ``shows`` plays a history and returns whether the same difference shows.
    """
    for few in (steps[-1:], [*steps[:1], *steps[-1:]]):  # most often the last request is all that matters
        if len(few) < len(steps) and shows(few):
            return list(few)
    left, parts = list(steps), 2
    while len(left) > 1:
        size = max(len(left) // parts, 1)
        for start in range(0, len(left), size):
            without = left[:start] + left[start + size :]
            if without and shows(without):
                left, parts = without, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(left))
    return left
