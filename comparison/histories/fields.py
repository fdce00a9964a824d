"""Steps that set each field of any request independently, even if the values do not fit together.

A body is JSON: field names with values. A text that begins with `@` is a symbol, which is replaced by each cluster's
value: `@topic:t0`, `@id:t0`, `@group:g0`, `@txn:x0`, `@producer:p0`, `@epoch:p0`, `@member:m0`, `@records:2`.
"""

import typing
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any
from uuid import UUID

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Member, Target
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.records.records import Record, build_batch
from protocol.types import Message, field_types, uuid_from_text

SETTLES: Mapping[ApiKey, Settle] = {
    **dict.fromkeys(
        (
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.METADATA,
            ApiKey.DELETE_RECORDS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ),
        Settle.METADATA,
    ),
    **dict.fromkeys((ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN), Settle.TRANSACTION),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Settle.CONSUMERS,
    ApiKey.SHARE_GROUP_HEARTBEAT: Settle.SHARES,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Settle.STREAMS,
}
ABOUT = ("group_id", "transactional_id")
"""Fields with the group or transactional id that has to settle after the response."""


def parts_of(hint: Any) -> tuple[Any, bool, bool]:
    """Return the type of a value, whether the field is an array of it, and whether it is nullable."""
    nullable = False
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        options = typing.get_args(hint)
        nullable = NoneType in options
        left = [option for option in options if option is not NoneType]
        hint = left[0] if len(left) == 1 else bytes  # several types of buffers
    if typing.get_origin(hint) is Sequence:
        return typing.get_args(hint)[0], True, nullable
    return hint, False, nullable


def message(kind: type[Message], body: Mapping[str, Any], target: Target) -> Any:
    """Build a message of a class."""
    types = field_types(kind)
    return kind(**{name: _value(parts_of(types[name])[0], value, target) for name, value in body.items()})


def _value(kind: Any, value: Any, target: Target) -> Any:
    if isinstance(value, list):
        return [_value(kind, item, target) for item in value]
    if isinstance(value, dict):
        return message(kind, value, target)
    if isinstance(value, str) and value.startswith("@"):
        symbol, _, name = value[1:].partition(":")
        return _SYMBOLS[symbol](target, name)
    if kind is UUID and value is not None:
        return uuid_from_text(value)
    return value.encode() if kind is bytes and isinstance(value, str) else value


def _records(target: Target, count: str) -> bytes:
    records = [Record(index, target.names.base_ms, b"k", b"v%d" % index) for index in range(int(count))]
    return bytes(build_batch(records))


_SYMBOLS: Mapping[str, Callable[[Target, str], Any]] = {
    "topic": lambda target, name: target.called(name),
    "id": lambda target, name: target.topic_id(name),
    "group": lambda target, name: target.called(name),
    "txn": lambda target, name: target.called(name),
    "producer": lambda target, name: target.producer(name).id,
    "epoch": lambda target, name: target.producer(name).epoch,
    "member": lambda target, name: target.members.get(name, Member("")).id,
    "records": _records,
}


def fields(target: Target, step: Step) -> StepRequest:
    """Build a request of any API with the fields of the step's body."""
    key, body = ApiKey[step["api"]], step["body"]
    request = message(message_class(key, "Request"), body, target)
    symbol = next((str(body[name]) for name in ABOUT if body.get(name)), "")
    settle, about = SETTLES.get(key, Settle.NOTHING), symbol.partition(":")[2]
    if settle in (Settle.TRANSACTION, Settle.CONSUMERS, Settle.SHARES) and not about:
        settle = Settle.NOTHING
    answered = key is not ApiKey.PRODUCE or body.get("acks", -1) != 0
    return StepRequest(key, step["v"], request, step["c"], None, settle, about, answered=answered)


STEPS: dict[str, Builder] = {"fields": fields}
