"""Compression of the records part of a batch: one stream per batch, in the framings that Kafka reads and writes.

Decompression never grows beyond a limit: output goes into a buffer of known size, and a stream that does not fit is
refused. Framings: core D.4.
"""

from contextlib import suppress
from enum import IntEnum
from struct import Struct
from types import ModuleType
from typing import Final

import cramjam

from protocol.records.errors import DecompressedTooLargeError, UnreadableCompressionError

Buffer = bytes | bytearray | memoryview

DEFAULT_DECOMPRESSED_LIMIT: Final = 128 * 1024 * 1024
"""Bytes. Kafka has no such limit; a process that tests share must not die of one request."""


class Codec(IntEnum):
    """Attribute bits 0-2 of a batch (Kafka: CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LEVELS: Final = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
"""compression.gzip.level, compression.lz4.level, compression.zstd.level."""

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
_XERIAL_MAGIC_SIZE: Final = 8
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_BLOCK_SIZE: Final = Struct(">i")

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS: Final = 0x20
_LZ4_HIGHEST_LEVEL: Final = 12

_FIRST_GUESS: Final = 64 * 1024
_OUTPUT_FULL: Final = "failed to write whole buffer"
"""Error text of cramjam for an output buffer that is too small (Rust's WriteZero)."""


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """Compress `data` as Kafka would; `level` in Kafka's own scale, None for Kafka's default."""
    if level is None:
        level = DEFAULT_LEVELS.get(Codec(codec), 0)
    if codec == Codec.NONE:
        return data
    if codec == Codec.GZIP:
        return memoryview(cramjam.gzip.compress(data, level=None if level < 0 else level))
    if codec == Codec.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec == Codec.LZ4:
        return _compress_lz4(data, level)
    return memoryview(cramjam.zstd.compress(data, level=level))


def decompress(
    codec: int,
    data: Buffer,
    limit: int = DEFAULT_DECOMPRESSED_LIMIT,
    expected: int = 0,
    scratch: bytearray | None = None,
) -> Buffer:
    """Decompress `data`, to at most `limit` bytes; uncompressed data is returned as it came.

    `expected` is a guess at the decompressed size; if it is large enough, nothing is decompressed twice. With `scratch`
    the result may be a view of that buffer, if it fits: allocating memory can cost more than decompressing.

    Raises UnreadableCompressionError or DecompressedTooLargeError.
    """
    if codec == Codec.NONE:
        return data
    if not len(data):
        if codec == Codec.ZSTD:
            return b""  # an empty zstd stream has no frame; the other codecs need a header
        raise UnreadableCompressionError("an empty stream")
    if codec == Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), limit)
    if codec == Codec.GZIP:
        # The last four bytes are the size (mod 2^32) of an honest stream of one member.
        return _decompress_into(cramjam.gzip, data, int.from_bytes(data[-4:], "little"), limit, scratch)
    if codec == Codec.LZ4:
        if bytes(data[:4]) != _LZ4_MAGIC or len(data) < 7 or not data[4] & _LZ4_INDEPENDENT_BLOCKS:
            # KafkaLZ4BlockInputStream reads independent blocks only.
            raise UnreadableCompressionError("not an lz4 frame of independent blocks")
        return _decompress_into(cramjam.lz4, data, expected or 4 * len(data), limit, scratch)
    if codec == Codec.ZSTD:
        return _decompress_into(cramjam.zstd, data, expected or 4 * len(data), limit, scratch)
    raise UnreadableCompressionError(f"undefined compression code {codec}")


def _decompress_into(
    module: ModuleType, data: Buffer, guess: int, limit: int, scratch: bytearray | None = None
) -> Buffer:
    """Decompress into buffers of growing, never exceeding size: a wrong guess costs time, not memory."""
    if scratch is not None and len(data) < len(scratch) <= limit:
        with suppress(cramjam.DecompressionError, ValueError, OSError):  # too large for it, or damaged: reported below
            return memoryview(scratch)[: module.decompress_into(data, scratch)]
    # One byte above the limit separates "too large" from "just fits".
    capacity = min(max(guess, _FIRST_GUESS), 1024 * len(data) + _FIRST_GUESS, limit + 1)
    while True:
        output = bytearray(capacity)
        try:
            written = module.decompress_into(data, output)
        except (cramjam.DecompressionError, ValueError, OSError) as error:
            if _OUTPUT_FULL not in str(error):
                raise UnreadableCompressionError(str(error)) from error
            if capacity > limit:
                raise DecompressedTooLargeError(limit) from error
            capacity = min(4 * capacity, limit + 1)
            del output  # before the larger one is made
            continue
        if written > limit:
            raise DecompressedTooLargeError(limit)
        del output[written:]
        return output


def _compress_lz4(data: Buffer, level: int) -> Buffer:
    """An lz4 frame of independent 64 KiB blocks; Kafka's default level 9 means lz4's fast mode (Lz4Compression)."""
    compressor = cramjam.lz4.Compressor(
        level=1 if level == DEFAULT_LEVELS[Codec.LZ4] else min(level, _LZ4_HIGHEST_LEVEL),
        content_checksum=False,
        block_linked=False,
    )
    compressor.compress(bytes(data))
    return memoryview(compressor.finish())


def _compress_xerial(data: memoryview) -> bytearray:
    """Snappy blocks of 32 KiB behind the header that Java's SnappyOutputStream writes."""
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = memoryview(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        framed += _BLOCK_SIZE.pack(len(block))
        framed += block
    return framed


def _decompress_snappy(data: memoryview, limit: int) -> bytearray:
    """Xerial framing, or one bare raw block, which librdkafka writes."""
    if data[:_XERIAL_MAGIC_SIZE] != _XERIAL_HEADER[:_XERIAL_MAGIC_SIZE]:
        return _decompress_block(data, 0, limit)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    end = len(data)
    # A block size cut short ends the stream, and a header may come again: SnappyInputStream.
    while position + _BLOCK_SIZE.size <= end:
        if data[position : position + _XERIAL_MAGIC_SIZE] == _XERIAL_HEADER[:_XERIAL_MAGIC_SIZE]:
            position += len(_XERIAL_HEADER)
            continue
        (size,) = _BLOCK_SIZE.unpack_from(data, position)
        position += _BLOCK_SIZE.size
        if size <= 0 or position + size > end:
            raise UnreadableCompressionError(f"a snappy block of {size} bytes where {end - position} are left")
        output += _decompress_block(data[position : position + size], len(output), limit)
        position += size
    return output


def _decompress_block(block: memoryview, before: int, limit: int) -> bytearray:
    """One raw snappy block after `before` bytes; its first bytes are the size, which the decoder enforces."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if before + size > limit:
            raise DecompressedTooLargeError(limit)
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output)
    except (cramjam.DecompressionError, OSError) as error:
        raise UnreadableCompressionError(str(error)) from error
    if written != size:
        raise UnreadableCompressionError(f"a snappy block of {written} bytes that announced {size}")
    return output
