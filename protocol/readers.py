"""Building blocks of the generated message readers: they read strings, bytes, arrays and tag sections from a frame.

Bytes of a peer are not trusted: every length is compared with the bytes that are left before anything is allocated, and
the elements of one message are limited. "Compact" values have the lengths of flexible versions (KIP-482).

All functions take a frame and a position and return the value and the position after it. On bytes that do not follow
the schema they raise :class:`Unreadable`, ``IndexError``, ``struct.error`` or ``ValueError``.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from protocol.types import ZERO_UUID, Buffer
from protocol.uvarint import Unreadable, read_uvarint

_ZERO: Final = ZERO_UUID.bytes
_ONE_BYTE: Final = 126
"""The largest size whose compact length, which is one more, takes one byte."""
MAX_STRING: Final = 0x7FFF  # bytes; a compact string could be longer, and Kafka refuses that (core 0.4)
SURELY_SHORT: Final = MAX_STRING // 3
"""Most bytes of a string that stays within the limit even if U+FFFD, three bytes of UTF-8, replaces each of them."""
_INT16: Final = struct.Struct(">h").unpack_from
_INT32: Final = struct.Struct(">i").unpack_from


MOST_ELEMENTS: Final = 1_000_000
"""Limit for all arrays and tag sections of one message together. A frame of 100 MB could hold 100 million elements,
and Kafka would create an object for each.

Ours, far more than a request of a client has.
"""

MOST_ANSWERED: Final = 20_000_000
"""The limit for responses, whose sender the caller chose: Metadata has seven elements per partition with 3 replicas.

Ours, so some three million partitions.
"""


class Budget:
    """Counts the elements that one message may still have while it is read."""

    __slots__ = ("left", "most")

    def __init__(self, most: int = MOST_ELEMENTS) -> None:
        self.left = self.most = most

    def take(self, count: int, size: int) -> None:
        """Subtract ``count`` elements, each of at least one byte. Raises Unreadable if there are too many."""
        if count > size:
            raise Unreadable(f"an array of {count} elements where {size} bytes are left")
        self.left -= count
        if self.left < 0:
            raise Unreadable(f"more than {self.most} elements")


Reader = Callable[[Buffer, int, Budget], tuple[Any, int]]
"""Reads a message: frame, position, budget -> the message, the position after it."""


# Nearly all lengths of compact values are one byte, read in place: a call would double the cost of a short value.


def _long_size(frame: Buffer, at: int) -> tuple[int, int]:
    """Read the length of a compact value, -1 for null: one above 126 is encoded, plus one, in several bytes."""
    size, at = read_uvarint(frame, at)
    return size - 1, at


# --- strings: invalid UTF-8 gets replacement characters, as in Java ------------------------------------------------


def check_length(text: str) -> None:
    """Reject a string that is too long to be written again once its invalid bytes are replaced. Raises Unreadable.

    Kafka accepts it and fails later, when it has become part of a group's state and of responses to other clients.
    """
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAX_STRING:
        raise Unreadable(f"a string that takes {size} bytes as UTF-8, of at most {MAX_STRING}")


def _text(frame: Buffer, at: int, size: int) -> tuple[str, int]:
    end = at + size
    if end > len(frame) or size > MAX_STRING:
        raise Unreadable(f"a string of {size} bytes where {len(frame) - at} are left")
    text = str(frame[at:end], "utf-8", "replace")
    if size > SURELY_SHORT:
        check_length(text)
    return text, end


def read_string(frame: Buffer, at: int) -> tuple[str, int]:
    """Read a string with an int16 length."""
    (size,) = _INT16(frame, at)
    if size < 0:
        raise Unreadable("null where a string is required")
    at += 2
    end = at + size
    if end > len(frame) or size > SURELY_SHORT:
        return _text(frame, at, size)
    return str(frame[at:end], "utf-8", "replace"), end


def read_nullable_string(frame: Buffer, at: int) -> tuple[str | None, int]:
    """Read a string or null (-1)."""
    (size,) = _INT16(frame, at)
    return (None, at + 2) if size < 0 else _text(frame, at + 2, size)


def read_compact_string(frame: Buffer, at: int) -> tuple[str, int]:
    """Read a compact string."""
    size = frame[at] - 1
    at += 1
    if size > _ONE_BYTE:
        size, at = _long_size(frame, at - 1)
    if size < 0:
        raise Unreadable("null where a string is required")
    end = at + size
    if end > len(frame) or size > SURELY_SHORT:
        return _text(frame, at, size)
    return str(frame[at:end], "utf-8", "replace"), end


def read_compact_nullable_string(frame: Buffer, at: int) -> tuple[str | None, int]:
    """Read a compact string or null (0)."""
    size = frame[at] - 1
    at += 1
    if size > _ONE_BYTE:
        size, at = _long_size(frame, at - 1)
    return (None, at) if size < 0 else _text(frame, at, size)


# --- bytes, copied out of the frame; records of requests, not copied -----------------------------------------------


def _copied(frame: Buffer, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(frame):
        raise Unreadable(f"{size} bytes where {len(frame) - at} are left")
    return bytes(frame[at:end]), end


def read_bytes(frame: Buffer, at: int) -> tuple[bytes, int]:
    """Read bytes with an int32 length."""
    (size,) = _INT32(frame, at)
    if size < 0:
        raise Unreadable("null where bytes are required")
    return _copied(frame, at + 4, size)


def read_nullable_bytes(frame: Buffer, at: int) -> tuple[bytes | None, int]:
    """Read bytes or null (-1)."""
    (size,) = _INT32(frame, at)
    return (None, at + 4) if size < 0 else _copied(frame, at + 4, size)


def read_compact_bytes(frame: Buffer, at: int) -> tuple[bytes, int]:
    """Read compact bytes."""
    size = frame[at] - 1
    at += 1
    if size > _ONE_BYTE:
        size, at = _long_size(frame, at - 1)
    if size < 0:
        raise Unreadable("null where bytes are required")
    return _copied(frame, at, size)


def read_compact_nullable_bytes(frame: Buffer, at: int) -> tuple[bytes | None, int]:
    """Read compact bytes or null (0)."""
    size = frame[at] - 1
    at += 1
    if size > _ONE_BYTE:
        size, at = _long_size(frame, at - 1)
    return (None, at) if size < 0 else _copied(frame, at, size)


def _slice(frame: Buffer, at: int, size: int) -> tuple[memoryview | None, int]:
    """Return a slice of the frame, writable if the frame is: the log stamps offsets into the records and keeps them."""
    if size < 0:
        return None, at
    end = at + size
    if end > len(frame):
        raise Unreadable(f"{size} bytes where {len(frame) - at} are left")
    return memoryview(frame)[at:end], end


def read_records(frame: Buffer, at: int) -> tuple[memoryview | None, int]:
    """Read the records of a request without copying them; null is -1."""
    return _slice(frame, at + 4, _INT32(frame, at)[0])


def read_compact_records(frame: Buffer, at: int) -> tuple[memoryview | None, int]:
    """Read the records of a request without copying them; null is 0."""
    size = frame[at] - 1
    at += 1
    if size > _ONE_BYTE:
        size, at = _long_size(frame, at - 1)
    return _slice(frame, at, size)


# --- arrays: every element takes at least one byte -----------------------------------------------------------------


def read_count(frame: Buffer, at: int, budget: Budget) -> tuple[int, int]:
    """Read an array's int32 length."""
    (count,) = _INT32(frame, at)
    at += 4
    if count < 0:
        raise Unreadable("null where an array is required")
    if count:
        budget.take(count, len(frame) - at)
    return count, at


def read_nullable_count(frame: Buffer, at: int, budget: Budget) -> tuple[int, int]:
    """Read an array's length, -1 for null."""
    (count,) = _INT32(frame, at)
    if count < 0:
        return -1, at + 4
    return read_count(frame, at, budget)


def read_compact_count(frame: Buffer, at: int, budget: Budget) -> tuple[int, int]:
    """Read the length of a compact array."""
    count = frame[at] - 1
    at += 1
    if count > _ONE_BYTE:
        count, at = _long_size(frame, at - 1)
    if count < 0:
        raise Unreadable("null where an array is required")
    if count:
        budget.take(count, len(frame) - at)
    return count, at


def read_compact_nullable_count(frame: Buffer, at: int, budget: Budget) -> tuple[int, int]:
    """Read the length of a compact array, -1 for null."""
    count = frame[at] - 1
    at += 1
    if count > _ONE_BYTE:
        count, at = _long_size(frame, at - 1)
    if count > 0:
        budget.take(count, len(frame) - at)
    return count, at


def _numbers(frame: Buffer, at: int, count: int, code: str) -> tuple[tuple[int, ...], int]:
    if not count:
        return (), at
    numbers = struct.Struct(f">{count}{code}")
    return numbers.unpack_from(frame, at), at + numbers.size


def read_numbers(frame: Buffer, at: int, budget: Budget, code: str) -> tuple[tuple[int, ...], int]:
    """Read an array of numbers, by their format of :mod:`struct`."""
    count, at = read_count(frame, at, budget)
    return _numbers(frame, at, count, code)


def read_nullable_numbers(frame: Buffer, at: int, budget: Budget, code: str) -> tuple[tuple[int, ...] | None, int]:
    """Read an array of numbers or null."""
    count, at = read_nullable_count(frame, at, budget)
    return (None, at) if count < 0 else _numbers(frame, at, count, code)


def read_compact_numbers(frame: Buffer, at: int, budget: Budget, code: str) -> tuple[tuple[int, ...], int]:
    """Read a compact array of numbers."""
    count, at = read_compact_count(frame, at, budget)
    return _numbers(frame, at, count, code)


def read_compact_nullable_numbers(
    frame: Buffer, at: int, budget: Budget, code: str
) -> tuple[tuple[int, ...] | None, int]:
    """Read a compact array of numbers or null."""
    count, at = read_compact_nullable_count(frame, at, budget)
    return (None, at) if count < 0 else _numbers(frame, at, count, code)


# --- tags and identifiers ------------------------------------------------------------------------------------------


def read_tags(frame: Buffer, at: int, budget: Budget) -> tuple[int, int]:
    """Read the number of tags of a section."""
    count, at = read_uvarint(frame, at)
    budget.take(count, len(frame) - at)
    return count, at


def read_tag(frame: Buffer, at: int) -> tuple[int, int, int]:
    """Read the header of a tag; return its number and the positions where its value begins and ends."""
    tag, at = read_uvarint(frame, at)
    size, at = read_uvarint(frame, at)
    end = at + size
    if end > len(frame):
        raise Unreadable("a tag ends outside the frame")
    return tag, at, end


def skip_tags(frame: Buffer, at: int, budget: Budget) -> int:
    """Skip a tag section; return the position after it."""
    if not frame[at]:  # nearly always
        return at + 1
    count, at = read_tags(frame, at, budget)
    for _ in range(count):
        _, _, at = read_tag(frame, at)
    return at


@lru_cache(4096)  # ours: more topics than are in use at a time; requests name the same ones again and again
def uuid_or_none(raw: bytes) -> UUID | None:
    """Convert 16 bytes to a UUID; the zero UUID becomes ``None``."""
    return None if raw == _ZERO else UUID(bytes=raw)
