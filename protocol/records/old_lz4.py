"""Header checksums of the lz4 frames in messages of magic 0, which are wrong by design (KAFKA-3160).

A frame begins with its magic number, flags, block size and optional fields, and a byte of their xxHash32. Kafka writes
frames of magic 0 with a hash that includes the magic number, and ignores the byte when it reads them
(Lz4BlockOutputStream, Lz4BlockInputStream); from magic 1 on the byte is right, and checked.
"""

from typing import Final

from xxhash import xxh32_intdigest

_FLAGS: Final = 4
"""Position of the flags: behind the magic number."""
_CONTENT_SIZE, _DICTIONARY_ID = 0x08, 0x01  # flags of an lz4 frame


def with_true_checksum(frame: bytes) -> bytes:
    """Return a frame of magic 0 as every decoder of lz4 reads it; bytes that hold no whole header as they are."""
    return _with_checksum_from(frame, _FLAGS)


def with_wrong_checksum(frame: bytes) -> bytes:
    """Return a frame as Kafka writes it in magic 0, and as clients of that time expect it."""
    return _with_checksum_from(frame, 0)


def _with_checksum_from(frame: bytes, start: int) -> bytes:
    """Put the checksum of the header from ``start`` on into its place."""
    if len(frame) <= _FLAGS:
        return frame
    flags = frame[_FLAGS]
    # Flags and block size, and the bytes of the optional fields.
    end = _FLAGS + 2 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY_ID else 0)
    if len(frame) <= end:
        return frame
    # The checksum is the second byte of the hash.
    return frame[:end] + bytes((xxh32_intdigest(frame[start:end]) >> 8 & 0xFF,)) + frame[end + 1 :]
