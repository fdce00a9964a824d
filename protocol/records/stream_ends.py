"""The end of a compressed stream according to Java, which does not read all bytes that may follow."""

import struct
import zlib
from collections.abc import Generator, Iterator
from typing import Final

from protocol.records.errors import UnreadableCompressionError

Buffer = bytes | bytearray | memoryview

_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_SHORTEST_HEADER: Final = 10  # of a gzip member (RFC 1952), as are the flags
_HEADER_CHECKSUM, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_TRAILER: Final = struct.Struct("<II")
_SHORTEST_MEMBER: Final = 26
"""Bytes of two trailers and a header: with no more in its buffer, Java does not try a further member."""
_BUFFER: Final = 8 * 1024
"""As large as the buffer that Kafka gives to ``GZIPInputStream`` (``GzipCompression``)."""
_PIECE: Final = 32 * 1024  # arbitrary: what is held beside the result
_ALL_BITS: Final = 0xFFFF_FFFF

_FRAME_HEADER: Final = 7  # of an lz4 frame without content size: magic, flags, block size, checksum
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_BLOCK_LENGTH: Final = 0x7FFF_FFFF  # without the bit of an uncompressed block
_LENGTH: Final = struct.Struct("<I")


def gzip_pieces(data: Buffer) -> Iterator[bytes]:
    """Decompress gzip members joined together, piece by piece, as ``GZIPInputStream`` does.

    A further member is tried if bytes follow that are not in the buffer yet, or enough that are. If its header cannot
    be read, the stream ends before it; what is wrong after the header is an error.

    Raises:
        UnreadableCompressionError: also after pieces.
    """
    view = memoryview(data)
    begin = _after_header(view, 0)
    if begin is None:
        raise UnreadableCompressionError("not in gzip format")
    loaded = begin
    while begin is not None:
        loaded = max(loaded, begin)
        end, loaded = yield from _member(view, begin, loaded)
        following = end + _TRAILER.size
        is_tried = len(view) > max(loaded, following) or loaded - end > _SHORTEST_MEMBER
        begin = _after_header(view, following) if is_tried else None


def _member(view: memoryview, begin: int, loaded: int) -> Generator[bytes, None, tuple[int, int]]:
    """Decompress one member, whose header is before `begin`, and check its trailer.

    Returns the end of the compressed bytes, and of the bytes in Java's buffer, which is `loaded` at first.
    """
    inflater = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    rest: Buffer = view[begin:loaded]
    checksum = size = 0
    is_full = False
    while not inflater.eof:
        if not rest and not is_full:
            if loaded == len(view):
                raise UnreadableCompressionError("a gzip stream is cut short")
            begin, loaded = loaded, min(loaded + _BUFFER, len(view))
            rest = view[begin:loaded]
        try:
            piece = inflater.decompress(rest, _PIECE)
        except zlib.error as error:
            raise UnreadableCompressionError(str(error)) from error
        rest, is_full = inflater.unconsumed_tail, len(piece) == _PIECE
        checksum, size = zlib.crc32(piece, checksum), size + len(piece)
        if piece:
            yield piece
    end = loaded - len(inflater.unused_data)
    trailer = view[end : end + _TRAILER.size]
    if len(trailer) < _TRAILER.size or _TRAILER.unpack(trailer) != (checksum, size & _ALL_BITS):
        raise UnreadableCompressionError("a gzip trailer that does not fit")
    return end, loaded


def _after_header(view: memoryview, begin: int) -> int | None:
    """Return the position after a member's header, if there is one."""
    fixed = view[begin : begin + _SHORTEST_HEADER]
    if len(fixed) < _SHORTEST_HEADER or bytes(fixed[: len(_GZIP_MAGIC)]) != _GZIP_MAGIC:
        return None
    # After the magic number and the method.
    flags, at = fixed[3], begin + _SHORTEST_HEADER
    if flags & _EXTRA:
        at += 2 + int.from_bytes(view[at : at + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            at = _after_zero(view, at)
    if flags & _HEADER_CHECKSUM:
        # The lower half of a CRC-32 (RFC 1952).
        if int.from_bytes(view[at : at + 2], "little") != zlib.crc32(view[begin:at]) & 0xFFFF:
            return None
        at += 2
    return at if at <= len(view) else None


def _after_zero(view: memoryview, at: int) -> int:
    """Return the position after the next zero byte; beyond the end if there is none."""
    while at < len(view):
        zero_at = bytes(view[at : at + _PIECE]).find(0)
        if zero_at >= 0:
            return at + zero_at + 1
        at += _PIECE
    return len(view) + 1


def first_frame(data: Buffer) -> memoryview:
    """Return the first lz4 frame, beyond which Java does not read; all bytes if the frame's end is not found.

    A frame ends with a mark, and the checksum of its content if there is one.
    """
    view = memoryview(data)
    if len(view) < _FRAME_HEADER:
        return view
    flags = view[4]  # after the magic number
    at = _FRAME_HEADER + (8 if flags & _CONTENT_SIZE else 0)
    beside = 8 if flags & _BLOCK_CHECKSUM else 4
    unpack, last = _LENGTH.unpack_from, len(view) - 4
    while at <= last:
        size = unpack(view, at)[0] & _BLOCK_LENGTH
        if not size:
            # The mark, and the checksum: four bytes each.
            return view[: at + (8 if flags & _CONTENT_CHECKSUM else 4)]
        at += size + beside
    return view
