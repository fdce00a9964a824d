"""Matches requests, and the items that they list, against the conditions of a fault."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from broker.request.context import RequestContext
from broker.steering.faults.offsets import reaches
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.items import PARTITION, TOPIC, Level, Selection, cut, request_level
from protocol.messages.fetch import FetchRequest
from protocol.paths import has
from protocol.types import Message


class Hit(NamedTuple):
    """A matching request. ``matched`` is its part with the ``wanted`` items, ``rest`` the part with all others.

    ``matched`` is ``None`` where the request does not list the items: it asks for all of them, only the response lists
    them, or they are in a fetch session.
    """

    request: Message
    matched: Message | None
    rest: Message | None
    wanted: Selection


@dataclass(frozen=True, slots=True)
class Match:
    """The conditions of a fault, joined by AND; ``None`` is no condition. ``request`` is path -> value, as in JSON.

    ``offset`` requires a topic and a partition, and Produce or Fetch.
    """

    api: ApiKey | None = None
    versions: tuple[int, int] | None = None
    broker: int | None = None
    listener: str | None = None
    client_id: str | None = None
    items: Selection = field(default_factory=Selection)
    request: Mapping[str, Any] = field(default_factory=dict)
    offset: int | None = None

    def find(self, request: Message, ctx: RequestContext) -> Hit | None:
        """Return the request, split into matching items and the rest, if all conditions hold; else ``None``."""
        if not self._fits(ctx) or not all(has(request, path, value) for path, value in self.request.items()):
            return None
        wanted = self.items
        if not wanted.kinds:
            return Hit(request, request, None, wanted)
        topic = None if wanted.topic is None else ctx.cluster.image.topics.get(wanted.topic)
        if topic is not None:
            wanted = replace(wanted, topic_id=topic.id)
        hit = _find_items(request, ctx, wanted)
        if hit is not None and self.offset is not None and not reaches(request, ctx, wanted, self.offset):
            return None
        return hit

    def _fits(self, ctx: RequestContext) -> bool:
        return (
            (self.api is None or self.api is ctx.api.key)
            and (self.versions is None or self.versions[0] <= ctx.version <= self.versions[1])
            and (self.broker is None or self.broker == ctx.node.id)
            and (self.listener is None or self.listener == ctx.listener)
            and (self.client_id is None or self.client_id == ctx.client_id)
        )


def _find_items(request: Message, ctx: RequestContext, wanted: Selection) -> Hit | None:
    """Return the request, split into the wanted items and the rest; ``None`` if it has none of them."""
    if isinstance(request, FetchRequest):
        if not wanted.kinds <= {TOPIC, PARTITION} or not fetched_partitions(request, ctx, wanted):
            return None
        return Hit(request, None, request, wanted)
    level = request_level(ctx.api.key)
    kinds_here = wanted.kinds & level.kinds
    if not kinds_here:
        return None
    matched, rest = cut(level, request, wanted, kinds_here)
    if matched is not None:
        if kinds_here == wanted.kinds:
            return Hit(request, matched, rest, wanted)
        return Hit(request, None, request, wanted)  # only the response shows which items match
    if requests_all(level, request):
        return Hit(request, None, request, wanted)
    return None


def requests_all(level: Level, message: Message) -> bool:
    """Return whether a list is null, which requests all items: topics of Metadata, OffsetFetch and ElectLeaders."""
    for child in level.children:
        elements = getattr(message, child.name)
        if elements is None:
            return True
        if child.level is not None and any(requests_all(child.level, element) for element in elements):
            return True
    return False


def fetched_partitions(request: FetchRequest, ctx: RequestContext, wanted: Selection) -> list[tuple[str, Any, int]]:
    """Return topic, topic id and index of each wanted partition of a Fetch, those of its session included (KIP-227).

    Of topic and topic id a request has only one, by its version; the other is empty or ``None``.
    """
    partitions = {
        (t.topic_id or t.topic, p.partition): (t.topic, t.topic_id) for t in request.topics for p in t.partitions
    }
    session = None
    if request.session_epoch > 0:
        session = ctx.node.sessions.get(request.session_id)
    if session is not None:
        forgotten = {(t.topic_id or t.topic, index) for t in request.forgotten_topics_data for index in t.partitions}
        for key, interest in session.interests.items():
            if key not in forgotten:
                partitions.setdefault(key, (interest.topic if interest.topic_id is None else "", interest.topic_id))
    return [
        (name, topic_id, index)
        for (_, index), (name, topic_id) in partitions.items()
        if (wanted.partition is None or index == wanted.partition)
        and (wanted.topic is None or wanted.agrees(TOPIC, topic_id or name))
    ]
