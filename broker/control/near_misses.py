"""Near misses: what a request nearly named correctly, and which fault nearly matched it.

Names: a topic or group with a similar name, a partition beyond the last one, the id of a deleted topic. Faults: all
conditions but one hold, or the fault was added too late. Near misses are computed only when a report or the journal is
read, from the recorded request and the current state of the cluster; serving requests costs nothing more.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any
from uuid import UUID

from broker.control.coordinators import group_coordinators
from broker.control.watched import Watched
from broker.steering.faults.match import Match, requests_all
from broker.steering.faults.rules import Fault
from broker.steering.journal.entries import Decoded, TopicName
from broker.steering.journal.mentioned import answered, few
from broker.steering.journal.ring import Entry
from control_api.spelling import plain, suggestion
from protocol.codec import RequestHeader
from protocol.errors import ErrorCode
from protocol.items import PARTITION, TOPIC, Item, items_of, mentions, request_level
from protocol.messages.describe_groups import DescribeGroupsResponse
from protocol.paths import has, values
from protocol.types import Message, uuid_text

_MOST_FAULTS, _MOST_HINTS = 20, 5
"""The newest faults compared with a request, and the hints shown: each comparison decodes, and five are read."""
_LOOKED_UP = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.GROUP_ID_NOT_FOUND})
_NO_GROUP = frozenset({"Dead", "DEAD"})
"""The state that DescribeGroups returns for an unknown group before version 6 (KIP-1043)."""
Difference = tuple[str, object, str]
"""A condition that does not hold: its name, the value it requires, and the value that the request has."""


class NearMisses:
    """The near misses of requests to one cluster. ``name_of`` returns the topic name for a topic id."""

    def __init__(self, source: Watched, name_of: TopicName) -> None:
        self._source, self.name_of = source, name_of
        self.unmet = [fault for fault in list(source.faults.faults.values())[-_MOST_FAULTS:] if not fault.hits]
        """The latest faults that have matched no request."""
        self._suggested: dict[tuple[str, str], str] = {}
        """(kind, name) -> the suggestion that ends its hint, cached because clients retry the same topic many times."""

    def of(self, entry: Entry, decoded: Decoded, listener: str) -> tuple[str, ...]:
        """Return the hints about one request, at most five; none if it has no near miss."""
        hints = dict.fromkeys(distinct(self.names(decoded), _MOST_HINTS))
        for fault in self.unmet:
            if entry.began_us < fault.added_us:
                continue  # every request before the fault was added would get this hint
            if (why := self.fault(fault, entry, decoded, listener)) is not None:
                hints[f"fault {fault.id} {why}"] = None
        return tuple(map(plain, list(hints)[:_MOST_HINTS]))

    # --- names -------------------------------------------------------------------------------------------------------

    def names(self, decoded: Decoded) -> Iterator[str]:
        """Yield a hint for each topic, partition and group that does not exist according to the response."""
        for item in answered(decoded):
            if item.error in _LOOKED_UP:
                yield from self._of_group(item.group) if item.group else self._of_topic(item)
        if isinstance(decoded.response, DescribeGroupsResponse):
            for group in decoded.response.groups:
                if group.error_code is ErrorCode.NONE and group.group_state in _NO_GROUP:
                    yield from self._of_group(group.group_id)

    def _of_topic(self, item: Item) -> Iterator[str]:
        topics = self._source.image.topics
        name: str | None = item.topic if isinstance(item.topic, str) else None
        if isinstance(item.topic, UUID):
            name = self.name_of(uuid_text(item.topic))
            if name is not None and name in topics and topics[name].id != item.topic:
                yield f"topic {name!r} was deleted and created again: the client still has the old topic id"
                return
        if not name:
            return
        if name not in topics:
            yield f"topic {name!r} does not exist{self._suggestion('topic', name, self._topics)}"
            return
        partitions = getattr(topics[name], "partitions", None)  # a proxy does not know them
        if item.partition is not None and partitions and item.partition not in partitions:
            last = len(partitions) - 1
            numbers = "only partition 0" if last == 0 else f"partitions 0 to {last}"
            yield f"topic {name!r} has {numbers}, but no partition {item.partition}"

    def _of_group(self, name: str) -> Iterator[str]:
        if self._source.own is not None and name not in self._groups:
            yield f"group {name!r} does not exist{self._suggestion('group', name, self._groups)}"

    def _suggestion(self, kind: str, name: str, names: list[str]) -> str:
        suggested = self._suggested.get((kind, name))
        if suggested is None:
            suggested = self._suggested[kind, name] = suggestion(name, names)
        return suggested

    @cached_property
    def _topics(self) -> list[str]:
        topics = self._source.image.topics.items()
        return [str(name) for name, topic in topics if not getattr(topic, "internal", False)]

    @cached_property
    def _groups(self) -> list[str]:
        coordinators = [] if self._source.own is None else group_coordinators(self._source.own)
        return [str(name) for _, coordinator in coordinators for name in coordinator.machine.groups]

    # --- faults ------------------------------------------------------------------------------------------------------

    def fault(self, fault: Fault, entry: Entry, decoded: Decoded, listener: str) -> str | None:
        """Return why a fault did not match this request, as the end of a sentence; ``None`` if it is no near miss."""
        if decoded.header is None or decoded.request is None or not _is_about(fault.match, decoded.header.api_key):
            return None
        item = self._item(fault.match, decoded.header.api_key, decoded.request)
        if item is None:
            return None
        different = [*item, *self._differences(fault.match, entry, decoded.header, decoded.request, listener)]
        if len(different) > 1:
            return None
        early = entry.began_us < fault.added_us
        if different:
            if early or _conditions(fault.match) < 2:
                return None  # a fault with one condition would nearly match every request
            name, wanted, had = different[0]
            shown = wanted if isinstance(wanted, str) else json.dumps(wanted)
            return f"nearly matched this request: its {name} is {shown}, the request's is {had}"
        if early:
            return "matches this request, but was added after it"
        if fault.skip:
            return f"matches this request, which is one of the first {fault.skip} that it skips (skip)"
        if fault.probability < 1:
            return f"matches this request, but by chance did not apply (probability {fault.probability})"
        if fault.match.offset is not None:
            return f"nearly matched this request: its offset is {fault.match.offset}, which the request does not reach"
        return None

    @staticmethod
    def _differences(
        match: Match, entry: Entry, header: RequestHeader, request: Message, listener: str
    ) -> Iterator[Difference]:
        """Yield the differences in all conditions except those about items (topic, partition, group ...)."""
        if match.versions is not None and not match.versions[0] <= header.api_version <= match.versions[1]:
            yield "version", f"{match.versions[0]} to {match.versions[1]}", str(header.api_version)
        if match.broker not in (None, entry.broker):
            yield "broker", match.broker, str(entry.broker)
        if match.listener not in (None, listener):
            yield "listener", match.listener, listener
        if match.client_id not in (None, header.client_id):
            yield "client id", match.client_id, header.client_id or "not set"
        for path, value in match.request.items():
            if not has(request, path, value):
                yield path, value, few([json.dumps(each) for each in values(request, path)]) or "not present"

    def _item(self, match: Match, key: int, request: Message) -> list[Difference] | None:
        """Compare the conditions that must all hold for one item: topic, partition, group, transactional id.

        Returns the differences, at most one; ``None`` if more differ, or if the request alone does not show it.
        """
        wanted, level = match.items, request_level(key)
        if not wanted.kinds:
            return []
        if not wanted.kinds <= level.kinds:
            return None  # only the response names them
        topic = None if wanted.topic is None else self._source.image.topics.get(wanted.topic)
        complete = wanted if topic is None else replace(wanted, topic_id=topic.id)
        if mentions(level, request, complete) or requests_all(level, request):
            return []
        for kind in sorted(wanted.kinds):
            rest = replace(complete, **{kind: None, **({"topic_id": None} if kind == TOPIC else {})})
            had = sorted({text for item in items_of(level, request) if (text := self._shown(item, kind))})
            if had and (not rest.kinds or mentions(level, request, rest)):
                return [(kind.replace("_", " "), getattr(wanted, kind), few(had))]
        return None

    def _shown(self, item: Item, kind: str) -> str:
        value: Any = getattr(item, kind)
        if value is None:
            return ""
        if kind == PARTITION:
            return str(value)
        return str(value) if isinstance(value, str) else self.name_of(uuid_text(value)) or uuid_text(value)


def distinct(hints: Iterable[str], most: int) -> Iterator[str]:
    """Yield each hint once, ``most`` at most: a request may list thousands of names that do not exist."""
    seen: set[str] = set()
    for hint in hints:
        if hint not in seen:
            seen.add(hint)
            yield hint
            if len(seen) >= most:
                return


def _is_about(match: Match, key: int) -> bool:
    return match.api is None or match.api == key


def _conditions(match: Match) -> int:
    """Return the number of conditions."""
    conditions: Iterable[object] = (
        match.api,
        match.versions,
        match.broker,
        match.listener,
        match.client_id,
        match.offset,
    )
    return sum(condition is not None for condition in conditions) + len(match.request) + len(match.items.kinds)
