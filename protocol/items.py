"""Resources in requests and responses: topics, partitions, groups and transactional ids, in every API.

They are found by field name: ``topic_id`` or ``partition_index`` mean the same in every API; exceptions are in the
tables below. So a fault rule or a journal query that names a topic works for every API that has topics, including
future ones.
"""

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from protocol.codec import message_class
from protocol.deferred import dataclass
from protocol.types import ZERO_UUID, Message, field_types

M = TypeVar("M", bound=Message)

TOPIC, PARTITION, GROUP, TRANSACTIONAL_ID = KINDS = ("topic", "partition", "group", "transactional_id")

_FIELDS: Mapping[str, str] = {
    "topic": TOPIC,
    "topic_name": TOPIC,
    "topic_id": TOPIC,
    "partition": PARTITION,
    "partition_index": PARTITION,
    "partition_id": PARTITION,
    "group_id": GROUP,
    "transactional_id": TRANSACTIONAL_ID,
}
_PLAIN_LISTS: Mapping[str, str] = {
    "partitions": PARTITION,
    "partition_indexes": PARTITION,
    "groups": GROUP,
    "groups_names": GROUP,
    "group_ids": GROUP,
    "transactional_ids": TRANSACTIONAL_ID,
}
# Fields of older versions (repeated in the newest shape), and fields that name items the request does not act on.
_IGNORED_FIELDS = frozenset(
    {
        ("OffsetFetchRequest", "group_id"),
        ("OffsetFetchRequest", "topics"),
        ("OffsetFetchResponse", "topics"),
        ("AddPartitionsToTxnRequest", "v3_and_below_topics"),
        ("AddPartitionsToTxnResponse", "results_by_topic_v3_and_below"),
        ("FetchRequest", "forgotten_topics_data"),
        ("CreatableTopic", "assignments"),
        ("CreatePartitionsTopic", "assignments"),
    }
)
_COORDINATOR_KINDS = (GROUP, TRANSACTIONAL_ID)
_TOPIC_RESOURCE = 2


class Child(NamedTuple):
    """List field of a message: of structs, or of plain values of one kind."""

    name: str
    level: "Level | None"
    kind: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """Description of one message class: the fields that name resources, and the lists below it."""

    cls: type[Message]
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    children: tuple[Child, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds of resources named at this level and below."""
        kinds = set(self.own)
        for child in self.children:
            kinds |= {child.kind} if child.kind else child.level.kinds if child.level else set()
        if self.cls.__name__ == "FindCoordinatorRequest":
            kinds |= set(_COORDINATOR_KINDS)
        return frozenset(kinds)

    @property
    def error(self) -> str | None:
        """Name of the error code field, if the class has one."""
        return next((name for name in ("error_code", "partition_error_code") if name in self.cls.FIELDS), None)


_LEVELS: dict[Any, Level] = {}


def level_of(cls: type[Message]) -> Level:
    """Return the description of a message class."""
    known = _LEVELS.get(cls)
    if known is None:
        known = _LEVELS[cls] = _describe(cls)
    return known


def _describe(cls: type[Message]) -> Level:
    own: dict[str, tuple[str, ...]] = {}
    children = []
    hints = field_types(cls)
    for name in cls.FIELDS:
        if (cls.__name__, name) in _IGNORED_FIELDS:
            continue
        listed = element_type(hints[name])
        if listed is None:
            kind = _kind_of(cls, name)
            if kind is not None:
                own[kind] = (*own.get(kind, ()), name)
        elif issubclass(listed, Message):
            below = level_of(listed)
            if below.kinds:
                children.append(Child(name, below))
        elif name in _PLAIN_LISTS or name == "coordinator_keys":
            children.append(Child(name, None, _PLAIN_LISTS.get(name)))
    if {"resource_type", "resource_name"} <= set(cls.FIELDS):
        own[TOPIC] = ("resource_name",)
    if cls.__name__ == "Coordinator":  # of FindCoordinator: the request gives the key's type
        own |= dict.fromkeys(_COORDINATOR_KINDS, ("key",))
    return Level(cls, own, tuple(children))


def _kind_of(cls: type[Message], name: str) -> str | None:
    if name == "name" and "Topic" in cls.__name__:
        return TOPIC
    if name == "index" and cls.__name__.startswith("Partition"):
        return PARTITION
    return _FIELDS.get(name)


def element_type(hint: Any) -> type[Any] | None:
    """Return the class of a list's elements; ``None`` if the type is not a list."""
    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is Sequence:
            (inner,) = typing.get_args(part)
            return inner if isinstance(inner, type) else None
    return None


def request_level(key: int) -> Level:
    """Return the description of an API's request."""
    return level_of(message_class(key, "Request"))


def response_level(key: int) -> Level:
    """Return the description of an API's response."""
    return level_of(message_class(key, "Response"))


@dataclass(frozen=True, slots=True)
class Selection:
    """Filter for items; ``None`` matches anything. ``topic_id`` is the current id of ``topic``, if it exists."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    topic_id: UUID | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds that the filter restricts."""
        return frozenset(kind for kind in KINDS if getattr(self, kind) is not None)

    def agrees(self, kind: str, value: Any) -> bool:
        """Whether a field of that kind has the wanted value."""
        if kind == TOPIC and isinstance(value, UUID):
            return value == self.topic_id
        return bool(value == getattr(self, kind))


def cut(level: Level, message: M, wanted: Selection, open_kinds: frozenset[str]) -> tuple[M | None, M | None]:
    """Split a message into the matching part and the rest; either may be ``None``. The message is not changed.

    ``open_kinds`` are the filter's kinds that no level above has matched. A null list (all topics) belongs to the rest.
    """
    decided = decide(level, message, wanted, open_kinds)
    if decided is None:
        return None, message
    left = open_kinds - decided
    if not left:
        return message, None
    hit: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for child in level.children:
        elements = getattr(message, child.name)
        if not elements:
            continue
        hit[child.name], rest[child.name] = _cut_list(child, message, elements, wanted, left)
    if not any(hit.values()):
        return None, message
    if not any(rest.values()):
        return message, None
    return message.changed(**hit), message.changed(**rest)


def _cut_list(
    child: Child, message: Message, elements: Sequence[Any], wanted: Selection, left: frozenset[str]
) -> tuple[list[Any], list[Any]]:
    hit, rest = [], []
    kind = child.kind or _coordinator_kind(message)
    for element in elements:
        if child.level is not None:
            matching, other = cut(child.level, element, wanted, left)
        elif left == {kind} and wanted.agrees(kind, element):
            matching, other = element, None
        else:
            matching, other = None, element
        if matching is not None:
            hit.append(matching)
        if other is not None:
            rest.append(other)
    return hit, rest


def _coordinator_kind(message: Message) -> str:
    """Return the kind of FindCoordinator's keys."""
    key_type = getattr(message, "key_type", -1)
    return _COORDINATOR_KINDS[key_type] if 0 <= key_type < len(_COORDINATOR_KINDS) else ""


def decide(level: Level, message: Any, wanted: Selection, open_kinds: frozenset[str]) -> frozenset[str] | None:
    """Return the kinds that this message's own fields match; ``None`` if one of them differs."""
    matched = set()
    for kind, names in level.own.items():
        if kind not in open_kinds:
            continue
        if _names_another_kind(names, message):
            return None
        if not any(wanted.agrees(kind, getattr(message, name)) for name in names):
            return None
        matched.add(kind)
    return frozenset(matched)


def _names_another_kind(names: tuple[str, ...], message: Any) -> bool:
    """Whether the field for a resource's name holds that of a group, a broker or another resource, not a topic's."""
    return names == ("resource_name",) and bool(message.resource_type != _TOPIC_RESOURCE)


def mentions(level: Level, message: Message, wanted: Selection) -> bool:
    """Whether a message has an item that matches the whole filter."""
    return cut(level, message, wanted, wanted.kinds)[0] is not None


class Item(NamedTuple):
    """Resources named at one place of a message, and its error code; ``None`` for each that is missing."""

    topic: str | UUID | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    error: Any = None


def items_of(level: Level, message: Any, above: Item | None = None) -> Iterator[Item]:
    """Yield the resources that a message names at its innermost places, in wire order."""
    own = {
        kind: next(filter(_is_set, (getattr(message, name) for name in names)), None)
        for kind, names in level.own.items()
        if not _names_another_kind(names, message)
    }
    here = (above or Item())._replace(**{kind: value for kind, value in own.items() if value is not None})
    if level.error is not None:
        here = here._replace(error=getattr(message, level.error))
    inner = 0
    for child in level.children:
        kind = child.kind or _coordinator_kind(message)
        for element in getattr(message, child.name) or ():
            inner += 1
            if child.level is not None:
                yield from items_of(child.level, element, here)
            elif kind:
                yield here._replace(**{kind: element})
    if not inner:
        yield here


def _is_set(value: Any) -> bool:
    """Whether a field names a resource; an empty name or a zero id does not."""
    return value is not None and value not in ("", ZERO_UUID)
