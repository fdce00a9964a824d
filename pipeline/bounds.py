"""Converts filters that Spark pushes down into bounds on what is read.

Spark applies the filters again afterwards, so the bounds may be wider.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pipeline.query import Bounds


class Condition(NamedTuple):
    """A column, one of `=`, `in`, `<`, `<=`, `>`, `>=`, and the value to compare with."""

    column: str
    operator: str
    value: Any


@dataclass
class Limits:
    """What may satisfy the conditions: offsets and milliseconds [from, to), topics and partitions."""

    offsets: Bounds = (None, None)
    times: Bounds = (None, None)
    topics: set[str] | None = None
    partitions: set[int] | None = None

    def wants(self, topic: str, partition: int) -> bool:
        """Return whether a partition may have matching rows."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


_OFFSETS = {"offset", "base_offset", "last_offset"}
"""Columns of offsets. A batch is read if any of its offsets is within the bounds, so both ends may be compared."""
_TIMES = {"timestamp", "timestamp_ms", "max_timestamp_ms"}


def limits(conditions: Iterable[Condition]) -> Limits:
    """Return the limits that all these conditions imply."""
    narrowed = Limits()
    for column, operator, value in conditions:
        if value is None:
            continue
        values = list(value) if operator == "in" else [value]
        if column == "topic" and operator in {"=", "in"}:
            narrowed.topics = set(values) if narrowed.topics is None else narrowed.topics & set(values)
        elif column == "partition" and operator in {"=", "in"}:
            narrowed.partitions = set(values) if narrowed.partitions is None else narrowed.partitions & set(values)
        elif column in _OFFSETS and all(isinstance(each, int) for each in values):
            narrowed.offsets = _narrowed(narrowed.offsets, operator, values)
        elif column in _TIMES and (times := _milliseconds(values)) is not None:
            # Timestamps are finer than milliseconds, so the adjacent millisecond is read too.
            wider = {">": ">=", "<": "<="}.get(operator, operator) if column == "timestamp" else operator
            narrowed.times = _narrowed(narrowed.times, wider, times)
    return narrowed


def both(first: Bounds, second: Bounds) -> Bounds:
    """Return the intersection of two bounds."""
    starts = [each[0] for each in (first, second) if each[0] is not None]
    stops = [each[1] for each in (first, second) if each[1] is not None]
    return max(starts, default=None), min(stops, default=None)


def _narrowed(bounds: Bounds, operator: str, values: list[int]) -> Bounds:
    start, stop = bounds
    if not values:
        return bounds
    if operator in {"=", "in", ">", ">="}:
        lowest = min(values) + (operator == ">")
        start = lowest if start is None else max(start, lowest)
    if operator in {"=", "in", "<", "<="}:
        highest = max(values) + (operator != "<")
        stop = highest if stop is None else min(stop, highest)
    return start, stop


def _milliseconds(values: list[Any]) -> list[int] | None:
    """Convert timestamps to milliseconds, rounded down; numbers stay as they are."""
    if all(isinstance(each, int) for each in values):
        return values
    if not all(isinstance(each, datetime) and each.tzinfo is not None for each in values):
        return None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [(each - epoch) // timedelta(milliseconds=1) for each in values]
