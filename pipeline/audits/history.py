"""Adds to each batch, in log order, the state before it and the history of its producer.

A log is read once, from its start. Only the previous batch and a handful of numbers per producer are kept, so memory
does not grow with the log.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.decoding.columns import repeated
from pipeline.schemas import BATCHES

_FEW: Final = pa.dictionary(pa.int32(), pa.string())
"""Texts of which there are few: an audit of small batches would spend a third of its time on copies of them."""
READ: Final = pa.schema([each.with_type(_FEW) if each.type == pa.string() else each for each in BATCHES])
"""Columns that are read of each batch."""
_BATCH: Final = pa.schema(
    [
        pa.field("directory", _FEW),  # the data directory
        *READ,
        pa.field("segment_base", pa.int64()),  # base offset of the segment
        pa.field("damage_kind", _FEW),  # crc, count, offsets, epoch, torn, damaged
        pa.field("stated_offset", pa.int64()),  # of a batch with offsets out of order: the base offset in its header
        pa.field("stated_last", pa.int64()),
    ]
)
_NEIGHBOURS: Final = pa.schema(
    [
        pa.field("previous_last_offset", pa.int64()),
        pa.field("previous_leader_epoch", pa.int32()),
        pa.field("previous_timestamp_ms", pa.int64()),
        pa.field("previous_timestamp_type", pa.int32()),
        pa.field("previous_damage", _FEW),
        pa.field("next_segment_base", pa.int64()),  # of the next batch or damaged range
        pa.field("place", pa.int64()),  # its base offset, or the one it should have
        pa.field("latest_ms", pa.int64()),  # highest timestamp of its segment so far, without what is damaged
    ]
)
_PRODUCERS: Final = pa.schema(
    [
        pa.field(
            "turn", pa.int64()
        ),  # number of earlier markers; the batches of a transaction and its marker have the same
        pa.field("highest_epoch", pa.int16()),
        pa.field("data_epoch", pa.int16()),  # of the last batch that is not a marker, like the next two
        pa.field("data_sequence", pa.int32()),
        pa.field("data_offset", pa.int64()),
        pa.field("previous_coordinator_epoch", pa.int32()),  # of the last marker
    ]
)
HISTORY: Final = pa.schema([*_BATCH, *_NEIGHBOURS, *_PRODUCERS])
"""One row per batch, and per damaged range. The last six columns describe the same producer's earlier batches, and are
null in its first row, except `turn`, and for batches without a producer.
"""
READ_COLUMNS: Final = tuple(_BATCH.names)
"""Columns of a batch itself."""
ORDERED: Final = (*READ_COLUMNS, *_NEIGHBOURS.names)
"""Columns that do not depend on the producer."""
ROWS: Final = 1 << 16
"""Rows that are processed together: arbitrary, memory has to hold their columns."""

_KINDS: Final = (
    ("crc", re.compile(r"checksum mismatch$")),
    ("count", re.compile(r"more records than offsets$|.*records.*count")),
    ("offsets", re.compile(r"offsets .* out of order")),
    ("epoch", re.compile(r"leader epoch .* out of order")),
    ("torn", re.compile(r".* bytes (are there|of zeros)$|.*fewer than a header$")),
)
"""Pattern of the decoder's reason -> kind of damage in the checks; others are `damaged`."""
_STATED: Final = re.compile(r"offsets (-?[0-9]+)-(-?[0-9]+), out of order")
_DAMAGE: Final = {"damage_kind": pa.string(), "stated_offset": pa.int64(), "stated_last": pa.int64()}
"""Columns derived from a decoder's reason."""
_NEVER: Final = -(2**63)  # before every time
_EPOCHS: Final = 1 << 17
"""More than the number of epochs of a producer."""
_MEMORY: Final = np.dtype(
    [
        ("turn", "i8"), ("highest_epoch", "i4"), ("has_data", "?"), ("data_epoch", "i4"), ("data_sequence", "i8"),
        ("data_offset", "i8"), ("has_marker", "?"), ("coordinator_epoch", "i4"),
    ]
)  # fmt: skip
_MEMORY_NAMES: Final = _MEMORY.names or ()


class History:
    """One partition's log in one data directory, read from its start."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._last: dict[str, Any] = {}
        self._segment = -1, _NEVER
        self._producers: dict[int, tuple[Any, ...]] = {}

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return rows of `HISTORY` for rows of `READ`, which must come in log order."""
        held: pa.RecordBatch | None = None
        for batch in _gathered(batches):
            if held is not None:
                yield self._completed(held, _base(batch.column("segment")[0].as_py()))
            held = batch
        if held is not None:
            yield self._completed(held, None)

    def _completed(self, batch: pa.RecordBatch, following_base: int | None) -> pa.RecordBatch:
        columns = {name: batch.column(name) for name in READ.names}
        columns["directory"] = repeated(self._directory, _FEW, len(batch))
        segments = batch.column("segment")
        bases = np.array([_base(path) for path in segments.dictionary.to_pylist()], np.int64)
        columns["segment_base"] = pa.array(bases[segments.indices.to_numpy()])
        columns |= _damage(batch.column("damage"))
        columns |= self._neighbours(columns, following_base)
        columns |= self._before(columns)
        return pa.RecordBatch.from_arrays([columns[field.name].cast(field.type) for field in HISTORY], schema=HISTORY)

    def _neighbours(self, columns: dict[str, pa.Array], following_base: int | None) -> dict[str, pa.Array]:
        neighbours = {}
        for name, source in (
            ("previous_last_offset", "last_offset"),
            ("previous_leader_epoch", "leader_epoch"),
            ("previous_timestamp_ms", "max_timestamp_ms"),
            ("previous_timestamp_type", "timestampType"),
            ("previous_damage", "damage"),
        ):
            own = columns[source]
            neighbours[name] = pa.concat_arrays([pa.array([self._last.get(source)], own.type), own[:-1]])
            self._last[source] = own[-1].as_py()
        bases = columns["segment_base"]
        neighbours["next_segment_base"] = pa.concat_arrays([bases[1:], pa.array([following_base], pa.int64())])
        behind = pc.add(neighbours["previous_last_offset"], 1)
        neighbours["place"] = pc.coalesce(columns["base_offset"], columns["stated_offset"], behind, bases)
        neighbours["latest_ms"] = self._latest(columns)
        return neighbours

    def _latest(self, columns: dict[str, pa.Array]) -> pa.Array:
        times = pc.if_else(pc.is_null(columns["damage"]), columns["max_timestamp_ms"], None)
        latest = times.cast(pa.int64()).fill_null(_NEVER).to_numpy(zero_copy_only=False).copy()
        bases = columns["segment_base"].to_numpy()
        starts = [0, *(np.flatnonzero(bases[1:] != bases[:-1]) + 1).tolist(), len(bases)]
        if bases[0] == self._segment[0]:
            latest[0] = max(latest[0], self._segment[1])
        for start, stop in pairwise(starts):
            np.maximum.accumulate(latest[start:stop], out=latest[start:stop])
        self._segment = int(bases[-1]), int(latest[-1])
        return pa.array(latest, mask=latest == _NEVER)

    def _before(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Return the state of each batch's producer before the batch."""
        has_producer = pc.and_(pc.is_null(columns["damage"]), pc.greater_equal(columns["producer_id"], 0))
        rows = np.flatnonzero(pc.fill_null(has_producer, False).to_numpy(zero_copy_only=False))
        count = len(columns["damage"])
        if not len(rows):
            return {field.name: pa.nulls(count, field.type) for field in _PRODUCERS}
        own = {name: _numbers(columns[name], rows) for name in _OWN}
        own["has_marker"] = columns["coordinator_epoch"].is_valid().to_numpy(zero_copy_only=False)[rows]
        ids, before, after = self._turns(own)
        self._producers.update(zip(ids.tolist(), zip(*(after[name].tolist() for name in _MEMORY_NAMES), strict=True),
                                   strict=True))  # fmt: skip
        known, has_data, has_marker = before["is_known"], before["has_data"], before["has_marker"]
        earlier = {
            "turn": (before["turn"], np.ones(len(rows), np.bool_)),
            "highest_epoch": (before["highest_epoch"], known),
            "data_epoch": (before["data_epoch"], has_data),
            "data_sequence": (before["data_sequence"], has_data),
            "data_offset": (before["data_offset"], has_data),
            "previous_coordinator_epoch": (before["coordinator_epoch"], has_marker),
        }
        return {name: _scattered(count, rows, *values) for name, values in earlier.items()}

    def _turns(self, own: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], dict[str, NDArray[Any]], NDArray[Any]]:
        """Return the producers, their earlier history for each batch, and their history after the last one.

        The remembered state of a producer is treated as a batch before its first one.
        """
        remembered = [each for each in np.unique(own["producer_id"]).tolist() if each in self._producers]
        memory = np.array([self._producers[each] for each in remembered], _MEMORY)
        both = {name: np.concatenate([memory[there], own[here]]) for name, there, here in _JOINED}
        is_data = np.concatenate([memory["has_data"], own["is_control"] == 0])
        is_marker = np.concatenate([memory["has_marker"], (own["is_control"] != 0) & own["has_marker"]])
        ids = np.concatenate([np.array(remembered, np.int64), own["producer_id"]])
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        is_first = np.concatenate([[True], ids[1:] != ids[:-1]])
        at = np.arange(len(ids))
        first = np.maximum.accumulate(np.where(is_first, at, 0))
        after = np.zeros(len(ids), _MEMORY)
        markers = both["turn"][order]
        total = np.cumsum(markers)
        after["turn"] = total - (total - markers)[first]
        group = np.cumsum(is_first) * _EPOCHS
        after["highest_epoch"] = np.maximum.accumulate(both["highest_epoch"][order] + group) - group
        for has, flags, names in (
            ("has_data", is_data, ("data_epoch", "data_sequence", "data_offset")),
            ("has_marker", is_marker, ("coordinator_epoch",)),
        ):
            latest = np.maximum.accumulate(np.where(flags[order], at, -1))
            after[has] = latest >= first
            for name in names:
                after[name] = both[name][order][latest]
        before = np.zeros(len(ids), _MEMORY)
        before[1:] = after[:-1]
        before[is_first] = np.zeros((), _MEMORY)
        back = np.empty(len(ids), np.int64)
        back[order] = at
        back = back[len(remembered) :]
        states = {name: before[name][back] for name in _MEMORY_NAMES} | {"is_known": ~is_first[back]}
        ends = np.flatnonzero(np.concatenate([is_first[1:], [True]]))
        return ids[ends], states, after[ends]


_OWN: Final = (
    "producer_id", "producer_epoch", "is_control", "last_sequence", "base_offset", "coordinator_epoch",
)  # fmt: skip
_JOINED: Final = (
    ("turn", "turn", "is_control"),
    ("highest_epoch", "highest_epoch", "producer_epoch"),
    ("data_epoch", "data_epoch", "producer_epoch"),
    ("data_sequence", "data_sequence", "last_sequence"),
    ("data_offset", "data_offset", "base_offset"),
    ("coordinator_epoch", "coordinator_epoch", "coordinator_epoch"),
)
"""Computed value, its index in `_MEMORY`, and the batch field that it comes from."""


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Regroup rows into batches of about `ROWS`."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if len(batch):
            waiting.append(batch)
            count += len(batch)
        if count >= ROWS:
            yield pa.concat_batches(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _base(path: str) -> int:
    return int(path[-24:-4])  # the digits before `.log`


def _damage(damage: pa.Array) -> dict[str, pa.Array]:
    """Return the kind of damage and the offsets in the header."""
    if damage.null_count == len(damage):
        return {name: pa.nulls(len(damage), kind) for name, kind in _DAMAGE.items()}
    kinds: list[str | None] = []
    stated: list[tuple[int, int] | tuple[None, None]] = []
    for reason in damage.to_pylist():
        stated_range = None if reason is None else _STATED.match(reason)
        kinds.append(None if reason is None else next((kind for kind, what in _KINDS if what.match(reason)), "damaged"))
        stated.append((None, None) if stated_range is None else (int(stated_range[1]), int(stated_range[2])))
    columns: tuple[list[Any], ...] = (kinds, [each for each, _ in stated], [each for _, each in stated])
    return {name: pa.array(values, kind) for (name, kind), values in zip(_DAMAGE.items(), columns, strict=True)}


def _numbers(column: pa.Array, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the column's values in some rows; 0 for null."""
    numbers: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()[rows]
    return numbers


def _scattered(count: int, rows: NDArray[np.int64], values: NDArray[Any], valid: NDArray[np.bool_]) -> pa.Array:
    """Return a column of `count` rows with values in some of them."""
    whole, missing = np.zeros(count, np.int64), np.ones(count, np.bool_)
    whole[rows] = values
    missing[rows] = ~valid
    return pa.array(whole, mask=missing)
