"""Topics, partitions, groups and transactional ids that requests and responses name, as text."""

from collections.abc import Iterable, Iterator
from itertools import islice

from broker.steering.journal.entries import Decoded, TopicName
from protocol.items import Item, items_of, request_level, response_level
from protocol.types import uuid_text

_MOST_NAMED, _MOST_LISTED = 4, 10  # in a line of text; in an entry as JSON; ours, the others are in the message


def requested(known: Decoded) -> Iterator[Item]:
    """Yield the items of a request."""
    if known.header is not None and known.request is not None:
        yield from items_of(request_level(known.header.api_key), known.request)


def answered(known: Decoded) -> Iterator[Item]:
    """Yield the items of a response, with their errors."""
    if known.header is not None and known.response is not None:
        yield from items_of(response_level(known.header.api_key), known.response)


def names(items: Iterable[Item], name_of: TopicName) -> Iterator[str]:
    """Yield each name in the items once: orders-0, orders, group g, transactional id x."""
    seen: set[str] = set()
    for item in items:
        for text in (
            f"transactional id {item.transactional_id}" if item.transactional_id else "",
            f"group {item.group}" if item.group else "",
            place(item, name_of),
        ):
            if text and text not in seen:
                seen.add(text)
                yield text


def columns(known: Decoded, name_of: TopicName) -> dict[str, list[str]]:
    """Return the topics, groups and transactional ids of a request and its response, the first ten of each."""
    topics: dict[str, None] = {}
    groups: dict[str, None] = {}
    ids: dict[str, None] = {}
    for item in (*requested(known), *answered(known)):
        if topic := place(item._replace(partition=None), name_of):
            topics[topic] = None
        if item.group:
            groups[item.group] = None
        if item.transactional_id:
            ids[item.transactional_id] = None
    subjects = {"topics": topics, "groups": groups, "transactional_ids": ids}
    return {name: list(islice(each, _MOST_LISTED)) for name, each in subjects.items()}


def place(item: Item, name_of: TopicName) -> str:
    """Return an item's partition or topic, such as orders-0; empty if it has none. Topic ids become names."""
    topic = item.topic
    if topic is not None and not isinstance(topic, str):
        topic = name_of(uuid_text(topic)) or uuid_text(topic)
    if not topic:
        return ""
    return topic if item.partition is None else f"{topic}-{item.partition}"


def few(names: list[str], most: int = _MOST_NAMED) -> str:
    """Join the first ``most`` names, and add how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
