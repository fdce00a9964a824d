"""Writers of one API version, compiled once from kio's schema of that version.

One compiled function packs runs of fixed-size fields with :mod:`struct` into a list of byte strings; record data is
put into the list as it is, so that a fetch response is never copied. A test holds every writer byte-equal to kio's.
"""

import dataclasses
import datetime as dt
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import (
    EntityField,
    EntityTupleField,
    classify_field,
    get_field_tag,
    is_optional,
)

from protocol.schema import FIXED, kind_of, python_name
from protocol.types import ZERO_UUID
from protocol.uvarint import ONE_BYTE, uvarint

Parts = list[Any]
"""An encoded message: byte strings and slices of the log, in order."""

_ZERO = ZERO_UUID.bytes
_DAY_MS = 86_400_000


def duration_ms(value: dt.timedelta) -> int:
    """Whole milliseconds of a duration, computed without a float."""
    return value.days * _DAY_MS + value.seconds * 1000 + value.microseconds // 1000


# --- writing ---------------------------------------------------------------------------------------------------------


def put_string(out: Parts, text: str | bytes | None, flexible: bool) -> None:
    """Write a string with its length; ``None`` becomes "" where the version has no null (JoinGroup's protocol name)."""
    raw = text.encode() if isinstance(text, str) else text or b""
    if flexible:
        size = len(raw) + 1
        out.append((ONE_BYTE[size] if size < 0x80 else uvarint(size)) + raw)
    else:
        out.append(struct.pack(">h", len(raw)) + raw)


def put_data(out: Parts, data: Any, flexible: bool) -> None:
    """Write bytes or records: one buffer, slices of a log, or null."""
    if data is None:
        out.append(b"\0" if flexible else b"\xff\xff\xff\xff")
        return
    slices = data if isinstance(data, list | tuple) else (data,)
    size = sum(map(len, slices))
    out.append(uvarint(size + 1) if flexible else struct.pack(">i", size))
    out.extend(slices)


def put_tags(out: Parts, tags: list[tuple[int, Parts]]) -> None:
    """Write a tag section: count, then tag, size and payload of each."""
    out.append(uvarint(len(tags)))
    for tag, parts in tags:
        out.append(uvarint(tag) + uvarint(sum(map(len, parts))))
        out.extend(parts)


class _Source:
    """The text of a writer under construction, with its pending run of fixed-size fields."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines = ["def write(out, m):"]
        self.scope: dict[str, Any] = {
            "put_string": put_string, "put_data": put_data, "put_tags": put_tags, "uvarint": uvarint, "ZERO": _ZERO,
            "pack_i": struct.Struct(">i").pack,
        }  # fmt: skip
        self._run: list[tuple[str, str]] = []

    def fixed(self, code: str, value: str) -> None:
        self._run.append((code, value))

    def line(self, text: str, indent: int = 1) -> None:
        self.flush()
        self.lines.append("    " * indent + text)

    def flush(self) -> None:
        if self._run:
            codes = "".join(code for code, _ in self._run)
            name = f"pack_{len(self.scope)}"
            self.scope[name] = struct.Struct(">" + codes).pack
            values = ", ".join(value for _, value in self._run)
            self._run = []
            self.lines.append(f"    out.append({name}({values}))")


def _primitive(source: _Source, kind: str, optional: bool, value: str, out: str = "out") -> str:
    """The statement that writes one string, bytes or fixed-size value."""
    flexible = source.flexible
    if kind in ("bytes", "records"):
        return f"put_data({out}, {value}, {flexible})"
    if kind == "string":
        write = f"put_string({out}, {value}, {flexible})"
        null = "b'\\0'" if flexible else "b'\\xff\\xff'"
        return f"{out}.append({null}) if {value} is None else {write}" if optional else write
    name = f"one_{kind}"
    source.scope[name] = struct.Struct(">" + FIXED[kind]).pack
    return f"{out}.append({name}({_fixed_value(kind, value)}))"


def _fixed_value(kind: str, value: str) -> str:
    return f"{value}.bytes if {value} is not None else ZERO" if kind == "uuid" else value


def _array(source: _Source, field: Any, value: str, out: str = "out") -> list[str]:
    """The statements that write an array."""
    shape, flexible = classify_field(field), source.flexible
    length = f"uvarint(len({value}) + 1)" if flexible else f"pack_i(len({value}))"
    null = "b'\\0'" if flexible else "b'\\xff\\xff\\xff\\xff'"
    if isinstance(shape, EntityTupleField):
        source.scope[f"w_{field.name}"] = writer(shape.type_)
        each = f"w_{field.name}({out}, i)"
    else:
        each = _primitive(source, kind_of(field), False, "i", out)
    return [f"if {value} is None: {out}.append({null})", "else:", f"    {out}.append({length})",
            f"    for i in {value}: {each}"]  # fmt: skip


def _field(source: _Source, field: Any) -> None:
    shape, kind, value = classify_field(field), kind_of(field), f"m.{python_name(field)}"
    if shape.is_array:
        for text in _array(source, field, value):
            source.line(text)
    elif isinstance(shape, EntityField):
        source.scope[f"w_{field.name}"] = writer(shape.type_)
        if is_optional(field):
            source.line(f"if {value} is None: out.append(b'\\xff')")
            source.line(f"else: out.append(b'\\1'); w_{field.name}(out, {value})")
        else:
            source.line(f"w_{field.name}(out, {value})")
    elif kind in FIXED:
        source.fixed(FIXED[kind], _fixed_value(kind, value))
    else:
        source.line(_primitive(source, kind, is_optional(field), value))


def differs_from_default(scope: dict[str, Any], field: Any, value: str) -> str:
    """The condition under which a tagged field is written; the default that it names is put into ``scope``."""
    shape, name = classify_field(field), f"default_{field.name}"
    default = field.default if field.default is not dataclasses.MISSING else get_tagged_field_default(field)
    if isinstance(shape, EntityField):
        scope[name] = default
        if default is None:
            return f"{value} is not None"
        names = [(python_name(f), f.name) for f in dataclasses.fields(shape.type_)]
        same = " and ".join(f"it.{ours} == {name}.{kios}" for ours, kios in names)
        return f"(it := {value}) is not None and not ({same})"
    if kind_of(field).startswith("timedelta"):
        default = duration_ms(default)
    is_list = shape.is_array and default is not None
    scope[name] = tuple(default) if is_list else default
    return f"tuple({value} or ()) != {name}" if is_list else f"{value} != {name}"


def _tagged(source: _Source, field: Any, tag: int) -> None:
    """A tagged field: left out while it equals its default."""
    shape, kind, value = classify_field(field), kind_of(field), f"m.{python_name(field)}"
    source.line(f"if {differs_from_default(source.scope, field, value)}:")
    if isinstance(shape, EntityField):
        source.scope[f"w_{field.name}"] = writer(shape.type_)
        body = [f"w_{field.name}(tagged, {value})"]
    else:
        body = _array(source, field, value, "tagged") if shape.is_array else [
            _primitive(source, kind, False, value, "tagged")
        ]  # fmt: skip
    source.line("tagged = []", 2)
    for text in body:
        source.line(text, 2)
    source.line(f"tags.append(({tag}, tagged))", 2)


@cache
def writer(entity: type) -> Callable[[Parts, Any], None]:
    """A function (parts, message) -> None that appends the message in the shape of kio's class ``entity``."""
    source = _Source(entity.__flexible__)  # type: ignore[attr-defined]
    tagged: list[tuple[int, Any]] = []
    for field in dataclasses.fields(entity):
        tag = get_field_tag(field)
        if tag is None:
            _field(source, field)
        else:
            tagged.append((int(tag), field))
    if tagged:
        source.line("tags = []")
        for number, field in sorted(tagged, key=lambda item: item[0]):
            _tagged(source, field, number)
        source.line("put_tags(out, tags) if tags else out.append(b'\\0')")  # nearly always none
    elif source.flexible:
        source.line("out.append(b'\\0')")
    source.flush()
    if len(source.lines) == 1:
        source.lines.append("    pass")
    exec("\n".join(source.lines), source.scope)  # noqa: S102 - the text is made of kio's schema alone
    return source.scope["write"]  # type: ignore[no-any-return]
