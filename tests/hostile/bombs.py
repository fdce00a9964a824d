"""Compressed streams that are small on the wire and enormous afterwards."""

import zlib

import cramjam

from tests.scenarios.core.batches import batch, with_fields, with_records

MIB = 1024 * 1024
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def gzip_zeros(mebibytes: int) -> bytes:
    """A gzip stream of that many MiB of zeros, made piece by piece."""
    packer, piece = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(MIB)
    return b"".join(packer.compress(piece) for _ in range(mebibytes)) + packer.flush()


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
    made = with_records(batch(b"x"), stream)
    return with_fields(made, attributes=codec, last_offset_delta=records - 1, record_count=records)
