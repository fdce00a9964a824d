"""Converts JSON to the dataclasses of `results`, by name: missing fields keep their default, unknown ones are dropped.

So an older client can read a newer server's responses, and vice versa.
"""

import base64
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def hints(cls: Any) -> dict[str, Any]:
    """Return the resolved types of a dataclass's fields."""
    return typing.get_type_hints(cls)


def build(cls: type[T], document: Mapping[str, Any]) -> T:
    """Build the dataclass from a JSON object; raise TypeError if a field without a default is missing."""
    kind: Any = cls
    wanted, arguments = hints(kind), {}
    for spot in fields(cls):  # type: ignore[arg-type]
        if spot.name in document:
            arguments[spot.name] = fit(wanted[spot.name], document[spot.name])
        elif spot.default is MISSING and spot.default_factory is MISSING:
            message = f"{cls.__name__} of the control plane has no {spot.name!r}: {dict(document)!r}"
            raise TypeError(message)
    return cls(**arguments)


def fit(kind: Any, value: Any) -> Any:
    """Convert a value to the annotated type."""
    if value is None:
        return None
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return fit(next(part for part in inner if part is not types.NoneType), value)
    if origin is dict:
        return {name: fit(inner[1], part) for name, part in value.items()}
    if origin is tuple:
        return tuple(fit(inner[0], part) for part in value)
    if kind is int and isinstance(value, str):
        return int(value)  # an integer that JSON parsers in JavaScript would round
    if kind is bytes:
        return to_bytes(value)
    if is_dataclass(kind) and isinstance(kind, type):
        return build(kind, value)
    return value


def to_bytes(value: Any) -> bytes:
    """Decode keys and values: text if they are UTF-8, else {"base64": ...}."""
    if isinstance(value, Mapping):
        return base64.b64decode(value["base64"])
    return str(value).encode()
