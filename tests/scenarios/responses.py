"""The summary of a response in one line: names, error codes, authorized operations; nothing that differs by run."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from protocol.types import Message

LABELS = ("name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "topic_id")
OMITTED = {"configs", "brokers", "node_endpoints", "nodes", "replica_nodes"}
NOT_ASKED = -(2**31)


def summary(answer: Message, ids: Mapping[UUID, str]) -> str:
    """Such as ``foo=0(0) bar=29(29)``: each item with its error codes, and its parts in brackets, sorted.

    ``may`` precedes authorized operations; topic ids are replaced by the names in ``ids``.
    """
    return " ".join(filter(None, (_label(answer, ids), _inner(answer, ids))))


def _inner(answer: Message, ids: Mapping[UUID, str]) -> str:
    items = sorted(item for item in map(lambda each: _item(each, ids), _parts(answer)) if item)  # noqa: C417
    return " ".join(items)


def _item(part: Message, ids: Mapping[UUID, str]) -> str:
    inner = _inner(part, ids)
    return _label(part, ids) + (f"({inner})" if inner else "")


def _parts(answer: Message) -> Iterator[Message]:
    for field in answer.FIELDS:
        value = None if field in OMITTED else getattr(answer, field)
        if isinstance(value, Message):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, Message))


def _label(part: Message, ids: Mapping[UUID, str]) -> str:
    named = ""
    for field in LABELS:
        value = getattr(part, field, None)
        if isinstance(value, UUID) and value.int and not named:
            named = ids.get(value, "?")
        elif isinstance(value, str) and value and not named:
            named = value
    codes = [str(int(getattr(part, field))) for field in part.FIELDS if field.endswith("error_code")]
    rights = [getattr(part, field) for field in part.FIELDS if field.endswith("authorized_operations")]
    may = "".join(f" may {value:#x}" for value in rights if value != NOT_ASKED)
    return (f"{named}={','.join(codes)}" if named and codes else named or ",".join(codes)) + may
