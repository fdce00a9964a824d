"""Encodes Arrow columns into record batches (format v2), the inverse of the decoder.

The bytes of all records are made together: each field becomes a column of bytes, Arrow joins the columns row by row,
and the records of a batch are one slice of the result. Layout: `protocol.records.records`.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from protocol.records.batch import CONTROL_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from protocol.records.compression import Codec
from protocol.records.records import frame_batch

LOG_APPEND_TIME: Final = 1
BATCH_BYTES: Final = 500_000
"""Maximum size of a new batch with several records, before compression: below every default limit."""
_FARTHEST: Final = 1000
"""Maximum gap between the offsets of two records in a batch, as a record's delta has 32 bits.

Arbitrary, far below that.
"""
_NUMBERS_BYTES: Final = 40
"""Maximum size of a record's numbers, besides its key, value and headers.

Five varints of 5 bytes, the timestamp of 10, and the attributes: 36, rounded up.
"""
_HEADER_BYTES: Final = 10
"""Maximum size of a header's two lengths: varints of 5 bytes each."""
_EMPTY: Final = pa.scalar(b"", pa.large_binary())

Ints = npt.NDArray[np.int64]


class Batching(NamedTuple):
    """How batches are formed: `codec` as a number; `producers`: as in the original log, by `batch_base_offset`.

    `span_ms`: new batches also end at multiples of this interval.
    """

    codec: int = Codec.NONE
    level: int | None = None
    producers: bool = False
    leader_epoch: int = 0
    span_ms: int | None = None


def varints(values: Ints) -> pa.Array:
    """Encode signed numbers as zig-zag varints, one binary value each."""
    left = ((values << 1) ^ (values >> 63)).view(np.uint64)
    columns = []
    sizes = np.ones(len(values), np.int64)
    for place in range(10):  # 64 bits in groups of seven
        more = left > 0x7F
        columns.append(((left & 0x7F) | (more.astype(np.uint64) << 7)).astype(np.uint8))
        left >>= np.uint64(7)
        if not more.any():
            break
        sizes += more & (sizes == place + 1)
    digits = np.stack(columns, axis=1)
    data = digits[np.arange(digits.shape[1]) < sizes[:, None]]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    return pa.Array.from_buffers(pa.large_binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _field(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return size and bytes of a nullable field; null has size -1."""
    column = column.cast(pa.large_binary())
    sizes = pc.fill_null(pc.binary_length(column), -1)
    return varints(_ints(sizes)), pc.fill_null(column, _EMPTY)


def _ints(column: Any) -> Ints:
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _headers(column: pa.Array) -> pa.Array:
    """Return count and headers of each record; null counts as none."""
    counts = pc.fill_null(pc.list_value_length(column), 0)
    flat = pc.list_flatten(column)
    if len(flat) == 0:
        return varints(_ints(counts))
    key_size, key = _field(pc.struct_field(flat, "key").cast(pa.binary()))
    value_size, value = _field(pc.struct_field(flat, "value"))
    joined = pc.binary_join_element_wise(key_size, key, value_size, value, _EMPTY)
    bounds = _bounds(joined)[np.concatenate(([0], np.cumsum(_ints(counts))))]
    each = pa.Array.from_buffers(pa.large_binary(), len(column), [None, pa.py_buffer(bounds), joined.buffers()[2]])
    return pc.binary_join_element_wise(varints(_ints(counts)), each, _EMPTY)


def _bounds(column: pa.Array) -> Ints:
    """Return the range of the data buffer that the values of a large binary array occupy."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def encode(records: pa.Table, how: Batching) -> Iterator[bytearray]:
    """Encode the records of one partition into batches, in offset order.

    Args:
        records: columns `offset`, `timestamp_ms`, `timestampType`, `key`, `value`, `headers`; with `how.producers` also
            `producer_id`, `producer_epoch`, `sequence`, `is_transactional`, `is_control`, `batch_base_offset`.
        how: how batches are formed.
    """
    table = records.combine_chunks()
    if not table.num_rows:
        return
    columns = {name: table.column(name).chunk(0) for name in table.column_names}
    offsets, times = _ints(columns["offset"]), _ints(columns["timestamp_ms"])
    kinds = _ints(columns["timestampType"])
    starts = _as_they_were(columns) if how.producers else _new_batches(columns, offsets, times, kinds, how.span_ms)
    stops = np.append(starts[1:], len(offsets))
    bases = np.repeat(offsets[starts], stops - starts)
    if how.producers:
        bases = _ints(columns["batch_base_offset"])
    first_times = np.repeat(times[starts], stops - starts)
    data, bounds = _records(columns, times - first_times, offsets - bases)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        producer = {name: columns[name][start].as_py() for name in _PRODUCER} if how.producers else {}
        latest = int(times[start:stop].max())
        attributes = TIMESTAMP_TYPE_BIT if kinds[start] == LOG_APPEND_TIME else 0
        attributes |= (TRANSACTIONAL_BIT if producer.get("is_transactional") else 0) | (
            CONTROL_BIT if producer.get("is_control") else 0
        )
        base = int(bases[start])
        yield frame_batch(
            memoryview(data)[bounds[start] : bounds[stop]],
            stop - start,
            base_offset=base,
            last_offset_delta=int(offsets[stop - 1]) - base,
            base_timestamp_ms=int(times[start]),
            max_timestamp_ms=latest,
            attributes=attributes,
            codec=Codec.NONE if producer.get("is_control") else how.codec,
            level=how.level,
            producer_id=producer.get("producer_id", -1),
            producer_epoch=producer.get("producer_epoch", -1),
            base_sequence=_base_sequence(producer, int(offsets[start]) - base),
            partition_leader_epoch=how.leader_epoch,
        )


_PRODUCER: Final = ("producer_id", "producer_epoch", "sequence", "is_transactional", "is_control")


def _base_sequence(producer: dict[str, Any], skipped: int) -> int:
    """Return the batch's base sequence, even if compaction has removed its first records; markers have none."""
    sequence: int = producer.get("sequence", -1)
    # The highest sequence is before 0 (DefaultRecordBatch.decrementSequence).
    return sequence if sequence < 0 else (sequence - skipped) & 0x7FFFFFFF


def _records(columns: dict[str, pa.Array], time_deltas: Ints, offset_deltas: Ints) -> tuple[pa.Buffer, Ints]:
    """Return the bytes of all records, concatenated, and where each record begins and ends."""
    key_size, key = _field(columns["key"])
    value_size, value = _field(columns["value"])
    attributes = pa.repeat(pa.scalar(b"\0", pa.large_binary()), len(time_deltas))
    body = [attributes, varints(time_deltas), varints(offset_deltas), key_size, key, value_size, value]
    body.append(_headers(columns["headers"]))
    total = sum(_ints(pc.binary_length(part)) for part in body)
    joined = pc.binary_join_element_wise(varints(np.asarray(total)), *body, _EMPTY)
    return joined.buffers()[2], _bounds(joined)


def _as_they_were(columns: dict[str, pa.Array]) -> Ints:
    bases = _ints(columns["batch_base_offset"])
    return np.flatnonzero(np.concatenate(([True], bases[1:] != bases[:-1])))


def _new_batches(columns: dict[str, pa.Array], offsets: Ints, times: Ints, kinds: Ints, span_ms: int | None) -> Ints:
    """Return where new batches start: at the size limit, another timestamp type, or an offset gap that is too large.

    A batch has one log append time: another log append time starts another batch.
    """
    changed = (kinds[1:] != kinds[:-1]) | (np.diff(offsets) > _FARTHEST)
    changed |= (kinds[1:] == LOG_APPEND_TIME) & (times[1:] != times[:-1])
    if span_ms is not None:
        changed |= np.diff(times // span_ms) != 0
    starts = np.flatnonzero(np.concatenate(([True], changed)))
    return _cut(starts, np.cumsum(_sizes(columns)))


def _sizes(columns: dict[str, pa.Array]) -> Ints:
    """Return the maximum size of each record in bytes."""
    sizes = _ints(pc.fill_null(pc.binary_length(columns["key"]), 0)) + _NUMBERS_BYTES
    sizes += _ints(pc.fill_null(pc.binary_length(columns["value"]), 0))
    counts = _ints(pc.fill_null(pc.list_value_length(columns["headers"]), 0))
    flat = pc.list_flatten(columns["headers"])
    if len(flat):
        each = _ints(pc.binary_length(pc.struct_field(flat, "key").cast(pa.binary()))) + _HEADER_BYTES
        each += _ints(pc.fill_null(pc.binary_length(pc.struct_field(flat, "value")), 0))
        ends = np.concatenate(([0], np.cumsum(each)))[np.concatenate(([0], np.cumsum(counts)))]
        sizes += np.diff(ends)
    return sizes


def _cut(starts: Ints, totals: Ints) -> Ints:
    """Return the starts of batches, with more where a batch would exceed `BATCH_BYTES`."""
    cuts = []
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(totals)], strict=True):
        at = start
        while at < stop:
            cuts.append(at)
            most = BATCH_BYTES + (int(totals[at - 1]) if at else 0)
            at = max(at + 1, int(np.searchsorted(totals, most, "right")))
    return np.array(cuts, np.int64)
