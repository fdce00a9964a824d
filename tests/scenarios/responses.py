"""What an answer tells, in one line: names, error codes, what may be done; not what differs from run to run."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from protocol.types import Message

LABELS = ("name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "topic_id")
NOT_TOLD = {"configs", "brokers", "node_endpoints", "nodes", "replica_nodes"}
NOT_ASKED = -(2**31)


def told_of(answer: Message, ids: Mapping[UUID, str]) -> str:
    """Such as ``foo=0(0) bar=29(29)``: each item with its codes, and what it holds in brackets, sorted.

    ``may`` stands before authorized operations; topic ids are told by the names in ``ids``.
    """
    return " ".join(filter(None, (_label(answer, ids), _inner(answer, ids))))


def _inner(answer: Message, ids: Mapping[UUID, str]) -> str:
    items = sorted(item for item in map(lambda each: _item(each, ids), _parts(answer)) if item)  # noqa: C417
    return " ".join(items)


def _item(part: Message, ids: Mapping[UUID, str]) -> str:
    inner = _inner(part, ids)
    return _label(part, ids) + (f"({inner})" if inner else "")


def _parts(answer: Message) -> Iterator[Message]:
    for field in answer.__slots__:
        value = None if field in NOT_TOLD else getattr(answer, field)
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
    codes = [str(int(getattr(part, field))) for field in part.__slots__ if field.endswith("error_code")]
    rights = [getattr(part, field) for field in part.__slots__ if field.endswith("authorized_operations")]
    may = "".join(f" may {value:#x}" for value in rights if value != NOT_ASKED)
    return (f"{named}={','.join(codes)}" if named and codes else named or ",".join(codes)) + may
