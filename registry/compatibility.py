"""Compatibility levels: the earlier versions with which a new one is compared, and the direction."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from registry.errors import RegistryError
from registry.formats import ParsedSchema
from registry.levels import LEVELS

T = TypeVar("T")


class Older(NamedTuple):
    """An earlier version; its schema is None if it has another type."""

    version: int
    type: str
    schema: ParsedSchema | None


def level_named(text: object) -> str:
    """Return a level by its case-insensitive name. Raises RegistryError 42203."""
    if isinstance(text, str) and text.upper() in LEVELS:
        return text.upper()
    valid = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"
    raise RegistryError(42203, f"Invalid compatibility level. Valid values are {valid}")


def compared(level: str, older: Sequence[T]) -> Sequence[T]:
    """Return those of the earlier versions, in ascending order, with which a level compares."""
    rule = LEVELS[level]
    if not (rule.reads_older or rule.is_read_by_older):
        return ()
    return older if rule.transitive else older[-1:]


def problems(level: str, type: str, new: ParsedSchema, older: Sequence[Older]) -> list[str]:
    """List the incompatibilities of a new schema at a level, the newest version first; empty if there are none."""
    rule = LEVELS[level]
    for version in reversed(compared(level, older)):
        before = version.schema
        if before is None or version.type != type:
            return [f"Incompatible because of different schema type, oldSchemaVersion: {version.version}"]
        incompatibilities = [
            *(new.incompatibilities(before) if rule.reads_older else ()),
            *(before.incompatibilities(new) if rule.is_read_by_older else ()),
        ]
        if incompatibilities:
            about = [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: '{before.text}'}}"]
            return [*dict.fromkeys(incompatibilities), *about, f"{{compatibility: '{level}'}}"]
    return []
