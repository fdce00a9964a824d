"""The header of a record batch (format v2), read in place.

`RecordBatch` looks at 61 bytes of a larger buffer and copies nothing: the log, the append checks and the fetch path
work on headers alone. Re-stamping touches header bytes in place, in a writable buffer. Records are in `records`,
older formats (magic 0 and 1) in `message_set`.

Layout and offsets: core D.4, transactions F.5 (Kafka: DefaultRecordBatch).
"""

from collections.abc import Iterator
from struct import Struct

from crc32c import crc32c

from protocol.records.errors import BatchDamagedError

Buffer = bytes | bytearray | memoryview

BATCH_HEADER_SIZE = 61
"""Bytes before the first record of a v2 batch."""
LOG_OVERHEAD = 12
"""Bytes not counted by the length field: base offset and the length field itself."""
MAGIC_V2 = 2
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

LENGTH_POSITION = 8
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35
RECORD_COUNT_POSITION = 57

HEADER = Struct(">qiibIhiqqqhii")
"""All header fields in wire order."""

_OFFSET = Struct(">q")
_SIZE = Struct(">i")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
_SEQUENCE_MASK = 0x7FFFFFFF


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
