"""Properties of fields in kio's schema classes, by the names of our message classes."""

from functools import cache
from typing import Any, get_type_hints

from protocol.types import Message

FIXED = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float64": "d", "bool": "?", "error_code": "h", "uuid": "16s", "timedelta_i32": "i", "timedelta_i64": "q",
    "datetime_i64": "q",
}  # fmt: skip
"""Kinds of a fixed size -> their struct code."""


def kind_of(field: Any) -> str:
    """The wire type of kio's field; empty for a struct."""
    return str(field.metadata.get("kafka_type", ""))


def python_name(field: Any) -> str:
    """The name of kio's field in our classes: durations and times carry their unit."""
    return f"{field.name}_ms" if kind_of(field).startswith(("timedelta", "datetime")) else str(field.name)


@cache
def nested_class(owner: type, name: str) -> type:
    """The class of a struct, or of an array's structs, inside one of our messages."""
    pending = [_hints(owner)[name]]
    while pending:
        hint = pending.pop()
        if isinstance(hint, type) and issubclass(hint, Message):
            return hint
        pending.extend(getattr(hint, "__args__", ()))
    raise TypeError(f"{owner.__name__}.{name} holds no struct")


@cache
def _hints(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)
