"""Unsigned LEB128 numbers: lengths, counts and tags of flexible versions (KIP-482)."""

from typing import Final

from protocol.types import Buffer

ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
"""Encodings of the numbers that take one byte, as nearly all do."""


class Unreadable(ValueError):
    """Bytes that do not follow the schema: a length outside the frame, or null in a field that is not nullable."""


def uvarint(value: int) -> bytes:
    """Encode a number."""
    if value < 0x80:
        return ONE_BYTE[value]
    encoded = shift = 0
    while value >= 0x80:
        encoded |= (value & 0x7F | 0x80) << shift
        shift += 8
        value >>= 7
    return (encoded | value << shift).to_bytes(shift // 8 + 1, "little")


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Read the number at a position, of at most 35 bits; return it and the position after it.

    Raises:
        Unreadable: more than five bytes.
        IndexError: the data ends within it.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        # Five groups of seven bits hold an int32.
        if shift > 28:
            raise Unreadable("a variable-length number is too long")
