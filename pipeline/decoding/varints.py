"""Zig-zag varints and the places of records, many at a time (Kafka: ByteUtils, DefaultRecord).

All bytes are followed by `PADDING` zeros, which end any varint: what is read behind the end is wrong, but there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from protocol.records.errors import MalformedRecordsError

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]

PADDING: Final = 64
"""Zeros behind the bytes. The varints of one record's fields cannot lead further."""
_VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10

_STEP_COST: Final = 30
"""What a step of the lock-step walk costs, in the unit of which a record of the scalar walk costs..."""
_RECORD_COST: Final = 0.17


def read_varints(data: Bytes, at: Positions, max_bytes: int = _VARINT_BYTES) -> tuple[Positions, Positions]:
    """The numbers at these positions, and the positions after them. Raises MalformedRecordsError for a longer one."""
    first = data[at]
    value = first.astype(np.int64)
    after = at + 1
    more = np.flatnonzero(first >= 0x80)
    if len(more):
        value &= 0x7F
    shift = 7
    while len(more):
        if shift == 7 * max_bytes:
            raise MalformedRecordsError(f"a varint of more than {max_bytes} bytes")
        places = after[more]
        byte = data[places].astype(np.int64)
        value[more] |= (byte & 0x7F) << shift
        after[more] = places + 1
        shift += 7
        more = more[byte >= 0x80]
    if max_bytes == _VARINT_BYTES and shift > 28:
        value &= 0xFFFFFFFF  # Java drops what does not fit
    return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), after


def find_records(data: Bytes, starts: Positions, stops: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Where each record's fields begin (behind its size) and end, batch after batch.

    Args:
        data: records parts, and `PADDING`.
        starts: of each batch's records part.
        stops: of each batch's records part.
        counts: records of each batch, none of them zero.

    Raises:
        MalformedRecordsError: sizes that do not add up.
    """
    most, total = int(counts.max(initial=0)), int(counts.sum())
    if int((stops - starts).sum()) < total:
        raise MalformedRecordsError("more records than bytes")
    # The steps of many batches side by side; or, where few batches are large, one record after another.
    if _STEP_COST * most < _RECORD_COST * total:
        begins, ends = _in_lock_step(data, starts, counts, total)
    else:
        begins, ends = _one_by_one(data, starts, counts)
    lasts = np.cumsum(counts) - 1
    if (ends < begins).any() or (ends[lasts] != stops).any():
        raise MalformedRecordsError("records that do not fill their batch")
    return begins, ends


def _in_lock_step(data: Bytes, starts: Positions, counts: Positions, total: int) -> tuple[Positions, Positions]:
    """Step k finds record k of every batch; those with the most records stand first, so that all others drop out."""
    order = np.argsort(-counts, kind="stable")
    sorted_counts = counts[order]
    firsts = (np.cumsum(counts) - counts)[order]
    begins, ends = np.empty(total, np.int64), np.empty(total, np.int64)
    current = starts[order]
    lanes = np.searchsorted(-sorted_counts, -np.arange(int(sorted_counts[0])), side="left")
    limit = len(data) - PADDING
    for step, lane_count in enumerate(lanes.tolist()):
        sizes, begin = read_varints(data, current[:lane_count])
        end = begin + sizes
        if end.view(np.uint64).max() > limit:
            raise MalformedRecordsError("a record that goes on behind its batch")
        at = firsts[:lane_count] + step
        begins[at], ends[at] = begin, end
        current = end
    return begins, ends


def _one_by_one(data: Bytes, starts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    view = data.data
    limit = len(data) - PADDING
    begins: list[int] = []
    ends: list[int] = []
    add_begin, add_end = begins.append, ends.append
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        at = start
        for _ in range(count):
            byte = view[at]
            at += 1
            size, shift = byte & 0x7F, 7
            while byte >= 0x80:
                if shift == 7 * _VARINT_BYTES:
                    raise MalformedRecordsError(f"a varint of more than {_VARINT_BYTES} bytes")
                byte = view[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
            add_begin(at)
            at += size >> 1
            if size & 1 or at > limit:
                raise MalformedRecordsError("a record that goes on behind its batch")
            add_end(at)
    return np.array(begins, np.int64), np.array(ends, np.int64)
