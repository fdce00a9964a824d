"""Sizes of encoded messages without encoding them, compiled once from kio's schema of a version.

Kafka counts a message's bytes before it writes it (``MessageSizeAccumulator``, ``FetchResponse.sizeOf``). A test holds
every size equal to what the writer writes.
"""

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional

from protocol.schema import FIXED, kind_of, python_name
from protocol.uvarint import uvarint_size
from protocol.writers import differs_from_default


def string_size(text: str | bytes | None, flexible: bool) -> int:
    """Bytes of a string with its length."""
    size = 0 if text is None else len(text.encode() if isinstance(text, str) else text)
    return (uvarint_size(size + 1) if flexible else 2) + size


def data_size(data: Any, flexible: bool) -> int:
    """Bytes of a buffer, of slices of a log, or of null, with their length."""
    size = 0
    if data is not None:
        size = sum(map(len, data)) if isinstance(data, list | tuple) else len(data)
    return (uvarint_size(size + 1) if flexible else 4) + size


def tags_size(tags: list[tuple[int, int]]) -> int:
    """Bytes of a tag section: its number of tags, then tag, size and payload of each."""
    return uvarint_size(len(tags)) + sum(uvarint_size(tag) + uvarint_size(size) + size for tag, size in tags)


def _one(kind: str, flexible: bool, value: str) -> str:
    """The size of one primitive value."""
    if kind == "string":
        return f"string_size({value}, {flexible})"
    if kind in ("bytes", "records"):
        return f"data_size({value}, {flexible})"
    return str(struct.calcsize(">" + FIXED[kind]))


def _value(scope: dict[str, Any], field: Any, flexible: bool, value: str, *, tagged: bool = False) -> str:
    """The size of one field."""
    shape, kind, name = classify_field(field), kind_of(field), f"size_{field.name}"
    if isinstance(shape, EntityField | EntityTupleField):
        scope[name] = sizer(shape.type_)
    if shape.is_array:
        each = f"{name}(i)" if isinstance(shape, EntityTupleField) else _one(kind, flexible, "i")
        length = f"uvarint_size(len({value}) + 1)" if flexible else "4"
        null = 1 if flexible else 4
        return f"({null} if {value} is None else {length} + sum([{each} for i in {value}]))"
    if isinstance(shape, EntityField):
        if is_optional(field) and not tagged:
            return f"(1 if {value} is None else 1 + {name}({value}))"
        return f"{name}({value})"
    return _one(kind, flexible, value)


@cache
def sizer(entity: type) -> Callable[[Any], int]:
    """A function message -> bytes that the message takes in the shape of kio's class ``entity``."""
    flexible: bool = entity.__flexible__  # type: ignore[attr-defined]
    scope: dict[str, Any] = {
        "string_size": string_size, "data_size": data_size, "tags_size": tags_size, "uvarint_size": uvarint_size,
    }  # fmt: skip
    terms, tagged = [], []
    for field in dataclasses.fields(entity):
        tag, value = get_field_tag(field), f"m.{python_name(field)}"
        if tag is None:
            terms.append(_value(scope, field, flexible, value))
        else:
            size = _value(scope, field, flexible, value, tagged=True)
            tagged.append(f"    if {differs_from_default(scope, field, value)}: tags.append(({int(tag)}, {size}))")
    if tagged:
        terms.append("(tags_size(tags) if tags else 1)")  # nearly always none
    elif flexible:
        terms.append("1")
    lines = ["def size(m):", *(["    tags = []", *tagged] if tagged else []), f"    return {' + '.join(terms) or '0'}"]
    exec("\n".join(lines), scope)  # noqa: S102 - the text is made of kio's schema alone
    return scope["size"]  # type: ignore[no-any-return]
