"""A record batch (format v2), read in place: its header, and the structure of its records.

`RecordBatch` looks at 61 bytes of a larger buffer and copies nothing: the log, the append checks and the fetch path
work on headers alone. Re-stamping touches header bytes in place, in a writable buffer. `walk` checks the records
without creating an object for each of them; `records` creates those. Older formats (magic 0 and 1) are in
`message_set`.

Layout and offsets: core D.4, transactions F.5 (Kafka: DefaultRecordBatch, ByteUtils).
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from protocol.checksums import crc32c
from protocol.records.errors import BatchDamagedError, MalformedRecordsError

Buffer = bytes | bytearray | memoryview

BATCH_HEADER_SIZE: Final = 61
"""Bytes before the first record of a v2 batch."""
LOG_OVERHEAD: Final = 12
"""Bytes not counted by the length field: base offset and the length field itself."""
MAGIC_V2: Final = 2
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1

# Bits of the attributes: core D.4.
CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

# Positions in the header: core D.4.
LENGTH_POSITION: Final = 8
LEADER_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAX_TIMESTAMP_POSITION: Final = 35
RECORD_COUNT_POSITION: Final = 57

UNCHECKED: Final = Struct(">qiibI")
CHECKED: Final = Struct(">hiqqqhii")
"""Header fields up to the checksum, and those that it covers."""
HEADER: Final = Struct(UNCHECKED.format + CHECKED.format.lstrip(">"))
"""All header fields in wire order."""

_OFFSET: Final = Struct(">q")
_SIZE: Final = Struct(">i")
_EPOCH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_SEQUENCE_MASK: Final = 0x7FFFFFFF


def increment_sequence(sequence: int, increment: int) -> int:
    """Add `increment` to a sequence; after 2147483647 comes 0 (transactions D.4, DefaultRecordBatch)."""
    return (sequence + increment) & _SEQUENCE_MASK


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Subtract `decrement` from a sequence, the inverse of `increment_sequence`."""
    return (sequence - decrement) & _SEQUENCE_MASK


class RecordBatch:
    """A view of one v2 batch header at `position` of `buffer`.

    Only the 61 header bytes have to be present; `is_complete` is true if the records follow. Raises `struct.error`
    when fewer bytes remain. The fields are copies taken at construction: they follow the re-stamping methods below,
    not other writes to the buffer. `base_timestamp_ms` holds the delete horizon when `has_delete_horizon`.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp_ms",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp_ms",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    buffer: Buffer
    position: int
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        """Read the header; `size` is the whole batch in bytes (12 + the length field)."""
        self.buffer = buffer
        self.position = position
        length: int
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer, position)
        self.size = LOG_OVERHEAD + length

    def __repr__(self) -> str:
        """Offsets, producer and kind, for readers of a failing test."""
        kind = "control" if self.is_control else "data"
        return (
            f"RecordBatch({kind}, offsets {self.base_offset}..{self.last_offset}, {self.size} bytes, "
            f"producer {self.producer_id}/{self.producer_epoch}, sequence {self.base_sequence})"
        )

    @property
    def codec(self) -> int:
        """Compression code 0..7 (attribute bits 0-2); 5-7 are undefined."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Attribute bit 3: every record has the time `max_timestamp_ms`."""
        return self.attributes & TIMESTAMP_TYPE_BIT != 0

    @property
    def is_transactional(self) -> bool:
        """Attribute bit 4."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Attribute bit 5: holds a control record, never shown to applications."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Attribute bit 6: `base_timestamp_ms` is the time when the cleaner may drop tombstones and markers."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        """True for batches of idempotent and transactional producers."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_offset(self) -> int:
        """Offset of the last record with which the batch was sent (compaction may have removed it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapping at 2^31; -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _SEQUENCE_MASK

    @property
    def end(self) -> int:
        """Position in `buffer` just after this batch."""
        return self.position + self.size

    @property
    def is_complete(self) -> bool:
        """Whether all bytes that the length field promises are in `buffer`."""
        return self.size >= BATCH_HEADER_SIZE and self.position + self.size <= len(self.buffer)

    @property
    def view(self) -> memoryview:
        """The whole batch, header included, without a copy."""
        return memoryview(self.buffer)[self.position : self.position + self.size]

    @property
    def records_view(self) -> memoryview:
        """The records part, compressed with `codec`, without a copy."""
        return memoryview(self.buffer)[self.position + BATCH_HEADER_SIZE : self.position + self.size]

    def compute_crc(self) -> int:
        """Compute the CRC32C of everything after the crc field."""
        checked = memoryview(self.buffer)[self.position + ATTRIBUTES_POSITION : self.position + self.size]
        return crc32c(checked)

    def crc_ok(self) -> bool:
        """Whether the batch is complete and its CRC32C matches. Never raises."""
        position, end = self.position, self.position + self.size
        if self.size < BATCH_HEADER_SIZE or end > len(self.buffer):
            return False
        return crc32c(memoryview(self.buffer)[position + ATTRIBUTES_POSITION : end]) == self.crc

    def assign(self, base_offset: int, partition_leader_epoch: int) -> None:
        """Stamp offset and leader epoch in place: both lie before the bytes that the CRC covers (core D.3)."""
        _OFFSET.pack_into(self.buffer, self.position, base_offset)
        _EPOCH.pack_into(self.buffer, self.position + LOG_OVERHEAD, partition_leader_epoch)
        self.base_offset = base_offset
        self.partition_leader_epoch = partition_leader_epoch

    def set_max_timestamp(self, max_timestamp_ms: int, *, log_append_time: bool) -> None:
        """Stamp the maximum timestamp and attribute bit 3 in place, with a new CRC where they change (core D.3).

        Bits that Kafka does not know stay as sent, unless the header is stamped anyway: then it loses them.
        """
        is_log_append_time = self.attributes & TIMESTAMP_TYPE_BIT != 0
        if log_append_time == is_log_append_time and max_timestamp_ms == self.max_timestamp_ms:
            return
        attributes = self.attributes & (CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT)
        if log_append_time:
            attributes |= TIMESTAMP_TYPE_BIT
        position = self.position
        _ATTRIBUTES.pack_into(self.buffer, position + ATTRIBUTES_POSITION, attributes)
        _TIMESTAMP.pack_into(self.buffer, position + MAX_TIMESTAMP_POSITION, max_timestamp_ms)
        self.attributes = attributes
        self.max_timestamp_ms = max_timestamp_ms
        self.crc = self.compute_crc()
        _CRC.pack_into(self.buffer, position + CRC_POSITION, self.crc)


def batch_size(buffer: Buffer, position: int = 0) -> int:
    """Return the size in bytes of the batch (any magic) at `position` by its length field; -1 if that is cut off."""
    if position + LOG_OVERHEAD > len(buffer):
        return -1
    size: int = LOG_OVERHEAD + _SIZE.unpack_from(buffer, position + LENGTH_POSITION)[0]
    return size


def magic_of(buffer: Buffer) -> int:
    """Return the magic of the batch or message with which the buffer begins; -1 if it is too short to have one."""
    return buffer[MAGIC_POSITION] if len(buffer) > MAGIC_POSITION else -1


def begins_with_batch(buffer: Buffer) -> bool:
    """Whether the buffer begins with the whole header of a v2 batch."""
    return len(buffer) >= BATCH_HEADER_SIZE and buffer[MAGIC_POSITION] == MAGIC_V2


def batches(buffer: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """Yield header views over concatenated v2 batches; stop before anything that is not a whole v2 batch."""
    end = len(buffer)
    while position + BATCH_HEADER_SIZE <= end:
        batch = RecordBatch(buffer, position)
        position += batch.size
        if batch.size < BATCH_HEADER_SIZE or position > end or batch.magic != MAGIC_V2:
            return
        yield batch


def checked_batches(buffer: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """Yield batches like `batches`; check every CRC, and raise `BatchDamagedError` where `batches` would stop early.

    A torn tail and a flipped bit differ only in `reason`: recovery truncates at `position` either way (core F.7).
    """
    end = len(buffer)
    while position < end:
        size = batch_size(buffer, position)
        if position + BATCH_HEADER_SIZE > end:
            raise BatchDamagedError(position, f"{end - position} bytes are fewer than a header")
        if size < BATCH_HEADER_SIZE:
            raise BatchDamagedError(position, f"a length field of {size - LOG_OVERHEAD}")
        batch = RecordBatch(buffer, position)
        if batch.magic != MAGIC_V2:
            raise BatchDamagedError(position, f"magic {batch.magic}")
        if batch.end > end:
            raise BatchDamagedError(position, f"{end - position} of {size} bytes are present")
        if batch.compute_crc() != batch.crc:
            raise BatchDamagedError(position, "checksum mismatch")
        yield batch
        position = batch.end


# --- zig-zag varints: how a record writes its lengths and deltas ----------------------------------------------------

VARINT_MAX_BYTES: Final = 5  # 7 bits a byte: 32 bits
VARLONG_MAX_BYTES: Final = 10  # 64 bits
_INT32: Final = 2**32 - 1
_INT64: Final = 2**64 - 1


def read_varint(data: bytes | bytearray, position: int, max_bytes: int = VARINT_MAX_BYTES) -> tuple[int, int]:
    """Read a number; return it and the position after it. Raises MalformedRecordsError past the end or `max_bytes`."""
    value = shift = 0
    stop = position + max_bytes
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= _INT32 if max_bytes == VARINT_MAX_BYTES else _INT64  # Java drops what does not fit
                return (value >> 1) ^ -(value & 1), position
            if position == stop:
                raise MalformedRecordsError(f"a varint of more than {max_bytes} bytes")
            shift += 7
    except IndexError:
        raise MalformedRecordsError("a varint cut short") from None


def write_varint(output: bytearray, value: int) -> None:
    """Append `value` (an int32 or an int64) to `output`."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    output.append(value)


def wrap_int64(value: int) -> int:
    """Return `value` with the overflow of a Java long."""
    return ((value + 2**63) & _INT64) - 2**63


# --- the walk over the records --------------------------------------------------------------------------------------
#
# A broker must look at every record that it appends: its structure, its timestamp, whether it has a key
# (core D.2 V10, core D.2 V13). `walk` checks that in one pass, mostly without looking at single records: records that
# have the same shape as their predecessor (same size, same lengths inside, no headers) are compared column by column,
# with strided slices. That is sound because a record's structure is decided by its length bytes alone: where those
# equal the predecessor's bytes and the variable-width fields end at the same place, the walk would take the same steps.

_LOW: Final = bytes(range(128))
_HIGH: Final = bytes(range(128, 256))
_SEQUENTIAL: Final = (
    (bytes(range(0, 128, 2)),),
    (bytes(range(128, 256, 2)) * 128, b"".join(bytes([high]) * 64 for high in range(128))),
)
"""Offset deltas 0, 1, 2, ... as columns: the 64 that fit one byte; the 8192 that fit two, first and second bytes."""

_SHORTEST_RUN: Final = 16
"""Fewest records for which the search for a run of the same shape is worth its cost: ours."""
_LONGEST_PAUSE: Final = 256
"""Most records until the next search for a run, after searches that failed.

Ours, as each search costs a few records' time.
"""


class Walked(NamedTuple):
    """Result of `walk` for the records of one batch."""

    min_timestamp_delta: int
    """ms from the batch's base timestamp; never above 0."""
    max_timestamp_delta: int
    """ms from the batch's base timestamp, of the latest record."""
    is_sequential: bool
    """Whether the offset deltas are 0, 1, 2, ..."""
    has_null_key: bool


class Span(NamedTuple):
    """Where the parts of one record lie in the records part; lengths in bytes, -1 for null."""

    timestamp_delta: int
    offset_delta: int
    body_position: int
    """Position of the key's size: from here to `end` nothing depends on the record's batch."""
    key_position: int
    key_size: int
    value_position: int
    value_size: int
    headers_position: int
    """Position of the header count."""
    end: int
    """Position after the record."""


def read_span(data: bytes | bytearray, position: int) -> Span:
    """Read the record at `position`, and check its structure to the last header. Raises MalformedRecordsError."""
    size, position = read_varint(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise MalformedRecordsError(f"a record of {size} bytes where {len(data) - position} are left")
    timestamp_delta, position = read_varint(data, position + 1, VARLONG_MAX_BYTES)
    offset_delta, body_position = read_varint(data, position)
    key_size, key_position = read_varint(data, body_position)
    value_size, value_position = read_varint(data, key_position + max(key_size, 0))
    headers_position = value_position + max(value_size, 0)
    try:
        position = _skip_headers(data, headers_position)
    except IndexError:
        raise MalformedRecordsError("headers cut short") from None
    if position != end:
        raise MalformedRecordsError(f"a record of {size} bytes whose fields take {size + position - end}")
    # Any negative length is read as null, as Utils.readBytes does.
    return Span(
        timestamp_delta,
        offset_delta,
        body_position,
        key_position,
        max(key_size, -1),
        value_position,
        max(value_size, -1),
        headers_position,
        end,
    )


def _skip_headers(data: bytes | bytearray, position: int) -> int:
    """Skip the headers whose count is at `position`; return the end. Raises MalformedRecordsError or IndexError."""
    count, position = read_varint(data, position)
    if count < 0 or count > len(data) - position:
        raise MalformedRecordsError(f"{count} headers where {len(data) - position} bytes are left")
    for _ in range(count):
        if (size := data[position]) > 0x7F:
            size, position = read_varint(data, position)
            size *= 2
        else:
            position += 1
        if size < 0 or size & 1:
            raise MalformedRecordsError("a header without a key")
        position += size >> 1
        if (size := data[position]) > 0x7F:
            size, position = read_varint(data, position)
            position += max(size, 0)
        else:
            position += 1 if size & 1 else 1 + (size >> 1)
    return position


def walk(data: bytes | bytearray, count: int, stop: int | None = None, first: int = 0) -> Walked:
    """Check the structure of the `count` records that make up `data` up to `stop`. Raises MalformedRecordsError.

    `count` includes the `first` records of the batch, which came before `data`. Narrow varints are read in line, others
    by `read_span`. An error message may differ if `data` continues after `stop`.
    """
    stop = len(data) if stop is None else stop
    position = previous_size = try_at = null_keys = 0
    index, pause, last_try, sequential, deltas = first, 1, count - _SHORTEST_RUN, True, set[int]()
    while index < count and position < stop:
        start = position
        try:
            if (size := data[position]) > 0x7F:
                position += 1
                size = size & 0x7F | data[position] << 7
            end = position + 1 + (size >> 1)
            position += 2  # the size, and the attributes, which are not used
            if (delta := data[position]) > 0x7F:
                position += 1
                delta = delta & 0x7F | data[position] << 7
            position += 1
            if (offset := data[position]) > 0x7F:
                position += 1
                offset = offset & 0x7F | data[position] << 7
            position += 1
            if (key := data[position]) > 0x7F:
                position += 1
                key = key & 0x7F | data[position] << 7
            position += 1 if key & 1 else 1 + (key >> 1)
            if (value := data[position]) > 0x7F:
                position += 1
                value = value & 0x7F | data[position] << 7
            position += 1 if value & 1 else 1 + (value >> 1)
            # Bit 14 marks a third byte, so that `position` is wrong; an odd size is a negative one.
            whole = (size | delta | offset | key | value) < 0x4000 and not size & 1
            bare = whole and not data[position]
            whole = whole and end == (position + 1 if bare else _skip_headers(data, position))
        except (IndexError, MalformedRecordsError):
            whole = False
        if not whole:
            span = read_span(data, start)
            bare, end = not data[span.headers_position], span.end
            delta, offset, key = _zig_zag(span.timestamp_delta), _zig_zag(span.offset_delta), span.key_size
        deltas.add(delta)
        null_keys |= key & 1 if whole else key < 0
        sequential = sequential and offset == index + index
        position, size = end, end - start
        if bare and size == previous_size and try_at <= index <= last_try:
            run = _run_alike(data, start, size, index, min(count, index + (stop - start) // size))
            deltas |= run.timestamp_deltas
            sequential = sequential and run.is_sequential
            position = start + size * run.records
            index += run.records - 1
            pause = 1 if run.records > 1 else min(2 * pause, _LONGEST_PAUSE)
            try_at = index + pause
        previous_size, index = size, index + 1
    return _walked(deltas, sequential, null_keys != 0, stop - position, index, count)


def _walked(
    deltas: set[int], is_sequential: bool, has_null_key: bool, bytes_left: int, records: int, count: int
) -> Walked:
    if records < count:
        read_span(b"", 0)  # raises the error for missing bytes
    if bytes_left:
        raise MalformedRecordsError(f"{bytes_left} bytes after the last of {count} records")
    if len(deltas) == 1:
        (delta,) = deltas
        time = (delta >> 1) ^ -(delta & 1)
        return Walked(time, time, is_sequential, has_null_key)
    times = [(delta >> 1) ^ -(delta & 1) for delta in deltas] or [0]
    return Walked(min(times), max(times), is_sequential, has_null_key)


class _Run(NamedTuple):
    """Consecutive records of one shape, and the values of their varying fields; a single record is not a run."""

    records: int
    timestamp_deltas: set[int]
    """In zig-zag encoding, as written."""
    is_sequential: bool


_NO_RUN: Final = _Run(1, set(), is_sequential=True)


def _run_alike(data: bytes | bytearray, start: int, size: int, index: int, count: int) -> _Run:
    """Find the run of records from `start` on (record `index` of at most `count`, `size` bytes each) of one shape."""
    same, deltas, offsets = _shape(data, start)
    records = count - index
    for position in same + deltas + offsets:
        column = data[position : position + size * (records - 1) + 1 : size]
        alike = column[:1] if position in same else _HIGH if data[position] > 0x7F else _LOW
        records -= len(column.lstrip(alike))
        if records < _SHORTEST_RUN:
            return _NO_RUN
    stop = size * (records - 1) + 1
    columns = [data[at : at + stop : size] for at in deltas]
    timestamps = set(columns[0]) if len(columns) == 1 else {_number(each) for each in set(zip(*columns, strict=True))}
    columns = [data[at : at + stop : size] for at in offsets]
    if len(columns) <= len(_SEQUENTIAL):
        sequential = columns == [column[index : index + records] for column in _SEQUENTIAL[len(columns) - 1]]
    else:
        written = [_number(each) for each in zip(*columns, strict=True)]
        sequential = written == list(range(2 * index, 2 * (index + records), 2))
    return _Run(records, timestamps, sequential)


def _shape(data: bytes | bytearray, start: int) -> tuple[list[int], list[int], list[int]]:
    """Return the positions of the sizes and header count, the timestamp delta, and the offset delta at `start`."""
    span = read_span(data, start)
    same = _varint_at(data, start)
    deltas = _varint_at(data, same[-1] + 2)
    offsets = _varint_at(data, deltas[-1] + 1)
    same += _varint_at(data, offsets[-1] + 1)
    same += _varint_at(data, span.key_position + max(span.key_size, 0))
    same.append(span.headers_position)
    return same, deltas, offsets


def _varint_at(data: bytes | bytearray, position: int) -> list[int]:
    """Return the positions of all bytes of the varint at `position`."""
    positions = [position]
    while data[position] > 0x7F:
        position += 1
        positions.append(position)
    return positions


def _number(varint: tuple[int, ...]) -> int:
    """Return the unsigned number that these bytes encode."""
    number = 0
    for place, byte in enumerate(varint):
        number |= (byte & 0x7F) << 7 * place
    return number & 0xFFFF_FFFF_FFFF_FFFF


def _zig_zag(value: int) -> int:
    """`value` as it is written: 0, -1, 1, -2, ... become 0, 1, 2, 3, ..."""
    return (value << 1) ^ (value >> 63)
