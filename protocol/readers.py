"""Readers of one API version, compiled once from kio's schema of that version into our message classes.

kio's own native reader is not used on bytes from a peer: it trusts an array's announced length and allocates that much
memory, which kills the process. Here every length is checked against the remaining bytes first. A test compares every
reader with kio's.
"""

import dataclasses
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional

from protocol.errors import ErrorCode
from protocol.schema import FIXED, kind_of, nested_class, python_name
from protocol.types import ZERO_UUID, Buffer
from protocol.uvarint import Unreadable, read_uvarint

_ZERO = ZERO_UUID.bytes
_MAX_STRING = 0x7FFF
_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from


MOST_ELEMENTS = 1_000_000
"""Limit for all arrays and tag sections of one message together. A frame of 100 MB could hold 100 million elements,
and Kafka would create an object for each."""


class Budget:
    """Counts the elements that one message may still have while it is read."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_ELEMENTS

    def take(self, count: int) -> None:
        """Subtract ``count`` elements. Raises Unreadable if too few are left."""
        self.left -= count
        if self.left < 0:
            raise Unreadable(f"more than {MOST_ELEMENTS} elements")


Take = Callable[[int], None]
"""A message's :meth:`Budget.take`."""


def _size(frame: Buffer, at: int, flexible: bool, *, wide: bool) -> tuple[int, int]:
    """A length, -1 for null, and the position after it; ``wide`` lengths are int32 in older versions."""
    if flexible:
        size = frame[at]
        if size < 0x80:  # as nearly all are
            return size - 1, at + 1
        size, at = read_uvarint(frame, at)
        return size - 1, at
    if wide:
        return int(_INT32(frame, at)[0]), at + 4
    return int(_INT16(frame, at)[0]), at + 2


def read_string(frame: Buffer, at: int, flexible: bool, nullable: bool) -> tuple[str | None, int]:
    """Read a string. Invalid UTF-8 gets replacement characters, as in Java."""
    if flexible and 0 < frame[at] < 0x80:
        size, at = frame[at] - 1, at + 1
    else:
        size, at = _size(frame, at, flexible, wide=False)
    if size < 0:
        if nullable:
            return None, at
        raise Unreadable("null where a string is required")
    end = at + size
    if end > len(frame) or size > _MAX_STRING:
        raise Unreadable(f"a string of {size} bytes where {len(frame) - at} are left")
    return str(frame[at:end], "utf-8", "replace"), end


def read_bytes(frame: Buffer, at: int, flexible: bool, nullable: bool) -> tuple[Buffer | None, int]:
    """Read bytes, copied out of the frame."""
    size, at = _size(frame, at, flexible, wide=True)
    if size < 0:
        if nullable:
            return None, at
        raise Unreadable("null where bytes are required")
    end = at + size
    if end > len(frame):
        raise Unreadable(f"{size} bytes where {len(frame) - at} are left")
    return bytes(frame[at:end]), end


def read_count(frame: Buffer, at: int, flexible: bool, nullable: bool, take: Take) -> tuple[int, int]:
    """Read an array's length, -1 for null; every element takes at least one byte."""
    if flexible and 0 < frame[at] < 0x80:
        count, at = frame[at] - 1, at + 1
    else:
        count, at = _size(frame, at, flexible, wide=True)
    if count < 0 and not nullable:
        raise Unreadable("null where an array is required")
    if count > len(frame) - at:
        raise Unreadable(f"an array of {count} elements where {len(frame) - at} bytes are left")
    if count > 0:
        take(count)
    return count, at


def skip_tags(frame: Buffer, at: int, take: Take) -> int:
    """Skip a tag section; return the position after it."""
    if not frame[at]:
        return at + 1
    tags, at = read_uvarint(frame, at)
    take(tags)
    for _ in range(tags):
        _, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        at += size
        if at > len(frame):
            raise Unreadable("a tag ends outside the frame")
    return at


@lru_cache(4096)
def uuid_or_none(raw: bytes) -> UUID | None:
    """Convert 16 bytes to a UUID; the zero UUID becomes ``None``."""
    return None if raw == _ZERO else UUID(bytes=raw)


class _Source:
    """The text of a reader under construction, with its pending run of fixed-size fields."""

    def __init__(self, target: type, flexible: bool) -> None:
        self.flexible = flexible
        self.lines = ["def read(frame, at, take):"]
        self.scope: dict[str, Any] = {
            "target": target, "string": read_string, "data": read_bytes, "count": read_count, "uvarint": read_uvarint,
            "uuid": uuid_or_none, "code": ErrorCode, "Unreadable": Unreadable,
        }  # fmt: skip
        self._run: list[tuple[str, str, str]] = []

    def fixed(self, name: str, kind: str) -> None:
        convert = {"uuid": "uuid({})", "error_code": "code({})"}.get(kind, "{}")
        self._run.append((FIXED[kind], name, convert))

    def line(self, text: str, indent: int = 1) -> None:
        self.flush()
        self.lines.append("    " * indent + text)

    def flush(self, indent: int = 1) -> None:
        if not self._run:
            return
        packed = struct.Struct(">" + "".join(code for code, _, _ in self._run))
        unpack = f"unpack_{len(self.scope)}"
        self.scope[unpack] = packed.unpack_from
        names = ", ".join(name for _, name, _ in self._run)
        pad = "    " * indent
        self.lines.append(f"{pad}{names}, = {unpack}(frame, at); at += {packed.size}")
        self.lines += [f"{pad}{name} = {convert.format(name)}" for _, name, convert in self._run if convert != "{}"]
        self._run = []


def _one(source: _Source, kind: str, name: str, optional: bool) -> str:
    """The statement that reads one value of a primitive kind."""
    if kind == "string":
        return f"{name}, at = string(frame, at, {source.flexible}, {optional})"
    if kind in ("bytes", "records"):
        return f"{name}, at = data(frame, at, {source.flexible}, {optional})"
    packed = struct.Struct(">" + FIXED[kind])
    source.scope[f"one_{kind}"] = packed.unpack_from
    convert = {"uuid": f"; {name} = uuid({name})", "error_code": f"; {name} = code({name})"}.get(kind, "")
    return f"{name}, = one_{kind}(frame, at); at += {packed.size}{convert}"


def _value(source: _Source, field: Any, name: str, target: type, indent: int) -> None:
    """The statements that read one field into the local variable ``name``."""
    shape, kind, optional = classify_field(field), kind_of(field), is_optional(field)
    struct_like = isinstance(shape, EntityField | EntityTupleField)
    if isinstance(shape, EntityField | EntityTupleField):
        source.scope[f"r_{field.name}"] = _reader(shape.type_, nested_class(target, python_name(field)))
    if shape.is_array:
        optional = optional or field.default is None
        source.line(f"size, at = count(frame, at, {source.flexible}, {optional}, take)", indent)
        source.line(f"{name} = () if size == 0 else None", indent)
        source.line("if size > 0:", indent)
        source.line("items = []", indent + 1)
        source.line("for _ in range(size):", indent + 1)
        read = f"item, at = r_{field.name}(frame, at, take)" if struct_like else _one(source, kind, "item", False)
        source.line(f"{read}; items.append(item)", indent + 2)
        source.line(f"{name} = tuple(items)", indent + 1)
    elif struct_like and optional:
        source.line("there = frame[at]; at += 1", indent)
        source.line(f"if there > 127: {name} = None", indent)
        source.line(f"else: {name}, at = r_{field.name}(frame, at, take)", indent)
    elif struct_like:
        source.line(f"{name}, at = r_{field.name}(frame, at, take)", indent)
    else:
        source.line(_one(source, kind, name, optional), indent)


@cache
def _reader(entity: type, target: type) -> Callable[[Buffer, int, Take], tuple[Any, int]]:
    source = _Source(target, entity.__flexible__)  # type: ignore[attr-defined]
    plain: list[tuple[Any, Any]] = []
    tagged: list[tuple[Any, Any]] = []
    for field in dataclasses.fields(entity):
        tag = get_field_tag(field)
        (plain if tag is None else tagged).append((tag, field))
    for _, field in plain:
        name, kind = f"v_{field.name}", kind_of(field)
        if kind in FIXED and not classify_field(field).is_array:
            source.fixed(name, kind)
        else:
            _value(source, field, name, target, 1)
    arguments = ", ".join(f"{python_name(field)}=v_{field.name}" for _, field in plain)
    source.line(f"m = target({arguments})")
    if source.flexible:
        _tags(source, tagged, target)
    source.line("return m, at")
    exec("\n".join(source.lines), source.scope)  # noqa: S102 - the text is made of kio's schema alone
    read: Callable[[Buffer, int, Take], tuple[Any, int]] = source.scope["read"]
    return read


def _tags(source: _Source, tagged: list[tuple[Any, Any]], target: type) -> None:
    """The tag section: known tags fill the message, others are skipped."""
    source.line("if not frame[at]: return m, at + 1")  # nearly always: no tags
    source.line("tags, at = uvarint(frame, at)")
    source.line("take(tags)")
    source.line("for _ in range(tags):")
    source.line("tag, at = uvarint(frame, at); size, at = uvarint(frame, at); end = at + size", 2)
    source.line("if end > len(frame): raise Unreadable('a tag ends outside the frame')", 2)
    for tag, field in tagged:
        source.line(f"if tag == {int(tag)}:", 2)
        _tagged_value(source, field, target)
        source.line(f"m.{python_name(field)} = value", 3)
    source.line("at = end", 2)


def _tagged_value(source: _Source, field: Any, target: type) -> None:
    """A tagged value; its struct is never null, its string may be."""
    shape, kind = classify_field(field), kind_of(field)
    if isinstance(shape, EntityField):
        source.scope[f"r_{field.name}"] = _reader(shape.type_, nested_class(target, python_name(field)))
        source.line(f"value, at = r_{field.name}(frame, at, take)", 3)
    elif shape.is_array:
        _value(source, field, "value", target, 3)
    else:
        source.line(_one(source, kind, "value", True), 3)


def reader(entity: type, target: type) -> Callable[[Buffer, int], tuple[Any, int]]:
    """A function (frame, position) -> (message of class ``target``, position after it) for kio's class ``entity``.

    The function raises :class:`Unreadable`, ``IndexError``, ``struct.error`` or ``ValueError`` on bytes that do not
    follow the schema.
    """
    read = _reader(entity, target)

    def read_message(frame: Buffer, at: int) -> tuple[Any, int]:
        return read(frame, at, Budget().take)

    return read_message
