"""Control batches: the markers that end transactions, and the other kinds that only a controller's log holds.

Layout and vectors: transactions F.5 (Kafka: ControlRecordType, EndTransactionMarker).
"""

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from protocol.records.batch import BATCH_HEADER_SIZE, CONTROL_BIT, NO_LEADER_EPOCH, TRANSACTIONAL_BIT, RecordBatch
from protocol.records.errors import RecordsError
from protocol.records.records import frame_batch, read_records

_KEY = Struct(">hh")
_END_TRANSACTION = Struct(">hi")
_MARKER_RECORD = Struct(">bbbbbhhbhib")
_MARKER_SIZE = BATCH_HEADER_SIZE + _MARKER_RECORD.size
_MARKER_SHAPE = ([32, 0, 0, 0, 8, 0], 12, 0, 0)
"""Fields of a marker besides its kind and epoch; sizes are zig-zag varints, twice the number of bytes.

Size, attributes, two deltas, key size and key, value size and value, header count: 17 bytes, 16 of them counted.
"""


class ControlType(IntEnum):
    """The second number in the key of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class Marker(NamedTuple):
    """Transaction marker of a partition: the outcome of a transaction."""

    committed: bool
    coordinator_epoch: int
    timestamp_ms: int


def build_marker(
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """Build a whole batch of 78 bytes with one COMMIT or ABORT record."""
    kind = ControlType.COMMIT if committed else ControlType.ABORT
    return frame_batch(
        # Sizes are zig-zag varints: twice the number of bytes.
        _MARKER_RECORD.pack(32, 0, 0, 0, 2 * _KEY.size, 0, kind, 2 * _END_TRANSACTION.size, 0, coordinator_epoch, 0),
        1,
        base_offset=base_offset,
        last_offset_delta=0,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
    )


def control_key(kind: ControlType) -> bytes:
    """Return the key of a control record of this kind, version 0."""
    return _KEY.pack(0, kind)


def control_type(key: bytes | None) -> int | None:
    """Return the kind of a control record by its key, of any version; None when the key cannot be read.

    A number that is not in ControlType is a kind of a newer Kafka.
    """
    if key is None or len(key) < _KEY.size:
        return None
    version, kind = _KEY.unpack_from(key)
    return kind if version >= 0 else None


def parse_marker(batch: RecordBatch) -> Marker | None:
    """Return the transaction marker in a batch; None for a data batch, an empty one, or another kind of control record.

    Never raises: unreadable bytes are not a marker.
    """
    if not batch.is_control or batch.record_count < 1:
        return None
    if batch.size == _MARKER_SIZE and batch.is_complete:  # nearly all are as build_marker makes them
        *before, kind, size, version, epoch, headers = _MARKER_RECORD.unpack_from(batch.records_view)
        if (before, size, version, headers) == _MARKER_SHAPE and 0 <= kind <= ControlType.COMMIT:
            return Marker(kind == ControlType.COMMIT, epoch, batch.base_timestamp_ms)
    try:
        record = next(read_records(batch))
        kind = control_type(record.key)
        if kind not in (ControlType.ABORT, ControlType.COMMIT) or record.value is None:
            return None
        _, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
    except (RecordsError, StopIteration, error):
        return None
    return Marker(kind == ControlType.COMMIT, coordinator_epoch, record.timestamp_ms)
