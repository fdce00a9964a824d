"""Decodes framed batches into rows of `schemas.BATCHES`: headers as columns, control records, damage."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decoding import columns
from pipeline.decoding.batch_scan import Framed, Messages
from pipeline.decoding.damage import Damage
from pipeline.decoding.legacy import messages
from pipeline.decoding.varints import Bytes
from pipeline.schemas import BATCHES
from pipeline.segment_reader import Chunk
from protocol.records.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from protocol.records.compression import Codec
from protocol.records.errors import RecordsError
from protocol.records.message_set import read_messages
from protocol.records.records import ControlType, control_type, parse_marker, read_records

CODECS: Final = pa.array([codec.name.lower() for codec in Codec] + ["undefined"] * 3)  # three bits: eight codes

_MARKER_SIZE: Final = 78  # bytes of a marker's batch (transactions F.5)
_MARKER_BYTES: Final = ((61, 32), (62, 0), (63, 0), (64, 0), (65, 8), (66, 0), (67, 0), (68, 0), (70, 12), (77, 0))
"""Positions and values of the bytes that are constant in a marker: sizes and deltas (transactions F.5).

The type is at 69, the coordinator epoch at 73.
"""


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Makes the rows of the pieces of one segment.

    Args:
        topic: the segment's topic.
        partition: the segment's partition.
        path: the segment's path.
        schema: columns of `schemas.BATCHES`.
        start_offset: batches that end before it are left out.
        stop_offset: batches that begin at or after it are left out.
        start_ms: batches whose latest record is earlier are left out.
        stop_ms: batches whose latest record is not earlier are left out.
        by_base: whether batches that begin before `start_offset`, and damage before it, are left out too.
    """

    topic: str
    partition: int
    path: str
    schema: pa.Schema = BATCHES
    start_offset: int = 0
    stop_offset: int = 2**63 - 1  # no limit
    start_ms: int | None = None
    stop_ms: int | None = None
    by_base: bool = False

    def rows(self, chunk: Chunk) -> Iterator[pa.RecordBatch | Damage]:
        """Return the rows of a piece, which may be damage."""
        if isinstance(chunk.piece, Damage):
            due = self.start_offset if chunk.piece.base_offset is None else chunk.piece.base_offset
            if not self.by_base or self.start_offset <= due < self.stop_offset:
                yield chunk.piece
        elif isinstance(chunk.piece, Messages):
            yield from self._messages(chunk, chunk.piece)
        else:
            framed = self._select(chunk.piece)
            if len(framed.positions):
                yield self._framed(chunk.data, framed, chunk.origin)

    def damage(self, damaged: Damage) -> pa.RecordBatch:
        """Return the row that reports damage."""
        known = {"position": damaged.position, "size": damaged.size, "base_offset": damaged.base_offset}
        return self._table(1, {**known, "damage": damaged.reason})

    def _table(self, count: int, known: dict[str, Any]) -> pa.RecordBatch:
        """Return rows with these columns (arrays, or one value for all rows); the others are null."""
        known = {**known, "topic": self.topic, "partition": self.partition, "segment": self.path}
        arrays = []
        for field in self.schema:
            value = known.get(field.name)
            if isinstance(value, pa.Array):
                arrays.append(value.cast(field.type))
            else:
                arrays.append(columns.repeated(value, field.type, count))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _select(self, framed: Framed) -> Framed:
        heads = framed.headers
        keep = heads["base_offset"] < self.stop_offset
        keep &= heads["base_offset"] + self._reach(heads) >= self.start_offset
        if self.start_ms is not None:
            keep &= heads["max_timestamp"] >= self.start_ms
        if self.stop_ms is not None:
            keep &= heads["max_timestamp"] < self.stop_ms
        return framed if keep.all() else Framed(framed.positions[keep], heads[keep])

    def _reach(self, heads: NDArray[Any]) -> NDArray[np.int64] | int:
        return 0 if self.by_base else heads["last_offset_delta"].astype(np.int64)

    def _framed(self, data: Bytes, framed: Framed, origin: int) -> pa.RecordBatch:
        heads = framed.headers
        bits = heads["attributes"]
        base, delta = heads["base_offset"].astype(np.int64), heads["last_offset_delta"].astype(np.int64)
        sequence = heads["base_sequence"].astype(np.int64)
        has_horizon = bits & DELETE_HORIZON_BIT != 0
        first = heads["base_timestamp"].astype(np.int64)
        kinds, epochs = _control(data, framed)
        columns: dict[str, Callable[[], Any]] = {
            "position": lambda: pa.array(framed.positions + origin),
            "size": lambda: pa.array(heads["length"].astype(np.int64) + LOG_OVERHEAD),
            "base_offset": lambda: pa.array(base),
            "last_offset": lambda: pa.array(base + delta),
            "record_count": lambda: pa.array(heads["count"].astype(np.int32)),
            "magic": lambda: MAGIC_V2,
            "attributes": lambda: pa.array(bits.astype(np.int32) & 0xFFFF),  # as an unsigned int16
            "crc": lambda: pa.array(heads["crc"].astype(np.int64)),
            "leader_epoch": lambda: pa.array(heads["leader_epoch"].astype(np.int32)),
            "codec": lambda: pa.DictionaryArray.from_arrays((bits & CODEC_MASK).astype(np.int32), CODECS),
            "timestampType": lambda: pa.array((bits & TIMESTAMP_TYPE_BIT != 0).astype(np.int32)),
            "base_timestamp_ms": lambda: pa.array(first, mask=has_horizon),
            "max_timestamp_ms": lambda: pa.array(heads["max_timestamp"].astype(np.int64)),
            "delete_horizon_ms": lambda: pa.array(first, mask=~has_horizon),
            "producer_id": lambda: pa.array(heads["producer_id"].astype(np.int64)),
            "producer_epoch": lambda: pa.array(heads["producer_epoch"].astype(np.int16)),
            "base_sequence": lambda: pa.array(sequence),
            # 0 follows the highest sequence (DefaultRecordBatch.incrementSequence).
            "last_sequence": lambda: pa.array(np.where(sequence < 0, -1, (sequence + delta) & 0x7FFFFFFF)),
            "is_transactional": lambda: pa.array(bits & TRANSACTIONAL_BIT != 0),
            "is_control": lambda: pa.array(bits & CONTROL_BIT != 0),
            "control_type": lambda: pa.array(kinds, pa.string()),
            "coordinator_epoch": lambda: pa.array(epochs, pa.int32()),
        }
        return self._table(len(heads), {name: make() for name, make in columns.items() if name in self.schema.names})

    def _messages(self, chunk: Chunk, framed: Messages) -> Iterator[pa.RecordBatch | Damage]:
        """Return a row per message of magic 0 and 1; one row for a compressed message with all its inner messages."""
        view = chunk.data.data
        for at, size in messages(chunk.data, framed):
            try:
                records = list(read_messages(view[at : at + size]))
            except RecordsError as error:
                yield Damage(chunk.origin + at, size, str(error).partition(": ")[2] or str(error))
                continue
            magic, attributes = view[at + 16], view[at + 17]  # after offset, size and CRC
            known = {
                "position": chunk.origin + at,
                "size": size,
                "base_offset": records[0].offset,
                "last_offset": records[-1].offset,
                "record_count": len(records),
                "magic": magic,
                "attributes": attributes,
                "codec": CODECS[attributes & CODEC_MASK].as_py(),
                "timestampType": int(attributes & TIMESTAMP_TYPE_BIT > 0) if magic else -1,
                "base_timestamp_ms": records[0].timestamp_ms,
                "max_timestamp_ms": max(each.timestamp_ms for each in records),
            }
            none = dict.fromkeys(
                ("leader_epoch", "producer_id", "producer_epoch", "base_sequence", "last_sequence"), -1
            )
            yield self._table(1, {**known, **none, "is_transactional": False, "is_control": False})


def _control(data: Bytes, framed: Framed) -> tuple[NDArray[Any], list[int | None]]:
    """Return the control record's kind and the coordinator epoch of each batch; None for other batches."""
    kinds = np.full(len(framed.positions), None, object)
    epochs: list[int | None] = [None] * len(kinds)
    rows = np.flatnonzero(framed.headers["attributes"] & CONTROL_BIT)
    if not len(rows):
        return kinds, epochs
    at = framed.positions[rows]
    usual = framed.headers["length"][rows] == _MARKER_SIZE - LOG_OVERHEAD
    for place, byte in _MARKER_BYTES:
        usual &= data[np.where(usual, at + place, 0)] == byte
    # At 69 is the kind, the second byte of the key's type; at 73 the coordinator epoch (transactions F.5).
    usual &= data[np.where(usual, at + 69, 0)] <= ControlType.COMMIT
    for row, position, is_usual in zip(rows.tolist(), at.tolist(), usual.tolist(), strict=True):
        if is_usual:
            kinds[row] = "COMMIT" if data[position + 69] else "ABORT"
            epochs[row] = int.from_bytes(data[position + 73 : position + 77].tobytes(), "big", signed=True)
            continue
        batch = RecordBatch(data.data, position)
        kinds[row] = _kind(batch)
        marker = parse_marker(batch)
        epochs[row] = marker.coordinator_epoch if marker is not None and _is_at_its_place(batch) else None
    return kinds, epochs


def _is_at_its_place(batch: RecordBatch) -> bool:
    """Return whether the first record has the offset and timestamp that the batch header implies."""
    record = next(read_records(batch))
    return record.offset == batch.last_offset and record.timestamp_ms == batch.max_timestamp_ms


def _kind(batch: RecordBatch) -> str | None:
    """Return the kind of a control batch's first record; a number if only a newer Kafka has it."""
    try:
        kind = control_type(next(read_records(batch)).key)
    except (RecordsError, StopIteration):
        return None
    return None if kind is None else ControlType(kind).name if kind in set(ControlType) else str(kind)


assert _MARKER_BYTES[0][0] == BATCH_HEADER_SIZE
