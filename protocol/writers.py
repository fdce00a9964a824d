"""Building blocks of the generated message writers.

A message is a list of byte strings; record data is put into the list as it is, so that a fetch response is never
copied. "Compact" values have the lengths of flexible versions (KIP-482).
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from protocol.types import ZERO_UUID, RecordData
from protocol.uvarint import ONE_BYTE, uvarint

Parts = list[Any]
"""An encoded message: byte strings and slices of the log, in order."""

Writer = Callable[[Parts, Any], None]
"""Appends a message to parts."""

_ZERO: Final = ZERO_UUID.bytes
_INT16: Final = struct.Struct(">h").pack
_INT32: Final = struct.Struct(">i").pack
_NULL_INT16: Final = b"\xff\xff"
_NULL_INT32: Final = b"\xff\xff\xff\xff"
_NULL_COMPACT: Final = b"\0"
_MAX_STRING: Final = 0x7FFF  # as for readers: Kafka fails to write a longer one (core 0.4)


class Unwritable(ValueError):
    """Message that cannot be written: one of its strings is longer than the protocol allows, as in Kafka."""


def _long_size(size: int) -> bytes:
    """Encode the length of a compact string that is not short. Raises Unwritable."""
    if size > _MAX_STRING + 1:
        raise Unwritable(f"a string of {size - 1} bytes; at most {_MAX_STRING} are allowed")
    return uvarint(size)


def write_string(out: Parts, text: str | bytes | None) -> None:
    """Write a string with an int16 length; ``None`` is written as "" (JoinGroup's protocol name before v7)."""
    raw = text.encode() if isinstance(text, str) else text or b""
    if len(raw) > _MAX_STRING:
        raise Unwritable(f"a string of {len(raw)} bytes; at most {_MAX_STRING} are allowed")
    out.append(_INT16(len(raw)) + raw)


def write_nullable_string(out: Parts, text: str | bytes | None) -> None:
    """Write a string, or -1 for null."""
    if text is None:
        out.append(_NULL_INT16)
    else:
        write_string(out, text)


def write_compact_string(out: Parts, text: str | bytes | None) -> None:
    """Write a compact string; ``None`` is written as ""."""
    raw = text.encode() if isinstance(text, str) else text or b""
    size = len(raw) + 1
    out.append((ONE_BYTE[size] if size < 0x80 else _long_size(size)) + raw)


def write_compact_nullable_string(out: Parts, text: str | bytes | None) -> None:
    """Write a compact string, or 0 for null."""
    if text is None:
        out.append(_NULL_COMPACT)
    else:
        write_compact_string(out, text)


def write_bytes(out: Parts, data: RecordData) -> None:
    """Write bytes or records with an int32 length: one buffer, slices of a log, or null."""
    if data is None:
        out.append(_NULL_INT32)
    elif isinstance(data, list | tuple):
        out.append(_INT32(sum(map(len, data))))
        out.extend(data)
    else:
        out.append(_INT32(len(data)))
        out.append(data)


def write_compact_bytes(out: Parts, data: RecordData) -> None:
    """Write compact bytes or records: one buffer, slices of a log, or null."""
    if data is None:
        out.append(_NULL_COMPACT)
    elif isinstance(data, list | tuple):
        out.append(uvarint(sum(map(len, data)) + 1))
        out.extend(data)
    else:
        out.append(uvarint(len(data) + 1))
        out.append(data)


def write_count(out: Parts, items: Sequence[Any] | None) -> Sequence[Any]:
    """Write the int32 length of an array, -1 for null; return its elements."""
    if items is None:
        out.append(_NULL_INT32)
        return ()
    out.append(_INT32(len(items)))
    return items


def write_compact_count(out: Parts, items: Sequence[Any] | None) -> Sequence[Any]:
    """Write the length of a compact array, 0 for null; return its elements."""
    if items is None:
        out.append(_NULL_COMPACT)
        return ()
    size = len(items) + 1
    out.append(ONE_BYTE[size] if size < 0x80 else uvarint(size))
    return items


def write_numbers(out: Parts, numbers: Sequence[int], code: str) -> None:
    """Write the elements of an array of numbers, by their format of :mod:`struct`."""
    out.append(struct.pack(f">{len(numbers)}{code}", *numbers))


def uuid_bytes(value: UUID | None) -> bytes:
    """Return the bytes of a UUID; ``None`` is the zero UUID."""
    return _ZERO if value is None else value.bytes


def write_tags(out: Parts, tags: Sequence[tuple[int, Parts]]) -> None:
    """Write a tag section: count, then tag, size and payload of each."""
    out.append(uvarint(len(tags)))
    for tag, parts in tags:
        out.append(uvarint(tag) + uvarint(sum(map(len, parts))))
        out.extend(parts)
