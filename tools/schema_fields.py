"""Layouts of message versions: kio's schema of the version, with the names and classes of our messages.

Two versions with equal layouts share their reader and their writer.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._introspect import EntityField, EntityTupleField, classify_field, get_field_tag, is_optional

FIXED = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float64": "d", "bool": "?", "error_code": "h", "uuid": "16s", "timedelta_i32": "i", "timedelta_i64": "q",
    "datetime_i64": "q",
}  # fmt: skip
"""Types of a fixed size -> their struct code."""


class Default(NamedTuple):
    """The value with which a tagged field is left out; for a struct, the values of its fields."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of a layout."""

    name: str
    kind: str
    """Kafka's type; empty for a struct."""
    array: bool
    nullable: bool
    tag: int | None = None
    default: Default | None = None
    struct: Layout | None = None

    @property
    def is_fixed(self) -> bool:
        """Return whether every value of it has the same size."""
        return self.kind in FIXED and not self.array


@dataclasses.dataclass(frozen=True)
class Layout:
    """The fields of a struct in wire order."""

    cls: str
    """Name of our class."""
    flexible: bool
    plain: tuple[Field, ...]
    tagged: tuple[Field, ...]


def kind_of(field: Any) -> str:
    """Return the wire type of kio's field; empty for a struct."""
    return str(field.metadata.get("kafka_type", ""))


def python_name(field: Any) -> str:
    """Return the name of kio's field in our classes: durations and times have their unit."""
    return f"{field.name}_ms" if kind_of(field).startswith(("timedelta", "datetime")) else str(field.name)


def layout(entity: Any, names: Mapping[type, str]) -> Layout:
    """Return the layout of kio's class ``entity``; ``names`` are those of our classes, by kio's."""
    fields = [_field(field, names) for field in dataclasses.fields(entity)]
    plain = tuple(field for field in fields if field.tag is None)
    tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
    return Layout(names[entity], entity.__flexible__, plain, tuple(tagged))


def _field(field: Any, names: Mapping[type, str]) -> Field:
    shape, name, tag = classify_field(field), python_name(field), get_field_tag(field)
    struct = None
    if isinstance(shape, EntityField | EntityTupleField):
        struct = layout(shape.type_, names)
    nullable = is_optional(field) or (shape.is_array and field.default is None)
    default = None if tag is None else Default(_value(get_tagged_field_default(field)))
    return Field(name, kind_of(field), shape.is_array, nullable, None if tag is None else int(tag), default, struct)


def _value(default: Any) -> Any:
    """Return a default in the form of our classes."""
    if dataclasses.is_dataclass(default):
        values = [(python_name(field), getattr(default, field.name)) for field in dataclasses.fields(default)]
        return tuple((name, _value(value)) for name, value in values)
    if isinstance(default, dt.timedelta):
        return round(default.total_seconds() * 1000)
    if isinstance(default, bool) or default is None:
        return default
    return int(default) if isinstance(default, int) else default


def snake_case(name: str) -> str:
    """Return "ClusterId" as "cluster_id"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
