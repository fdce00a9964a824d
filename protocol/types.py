"""Small types that all messages share: buffers, record data, and UUIDs in Kafka's text form."""

import base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr  # noqa: PLC0414 - exported
else:  # only the build needs that package

    def mypyc_attr(**_attributes: bool) -> Any:
        """Mark a class for mypyc, which reads the arguments when it compiles the class."""
        return lambda cls: cls


Buffer = bytes | bytearray | memoryview
"""Anything that holds bytes."""

RecordData = Buffer | Sequence[Buffer] | None
"""The records of one partition: one buffer, or slices of the log in order, or null."""

ZERO_UUID = UUID(int=0)


class Message:
    """Base of all message classes, which compare and print by field.

    The classes are written out by the generator rather than made by ``dataclasses``, which builds each one at import:
    three hundred of them took a third of the server's start. Their ``__slots__`` are the fields with their types.
    """

    __slots__: Mapping[str, str] = MappingProxyType({})
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def changed(self, **values: Any) -> Self:
        """Return a copy with other values in some fields."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return type(self)(**{**fields, **values})


M = TypeVar("M", bound=Message)


def typed_fields(cls: type[M]) -> type[M]:
    """Give a message class its annotations, which are in ``__slots__`` (``typing.get_type_hints``).

    mypyc makes no native class of one with a decorator: its fields stay attributes that Python code can list and set.
    """
    cls.__annotations__ = cls.__slots__  # type: ignore[assignment] # a dict, in every generated class
    return cls


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
