"""Small types that all messages share: buffers, record data, and UUIDs in Kafka's text form."""

import base64
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, ClassVar, Final, Self, get_type_hints
from uuid import UUID

from protocol.deferred import mypyc_attr

Buffer = bytes | bytearray | memoryview
"""Anything that holds bytes."""

RecordData = Buffer | Sequence[Buffer] | None
"""The records of one partition: one buffer, or slices of the log in order, or null."""

Fields = Mapping[str, str]
"""The fields of a message class: name -> type, as it is written in the source."""

ZERO_UUID: Final = UUID(int=0)


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:  # noqa: PLW1641 - what compares by value and changes cannot be a key
    """Base of all message classes, which compare and print by field.

    The classes are written out by the generator rather than made by ``dataclasses``, which builds each one at import:
    three hundred of them took a third of the server's start. Their ``FIELDS`` are the names with their types, as text:
    a class that mypyc compiles has neither ``__slots__`` nor annotations.
    """

    FIELDS: ClassVar[Fields] = MappingProxyType({})
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({fields})"

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values in some fields."""
        fields = {name: getattr(self, name) for name in self.FIELDS}
        return type(self)(**{**fields, **values})


_TYPES: dict[type[Message], dict[str, Any]] = {}


def field_types(cls: type[Message]) -> dict[str, Any]:
    """Return the types of a message class's fields, in their order."""
    if cls not in _TYPES:
        fields = SimpleNamespace(__annotations__=dict(cls.FIELDS))
        _TYPES[cls] = get_type_hints(fields, vars(module_of(cls)))
    return _TYPES[cls]


def module_of(cls: type[Message]) -> ModuleType:
    """Return the module that defines a message class."""
    return sys.modules[getattr(cls, "__module__")]  # noqa: B009 - mypyc takes `cls.__module__` for a field of the instance


def uuid_text(value: UUID) -> str:
    """Return a UUID as Kafka prints it: 22 characters of base64url without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """Parse a UUID in Kafka's text form.

    Raises:
        ValueError: the text is not 22 characters of base64url.
    """
    raw = base64.urlsafe_b64decode(text + "==")
    return UUID(bytes=raw)
