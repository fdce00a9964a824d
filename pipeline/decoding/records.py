"""Decodes framed batches into Arrow record batches with the requested columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decoding import columns
from pipeline.decoding.aborted import AbortedRanges
from pipeline.decoding.batch_scan import Framed
from pipeline.decoding.damage import Damage
from pipeline.decoding.fields import Fields, read_fields
from pipeline.decoding.varints import PADDING, Bytes, Positions
from protocol.records.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_BIT,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from protocol.records.compression import DEFAULT_DECOMPRESSED_LIMIT, decompress
from protocol.records.errors import RecordsError

GROUP_BYTES: Final = 16 * 1024 * 1024
"""Decompressed bytes of batches that are decoded together. Smaller is slower, larger exceeds the cache."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selection of a partition's records and of their columns.

    Attributes:
        topic: the partition's topic.
        partition: the partition.
        schema: the columns, of `schemas.KAFKA` and `schemas.EXTRA`.
        start_offset: the first offset.
        stop_offset: the offset after the last.
        start_ms: the earliest time; None: any.
        stop_ms: after the latest time; None: any.
        control: whether control records are rows.
        committed: whether to leave out aborted records.
        aborted: the aborted transactions.
        limit: maximum decompressed bytes of a batch.
    """

    topic: str
    partition: int
    schema: pa.Schema
    start_offset: int = 0
    stop_offset: int = 2**63 - 1  # no limit
    start_ms: int | None = None
    stop_ms: int | None = None
    control: bool = False
    committed: bool = False
    aborted: AbortedRanges = field(default_factory=AbortedRanges)
    limit: int = DEFAULT_DECOMPRESSED_LIMIT


class Group(NamedTuple):
    """Batches whose records are decompressed into one buffer."""

    data: Bytes
    starts: Positions
    stops: Positions
    framed: Framed


def decode(data: Bytes, framed: Framed, wanted: Wanted, path: str, origin: int) -> Iterator[pa.RecordBatch | Damage]:
    """Decode batches: yield their records in order, and damage.

    Args:
        data: bytes of a segment, followed by `PADDING` zeros.
        framed: valid batches in them.
        wanted: which records, which columns.
        path: of the segment.
        origin: position of `data` in it.
    """
    framed = _select(framed, wanted)
    for part in _groups(data, framed, wanted.limit, origin):
        if isinstance(part, Damage):
            yield part
        else:
            yield from _rows(part, wanted, path, origin)


def _select(framed: Framed, wanted: Wanted) -> Framed:
    """Return the batches that may have selected rows, by their headers."""
    heads = framed.headers
    keep = (heads["count"] > 0) & (heads["base_offset"] < wanted.stop_offset)
    keep &= heads["base_offset"] + heads["last_offset_delta"].astype(np.int64) >= wanted.start_offset
    if not wanted.control:
        keep &= heads["attributes"] & CONTROL_BIT == 0
    if wanted.start_ms is not None:
        keep &= heads["max_timestamp"] >= wanted.start_ms
    if wanted.committed:
        keep &= ~wanted.aborted.of(heads)
    return framed if keep.all() else Framed(framed.positions[keep], heads[keep])


def _groups(data: Bytes, framed: Framed, limit: int, origin: int) -> Iterator[Group | Damage]:
    """Decompress batches, and group them to a suitable size."""
    codecs = framed.headers["attributes"] & CODEC_MASK
    starts = framed.positions + BATCH_HEADER_SIZE
    stops = framed.positions + LOG_OVERHEAD + framed.headers["length"]
    if not codecs.any():
        if len(starts):
            yield Group(data, starts, stops, framed)
        return
    view = data.data
    parts: list[bytes | bytearray | memoryview] = []
    ends: list[int] = []
    size = first = expected = 0
    for index, (start, stop, codec) in enumerate(zip(starts.tolist(), stops.tolist(), codecs.tolist(), strict=True)):
        part: bytes | bytearray | memoryview = view[start:stop]
        if codec:
            try:
                part = decompress(codec, part, limit, expected)
            except RecordsError as error:
                yield from _group(parts, ends, framed, first)
                head = framed.headers[index]
                at = int(framed.positions[index])
                yield Damage(origin + at, stop - at, str(error), int(head["base_offset"]))
                parts, ends, size, first = [], [], 0, index + 1
                continue
            # The next batch is about as large; an eighth more avoids a second try.
            expected = len(part) + len(part) // 8
        parts.append(part)
        size += len(part)
        ends.append(size)
        if size >= GROUP_BYTES:
            yield from _group(parts, ends, framed, first)
            parts, ends, size, first = [], [], 0, index + 1
    yield from _group(parts, ends, framed, first)


def _group(
    parts: Sequence[bytes | bytearray | memoryview], ends: Sequence[int], framed: Framed, first: int
) -> Iterator[Group]:
    if not parts:
        return
    data = np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8)
    stops = np.array(ends, np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1]])
    last = first + len(parts)
    yield Group(data, starts, stops, Framed(framed.positions[first:last], framed.headers[first:last]))


def _rows(group: Group, wanted: Wanted, path: str, origin: int) -> Iterator[pa.RecordBatch | Damage]:
    """Return the rows of a group; if something in it is malformed, halve it down to the batch that contains it."""
    heads = group.framed.headers
    counts = heads["count"].astype(np.int64)
    spans = heads["last_offset_delta"].astype(np.int64)
    try:
        fields = read_fields(group.data, group.starts, group.stops, counts, spans)
    except RecordsError as error:
        if len(counts) == 1:
            at, head = int(group.framed.positions[0]), heads[0]
            size = LOG_OVERHEAD + int(head["length"])
            yield Damage(origin + at, size, str(error), int(head["base_offset"]))
            return
        middle = len(counts) // 2
        for half in (slice(None, middle), slice(middle, None)):
            framed = Framed(group.framed.positions[half], heads[half])
            yield from _rows(Group(group.data, group.starts[half], group.stops[half], framed), wanted, path, origin)
        return
    columns = Columns(group, fields, wanted, path, origin)
    keep = columns.kept()
    rows = pa.RecordBatch.from_arrays([columns.column(name) for name in wanted.schema.names], schema=wanted.schema)
    if keep is not None:
        rows = rows.filter(pa.array(keep))
    if rows.num_rows:
        yield rows


class Columns:
    """The columns of decoded records, each made on demand."""

    def __init__(self, group: Group, fields: Fields, wanted: Wanted, path: str, origin: int) -> None:
        self._group, self._fields, self._wanted, self._path, self._origin = group, fields, wanted, path, origin
        self._heads = group.framed.headers
        self._timestamps: Positions | None = None
        self.count = len(fields.batch)

    def kept(self) -> NDArray[np.bool_] | None:
        """Return the rows within the bounds; None: all."""
        wanted, offsets = self._wanted, self._offsets()
        keep = np.ones(self.count, np.bool_)
        if int(self._heads["base_offset"][0]) < wanted.start_offset or int(offsets[-1]) >= wanted.stop_offset:
            keep = (offsets >= wanted.start_offset) & (offsets < wanted.stop_offset)
        if wanted.start_ms is not None:
            keep &= self._times() >= wanted.start_ms
        if wanted.stop_ms is not None:
            keep &= self._times() < wanted.stop_ms
        return None if keep.all() else keep

    def column(self, name: str) -> pa.Array:
        """Return one column of `schemas.KAFKA` or `schemas.EXTRA`."""
        array: pa.Array = getattr(self, f"_{name}")()
        return array

    def _each(self, name: str) -> NDArray[np.int64]:
        """Return a batch header's field for each record."""
        values: NDArray[np.int64] = self._heads[name].astype(np.int64)[self._fields.batch]
        return values

    def _bit(self, mask: int) -> NDArray[np.bool_]:
        bits: NDArray[np.bool_] = (self._heads["attributes"] & mask != 0)[self._fields.batch]
        return bits

    def _offsets(self) -> Positions:
        return self._each("base_offset") + self._fields.offset_delta

    def _times(self) -> Positions:
        if self._timestamps is None:
            times = self._each("base_timestamp") + self._fields.timestamp_delta
            appended = self._bit(TIMESTAMP_TYPE_BIT)
            self._timestamps = np.where(appended, self._each("max_timestamp"), times) if appended.any() else times
        return self._timestamps

    def _key(self) -> pa.Array:
        return columns.binary(self._group.data, self._fields.key)

    def _value(self) -> pa.Array:
        return columns.binary(self._group.data, self._fields.value)

    def _topic(self) -> pa.Array:
        return columns.repeated(self._wanted.topic, pa.string(), self.count)

    def _partition(self) -> pa.Array:
        return columns.repeated(self._wanted.partition, pa.int32(), self.count)

    def _offset(self) -> pa.Array:
        return pa.array(self._offsets())

    def _timestamp(self) -> pa.Array:
        return columns.instants(self._times())

    def _timestampType(self) -> pa.Array:  # noqa: N802 - Spark's name
        return pa.array(self._bit(TIMESTAMP_TYPE_BIT).astype(np.int32))

    def _headers(self) -> pa.Array:
        return columns.headers(self._group.data, self._fields.headers)

    def _timestamp_ms(self) -> pa.Array:
        return pa.array(self._times())

    def _producer_id(self) -> pa.Array:
        return pa.array(self._each("producer_id"))

    def _producer_epoch(self) -> pa.Array:
        return pa.array(self._each("producer_epoch").astype(np.int16))

    def _sequence(self) -> pa.Array:
        base = self._each("base_sequence")
        # 0 follows the highest sequence (DefaultRecordBatch.incrementSequence).
        sequences = np.where(base < 0, -1, (base + self._fields.offset_delta) & 0x7FFFFFFF)
        return pa.array(sequences.astype(np.int32))

    def _is_transactional(self) -> pa.Array:
        return pa.array(self._bit(TRANSACTIONAL_BIT))

    def _is_control(self) -> pa.Array:
        return pa.array(self._bit(CONTROL_BIT))

    def _aborted(self) -> pa.Array:
        return pa.array(self._wanted.aborted.of(self._heads)[self._fields.batch])

    def _leader_epoch(self) -> pa.Array:
        return pa.array(self._each("leader_epoch").astype(np.int32))

    def _batch_base_offset(self) -> pa.Array:
        return pa.array(self._each("base_offset"))

    def _segment(self) -> pa.Array:
        return columns.repeated(self._path, pa.string(), self.count)

    def _position(self) -> pa.Array:
        return pa.array(self._group.framed.positions[self._fields.batch] + self._origin)

    def _damage(self) -> pa.Array:
        return pa.nulls(self.count, pa.string())
