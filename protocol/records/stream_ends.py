"""Where a compressed stream ends, of which Java reads no further: bytes may follow it."""

import struct
import zlib
from typing import Final

Buffer = bytes | bytearray | memoryview

GZIP, LZ4 = 1, 3
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_LEAST_MEMBER: Final = 19
"""Fewer bytes Java does not try as a further member."""
_WITH_GZIP_HEADER: Final = 31
_PORTION: Final = 1 << 20
_FRAME_HEADER: Final = 7
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_BLOCK_LENGTH: Final = 0x7FFF_FFFF


def end_of_stream(codec: int, data: Buffer) -> int:
    """Return how many bytes belong to the stream; all, where the codec has no end of its own or none is found."""
    view = memoryview(data)
    if codec == GZIP:
        return _end_of_members(view)
    return _end_of_frame(view) if codec == LZ4 else len(view)


def _end_of_members(view: memoryview) -> int:
    """Return the end of the last gzip member: ``GZIPInputStream`` reads no further, if no other one follows."""
    at = 0
    while at == 0 or (len(view) - at >= _LEAST_MEMBER and bytes(view[at : at + len(_GZIP_MAGIC)]) == _GZIP_MAGIC):
        inflater = zlib.decompressobj(wbits=_WITH_GZIP_HEADER)
        rest: Buffer = view[at:]
        try:
            while not inflater.eof and rest:
                inflater.decompress(rest, _PORTION)
                rest = inflater.unconsumed_tail
        except zlib.error:
            return len(view)
        if not inflater.eof:
            return len(view)
        at = len(view) - len(inflater.unused_data)
    return at


def _end_of_frame(view: memoryview) -> int:
    """Return the end of the first lz4 frame: the end mark, and the checksum of the content if there is one."""
    if len(view) < _FRAME_HEADER:
        return len(view)
    flags = view[4]
    at = _FRAME_HEADER + (8 if flags & _CONTENT_SIZE else 0)
    while at + 4 <= len(view):
        (length,) = struct.unpack_from("<I", view, at)
        at += 4
        if not length & _BLOCK_LENGTH:
            return min(at + (4 if flags & _CONTENT_CHECKSUM else 0), len(view))
        at += (length & _BLOCK_LENGTH) + (4 if flags & _BLOCK_CHECKSUM else 0)
    return len(view)
