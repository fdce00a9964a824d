"""Converts JSON to the dataclasses of `results`, by name: missing fields keep their default, unknown ones are dropped.

So an older client can read a newer server's responses, and vice versa.
"""

import base64
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


Fit = Callable[[Any], Any]


def build(cls: type[T], document: Mapping[str, Any]) -> T:
    """Build the dataclass from a JSON object; raise TypeError if a field without a default is missing."""
    kind: Any = cls
    arguments = {}
    for name, fit, required in _fields(kind):
        if name in document:
            value = document[name]
            arguments[name] = None if value is None else fit(value)
        elif required:
            message = f"{cls.__name__} of the control plane has no {name!r}: {dict(document)!r}"
            raise TypeError(message)
    return cls(**arguments)


@cache
def _fields(cls: Any) -> list[tuple[str, Fit, bool]]:
    """Return the name of each field, what converts its values, and whether it is required."""
    wanted = typing.get_type_hints(cls)
    return [
        (spot.name, _fit(wanted[spot.name]), spot.default is MISSING and spot.default_factory is MISSING)
        for spot in fields(cls)
    ]


def _fit(kind: Any) -> Fit:
    """Return what converts a value to the annotated type; None stays."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, types.UnionType}:
        return _fit(next(part for part in inner if part is not types.NoneType))
    if origin is dict:
        fit = _fit(inner[1])
        return lambda value: {name: None if part is None else fit(part) for name, part in value.items()}
    if origin is tuple:
        fit = _fit(inner[0])
        return lambda value: tuple(None if part is None else fit(part) for part in value)
    if kind is int:  # JSON parsers in JavaScript would round an integer that is a text
        return lambda value: int(value) if isinstance(value, str) else value
    if kind is bytes:
        return to_bytes
    if is_dataclass(kind) and isinstance(kind, type):
        return lambda value: build(kind, value)
    return lambda value: value


def to_bytes(value: Any) -> bytes:
    """Decode keys and values: text if they are UTF-8, else {"base64": ...}."""
    if isinstance(value, Mapping):
        return base64.b64decode(value["base64"])
    return str(value).encode()
