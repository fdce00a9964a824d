"""Makes Arrow columns from byte strings that are in one buffer, with a single copy in one call."""

import numpy as np
import pyarrow as pa

from pipeline.decoding.fields import HeaderSlices, Slices
from pipeline.decoding.varints import Bytes, Positions
from pipeline.schemas import HEADERS, INSTANT

_MOST_MS = (2**63 - 1) // 1000  # a timestamp of Arrow or Spark has microseconds


def binary(data: Bytes, slices: Slices) -> pa.Array:
    """Return the byte strings as an Arrow array of type binary.

    The offsets [start 0, end 0, start 1, end 1, ...] describe twice as many strings: ours and the gaps between them.
    Arrow then takes every other one.
    """
    count = len(slices.starts)
    if not count:
        return pa.array([], pa.binary())
    is_null = slices.lengths < 0
    has_nulls = bool(is_null.any())
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = slices.starts
    offsets[1::2] = slices.starts + (np.maximum(slices.lengths, 0) if has_nulls else slices.lengths)
    offsets[-1] = offsets[-2]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    both = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=is_null if has_nulls else None))


def headers(data: Bytes, slices: HeaderSlices) -> pa.Array:
    """Return the headers as lists of key and value; null for a record without headers, like Spark's Kafka source."""
    counts = np.diff(slices.bounds)
    keys = _text(binary(data, slices.keys))
    pairs = pa.StructArray.from_arrays([keys, binary(data, slices.values)], fields=list(HEADERS.value_type))
    none = counts == 0
    mask = pa.array(none) if none.any() else None
    return pa.ListArray.from_arrays(pa.array(slices.bounds), pairs, type=HEADERS, mask=mask)


def _text(strings: pa.Array) -> pa.Array:
    """Decode UTF-8 as Java does: invalid bytes become the replacement character."""
    try:
        return strings.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([each.decode("utf-8", "replace") for each in strings.to_pylist()], pa.string())


def instants(timestamps_ms: Positions) -> pa.Array:
    """Convert milliseconds to timestamps in microseconds; null if they exceed 64 bits."""
    beyond = (timestamps_ms > _MOST_MS) | (timestamps_ms < -_MOST_MS)
    return pa.array(timestamps_ms * 1000, pa.int64(), mask=beyond if beyond.any() else None).view(INSTANT)


def repeated(value: object, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column with the same value in every row."""
    if value is None:
        return pa.nulls(count, kind)
    if pa.types.is_dictionary(kind):
        places = pa.array(np.zeros(count, np.int32))
        return pa.DictionaryArray.from_arrays(places, pa.array([value], kind.value_type))
    return pa.repeat(pa.scalar(value, kind), count)
