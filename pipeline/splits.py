"""Plans the byte ranges to read and distributes them to tasks: by segments, indexes and requested bounds.

An index is only a hint: a position is used only if a batch header there agrees with the entry and with the searched
offset.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.aborted import AbortedRanges
from pipeline.decoding.batch_scan import HEADER
from pipeline.directory import Partition, Segment
from pipeline.locations import open_file, read_file
from pipeline.segment_reader import Range
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2

SPLIT_BYTES: Final = 64 * 1024 * 1024
"""A task costs a worker about 50 ms, so smaller splits do not pay off."""
_LAST: Final = 2**63 - 1  # the highest int64


@dataclass(frozen=True, slots=True)
class Split:
    """Some bytes of one partition, and what is needed to read them."""

    topic: str
    partition: int
    ranges: tuple[Range, ...]
    start_offset: int = 0
    stop_offset: int = _LAST
    high_watermark: int | None = None
    aborted: AbortedRanges = field(default_factory=AbortedRanges)

    @property
    def size(self) -> int:
        """Return the number of bytes to read."""
        return sum((each.segment.size if each.stop is None else each.stop) - each.start for each in self.ranges)


def split_partition(
    partition: Partition,
    *,
    start_offset: int = 0,
    stop_offset: int = _LAST,
    start_ms: int | None = None,
    split_bytes: int | None = SPLIT_BYTES,
) -> list[Split]:
    """Return the ranges of a partition that may have the requested records, in splits of about `split_bytes`.

    Args:
        partition: the log.
        start_offset: the first requested offset.
        stop_offset: the offset after the last requested one.
        start_ms: the earliest requested time.
        split_bytes: None: one split of any size.
    """
    splits: list[Split] = []
    for segment in partition.segments:
        if segment.base_offset >= stop_offset or (
            segment.next_base_offset is not None and segment.next_base_offset <= start_offset
        ):
            continue
        wanted = _bounded(segment, start_offset, stop_offset, start_ms)
        if wanted is None:
            continue
        spans = [wanted] if split_bytes is None else _cut(wanted, split_bytes)
        high_watermark = partition.high_watermark
        splits += [Split(*partition.key, (span,), start_offset, stop_offset, high_watermark) for span in spans]
    return splits


class Sized(Protocol):
    """Something with a size in bytes."""

    @property
    def size(self) -> int:
        """Return it."""


_Sized = TypeVar("_Sized", bound=Sized)


def pack(pieces: Iterable[_Sized], most_bytes: int = SPLIT_BYTES) -> list[list[_Sized]]:
    """Group small pieces, in order, until each group is worth a task."""
    packed: list[list[_Sized]] = []
    left = 0
    for each in pieces:
        if not packed or each.size > left:
            packed.append([])
            left = most_bytes
        packed[-1].append(each)
        left -= each.size
    return packed


def join(splits: Sequence[Split]) -> list[Split]:
    """Join adjacent splits of one partition."""
    joined: list[Split] = []
    for each in splits:
        last = joined[-1] if joined else None
        if last is not None and (last.topic, last.partition) == (each.topic, each.partition):
            joined[-1] = replace(last, ranges=last.ranges + each.ranges)
        else:
            joined.append(each)
    return joined


class _Index:
    """The plausible entries of an offset index."""

    def __init__(self, segment: Segment) -> None:
        entries = _entries(segment, "index", np.dtype([("offset", ">u4"), ("position", ">u4")]))
        self.offsets = entries["offset"].astype(np.int64) + segment.base_offset
        self.positions = entries["position"].astype(np.int64)

    def before(self, offset: int) -> int:
        """Return the position of a batch without later offsets; 0 if unknown."""
        index = int(np.searchsorted(self.offsets, offset, "right")) - 1
        return int(self.positions[index]) if index >= 0 else 0

    def behind(self, offset: int) -> int | None:
        """Return the position of a batch with only later offsets; None if unknown."""
        index = int(np.searchsorted(self.offsets, offset, "left")) + 1
        return int(self.positions[index]) if index < len(self.positions) else None


def _entries(segment: Segment, suffix: str, kind: Any) -> NDArray[Any]:
    """Return the entries of an index as long as they increase: zeros follow in a preallocated file."""
    none = np.empty(0, kind)
    if suffix not in segment.indexes:
        return none
    try:
        contents = read_file(segment.beside(suffix))
    except OSError:
        return none
    entries = np.frombuffer(contents[: len(contents) // kind.itemsize * kind.itemsize], kind)
    grows = np.ones(len(entries), np.bool_)
    for name in kind.names:
        values = entries[name].astype(np.int64)
        grows[1:] &= values[1:] > values[:-1]
    wrong = np.flatnonzero(~grows)
    return entries[: int(wrong[0])] if len(wrong) else entries


def _bounded(segment: Segment, start_offset: int, stop_offset: int, start_ms: int | None) -> Range | None:
    """Return the range of a segment that may have the requested records; None: it has none."""
    span = Range(segment)
    first = max(start_offset, segment.base_offset)
    if start_ms is not None:
        times = _entries(segment, "timeindex", np.dtype([("time", ">i8"), ("offset", ">u4")]))
        passed = int(np.searchsorted(times["time"].astype(np.int64), start_ms, "left"))
        if passed:
            first = max(first, segment.base_offset + int(times["offset"][passed - 1]) + 1)
        if segment.next_base_offset is not None and first >= segment.next_base_offset:
            return None
    if first == segment.base_offset and stop_offset >= (segment.next_base_offset or _LAST):
        return span
    index = _Index(segment)
    start = _header_at(segment, index.before(first))
    if start is not None and start[1] <= first:
        span = span._replace(start=start[0], due_offset=start[1])
    behind = index.behind(stop_offset)
    stop = None if behind is None else _header_at(segment, behind)
    if stop is not None and stop[1] >= stop_offset:
        span = span._replace(stop=stop[0], limit_offset=stop[1])
    return span


def _header_at(segment: Segment, position: int) -> tuple[int, int] | None:
    """Return the position and the base offset of the batch that starts there; None if there is no plausible batch."""
    if not 0 < position <= segment.size - BATCH_HEADER_SIZE:
        return None
    try:
        with open_file(segment.location) as file:
            file.seek(position)
            data = file.read(BATCH_HEADER_SIZE)
    except OSError:
        return None
    if len(data) < BATCH_HEADER_SIZE:
        return None
    head = np.frombuffer(data, HEADER)[0]
    last = _LAST if segment.next_base_offset is None else segment.next_base_offset
    plausible = head["magic"] == MAGIC_V2 and segment.base_offset < head["base_offset"] < last
    return (position, int(head["base_offset"])) if plausible else None


def _cut(span: Range, split_bytes: int) -> Iterator[Range]:
    """Split a range into parts of about `split_bytes`, at batches that the index knows."""
    segment = span.segment
    end = segment.size if span.stop is None else span.stop
    # A half more: a small rest is not worth a task of its own.
    if end - span.start <= split_bytes + split_bytes // 2:
        yield span
        return
    positions = _Index(segment).positions
    parts = -(-(end - span.start) // split_bytes)
    for number in range(1, parts):
        aim = span.start + number * (end - span.start) // parts
        nearest = int(np.searchsorted(positions, aim))
        cut = _header_at(segment, int(positions[nearest])) if nearest < len(positions) else None
        if cut is not None and span.start < cut[0] < end and cut[1] > (span.due_offset or segment.base_offset):
            yield span._replace(stop=cut[0], limit_offset=cut[1])
            span = span._replace(start=cut[0], due_offset=cut[1])
    yield span
