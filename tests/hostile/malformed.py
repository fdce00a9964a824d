"""Compressed streams that are small on the wire and enormous afterwards."""

import struct
import zlib
from functools import reduce

import cramjam

from tests.scenarios.core.batches import batch, with_fields, with_records

MIB = 1024 * 1024
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def gzip_zeros(mebibytes: int) -> bytes:
    """A gzip stream of that many MiB of zeros: one piece again and again, which a full flush makes free of history."""
    piece, packer = bytes(MIB), zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = reduce(lambda before, _: zlib.crc32(piece, before), range(mebibytes), 0)
    header, trailer = b"\x1f\x8b\x08" + bytes(6) + b"\xff", struct.pack("<II", crc, mebibytes * MIB)
    return header + packed * mebibytes + packer.flush() + trailer


def zstd_zeros(mebibytes: int) -> bytes:
    """The same as zstd frames, which hold more than a thousand times as much as gzip."""
    frame = bytes(cramjam.zstd.compress(bytes(64 * MIB)))
    return frame * (mebibytes // 64)


def snappy_lie(announced: int) -> bytes:
    """A raw snappy block that announces a size and holds one byte."""
    out = bytearray()
    while announced >= 0x80:
        out.append(announced & 0x7F | 0x80)
        announced >>= 7
    out.append(announced)
    return bytes(out) + b"\x00x"


def carrying(codec: int, stream: bytes, records: int = 1) -> bytearray:
    """A batch whose records part is this stream, sound in every other way."""
    encoded = with_records(batch(b"x"), stream)
    return with_fields(encoded, attributes=codec, last_offset_delta=records - 1, record_count=records)
