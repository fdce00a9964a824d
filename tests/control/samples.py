"""One request of every API, made from its message class: a list has one element, a topic is ``t``, a group ``g``."""

import typing
from typing import Any
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.items import KINDS, element_type, level_of
from protocol.paths import message_type
from protocol.types import Message, field_types

TOPIC, PARTITION, GROUP, TRANSACTIONAL_ID = "t", 0, "g", "x"
PLAIN = {"coordinator_keys": ["g"]}
NAMES = dict(zip(KINDS, (TOPIC, PARTITION, GROUP, TRANSACTIONAL_ID), strict=True))


def sample(cls: type[Message], **values: Any) -> Any:
    """A message with something in every list, and the given values in the fields of those names."""
    level = level_of(cls)
    called = {name: kind for kind, names in level.own.items() for name in names}
    listed = {child.name: child.kind for child in level.children if child.kind}
    hints = field_types(cls)
    fields = {}
    for name in cls.FIELDS:
        if name in values:
            fields[name] = values[name]
        elif name in listed:
            fields[name] = [NAMES[str(listed[name])]]
        elif name in called and UUID not in (hints[name], *typing.get_args(hints[name])):
            fields[name] = NAMES[called[name]]
        elif (of := element_type(hints[name])) is not None:
            fields[name] = [sample(of, **values)] if issubclass(of, Message) else PLAIN.get(name, [])
        elif (part := message_type(hints[name])) is not None and part.__name__ != "Cursor":
            fields[name] = sample(part, **values)
    return cls(**fields)


def errors(value: Any) -> set[ErrorCode]:
    """All error codes in a response."""
    if isinstance(value, ErrorCode):
        return {value}
    if isinstance(value, Message):
        return set().union(*(errors(getattr(value, name)) for name in value.FIELDS))
    if isinstance(value, list | tuple):
        return set().union(*map(errors, value))
    return set()
