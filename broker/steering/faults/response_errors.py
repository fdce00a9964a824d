"""Partial error responses: errors for some items, merged into the response to the others."""

from collections.abc import Mapping
from typing import Any, TypeVar

from protocol.errors import ErrorCode
from protocol.items import Child, Level, Selection, decide
from protocol.types import Message

M = TypeVar("M", bound=Message)

# Values of an item with an error that differ from the field's default (core E.1, groups B.2, core D.1).
_BESIDE_AN_ERROR: Mapping[tuple[str, str], Any] = {
    ("PartitionData", "high_watermark"): -1,
    ("PartitionData", "records"): b"",
    ("PartitionProduceResponse", "base_offset"): -1,
    ("OffsetFetchResponsePartitions", "committed_offset"): -1,
    ("OffsetFetchResponsePartitions", "metadata"): "",
    ("MetadataResponseTopic", "partitions"): (),
    ("DescribeTopicPartitionsResponseTopic", "partitions"): (),
}
# Further fields that identify an item, of kinds that a fault cannot match.
_FURTHER_NAMES = ("producer_id", "key", "resource_type")


def lists_errors_of(level: Level, kinds: frozenset[str]) -> bool:
    """Return whether a response has an error code per item of these kinds, on the item or on what it lists."""
    left = kinds - set(level.own)
    return any(
        child.level is not None
        and ((left <= set(child.level.own) and _has_error(child.level)) or lists_errors_of(child.level, left))
        for child in level.children
    )


def _has_error(level: Level) -> bool:
    return level.error is not None or any(
        child.level is not None and _has_error(child.level) for child in level.children
    )


def identity(level: Level, element: Message) -> tuple[Any, ...]:
    """Return the identity of a list item; two items with the same identity are the same item.

    Of a topic with an id its name is no part: a request has the id alone, and a response both (KIP-516).
    """
    names = [name for names in level.own.values() for name in names]
    names += [name for name in _FURTHER_NAMES if name in level.cls.FIELDS and name not in names]
    if getattr(element, "topic_id", None):
        names = [name for name in names if name not in {"topic", "name"}]
    return tuple(getattr(element, name) for name in names)


def merge(level: Level, into: M, items: Message) -> M:
    """Merge the items of another response into a response: they replace the same items, or are appended."""
    changed: dict[str, Any] = {}
    for child in level.children:
        added = getattr(items, child.name)
        if child.level is None or not added:
            continue
        elements = list(getattr(into, child.name) or ())
        places = {identity(child.level, element): at for at, element in enumerate(elements)}
        for element in added:
            at = places.get(identity(child.level, element))
            if at is None:
                elements.append(element)
            elif _has_lists(child.level) and any(getattr(element, c.name) for c in child.level.children):
                elements[at] = merge(child.level, elements[at], element)
            else:
                elements[at] = element
        changed[child.name] = elements
    return into.changed(**changed) if changed else into


def _has_lists(level: Level) -> bool:
    return any(child.level is not None for child in level.children)


def lists_items(level: Level, response: Message, wanted: Selection) -> bool:
    """Return whether a response lists items of every wanted kind that its API has."""
    if not wanted.kinds & level.kinds:
        return False
    return _reaches(level, response, wanted.kinds & level.kinds)


def _reaches(level: Level, message: Message, kinds: frozenset[str]) -> bool:
    left = kinds - set(level.own)
    if not left:
        return True
    return any(
        _reaches(child.level, element, left)
        for child in level.children
        if child.level is not None
        for element in getattr(message, child.name) or ()
    )


def make(asks: Level, request: Message, answers: Level, code: ErrorCode) -> Message:
    """Build a response with an error for each item of a request; both nest items alike (topics, then partitions)."""
    requested = next((child for child in asks.children if getattr(request, child.name)), None)
    listed = next((child for child in answers.children if child.level is not None), None)
    response = answers.cls()
    if requested is None or listed is None or listed.level is None:
        return response
    elements = [_item(requested, element, listed.level, code) for element in getattr(request, requested.name)]
    return response.changed(**{listed.name: elements})


def _item(requested: Child, element: Any, answers: Level, code: ErrorCode) -> Message:
    values: dict[str, Any] = {}
    if requested.level is None:
        values = {name: element for names in answers.own.values() for name in names}
    else:
        for kind, names in answers.own.items():
            values |= _same(kind, requested.level, element, names)
    below = next((child for child in answers.children if child.level is not None), None)
    further = requested.level is not None and any(getattr(element, child.name) for child in requested.level.children)
    if requested.level is not None and below is not None and further:
        values[below.name] = getattr(make(requested.level, element, answers, code), below.name)
    else:
        values |= _with_error(answers, code)
    return answers.cls(**values)


def _same(kind: str, asks: Level, element: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the name or id that the request has for an item, keyed by the response's field names."""
    keys = [getattr(element, name) for name in asks.own.get(kind, ())]
    shared_fields: dict[str, Any] = {}
    for name in names:
        wants_id = name == "topic_id"
        value = next((each for each in keys if each is not None and isinstance(each, str | int) != wants_id), None)
        if value is not None:
            shared_fields[name] = value
    return shared_fields


def _with_error(level: Level, code: ErrorCode) -> dict[str, Any]:
    fields = set(level.cls.FIELDS)  # Fetch and ShareFetch both have a PartitionData
    values = {
        name: value for (cls, name), value in _BESIDE_AN_ERROR.items() if cls == level.cls.__name__ and name in fields
    }
    return {**values, level.error: code} if level.error else values


def mark(level: Level, response: M, wanted: Selection, code: ErrorCode, open_kinds: frozenset[str]) -> tuple[M, bool]:
    """Set the error on the wanted items of a response; return the response, and whether it had any such item.

    The error is set where the API has it: on the topic (Metadata), or on each partition (Produce).
    """
    decided = decide(level, response, wanted, open_kinds)
    if decided is None:
        return response, False
    left = open_kinds - decided
    if not left and level.error:
        return response.changed(**_with_error(level, code)), True
    changed: dict[str, Any] = {}
    for child in level.children:
        below = child.level
        if below is None:
            continue
        marked = [mark(below, element, wanted, code, left) for element in getattr(response, child.name) or ()]
        if any(hit for _, hit in marked):
            changed[child.name] = [element for element, _ in marked]
    return (response.changed(**changed), True) if changed else (response, False)
