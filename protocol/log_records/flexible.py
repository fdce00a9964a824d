"""Flexible structs of a log (KIP-482): compact lengths and tagged fields; unknown tags are skipped.

A record class is a dataclass whose fields, in schema order, declare their wire types with :func:`wire`. kio's readers
are not used here because they reject unknown tags, which a log written by a later Kafka may contain.
"""

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from protocol.records.errors import MalformedRecordsError
from protocol.uvarint import read_uvarint, uvarint

Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[list[bytes], Any], None]

_NUMBERS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "float64": "d",
    "bool": "?",
}


def wire(
    kind: str | type,
    default: Any,
    *,
    since: int = 0,
    tag: int | None = None,
    array: bool = False,
    nullable: bool = False,
) -> Any:
    """Declare a field: ``kind`` is a primitive of Kafka's schemas or a struct's class; ``array`` makes it an array.

    ``since`` is the first version that has the field. A tagged field that equals its default is not written; where the
    default is ``None`` the field may be null. ``nullable`` is a struct with a presence byte in front; a tagged one is
    always written, even if it is null: for Kafka a missing one is an empty struct.
    """
    metadata = {"kind": kind, "since": since, "tag": tag, "array": array, "nullable": nullable}
    return dataclasses.field(default=default, metadata=metadata)


# --- the pieces --------------------------------------------------------------------------------------------------


def _read_slice(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_uvarint(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise MalformedRecordsError("a field ends outside its record")
    return data[at:end], end


def _read_string(data: bytes, at: int) -> tuple[str | None, int]:
    raw, at = _read_slice(data, at)
    return None if raw is None else raw.decode(), at


def _write_bytes(out: list[bytes], value: bytes | None) -> None:
    out.append(b"\0" if value is None else uvarint(len(value) + 1) + value)


def _write_string(out: list[bytes], value: str | None) -> None:
    _write_bytes(out, None if value is None else value.encode())


def _read_uuid(data: bytes, at: int) -> tuple[UUID, int]:
    return UUID(bytes=data[at : at + 16]), at + 16


def _write_uuid(out: list[bytes], value: UUID) -> None:
    out.append(value.bytes)


def _number(code: str) -> tuple[Read, Write]:
    packer = struct.Struct(f">{code}")
    size, unpack, pack = packer.size, packer.unpack_from, packer.pack

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    def write(out: list[bytes], value: Any) -> None:
        out.append(pack(value))

    return read, write


def _one(kind: str | type, version: int) -> tuple[Read, Write]:
    if not isinstance(kind, str):
        shape = shape_of(kind, version)
        return shape.read, shape.write
    if kind == "string":
        return _read_string, _write_string
    if kind == "bytes":
        return _read_slice, _write_bytes
    if kind == "uuid":
        return _read_uuid, _write_uuid
    return _number(_NUMBERS[kind])


def _nullable(read: Read, write: Write, gone: bytes) -> tuple[Read, Write]:
    there = b"\x01"

    def read_nullable(data: bytes, at: int) -> tuple[Any, int]:
        return (None, at + 1) if data[at : at + 1] == gone else read(data, at + 1)

    def write_nullable(out: list[bytes], value: Any) -> None:
        out.append(gone if value is None else there)
        if value is not None:
            write(out, value)

    return read_nullable, write_nullable


def _many(read: Read, write: Write) -> tuple[Read, Write]:
    def read_array(data: bytes, at: int) -> tuple[Any, int]:
        count, at = read_uvarint(data, at)
        if count == 0:
            return None, at
        if count - 1 > len(data) - at:
            raise MalformedRecordsError("an array longer than its record")
        items = []
        for _ in range(count - 1):
            item, at = read(data, at)
            items.append(item)
        return tuple(items), at

    def write_array(out: list[bytes], value: Any) -> None:
        if value is None:
            out.append(b"\0")
            return
        out.append(uvarint(len(value) + 1))
        for item in value:
            write(out, item)

    return read_array, write_array


# --- whole structs -----------------------------------------------------------------------------------------------


_ALWAYS_WRITTEN = object()
"""Default that no value equals: the tagged field is always written."""


class Shape(NamedTuple):
    """Reader and writer of one version of a struct."""

    read: Read
    write: Write


class _Column(NamedTuple):
    place: int
    name: str
    default: Any
    read: Read
    write: Write


@cache
def shape_of(cls: Any, version: int) -> Shape:
    """Build reader and writer of ``cls`` in one version; fields of later versions keep their defaults."""
    fields = dataclasses.fields(cls)
    defaults = [field.default for field in fields]
    inline: list[_Column] = []
    tagged: dict[int, _Column] = {}
    for index, field in enumerate(fields):
        meta = field.metadata
        if meta["since"] > version:
            continue
        pair = _one(meta["kind"], version)
        if meta["nullable"]:
            pair = _nullable(*pair, b"\xff" if meta["tag"] is None else b"\0")
        default = _ALWAYS_WRITTEN if meta["nullable"] and meta["tag"] is not None else field.default
        column = _Column(index, field.name, default, *(_many(*pair) if meta["array"] else pair))
        if meta["tag"] is None:
            inline.append(column)
        else:
            tagged[meta["tag"]] = column

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values = defaults[:]
        for column in inline:
            values[column.place], at = column.read(data, at)
        count, at = read_uvarint(data, at)
        for _ in range(count):
            tag, at = read_uvarint(data, at)
            size, at = read_uvarint(data, at)
            known = tagged.get(tag)
            if known is not None:
                values[known.place], _ = known.read(data, at)
            at += size
        return cls(*values), at

    return Shape(read, _writer(inline, sorted(tagged.items())))


def _writer(inline: list[_Column], tagged: list[tuple[int, _Column]]) -> Write:
    def write(out: list[bytes], value: Any) -> None:
        for column in inline:
            column.write(out, getattr(value, column.name))
        tags: list[bytes] = []
        count = 0
        for tag, column in tagged:
            item = getattr(value, column.name)
            if item == column.default:
                continue
            payload: list[bytes] = []
            column.write(payload, item)
            body = b"".join(payload)
            tags.append(uvarint(tag) + uvarint(len(body)) + body)
            count += 1
        out.append(uvarint(count))
        out += tags

    return write
