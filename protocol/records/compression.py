"""Compression of the records part of a batch: one stream per batch, in the framings that Kafka reads and writes.

Decompression never grows beyond a limit: output goes into a buffer of known size, and a stream that does not fit is
refused; or it comes piece by piece (`pieces`), and the whole is never held. Framings: core D.4.
"""

import os
from collections.abc import Generator, Iterator
from enum import IntEnum
from pathlib import Path
from struct import Struct
from threading import Thread
from types import ModuleType
from typing import Any, Final

import cramjam

from protocol.records.errors import DecompressedTooLargeError, UnreadableCompressionError
from protocol.records.stream_ends import first_frame, gzip_pieces

Buffer = bytes | bytearray | memoryview

DEFAULT_DECOMPRESSED_LIMIT: Final = 128 * 1024 * 1024
"""Most decompressed bytes held at once. Kafka has no such limit; here, one request must not end a shared process.

Ours, a hundred times the largest batch by default.
"""


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
_XERIAL_BLOCK_SIZE: Final = 32 * 1024  # SnappyOutputStream.DEFAULT_BLOCK_SIZE
_BLOCK_SIZE: Final = Struct(">i")

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS: Final = 0x20  # a flag; Kafka reads no other frames (core D.4)
_LZ4_HIGHEST_LEVEL: Final = 12  # of the C library; Kafka's Java one takes up to 17 (core D.4)

_FIRST_GUESS: Final = 64 * 1024  # of a decompressed size that is not known: most batches fit
_OUTPUT_FULL: Final = "failed to write whole buffer"
"""Error text of cramjam for an output buffer that is too small (Rust's WriteZero)."""
_PIECE: Final = 32 * 1024  # read from a pipe: half of what it holds
_FLUSHED_AFTER: Final = 4 * 1024 * 1024
"""Of input; else the stream would hold the whole batch until its end.

Ours, little memory, and a flush costs little beside so much.
"""
_DESCRIPTORS: Final = Path("/dev/fd")
_MOST_SNAPPY_GROWTH: Final = 64
"""A copy element of snappy takes at least two bytes and yields at most 64."""


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
    if codec == Codec.NONE or _is_empty(codec, data):
        return data if codec == Codec.NONE else b""
    if codec == Codec.SNAPPY:
        return _decompress_snappy(memoryview(data), limit)
    if codec == Codec.GZIP:
        return _decompress_gzip(data, limit, scratch)
    data = _stream(codec, data)
    # Unknown size: a first guess, the buffer grows.
    return _decompress_into(_module(codec, data), data, expected or 4 * len(data), limit, scratch)


def pieces(codec: int, data: Buffer) -> Generator[Buffer, None, None]:
    """Decompress `data` into pieces of moderate size, however large the result is.

    For lz4 and zstd a thread decompresses into a pipe, as fast as the pieces are taken; closing the iterator ends
    the thread.

    Raises UnreadableCompressionError, perhaps after some pieces. Without `/dev/fd` there is one piece, or a
    DecompressedTooLargeError.
    """
    if codec == Codec.NONE or _is_empty(codec, data):
        yield data
    elif codec == Codec.SNAPPY:
        yield from _snappy_blocks(memoryview(data), DEFAULT_DECOMPRESSED_LIMIT)
    elif codec == Codec.GZIP:
        yield from gzip_pieces(data)
    elif _DESCRIPTORS.is_dir():
        data = _stream(codec, data)
        yield from _piped(_module(codec, data), data)
    else:
        yield decompress(codec, data)


def _piped(module: ModuleType, data: Buffer) -> Iterator[bytes]:
    errors: list[str] = []
    read_end, write_end = os.pipe()
    thread = Thread(target=_inflate, args=(module, data, write_end, errors), name="decompression", daemon=True)
    try:
        thread.start()
        while piece := os.read(read_end, _PIECE):
            yield piece
    finally:
        os.close(read_end)  # a thread that still writes fails
        thread.join()
    if errors:
        raise UnreadableCompressionError(errors[0])


def _inflate(module: ModuleType, data: Buffer, write_end: int, errors: list[str]) -> None:
    """Decompress into a pipe, and close it. The decompressor runs without Python's lock."""
    try:
        sink = cramjam.File(f"{_DESCRIPTORS}/{write_end}", read=False, write=True, truncate=False)
        module.decompress_into(data, sink)
    except (cramjam.DecompressionError, ValueError, OSError) as error:
        errors.append(str(error))  # the error itself would keep the sink open
    finally:
        os.close(write_end)


def _is_empty(codec: int, data: Buffer) -> bool:
    """Whether a stream has no bytes at all, which only zstd allows: its stream may have no frame."""
    if not len(data) and codec != Codec.ZSTD:
        raise UnreadableCompressionError("an empty stream")
    return not len(data)


def _module(codec: int, data: Buffer) -> ModuleType:
    """Return the decompressor of a codec. Raises UnreadableCompressionError for bytes that Kafka's cannot read."""
    if codec == Codec.LZ4:
        # The shortest header has seven bytes; the flags follow the magic number.
        if bytes(data[:4]) != _LZ4_MAGIC or len(data) < 7 or not data[4] & _LZ4_INDEPENDENT_BLOCKS:
            # KafkaLZ4BlockInputStream reads independent blocks only.
            raise UnreadableCompressionError("not an lz4 frame of independent blocks")
        return cramjam.lz4
    if codec == Codec.ZSTD:
        return cramjam.zstd
    raise UnreadableCompressionError(f"undefined compression code {codec}")


def _stream(codec: int, data: Buffer) -> Buffer:
    """Return the bytes that Kafka's decompressor reads."""
    return first_frame(data) if codec == Codec.LZ4 else data


def _decompress_gzip(data: Buffer, limit: int, scratch: bytearray | None) -> Buffer:
    """Decompress a stream of one member in one call, any other stream in steps."""
    expected = int.from_bytes(data[-4:], "little")  # the size (mod 2^32) of an honest stream of one member
    try:
        output = _decompress_into(cramjam.gzip, data, expected, limit, scratch)
        if len(output) == expected:
            return output
    except UnreadableCompressionError:
        pass
    joined = bytearray()
    for piece in gzip_pieces(data):
        joined += piece
        if len(joined) > limit:
            raise DecompressedTooLargeError(limit)
    return joined


def _decompress_into(
    module: ModuleType, data: Buffer, guess: int, limit: int, scratch: bytearray | None = None
) -> Buffer:
    """Decompress into buffers of growing, never exceeding size: a wrong guess costs time, not memory."""
    if scratch is not None and len(data) < len(scratch) <= limit:
        try:
            return memoryview(scratch)[: module.decompress_into(data, scratch)]
        except (cramjam.DecompressionError, ValueError, OSError) as error:
            if len(scratch) == limit and _OUTPUT_FULL in str(error):
                raise DecompressedTooLargeError(limit) from error
            # larger than the limit, or damaged: reported below
    # One byte above the limit separates "too large" from "just fits". 1024: ours, against a wrong guess.
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
            capacity = min(4 * capacity, limit + 1)  # few tries, each of which decompresses again
            del output  # before the larger one is made
            continue
        if written > limit:
            raise DecompressedTooLargeError(limit)
        del output[written:]
        return output


class StreamCompressor:
    """Compresses piece by piece, with the same result as `compress`."""

    def __init__(self, codec: int, level: int | None = None) -> None:
        if level is None:
            level = DEFAULT_LEVELS.get(Codec(codec), 0)
        self.output = bytearray(_XERIAL_HEADER if codec == Codec.SNAPPY else b"")
        """The compressed bytes so far; some megabytes of input may not be included yet."""
        self._codec, self._waiting = codec, bytearray()
        self._stream: Any = None
        if codec == Codec.GZIP:
            self._stream = cramjam.gzip.Compressor() if level < 0 else cramjam.gzip.Compressor(level=level)
        elif codec == Codec.LZ4:
            self._stream = _lz4_compressor(level)
        elif codec == Codec.ZSTD:
            self._stream = cramjam.zstd.Compressor(level=level)
        self._unflushed = 0

    def add(self, data: Buffer) -> None:
        """Compress the next piece."""
        if self._codec == Codec.NONE:
            self.output += data
        elif self._codec == Codec.SNAPPY:
            waiting = self._waiting
            waiting += data
            while len(waiting) >= _XERIAL_BLOCK_SIZE:
                _add_xerial_block(self.output, waiting[:_XERIAL_BLOCK_SIZE])
                del waiting[:_XERIAL_BLOCK_SIZE]
        else:
            self._stream.compress(bytes(data))
            self._unflushed += len(data)
            if self._unflushed >= _FLUSHED_AFTER:
                self.output += memoryview(self._stream.flush())
                self._unflushed = 0

    def finish(self) -> bytearray:
        """Return the whole stream."""
        if self._stream is not None:
            self.output += memoryview(self._stream.finish())
        elif self._waiting:
            _add_xerial_block(self.output, self._waiting)
        return self.output


def _compress_lz4(data: Buffer, level: int) -> Buffer:
    compressor = _lz4_compressor(level)
    compressor.compress(bytes(data))
    return memoryview(compressor.finish())


def _lz4_compressor(level: int) -> Any:
    """Build a compressor to independent blocks of 64 KiB; Kafka's level 9 is lz4's fast mode (Lz4Compression)."""
    return cramjam.lz4.Compressor(
        level=1 if level == DEFAULT_LEVELS[Codec.LZ4] else min(level, _LZ4_HIGHEST_LEVEL),
        content_checksum=False,
        block_linked=False,
    )


def _compress_xerial(data: memoryview) -> bytearray:
    """Compress into Snappy blocks of 32 KiB after the header that Java's SnappyOutputStream writes."""
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        _add_xerial_block(framed, data[start : start + _XERIAL_BLOCK_SIZE])
    return framed


def _add_xerial_block(framed: bytearray, data: Buffer) -> None:
    block = memoryview(cramjam.snappy.compress_raw(data))
    framed += _BLOCK_SIZE.pack(len(block))
    framed += block


def _decompress_snappy(data: memoryview, limit: int) -> bytearray:
    output = bytearray()
    for block in _snappy_blocks(data, limit):
        if len(output) + len(block) > limit:
            raise DecompressedTooLargeError(limit)
        output += block
    return output


def _snappy_blocks(data: memoryview, limit: int) -> Iterator[bytearray]:
    """Yield the decompressed blocks of xerial framing, or librdkafka's one raw block; each of at most `limit` bytes."""
    if data[:_XERIAL_MAGIC_SIZE] != _XERIAL_HEADER[:_XERIAL_MAGIC_SIZE]:
        yield _decompress_block(data, limit)
        return
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
        yield _decompress_block(data[position : position + size], limit)
        position += size


def _decompress_block(block: memoryview, limit: int) -> bytearray:
    """Decompress one raw snappy block; its first bytes are the size, which the decoder enforces."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise DecompressedTooLargeError(limit)
        if size > _MOST_SNAPPY_GROWTH * len(block):
            raise UnreadableCompressionError(f"a snappy block of {len(block)} bytes that announces {size}")
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output)
    except (cramjam.DecompressionError, OSError) as error:
        raise UnreadableCompressionError(str(error)) from error
    if written != size:
        raise UnreadableCompressionError(f"a snappy block of {written} bytes that announced {size}")
    return output
