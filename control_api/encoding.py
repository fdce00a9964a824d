"""Encodes answers as JSON by their types: bytes as text or base64, dataclasses as objects, lists in short form."""

import base64
import json
from collections.abc import Callable, Generator
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from control_api.fields import Kind, fields_of, kind_of

SAFE = 2**53 - 1
"""The largest exact integer in JavaScript: Number.MAX_SAFE_INTEGER."""
_STEP = 64
"""The number of elements of a long list that are encoded in one step: few, as one may be a record of a megabyte."""
T = TypeVar("T")
Write = Callable[[Any], Any]
Steps = Callable[[Any], Generator[None, None, str]]
"""Encodes a value as JSON in steps; yields between two steps."""


def json_in_steps(annotation: Any, answer: Any) -> Generator[None, None, bytes]:
    """Encode an answer of this type as JSON, in steps over its lists. Lists may be iterators."""
    kind = kind_of(annotation)
    steps = _object_steps(kind.type, short=kind.short) if kind.is_object else _steps(kind)
    return (yield from steps(answer)).encode()


_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _steps(kind: Kind) -> Steps:
    """Return the stepwise encoder of a kind."""
    if kind.is_object and _has_lists(kind.type):
        steps = _object_steps(kind.type, short=kind.short)
    elif kind.is_list and kind.type is not bytes:
        inner = kind.inner[0]
        deep = inner.is_object and _has_lists(inner.type)
        steps = _steps_of_deep(_steps(inner)) if deep else _steps_of_plain(_writer(kind))
    else:
        steps = _at_once(_writer(kind))
    return _nullable_steps(steps)


@cache
def _object_steps(cls: Any, *, short: bool) -> Steps:
    """Return the encoder of an object: its lists in steps, all other fields at once."""
    fields = [(_dumps(name) + ":", name, _steps(kind)) for name, kind in _fields(cls, short=short)]
    is_dict = issubclass(cls, dict)

    def steps(value: Any) -> Generator[None, None, str]:
        parts = []
        for key, name, write in fields:
            if not is_dict or name in value:
                parts.append(key + (yield from write(value[name] if is_dict else getattr(value, name))))
        return "{" + ",".join(parts) + "}"

    return steps


def _steps_of_deep(write: Steps) -> Steps:
    """Return the encoder of a list whose elements have lists themselves."""

    def steps(value: Any) -> Generator[None, None, str]:
        texts = []
        for each in value:
            texts.append((yield from write(each)))
            yield
        return f"[{','.join(texts)}]"

    return steps


def _steps_of_plain(write: Write | None) -> Steps:
    """Return the encoder of a list of scalars or small objects."""

    def steps(value: Any) -> Generator[None, None, str]:
        texts = []
        rest = iter(value)
        while part := list(islice(rest, _STEP)):
            texts.append(_dumps(part if write is None else write(part))[1:-1])
            yield
        return f"[{','.join(texts)}]"

    return steps


def _at_once(write: Write | None) -> Steps:
    def steps(value: Any) -> Generator[None, None, str]:
        return _dumps(value if write is None else write(value))
        yield

    return steps


def _nullable_steps(steps: Steps) -> Steps:
    def nullable(value: Any) -> Generator[None, None, str]:
        return "null" if value is None else (yield from steps(value))

    return nullable


@cache
def _has_lists(cls: Any) -> bool:
    """Return whether an object of this type may have a long list."""
    return any(field.kind.is_list for field in fields_of(cls).values())


@cache
def _fields(cls: Any, *, short: bool) -> list[tuple[str, Kind]]:
    return [(f.name, f.kind) for f in fields_of(cls).values() if not (short and f.about.detail)]


def bytes_json(value: bytes | str | None) -> Any:
    """Return UTF-8 bytes as text, other bytes as ``{"base64": "..."}``; strings and None unchanged."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def exact(value: int) -> int | str:
    """Return an integer that JavaScript would round as a string of its digits, other integers unchanged."""
    return value if -SAFE <= value <= SAFE else str(value)


def all_exact(value: Any) -> Any:
    """Apply `exact` to every integer in a document."""
    if type(value) is int:
        return exact(value)
    if isinstance(value, dict):
        return {name: all_exact(element) for name, element in value.items()}
    return [all_exact(element) for element in value] if isinstance(value, list) else value


@cache
def _object_writer(cls: Any, *, short: bool) -> Write:
    pairs = [(name, _writer(kind)) for name, kind in _fields(cls, short=short)]
    if issubclass(cls, dict):  # a TypedDict, whose keys mypy has checked
        return lambda value: {
            name: value[name] if write is None else write(value[name]) for name, write in pairs if name in value
        }
    return lambda value: {
        name: getattr(value, name) if write is None else write(getattr(value, name)) for name, write in pairs
    }


def _writer(kind: Kind) -> Write | None:
    """Return the converter of a kind to JSON values; ``None`` if none is needed."""
    write: Write | None = None
    if kind.is_object:
        write = _object_writer(kind.type, short=kind.short)
    elif kind.type is bytes:
        return bytes_json
    elif kind.about.wide:
        write = exact
    elif kind.is_list and (inner := _writer(kind.inner[0])) is not None:
        write = _list_writer(inner)
    elif kind.is_mapping and (inner := _writer(kind.inner[1])) is not None:
        write = _mapping_writer(inner)
    return write if write is None or not kind.nullable else _nullable_writer(write)


def _list_writer(inner: Write) -> Write:
    return lambda value: [inner(element) for element in value]


def _mapping_writer(inner: Write) -> Write:
    return lambda value: {name: inner(element) for name, element in value.items()}


def _nullable_writer(write: Write) -> Write:
    return lambda value: None if value is None else write(value)


def copied(cls: Callable[..., T], source: object, **others: object) -> T:
    """Build an answer from the attributes of another object with the same names, and from ``others``."""
    taken = {name: getattr(source, name) for name in fields_of(cls) if name not in others}
    return cls(**taken, **others)
