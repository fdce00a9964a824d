"""The formats of schemas: parsing, the stored text, and compatibility checks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, TypeVar

import anyio.to_thread

from registry.errors import InvalidSchema

TYPES = ("JSON", "PROTOBUF", "AVRO")
"""Schema types in the order of Confluent's `/schemas/types`."""


class Resolved(NamedTuple):
    """Referenced schema, with its name in the reference."""

    name: str
    text: str


class ParsedSchema(ABC):
    """A parsed schema."""

    text: str
    """The text that is stored and returned."""

    @abstractmethod
    def incompatibilities(self, earlier: "ParsedSchema") -> list[str]:
        """List the reasons why this schema cannot read data of an earlier one of the same format; empty if it can."""

    def same_as(self, other: "ParsedSchema") -> bool:
        """Whether both are the same schema once their references are inlined; always False, except for Avro."""
        del other
        return False

    def formatted(self, name: str) -> str:
        """Return the text in a format given by the query parameter `format`; unknown names change nothing."""
        del name
        return self.text


T = TypeVar("T")
_LONG = 20_000
"""Length in characters from which on a schema is processed in a thread, so that it does not block the brokers."""
_MODULES = {"AVRO": "avro_format", "JSON": "json_format", "PROTOBUF": "protobuf_format"}


async def parse(type: str, text: str, references: Sequence[Resolved], *, normalize: bool, is_new: bool) -> ParsedSchema:
    """Parse a schema, a new one more strictly. Each of its references comes after its own references.

    Raises:
        InvalidSchema: the type is unknown, or the text is invalid in its format.
    """
    if type not in _MODULES:
        raise InvalidSchema(f"Invalid schema type {type}")
    module = import_module(f"registry.formats.{_MODULES[type]}")
    try:
        parsed: ParsedSchema
        if type == "PROTOBUF":  # awaited here, not in a thread: protoc is another process
            parsed = await module.parse(text, references, normalize=normalize)
        else:
            more = {"is_new": is_new} if type == "AVRO" else {}
            parsed = await in_thread(text, lambda: module.parse(text, references, normalize=normalize, **more))
    except RecursionError as error:
        raise InvalidSchema("it is nested too deeply") from error
    return parsed


async def in_thread(text: str, work: Callable[[], T]) -> T:
    """Run work on a schema's text, in a thread if the text is long."""
    return await anyio.to_thread.run_sync(work) if len(text) > _LONG else work()
