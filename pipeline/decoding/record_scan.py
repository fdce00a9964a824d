"""Finds the boundaries of records in batches by following many chains of record sizes in parallel (DefaultRecord).

Many small batches advance in lock step. A large batch is split into lanes first: each starts at what looks like the
start of a record. A guess is only accepted if the lane before it, and thus the chain from the batch's start, arrives
exactly there. Otherwise the batch is walked record by record.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from pipeline.decoding.varints import PADDING, VARINT_BYTES, Bytes, Positions, read_varints
from protocol.records.errors import MalformedRecordsError

Places = tuple[Positions, Positions]
"""Start and end of each record's fields."""

_STEP_COST: Final = 25
"""Cost of a step in lock step, relative to the cost of a record..."""
_RECORD_COST: Final = 0.25
"""...when walked one after another..."""
_LANE_COST: Final = 0.1
"""...and in lanes..."""
_MANY: Final = 8192
"""...which pay off from this number of records on: ours, as are the costs: they change no result."""

_LANE_RECORDS: Final = 64  # arbitrary: many lanes for each batch, and a start that costs little beside them
_MOST_STEPS: Final = 16 * _LANE_RECORDS
"""Steps of a lane before its batch is walked record by record: ours, sixteen times the mean."""
_LEAST_SIZE: Final = 6
"""Minimum size of a record's fields, each of one byte."""
_WINDOW_BYTES: Final = 4096  # in which a lane looks for its first record; ours, longer than most records
_HOPS: Final = 4
"""Consecutive plausible records that are required before a lane starts: fewer meet by chance."""


def find_records(data: Bytes, starts: Positions, stops: Positions, counts: Positions) -> Places:
    """Return start (after the size) and end of each record's fields, batch by batch.

    Args:
        data: records of batches, and `PADDING`.
        starts: first byte of each batch's records.
        stops: end of each batch's records.
        counts: number of records of each batch, none of them zero.

    Raises:
        MalformedRecordsError: inconsistent sizes.
    """
    most, total = int(counts.max(initial=0)), int(counts.sum())
    if int((stops - starts).sum()) < total:
        raise MalformedRecordsError("more records than bytes")
    walk: Callable[[Bytes, Positions, Positions, Positions], Places]
    if total < _MANY:
        walk = _in_lock_step if _STEP_COST * most < _RECORD_COST * total else _one_by_one
    else:
        walk = _in_lock_step if _STEP_COST * most < _LANE_COST * total else _in_lanes
    begins, ends = walk(data, starts, stops, counts)
    lasts = np.cumsum(counts) - 1
    if (ends < begins).any() or (ends[lasts] != stops).any():
        raise MalformedRecordsError("records that do not fill their batch")
    return begins, ends


def _in_lock_step(data: Bytes, starts: Positions, _stops: Positions, counts: Positions) -> Places:
    """Find record k of every batch in step k; batches with the most records come first, so that the others drop out."""
    order = np.argsort(-counts, kind="stable")
    sorted_counts = counts[order]
    firsts = (np.cumsum(counts) - counts)[order]
    total = int(counts.sum())
    begins, ends = np.empty(total, np.int64), np.empty(total, np.int64)
    current = starts[order]
    lanes = np.searchsorted(-sorted_counts, -np.arange(int(sorted_counts[0])), side="left")
    limit = len(data) - PADDING
    for step, lane_count in enumerate(lanes.tolist()):
        sizes, begin = _sizes(data, current[:lane_count])
        end = begin + sizes
        if end.view(np.uint64).max() > limit:
            raise MalformedRecordsError("a record that extends beyond its batch")
        at = firsts[:lane_count] + step
        begins[at], ends[at] = begin, end
        current = end
    return begins, ends


def _in_lanes(data: Bytes, starts: Positions, stops: Positions, counts: Positions) -> Places:
    """Follow parts of large batches in parallel."""
    try:
        return _walk_lanes(data, starts, stops, counts)
    except MalformedRecordsError:  # it may belong to a lane that starts at a wrong position
        return _one_by_one(data, starts, stops, counts)


def _walk_lanes(data: Bytes, starts: Positions, stops: Positions, counts: Positions) -> Places:
    batch, begun = _lanes(data, starts, stops, counts)
    limits = np.append(begun[1:], 0)
    lasts = np.append(batch[1:] != batch[:-1], [True])
    limits[lasts] = stops[batch[lasts]]
    is_sound = np.ones(len(counts), np.bool_)
    lane, at = np.arange(len(begun)), begun
    steps: list[tuple[Positions, Positions, Positions]] = []
    while len(lane) and len(steps) < _MOST_STEPS:
        sizes, begin = _sizes(data, at)
        end, limit = begin + sizes, limits[lane]
        astray = (sizes <= 0) | (end > limit)
        is_sound[batch[lane[astray]]] = False
        steps.append((lane, begin, end))
        on = ~astray & (end < limit)
        lane, at = lane[on], end[on]
    is_sound[batch[lane]] = False
    lanes = np.concatenate([each for each, _, _ in steps])
    walked = np.bincount(lanes, minlength=len(begun))
    is_sound &= np.bincount(batch, walked, len(counts)) == counts
    begins, ends = (np.empty(int(counts.sum()), np.int64) for _ in range(2))
    # The first record of a lane follows those of the lanes before it, if the numbers of records of all batches add up.
    walked = np.where(is_sound[batch], walked, 0)
    missing = np.cumsum(np.where(is_sound, 0, counts))[batch]
    firsts = np.cumsum(walked) - walked + missing
    number = np.repeat(np.arange(len(steps)), [len(each) for each, _, _ in steps])
    sound = is_sound[batch[lanes]]
    places = (firsts[lanes] + number)[sound]
    begins[places] = np.concatenate([each for _, each, _ in steps])[sound]
    ends[places] = np.concatenate([each for _, _, each in steps])[sound]
    if not is_sound.all():
        places = np.flatnonzero(~np.repeat(is_sound, counts))
        begins[places], ends[places] = _one_by_one(data, starts[~is_sound], stops[~is_sound], counts[~is_sound])
    return begins, ends


def _lanes(data: Bytes, starts: Positions, stops: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Return batch and first byte of each lane, in order."""
    lanes = np.maximum(counts // _LANE_RECORDS, 1)
    batch = np.repeat(np.arange(len(counts)), lanes)
    number = np.arange(len(batch)) - np.repeat(np.cumsum(lanes) - lanes, lanes)
    stride = ((stops - starts) // lanes)[batch]
    begun = starts[batch] + number * stride
    guessed = np.flatnonzero(number)
    # Two records of mean length, and some bytes more for short ones: one begins within it.
    width = min(2 * int((stops - starts).sum()) // int(counts.sum()) + 32, _WINDOW_BYTES)
    aims = begun[guessed]
    guesses = _guesses(data, aims, stops[batch[guessed]], width)
    begun[guessed] = np.where(guesses < aims + stride[guessed], guesses, -1)
    occupied = begun >= 0
    return batch[occupied], begun[occupied]


def _guesses(data: Bytes, aims: Positions, stops: Positions, width: int) -> Positions:
    """Return, after each aim, a position where a record seems to start; -1 if none.

    It is some records after something that looks like a record: following sizes from a wrong position soon meets the
    right ones.
    """
    guessed = np.full(len(aims), -1, np.int64)
    # Four bytes are read at each place.
    fits = np.flatnonzero(aims + width + 3 <= len(data))
    if not len(fits):
        return guessed
    windows = np.lib.stride_tricks.sliding_window_view(data, width + 3)[aims[fits]]
    first, second, third, fourth = (windows[:, at : at + width] for at in range(4))
    # Encoded sizes are even, because sizes are not negative; the attributes after them are 0.
    likely = (first < 0x80) & (first >= 2 * _LEAST_SIZE) & (second == 0)
    likely |= (first >= 0x80) & (second < 0x80) & (third == 0)
    likely |= (first >= 0x80) & (second >= 0x80) & (third < 0x80) & (fourth == 0)
    likely &= first & 1 == 0
    row, offset = np.nonzero(likely)
    row = fits[row]
    at = aims[row] + offset
    for _ in range(_HOPS):
        goes_on = at < stops[row]
        size, after = _short_size(data, np.where(goes_on, at, 0))
        end = np.where(goes_on, after + size, at)
        good = ~goes_on | ((size >= _LEAST_SIZE) & (data[after] == 0) & (end <= stops[row]))
        row, at = row[good], end[good]
    rows, places = np.unique(row, return_index=True)
    guessed[rows] = at[places]
    return guessed


def _short_size(data: Bytes, at: Positions) -> Places:
    """Return the size at this position and the position after it; -1 if it has more than three bytes."""
    first, second, third = (data[at + place].astype(np.int64) for place in range(3))
    length = 1 + (first >= 0x80) + ((first >= 0x80) & (second >= 0x80))
    value = (first & 0x7F) | np.where(length > 1, (second & 0x7F) << 7, 0) | np.where(length > 2, third << 14, 0)
    return np.where((value & 1 == 0) & ((length < 3) | (third < 0x80)), value >> 1, -1), at + length


def _sizes(data: Bytes, at: Positions) -> Places:
    """Do the same as `read_varints`, in fewer steps for sizes of one or two bytes."""
    low, high = data[at], data[at + 1]
    is_long = low >= 0x80
    if (is_long & (high >= 0x80)).any():
        return read_varints(data, at)
    value = low + is_long * ((high.astype(np.int64) << 7) - 0x80)
    return value >> 1 ^ -(value & 1), at + 1 + is_long


def _one_by_one(data: Bytes, starts: Positions, _stops: Positions, counts: Positions) -> Places:
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
                if shift == 7 * VARINT_BYTES:
                    raise MalformedRecordsError(f"a varint of more than {VARINT_BYTES} bytes")
                byte = view[at]
                at += 1
                size |= (byte & 0x7F) << shift
                shift += 7
            add_begin(at)
            at += size >> 1
            if size & 1 or at > limit:
                raise MalformedRecordsError("a record that extends beyond its batch")
            add_end(at)
    return np.array(begins, np.int64), np.array(ends, np.int64)
