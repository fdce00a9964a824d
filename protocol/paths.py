"""Convert messages to JSON; read and replace single fields by path, such as ``topics.0.partitions.*.error_code``."""

import base64
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType, NoneType
from typing import Any, TypeVar
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.items import Selection, decide, element_type, level_of
from protocol.types import ZERO_UUID, Message, field_types, uuid_from_text, uuid_text

M = TypeVar("M", bound=Message)

EACH = "*"


class BadPath(Exception):
    """Path that does not exist, or value of the wrong type; the message is for the user."""


Formats = Mapping[str, Callable[[Any], Any]]
"""Field name -> function that renders the field's value, at any depth."""
_NO_FORMATS: Formats = MappingProxyType({})
_PLAIN = frozenset({NoneType, bool, int, float, str})
"""Types of most fields, which JSON has. They are looked up first: a match asks for one type after the other."""


def to_json(value: Any, special: Formats = _NO_FORMATS) -> Any:
    """Convert a message, or a value in one, to JSON: codes by name, ids as Kafka prints them, bytes as text or base64.

    ``special`` renders fields by name. The order of fields is that of the wire.
    """
    if type(value) in _PLAIN:
        return value
    match value:
        case ErrorCode():
            return value.name
        case int() | str():
            return value
        case Message():
            return {
                name: special[name](part) if name in special else to_json(part, special)
                for name, part in ((name, getattr(value, name)) for name in value.FIELDS)
            }
        case UUID():
            return uuid_text(value)
        case bytes() | bytearray() | memoryview():
            return bytes_to_json(bytes(value))
        case Sequence() | frozenset() | set():
            return [to_json(each, special) for each in value]
    return str(value)


def bytes_to_json(raw: bytes) -> Any:
    """Return text if the bytes are UTF-8, else ``{"base64": ...}``."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


def errors(value: Any) -> Iterator[ErrorCode]:
    """Yield all error codes of a response except NONE, in field order."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, ErrorCode):
        if value is not ErrorCode.NONE:
            yield value
    elif isinstance(value, Message):
        for name in value.FIELDS:
            yield from errors(getattr(value, name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from errors(each)


# --- reading ---------------------------------------------------------------------------------------------------------


def has(message: Message, path: str, value: Any) -> bool:
    """Whether a field has a value, in its JSON form; with ``*`` in the path, whether any element has it."""
    return any(to_json(each) == value for each in _find(message, path.split(".")))


def values(message: Message, path: str) -> Iterator[Any]:
    """Return the values at a path, in their JSON form."""
    return map(to_json, _find(message, path.split(".")))


def _find(at: Any, path: list[str]) -> Iterable[Any]:
    if not path:
        yield at
        return
    name, *rest = path
    if isinstance(at, Message):
        if name in at.FIELDS:
            yield from _find(getattr(at, name), rest)
    elif isinstance(at, Sequence) and not isinstance(at, str | bytes):
        elements = at if name == EACH else at[int(name) : int(name) + 1] if name.isdigit() else ()
        for element in elements:
            yield from _find(element, rest)


# --- writing ---------------------------------------------------------------------------------------------------------


def put(message: M, path: str, value: Any, wanted: Selection) -> M:
    """Return a copy with another value in a field; under ``*`` only matching items change.

    The value is a result of :func:`check`.
    """
    changed: M = _put(message, path.split("."), value, wanted, wanted.kinds)
    return changed


def _put(at: Any, path: list[str], value: Any, wanted: Selection, open_kinds: frozenset[str]) -> Any:
    if not path:
        return value
    name, *rest = path
    if isinstance(at, Message):
        return at.changed(**{name: _put(getattr(at, name), rest, value, wanted, open_kinds)})
    if at is None:
        return None
    elements = list(at)
    for index, element in enumerate(elements):
        left: frozenset[str] | None = open_kinds
        if name == EACH and isinstance(element, Message):
            decided = decide(level_of(type(element)), element, wanted, open_kinds)
            left = None if decided is None else open_kinds - decided
        if left is not None and name in (EACH, str(index)):
            elements[index] = _put(element, rest, value, wanted, left)
    return elements


def check(cls: type[Message], path: str, value: Any) -> Any:
    """Convert a JSON value to the type of the field at a path.

    Raises:
        BadPath: no such field, or the value has the wrong type.
    """
    hint: Any = cls
    walked = ""
    for name in path.split("."):
        hint = _step(hint, name, walked)
        walked = f"{walked}.{name}" if walked else name
    return _convert(hint, value, path)


def _step(hint: Any, name: str, walked: str) -> Any:
    listed = element_type(hint)
    if listed is not None:
        if name != EACH and not name.isdigit():
            raise BadPath(f"{walked} is a list: write {walked}.0 for its first element, {walked}.* for all of them")
        return listed
    message = message_type(hint)
    if message is None:
        raise BadPath(f"{walked} has no fields")
    hints = field_types(message)
    if name not in hints:
        raise BadPath(f"{walked or message.__name__} has no field {name!r}, it has {', '.join(hints)}")
    return hints[name]


def message_type(hint: Any) -> type[Message] | None:
    """Return the message class of a field's type, if it has one."""
    parts = (hint, *typing.get_args(hint))
    return next((part for part in parts if isinstance(part, type) and issubclass(part, Message)), None)


def _convert(hint: Any, value: Any, path: str) -> Any:
    """Convert the JSON value of a field."""
    kinds = typing.get_args(hint) or (hint,)
    if value is None:
        if NoneType in kinds or UUID in kinds:
            return None
        raise BadPath(f"{path} cannot be null")
    listed, message = element_type(hint), message_type(hint)
    if listed is not None:
        if not isinstance(value, list):
            raise BadPath(f"{path} needs a list, not {value!r}")
        return [_convert(listed, each, f"{path}.{at}") for at, each in enumerate(value)]
    if message is not None:
        if not isinstance(value, Mapping):
            raise BadPath(f"{path} needs an object, not {value!r}")
        return message(**{name: check(message, name, each) for name, each in value.items()})
    return _plain(set(kinds), value, path)


def _plain(kinds: set[Any], value: Any, path: str) -> Any:
    if ErrorCode in kinds:
        return _code(value, path)
    if UUID in kinds:
        try:
            uuid = uuid_from_text(str(value))
        except ValueError as error:
            raise BadPath(f"{path} needs an id of 22 characters, not {value!r}") from error
        return None if uuid == ZERO_UUID else uuid
    if bytes in kinds:
        return _bytes(value, path)
    wanted = next(kind for kind in (bool, int, float, str) if any(_is(each, kind) for each in kinds))
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise BadPath(f"{path} needs {_TYPE_NAMES[wanted]}, not {value!r}")
    return value


_TYPE_NAMES: Mapping[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _is(kind: Any, plain: type) -> bool:
    return isinstance(kind, type) and (kind is plain or (issubclass(kind, IntEnum) and plain is int))


def _code(value: Any, path: str) -> ErrorCode:
    try:
        return ErrorCode[value] if isinstance(value, str) else ErrorCode(value)
    except (KeyError, ValueError) as error:
        raise BadPath(f"{path}: there is no error code {value!r}") from error


def _bytes(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise BadPath(f'{path} needs a text or {{"base64": "..."}}') from error
