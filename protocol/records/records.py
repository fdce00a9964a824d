"""The records of a batch: read one by one, or written into a new batch; control records too.

Layout of a record: transactions F.5 (Kafka: DefaultRecord, MemoryRecordsBuilder, ControlRecordType,
EndTransactionMarker).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from struct import Struct, error
from typing import Final, NamedTuple

from protocol.checksums import crc32c
from protocol.records.batch import (
    BATCH_HEADER_SIZE,
    CHECKED,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    UNCHECKED,
    Buffer,
    RecordBatch,
    Span,
    read_span,
    read_varint,
    wrap_int64,
    write_varint,
)
from protocol.records.compression import DEFAULT_DECOMPRESSED_LIMIT, Codec, compress, decompress
from protocol.records.errors import MalformedRecordsError, RecordsError

Header = tuple[str, bytes | None]
"""A record header. Keys may repeat; order counts."""


class Record(NamedTuple):
    """One record. `timestamp_ms` is -1 when there is none; key and value may be null."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def record_bytes(batch: RecordBatch, limit: int = DEFAULT_DECOMPRESSED_LIMIT) -> bytes | bytearray:
    """Return the records part of a batch, decompressed to at most `limit` bytes.

    Raises UnreadableCompressionError, DecompressedTooLargeError.
    """
    data = decompress(batch.codec, batch.records_view, limit)
    return bytes(data) if isinstance(data, memoryview) else data


def read_records(batch: RecordBatch, limit: int = DEFAULT_DECOMPRESSED_LIMIT) -> Iterator[Record]:
    """Yield the records of `batch`, with absolute offsets and timestamps. Raises RecordsError at the first bad one.

    In a LogAppendTime batch every record has the batch's maximum timestamp (core D.3).
    """
    data = record_bytes(batch, limit)
    appended_at = batch.max_timestamp_ms if batch.is_log_append_time else None
    for span in spans(data, batch.record_count):
        yield Record(
            batch.base_offset + span.offset_delta,
            batch.base_timestamp_ms + span.timestamp_delta if appended_at is None else appended_at,
            None if span.key_size < 0 else bytes(data[span.key_position : span.key_position + span.key_size]),
            None if span.value_size < 0 else bytes(data[span.value_position : span.value_position + span.value_size]),
            read_headers(data, span.headers_position),
        )


def spans(data: bytes | bytearray, count: int) -> Iterator[Span]:
    """Yield the spans of the `count` records in `data`. Raises MalformedRecordsError, also for extra bytes."""
    position = 0
    for _ in range(count):
        span = read_span(data, position)
        yield span
        position = span.end
    if position != len(data):
        raise MalformedRecordsError(f"{len(data) - position} bytes after the last of {count} records")


def read_headers(data: bytes | bytearray, position: int) -> tuple[Header, ...]:
    """Read the headers whose count is at `position`, of a record that `read_span` has checked."""
    if not data[position]:
        return ()
    count, position = read_varint(data, position)
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        # As Java's decoder does, bytes that are not UTF-8 become the replacement character.
        key = data[position : position + size].decode("utf-8", "replace")
        size, position = read_varint(data, position + size)
        value = None if size < 0 else bytes(data[position : position + size])
        position += max(size, 0)
        headers.append((key, value))
    return tuple(headers)


def write_record(output: bytearray, record: Record, base_offset: int, base_timestamp_ms: int) -> None:
    """Append one record to the uncompressed records part of a batch."""
    body = bytearray(1)
    write_varint(body, record.timestamp_ms - base_timestamp_ms)
    write_varint(body, record.offset - base_offset)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key.encode())
        _write_bytes(body, value)
    write_varint(output, len(body))
    output += body


def rebase_records(data: bytes | bytearray, count: int, timestamp_shift_ms: int | None, first: int = 0) -> bytearray:
    """Return the records in `data` with offset deltas 0, 1, 2, ...; keys, values and headers stay byte for byte.

    Timestamp deltas get smaller by `timestamp_shift_ms`; None makes them all 0. The offset deltas begin at `first`, the
    number of records that precede `data` in the batch. Raises MalformedRecordsError.
    """
    output = bytearray()
    for index, span in enumerate(spans(data, count), first):
        begin_record(output, span.timestamp_delta, index, span.end - span.body_position, timestamp_shift_ms)
        output += data[span.body_position : span.end]
    return output


def begin_record(
    output: bytearray, timestamp_delta: int, index: int, body_size: int, timestamp_shift_ms: int | None
) -> None:
    """Write the fields before the body of a rebased record."""
    deltas = bytearray(1)
    write_varint(deltas, 0 if timestamp_shift_ms is None else wrap_int64(timestamp_delta - timestamp_shift_ms))
    write_varint(deltas, index)
    write_varint(output, len(deltas) + body_size)
    output += deltas


def _write_bytes(output: bytearray, value: bytes | None) -> None:
    if value is None:
        output.append(1)
    else:
        write_varint(output, len(value))
        output += value


def _written(
    records: Iterable[Record], base_offset: int, base_timestamp_ms: int, between: Callable[[], None] | None
) -> bytearray:
    data = bytearray()
    for record in records:
        write_record(data, record, base_offset, base_timestamp_ms)
        if between is not None:
            between()
    return data


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp_ms: int | None = None,
    max_timestamp_ms: int | None = None,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
    delete_horizon_ms: int | None = None,
    between: Callable[[], None] | None = None,
) -> bytearray:
    """Build a whole v2 batch of `records`, header and CRC included.

    Offsets and timestamps are taken from the records; the keyword arguments override what follows from them, as the
    cleaner needs (a batch keeps its range of offsets when records are removed). `delete_horizon_ms` replaces the base
    timestamp and sets bit 6; the record timestamps keep their values (core F.6.4). `between` is called after each
    record.
    """
    records = list(records)
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    if delete_horizon_ms is not None:
        base_timestamp_ms = delete_horizon_ms
    elif base_timestamp_ms is None:
        base_timestamp_ms = records[0].timestamp_ms if records else NO_TIMESTAMP
    if max_timestamp_ms is None:
        max_timestamp_ms = max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
    return frame_batch(
        _written(records, base_offset, base_timestamp_ms, between),
        len(records),
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        codec=codec,
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=partition_leader_epoch,
        attributes=(
            (TRANSACTIONAL_BIT if transactional else 0)
            | (CONTROL_BIT if control else 0)
            | (TIMESTAMP_TYPE_BIT if log_append_time else 0)
            | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
        ),
    )


def frame_batch(
    data: Buffer,
    record_count: int,
    *,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    attributes: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """Build a batch from an uncompressed records part: compress it with `codec`, and add a header with lengths and CRC.

    `attributes` has all bits except those of the codec. A batch without records is never compressed (core F.6.5).
    """
    if record_count and codec:
        data = compress(codec, data, level)
        attributes |= codec
    checked = CHECKED.pack(
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    size = BATCH_HEADER_SIZE - LOG_OVERHEAD + len(data)
    checksum = crc32c(data, crc32c(checked))
    batch = bytearray(UNCHECKED.pack(base_offset, size, partition_leader_epoch, MAGIC_V2, checksum))
    batch += checked
    batch += data
    return batch


# --- control batches: the markers that end transactions, and the other kinds that only a controller's log holds -----

_KEY: Final = Struct(">hh")
_END_TRANSACTION: Final = Struct(">hi")
_MARKER_RECORD: Final = Struct(">bbbbbhhbhib")
_MARKER_SIZE: Final = BATCH_HEADER_SIZE + _MARKER_RECORD.size
_MARKER_SHAPE: Final = ([32, 0, 0, 0, 8, 0], 12, 0, 0)
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
