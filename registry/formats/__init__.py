"""The formats of schemas: what can be read, how it is stored, and which changes break readers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, TypeVar

import anyio.to_thread

from registry.errors import InvalidSchema

TYPES = ("JSON", "PROTOBUF", "AVRO")
"""In the order of Confluent's `/schemas/types`."""


class Resolved(NamedTuple):
    """A schema that another one refers to, under the name that it is referred to by."""

    name: str
    text: str


class ParsedSchema(ABC):
    """A schema that was read."""

    text: str
    """As it is stored and answered."""

    @abstractmethod
    def incompatibilities(self, earlier: "ParsedSchema") -> list[str]:
        """Why this schema cannot read all that an earlier one of the same format has written; empty: it can."""

    def same_as(self, other: "ParsedSchema") -> bool:
        """Whether both are the same schema with all that they refer to in place: no, but for Avro."""
        del other
        return False

    def formatted(self, name: str) -> str:
        """The text in a format of the query parameter `format`; names that mean nothing here change nothing."""
        del name
        return self.text


T = TypeVar("T")
_LONG = 20_000
"""Characters from which on work on a schema is left to a thread, so that the brokers go on."""
_MODULES = {"AVRO": "avro_format", "JSON": "json_format", "PROTOBUF": "protobuf_format"}


async def parse(type: str, text: str, references: Sequence[Resolved], *, normalize: bool, is_new: bool) -> ParsedSchema:
    """Read a schema, whose references each come behind those that they use themselves; a new one more strictly.

    Raises:
        InvalidSchema: the type is unknown, or its format does not allow the text.
    """
    if type not in _MODULES:
        raise InvalidSchema(f"Invalid schema type {type}")
    module = import_module(f"registry.formats.{_MODULES[type]}")
    try:
        if type == "PROTOBUF":  # which waits for a process
            made: ParsedSchema = await module.parse(text, references, normalize=normalize)
            return made
        more = {"is_new": is_new} if type == "AVRO" else {}
        found: ParsedSchema = await in_thread(text, lambda: module.parse(text, references, normalize=normalize, **more))
        return found
    except RecursionError as error:
        raise InvalidSchema("it is nested too deeply") from error


async def in_thread(text: str, work: Callable[[], T]) -> T:
    """Do work on a schema's text, in a thread where it is a long one."""
    return await anyio.to_thread.run_sync(work) if len(text) > _LONG else work()
