"""Decodes the fields of all records of some batches into arrays: numbers, and positions of keys, values, headers.

Every length is compared with the end of its record before it is used. Layout: transactions F.5 (DefaultRecord).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.record_scan import find_records
from pipeline.decoding.varints import VARLONG_BYTES, Bytes, Positions, read_varints
from protocol.records.errors import MalformedRecordsError


class Slices(NamedTuple):
    """Byte strings in a buffer; a negative length is null."""

    starts: Positions
    lengths: Positions


class HeaderSlices(NamedTuple):
    """The headers of records, concatenated. `bounds` has one more entry than there are records."""

    bounds: NDArray[np.int32]
    keys: Slices
    values: Slices


class Fields(NamedTuple):
    """Result of `read_fields`, one entry per record."""

    batch: Positions
    """Index of the record's batch."""
    timestamp_delta: Positions
    offset_delta: Positions
    key: Slices
    value: Slices
    headers: HeaderSlices


def read_fields(data: Bytes, starts: Positions, stops: Positions, counts: Positions, spans: Positions) -> Fields:
    """Decode the records of batches, which are in `data` from `starts` to `stops`.

    Args:
        data: decompressed records of batches, and `varints.PADDING` zeros.
        starts: first byte of each batch's records.
        stops: end of each batch's records.
        counts: number of records in each batch; none of them zero.
        spans: largest offset delta that each batch may have.

    Raises:
        MalformedRecordsError: any inconsistency, in any of the batches.
    """
    at, ends = find_records(data, starts, stops, counts)
    batch = np.repeat(np.arange(len(starts)), counts)
    timestamps, at = read_varints(data, at + 1, VARLONG_BYTES)  # skip the attributes, which are unused
    offsets, at = read_varints(data, at)
    _check_offsets(offsets, batch, spans)
    key_lengths, key_starts = read_varints(data, at)
    at = _skip(key_starts, key_lengths, ends, "a key")
    value_lengths, value_starts = read_varints(data, at)
    at = _skip(value_starts, value_lengths, ends, "a value")
    header_counts, at = read_varints(data, at)
    if header_counts.any():
        headers, at = _read_headers(data, at, ends, header_counts)
    else:
        nothing = Slices(np.empty(0, np.int64), np.empty(0, np.int64))
        headers = HeaderSlices(np.zeros(len(at) + 1, np.int32), nothing, nothing)
    if (at != ends).any():
        raise MalformedRecordsError("fields that do not fill their record")
    return Fields(
        batch, timestamps, offsets, Slices(key_starts, key_lengths), Slices(value_starts, value_lengths), headers
    )


def _skip(starts: Positions, lengths: Positions, ends: Positions, what: str) -> Positions:
    """Return the positions after fields of these lengths."""
    after = starts + np.maximum(lengths, 0)
    if (after > ends).any():
        raise MalformedRecordsError(f"{what} that is longer than its record")
    return after


def _check_offsets(offsets: Positions, batch: Positions, spans: Positions) -> None:
    """Check that offset deltas are within their batch and increase."""
    if (offsets < 0).any() or (offsets > spans[batch]).any():
        raise MalformedRecordsError("a record's offset lies outside its batch")
    if ((offsets[1:] <= offsets[:-1]) & (batch[1:] == batch[:-1])).any():
        raise MalformedRecordsError("offsets that do not grow")


def _read_headers(data: Bytes, at: Positions, ends: Positions, counts: Positions) -> tuple[HeaderSlices, Positions]:
    """Read headers: step k reads header k of every record that has one."""
    if (counts < 0).any() or (counts > ends - at).any():
        raise MalformedRecordsError("more headers than bytes, or fewer than none")
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    total = int(bounds[-1])
    key_starts, key_lengths, value_starts, value_lengths = (np.empty(total, np.int64) for _ in range(4))
    after = at.copy()
    rows = np.flatnonzero(counts)
    step = 0
    while len(rows):
        slots = bounds[rows] + step
        lengths, starts = read_varints(data, after[rows])
        if (lengths < 0).any():
            raise MalformedRecordsError("a header without a key")
        key_starts[slots], key_lengths[slots] = starts, lengths
        lengths, starts = read_varints(data, _skip(starts, lengths, ends[rows], "a header's key"))
        value_starts[slots], value_lengths[slots] = starts, lengths
        after[rows] = _skip(starts, lengths, ends[rows], "a header's value")
        step += 1
        rows = rows[counts[rows] > step]
    keys, values = Slices(key_starts, key_lengths), Slices(value_starts, value_lengths)
    return HeaderSlices(bounds.astype(np.int32), keys, values), after
