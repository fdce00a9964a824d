"""What requests and responses speak of: topics, partitions, groups, transactional ids, wherever an API lists them.

The message classes say it themselves. A field named ``topic_id`` or ``partition_index`` is what it is called, in every
API; the few that are called otherwise stand in the tables below. So a fault, or a question to the journal, that names a
topic works for every API that has topics, those that are still to come included.
"""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from protocol.codec import message_class
from protocol.types import Message

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
# What only older versions have (the newest shape says it again), and what names items that are not acted on.
_PASSED_OVER = frozenset(
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
    """A list of a message: of other messages, or of plain values of one kind."""

    name: str
    level: "Level | None"
    kind: str | None = None


@dataclass(frozen=True, eq=False)
class Level:
    """What is known of one message class: fields that say what it is about, lists that lead further."""

    cls: type[Message]
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    children: tuple[Child, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds that are told of at this level and below."""
        found = set(self.own)
        for child in self.children:
            found |= {child.kind} if child.kind else child.level.kinds if child.level else set()
        if self.cls.__name__ == "FindCoordinatorRequest":
            found |= set(_COORDINATOR_KINDS)
        return frozenset(found)

    @property
    def error(self) -> str | None:
        """The field with its error code."""
        return next((name for name in ("error_code", "partition_error_code") if name in self.cls.__slots__), None)


_LEVELS: dict[Any, Level] = {}


def level_of(cls: type[Message]) -> Level:
    """The description of a message class."""
    known = _LEVELS.get(cls)
    if known is None:
        known = _LEVELS[cls] = _describe(cls)
    return known


def _describe(cls: type[Message]) -> Level:
    own: dict[str, tuple[str, ...]] = {}
    children = []
    hints = typing.get_type_hints(cls)
    for name in cls.__slots__:
        if (cls.__name__, name) in _PASSED_OVER:
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
    if {"resource_type", "resource_name"} <= set(cls.__slots__):
        own[TOPIC] = ("resource_name",)
    if cls.__name__ == "Coordinator":  # of FindCoordinator: what its key is, the request says
        own |= dict.fromkeys(_COORDINATOR_KINDS, ("key",))
    return Level(cls, own, tuple(children))


def _kind_of(cls: type[Message], name: str) -> str | None:
    if name == "name" and "Topic" in cls.__name__:
        return TOPIC
    if name == "index" and cls.__name__.startswith("Partition"):
        return PARTITION
    return _FIELDS.get(name)


def element_type(hint: Any) -> type[Any] | None:
    """The class of a list's elements, ``None`` for what is no list."""
    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is Sequence:
            (inner,) = typing.get_args(part)
            return inner if isinstance(inner, type) else None
    return None


def request_level(key: int) -> Level:
    """An API's request."""
    return level_of(message_class(key, "Request"))


def response_level(key: int) -> Level:
    """An API's response."""
    return level_of(message_class(key, "Response"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Items that are looked for: what is ``None`` is not asked for. ``topic_id`` is the id of ``topic`` now, if any."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    topic_id: UUID | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """What is asked for."""
        return frozenset(kind for kind in KINDS if getattr(self, kind) is not None)

    def agrees(self, kind: str, value: Any) -> bool:
        """Whether a field of that kind has what is looked for."""
        if kind == TOPIC and isinstance(value, UUID):
            return value == self.topic_id
        return bool(value == getattr(self, kind))


def cut(level: Level, message: Any, wanted: Wanted, open_kinds: frozenset[str]) -> tuple[Any, Any]:
    """A message in two: what is looked for, and the rest; either may be ``None``. The message itself stays as it is.

    ``open_kinds`` are those that are not decided above this level. A list that is null (all topics) is the rest.
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
    child: Child, message: Any, elements: Sequence[Any], wanted: Wanted, left: frozenset[str]
) -> tuple[list[Any], list[Any]]:
    hit, rest = [], []
    kind = child.kind or _coordinator_kind(message)
    for element in elements:
        if child.level is not None:
            found, other = cut(child.level, element, wanted, left)
        elif left == {kind} and wanted.agrees(kind, element):
            found, other = element, None
        else:
            found, other = None, element
        if found is not None:
            hit.append(found)
        if other is not None:
            rest.append(other)
    return hit, rest


def _coordinator_kind(message: Any) -> str:
    """What FindCoordinator's keys are."""
    key_type = getattr(message, "key_type", -1)
    return _COORDINATOR_KINDS[key_type] if 0 <= key_type < len(_COORDINATOR_KINDS) else ""


def decide(level: Level, message: Any, wanted: Wanted, open_kinds: frozenset[str]) -> frozenset[str] | None:
    """The kinds that this message itself settles; ``None`` where it is about something else."""
    settled = set()
    for kind, names in level.own.items():
        if kind not in open_kinds:
            continue
        if names == ("resource_name",) and message.resource_type != _TOPIC_RESOURCE:
            return None
        if not any(wanted.agrees(kind, getattr(message, name)) for name in names):
            return None
        settled.add(kind)
    return frozenset(settled)


def mentions(level: Level, message: Any, wanted: Wanted) -> bool:
    """Whether a message speaks of what is looked for, all of it together."""
    return cut(level, message, wanted, wanted.kinds)[0] is not None
