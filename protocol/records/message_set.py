"""Messages of the formats before v2 (magic 0 and 1), as producers older than Kafka 0.11 send them: read only.

A message: offset int64, size int32, CRC-32 of what follows, magic int8, attributes int8, timestamp int64 (magic 1), key
and value with int32 lengths. Compressed messages are the value of a wrapper message: with magic 1 their offsets count
from 0 and the wrapper has the offset of the last; with magic 0 they are absolute. Kafka: LegacyRecord,
AbstractLegacyRecordBatch.
"""

import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from protocol.records.batch import CODEC_MASK, NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, Buffer, batch_size
from protocol.records.compression import DEFAULT_DECOMPRESSED_LIMIT, Codec, decompress
from protocol.records.errors import BatchDamagedError, MalformedRecordsError
from protocol.records.old_lz4 import with_true_checksum
from protocol.records.records import Record

_OFFSET: Final = struct.Struct(">q")
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 12
_MAGIC_POSITION: Final = 16
_ATTRIBUTES_POSITION: Final = 17
_BODY_POSITION: Final = 18
_SMALLEST: Final = 26
"""Bytes of a magic-0 message without key and value."""


def read_messages(buffer: Buffer, limit: int = DEFAULT_DECOMPRESSED_LIMIT) -> Iterator[Record]:
    """Yield the messages of a message set in order, including those inside compressed ones; ignore an incomplete tail.

    Raises:
        BatchDamagedError: a wrong checksum, another magic, or lengths that do not add up.
        MalformedRecordsError: a compressed message with none inside, or one that is compressed or of another magic.
        UnreadableCompressionError, DecompressedTooLargeError: of a compressed message.
    """
    for position, size in _whole_messages(buffer):
        attributes = buffer[position + _ATTRIBUTES_POSITION]
        message = _read_message(buffer, position, size)
        if attributes & CODEC_MASK:
            yield from _read_inner(message, buffer[position + _MAGIC_POSITION], attributes, limit)
        else:
            yield message


def begins_with_message(buffer: Buffer) -> bool:
    """Whether the buffer begins with a whole, sound message of magic 0 or 1."""
    try:
        return next(_whole_messages(buffer), None) is not None
    except BatchDamagedError:
        return False


def _whole_messages(buffer: Buffer) -> Iterator[tuple[int, int]]:
    """Yield positions and sizes of the valid messages."""
    position = 0
    while True:
        size = batch_size(buffer, position)
        if size < 0 or position + size > len(buffer):
            return
        if size < _SMALLEST:
            raise BatchDamagedError(position, f"a message of {size} bytes")
        magic = buffer[position + _MAGIC_POSITION]
        if magic > 1:
            raise BatchDamagedError(position, f"a message of magic {magic}")
        (crc,) = _CRC.unpack_from(buffer, position + _CRC_POSITION)
        if crc != crc32(memoryview(buffer)[position + _MAGIC_POSITION : position + size]):
            raise BatchDamagedError(position, "checksum mismatch")
        yield position, size
        position += size


def _read_message(buffer: Buffer, position: int, size: int) -> Record:
    end = position + size
    (offset,) = _OFFSET.unpack_from(buffer, position)
    timestamp_ms = NO_TIMESTAMP
    at = position + _BODY_POSITION
    try:
        if buffer[position + _MAGIC_POSITION] == 1:
            (timestamp_ms,) = _TIMESTAMP.unpack_from(buffer, at)
            at += _TIMESTAMP.size
        key, at = _read_bytes(buffer, at, end)
        value, at = _read_bytes(buffer, at, end)
    except struct.error:
        at = -1
    if at != end:
        raise BatchDamagedError(position, "key and value do not fill the message")
    return Record(offset, timestamp_ms, key, value)


def _read_bytes(buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(buffer, position)
    position += _LENGTH.size
    if size < 0:
        return None, position
    if position + size > end:
        return None, -1
    return bytes(buffer[position : position + size]), position + size


def _read_inner(wrapper: Record, magic: int, attributes: int, limit: int) -> Iterator[Record]:
    """Yield the messages inside a compressed one: at least one, each of its format and none compressed.

    LogValidator refuses others with INVALID_RECORD, and AbstractLegacyRecordBatch.DeepRecordsIterator cannot read them.
    """
    codec, value = attributes & CODEC_MASK, wrapper.value or b""
    if magic == 0 and codec == Codec.LZ4:
        value = with_true_checksum(value)
    inside = decompress(codec, value, limit)
    inner: list[Record] = []
    for position, size in _whole_messages(inside):
        if inside[position + _ATTRIBUTES_POSITION] & CODEC_MASK:
            raise MalformedRecordsError("a compressed message within a compressed one")
        if inside[position + _MAGIC_POSITION] != magic:
            raise MalformedRecordsError("a message within one of another format")
        inner.append(_read_message(inside, position, size))
    if not inner:
        raise MalformedRecordsError("a compressed message without messages")
    first = wrapper.offset - inner[-1].offset if magic == 1 else 0
    appended_at = wrapper.timestamp_ms if attributes & TIMESTAMP_TYPE_BIT else None
    for message in inner:
        timestamp_ms = message.timestamp_ms if appended_at is None else appended_at
        yield message._replace(offset=first + message.offset, timestamp_ms=timestamp_ms)
