"""Finds the batches of aborted transactions (transactions D.11)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT


class AbortedRange(NamedTuple):
    """An aborted transaction in one partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""


class AbortedRanges:
    """The aborted transactions of one partition or of a part of it."""

    __slots__ = ("_producers", "ranges")

    def __init__(self, ranges: Iterable[AbortedRange] = ()) -> None:
        self.ranges = tuple(ranges)
        self._producers = np.unique(np.array([each.producer_id for each in self.ranges], np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for Spark's workers as a list of ranges."""
        return AbortedRanges, (self.ranges,)

    def of(self, headers: NDArray[Any]) -> NDArray[np.bool_]:
        """Return, for each batch header, whether its records were aborted.

        The ABORT markers themselves do not count.
        """
        aborted = np.zeros(len(headers), np.bool_)
        if not self.ranges or not len(headers):
            return aborted
        bits = headers["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT)
        open_to_it = np.flatnonzero((bits == TRANSACTIONAL_BIT) & np.isin(headers["producer_id"], self._producers))
        if not len(open_to_it):
            return aborted
        bases = headers["base_offset"][open_to_it].astype(np.int64)
        producers = headers["producer_id"][open_to_it].astype(np.int64)
        low, high = int(bases.min()), int(bases.max())
        for each in self.ranges:
            if each.first_offset <= high and each.last_offset >= low:
                inside = (producers == each.producer_id) & (bases >= each.first_offset) & (bases <= each.last_offset)
                aborted[open_to_it[inside]] = True
        return aborted
