"""Up-conversion of old messages to a v2 batch, and down-conversion of v2 batches to old messages.

Fields that the older format does not have are dropped: before v2 there are no headers, producers or markers, before v1
no timestamps. Kafka: AbstractRecords, RecordsUtil.downConvert, LogValidator.
"""

import struct
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from protocol.records.batch import CODEC_MASK, MAGIC_V2, TIMESTAMP_TYPE_BIT, Buffer, RecordBatch, batches
from protocol.records.compression import DEFAULT_DECOMPRESSED_LIMIT, Codec, compress
from protocol.records.errors import BatchDamagedError, UnreadableCompressionError
from protocol.records.message_set import read_messages
from protocol.records.old_lz4 import with_wrong_checksum
from protocol.records.records import Record, build_batch, read_records

_HEAD: Final = struct.Struct(">qi")
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = 17  # in a message of an old format: after offset, size, CRC and magic


def batch_of_messages(messages: Buffer, limit: int = DEFAULT_DECOMPRESSED_LIMIT) -> bytearray:
    """Up-convert a message set to one v2 batch, compressed as its first message was.

    Raises:
        BatchDamagedError, MalformedRecordsError, UnreadableCompressionError, DecompressedTooLargeError: the messages
            cannot be read.
    """
    records = list(read_messages(messages, limit))
    if not records:
        raise BatchDamagedError(0, "there is no whole message")
    numbered = [record._replace(offset=at) for at, record in enumerate(records)]
    return build_batch(numbered, codec=messages[_ATTRIBUTES] & CODEC_MASK)


def messages_of_batches(buffer: Buffer, magic: int, first_offset: int) -> bytes:
    """Down-convert whole batches from an offset on to messages of magic 0 or 1; an incomplete tail is ignored.

    Markers are left out. A compressed batch becomes a compressed message.

    Raises:
        UnreadableCompressionError: zstd, which the old formats do not have (KIP-110).
    """
    out = bytearray()
    for batch in batches(buffer):
        if batch.magic != MAGIC_V2 or batch.is_control:
            continue
        records = [record for record in read_records(batch) if batch.codec or record.offset >= first_offset]
        if records:
            out += _compressed(records, batch, magic) if batch.codec else b"".join(_plain(records, batch, magic))
    return bytes(out)


def _plain(records: Iterable[Record], batch: RecordBatch, magic: int) -> Iterable[bytes]:
    attributes = TIMESTAMP_TYPE_BIT if magic and batch.is_log_append_time else 0
    return (_message(r.offset, magic, attributes, r.timestamp_ms, r.key, r.value) for r in records)


def _compressed(records: list[Record], batch: RecordBatch, magic: int) -> bytes:
    """Build a wrapper message: inner offsets count from 0 with magic 1, and are absolute with magic 0."""
    if batch.codec == Codec.ZSTD:
        raise UnreadableCompressionError("zstd does not exist in the formats before v2")
    base = records[0].offset if magic else 0
    inner = b"".join(_plain([record._replace(offset=record.offset - base) for record in records], batch, magic))
    attributes = batch.codec | (TIMESTAMP_TYPE_BIT if magic and batch.is_log_append_time else 0)
    newest_ms = max(record.timestamp_ms for record in records)
    value = bytes(compress(batch.codec, inner))
    if magic == 0 and batch.codec == Codec.LZ4:
        value = with_wrong_checksum(value)
    return _message(records[-1].offset, magic, attributes, newest_ms, None, value)


def _message(
    offset: int, magic: int, attributes: int, timestamp_ms: int, key: bytes | None, value: bytes | None
) -> bytes:
    body = bytearray((magic, attributes))
    if magic:
        body += struct.pack(">q", timestamp_ms)
    for part in (key, value):
        body += _LENGTH.pack(-1 if part is None else len(part))
        body += part or b""
    return _HEAD.pack(offset, len(body) + _CRC.size) + _CRC.pack(crc32(body)) + body
