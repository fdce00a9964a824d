"""Extracts the items of a request, in terms of a fault's conditions, and the errors of each item in the response."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from understudy.replay.journal import Line

Item = tuple[tuple[str, Any], ...]
"""Conditions of a fault with their values, such as ``(("topic", "t"), ("partition", 0))``."""


class _Lists(NamedTuple):
    """Where a request lists topics and partitions, and which field next to them is a condition too."""

    topics: str
    name: str
    partitions: str = ""
    partition: str = ""
    beside: tuple[str, str] | None = None


_GROUP: Final = ("group", "group_id")
_TRANSACTION: Final = ("transactional_id", "transactional_id")
_LISTS: Final[Mapping[str, _Lists]] = {
    "Produce": _Lists("topic_data", "name", "partition_data", "index"),
    "Fetch": _Lists("topics", "topic", "partitions", "partition"),
    "ListOffsets": _Lists("topics", "name", "partitions", "partition_index"),
    "OffsetForLeaderEpoch": _Lists("topics", "topic", "partitions", "partition"),
    "DeleteRecords": _Lists("topics", "name", "partitions", "partition_index"),
    "OffsetCommit": _Lists("topics", "name", "partitions", "partition_index", _GROUP),
    "TxnOffsetCommit": _Lists("topics", "name", "partitions", "partition_index", _TRANSACTION),
    "Metadata": _Lists("topics", "name"),
    "CreateTopics": _Lists("topics", "name"),
    "DeleteTopics": _Lists("topics", "name"),
}
_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat"), _GROUP),
    **dict.fromkeys(("ShareGroupHeartbeat", "StreamsGroupHeartbeat"), _GROUP),
    **dict.fromkeys(("InitProducerId", "AddOffsetsToTxn", "EndTxn"), _TRANSACTION),
}
_ELEMENTS: Final[Mapping[str, tuple[str, tuple[str, str]]]] = {
    "OffsetFetch": ("groups", _GROUP),
    "AddPartitionsToTxn": ("transactions", _TRANSACTION),
}
_COORDINATORS: Final = ("group", "transactional_id")
_KINDS: Final[Mapping[str, str]] = {
    "topic": "topic",
    "topic_name": "topic",
    "name": "topic",
    "partition": "partition",
    "partition_index": "partition",
    "index": "partition",
    "group_id": "group",
    "transactional_id": "transactional_id",
}
_CODES: Final = ("error_code", "partition_error_code")


def items_of(line: Line) -> list[Item]:
    """Return the items of a request; empty if it names none."""
    api, request = line["api"], line["request"] or {}
    if api in _LISTS:
        return list(_listed(_LISTS[api], request))
    if api in _FIELDS:
        kind, field = _FIELDS[api]
        return [((kind, request[field]),)] if request.get(field) else []
    if api in _ELEMENTS:
        name, (kind, field) = _ELEMENTS[api]
        return [((kind, each[field]),) for each in request.get(name) or () if each.get(field)]
    if api == "FindCoordinator" and request.get("key_type") in (0, 1):
        kind = _COORDINATORS[request["key_type"]]
        return [((kind, key),) for key in request.get("coordinator_keys") or () if key]
    return []


def _listed(lists: _Lists, request: Mapping[str, Any]) -> Iterator[Item]:
    beside: Item = ()
    if lists.beside is not None:
        kind, field = lists.beside
        beside = ((kind, request[field]),) if request.get(field) else ()
    for topic in request.get(lists.topics) or ():
        name = topic.get(lists.name)
        if not name:
            continue
        if not lists.partitions:
            yield (("topic", name),)
        for partition in topic[lists.partitions] if lists.partitions else ():
            yield (*beside, ("topic", name), ("partition", partition[lists.partition]))


def asks_for_all(line: Line) -> bool:
    """Return whether a request names no topic because it requests all of them."""
    return line["api"] == "Metadata" and line["request"] is not None and line["request"]["topics"] is None


def errors_of(line: Line) -> list[tuple[dict[str, Any], str]]:
    """Return the errors of a response, each with its item; without one it applies to the whole request."""
    errors = list(_errors(line["response"], {}))
    if line["api"] == "FindCoordinator" and line["request"]:
        kind = _COORDINATORS[line["request"].get("key_type") == 1]
        coordinators = (line["response"] or {}).get("coordinators") or ()
        named = [
            ({kind: coordinator["key"]}, coordinator["error_code"])
            for coordinator in coordinators
            if coordinator["error_code"] != "NONE"
        ]
        return named or errors
    return errors


def _errors(value: Any, about: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(value, list):
        for item in value:
            yield from _errors(item, about)
    if not isinstance(value, dict):
        return
    names = {kind: value[name] for name, kind in _KINDS.items() if value.get(name) not in (None, "")}
    about = {**about, **{kind: item for kind, item in names.items() if isinstance(item, str | int)}}
    for name in _CODES:
        if value.get(name) not in (None, "NONE"):
            yield about, value[name]
    for item in value.values():
        if isinstance(item, list | dict):
            yield from _errors(item, about)


def error_of(item: Item, errors: list[tuple[dict[str, Any], str]]) -> str | None:
    """Return the first error of an item."""
    wanted = dict(item)
    for about, code in errors:
        if all(wanted.get(kind, value) == value for kind, value in about.items()):
            return code
    return None
