"""Records of ``__consumer_offsets``: committed offsets and classic groups (transactions F.1, F.3).

A key is an int16 kind and non-flexible fields, a value an int16 version and the body; a null value is a tombstone. The
records of consumer, share and streams groups are in ``consumer_group``, ``share_group`` and ``streams_group``;
:func:`decode` skips other kinds, as a broker skips kinds that it does not know.
"""

import dataclasses
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from kio.serial import entity_reader
from kio.serial.errors import SerialError

from protocol.log_records import consumer_group, share_group, streams_group
from protocol.log_records.consumer_group import ConsumerRecord
from protocol.log_records.share_group import ShareGroupRecord
from protocol.log_records.streams_group import StreamsRecord
from protocol.writers import Parts, writer

LEGACY_OFFSET_KIND, OFFSET_KIND, GROUP_KIND = 0, 1, 2
GROUP_VALUE_VERSION = 3
"""The version written for classic groups, even in 4.4 (groups A.11)."""

_Write = Callable[[Parts, Any], None]
_INT16 = struct.Struct(">h")


@dataclasses.dataclass(frozen=True, slots=True)
class OffsetCommit:
    """An offset committed for one partition (``OffsetCommitValue``).

    ``version`` is the value's: 4 since 4.1, before that 3; 1 where the client named the expiry, which the other
    versions cannot carry. ``expire_timestamp_ms`` is -1 for none, ``topic_id`` ``None`` for unknown.
    """

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    topic_id: UUID | None = None
    version: int = 4


@dataclasses.dataclass(frozen=True, slots=True)
class OffsetCommitTombstone:
    """Removal of the committed and pending offsets of one partition."""

    group_id: str
    topic: str
    partition: int


@dataclasses.dataclass(frozen=True, slots=True)
class GroupMember:
    """Member of a completed generation. ``rebalance_timeout_ms`` is -1 where an old record has none."""

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes
    group_instance_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class GroupMetadata:
    """Classic group after a generation was completed, or when it became empty (``GroupMetadataValue``).

    ``protocol_type`` is "" for none; ``current_state_timestamp_ms`` is -1 where an old record has none.
    """

    group_id: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int
    members: tuple[GroupMember, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class GroupMetadataTombstone:
    """Removal of a group."""

    group_id: str


GroupRecord = (
    OffsetCommit
    | OffsetCommitTombstone
    | GroupMetadata
    | GroupMetadataTombstone
    | ConsumerRecord
    | ShareGroupRecord
    | StreamsRecord
)
"""Any record of a group coordinator."""


class _Column(NamedTuple):
    """One field of a value over its versions, as Kafka's message definitions have it."""

    name: str
    type: Any
    kafka_type: str | None
    since: int = 0
    until: int = 32767
    tag: int | None = None


def _schema(name: str, columns: tuple[_Column, ...], version: int, *, flexible: bool) -> Any:
    """Build a class that kio can read and write, from the columns of one version."""
    fields: list[Any] = []
    for column in columns:
        if not column.since <= version <= column.until:
            continue
        metadata: dict[str, Any] = {} if column.kafka_type is None else {"kafka_type": column.kafka_type}
        if column.tag is None:
            fields.append((column.name, column.type, dataclasses.field(metadata=metadata)))
        else:
            metadata["tag"] = column.tag
            fields.append((column.name, column.type, dataclasses.field(default=None, metadata=metadata)))
    return dataclasses.make_dataclass(
        f"{name}V{version}", fields, namespace={"__flexible__": flexible}, frozen=True, kw_only=True, slots=True
    )


_OFFSET_KEY = (
    _Column("group_id", str, "string"),
    _Column("topic", str, "string"),
    _Column("partition", int, "int32"),
)
_GROUP_KEY = (_Column("group_id", str, "string"),)
_OFFSET_VALUE = (
    _Column("offset", int, "int64"),
    _Column("leader_epoch", int, "int32", since=3),
    _Column("metadata", str, "string"),
    _Column("commit_timestamp_ms", int, "int64"),
    _Column("expire_timestamp_ms", int, "int64", since=1, until=1),
    _Column("topic_id", UUID | None, "uuid", since=4, tag=0),
)
_MEMBER = (
    _Column("member_id", str, "string"),
    _Column("group_instance_id", str | None, "string", since=3),
    _Column("client_id", str, "string"),
    _Column("client_host", str, "string"),
    _Column("rebalance_timeout_ms", int, "int32", since=1),
    _Column("session_timeout_ms", int, "int32"),
    _Column("subscription", bytes, "bytes"),
    _Column("assignment", bytes, "bytes"),
)
_LAST_VERSION, _FIRST_FLEXIBLE = 4, 4


def _group_columns(version: int) -> tuple[_Column, ...]:
    member = _schema("GroupMember", _MEMBER, version, flexible=version >= _FIRST_FLEXIBLE)
    return (
        _Column("protocol_type", str, "string"),
        _Column("generation", int, "int32"),
        _Column("protocol", str | None, "string"),
        _Column("leader", str | None, "string"),
        _Column("current_state_timestamp_ms", int, "int64", since=2),
        _Column("members", tuple[member, ...], None),  # type: ignore[valid-type]
    )


@cache
def _offset_schema(version: int) -> Any:
    return _schema("OffsetValue", _OFFSET_VALUE, version, flexible=version >= _FIRST_FLEXIBLE)


@cache
def _group_schema(version: int) -> Any:
    return _schema("GroupValue", _group_columns(version), version, flexible=version >= _FIRST_FLEXIBLE)


# Compiled when first needed: most logs hold one version of each value.
@cache
def _write_offset(version: int) -> _Write:
    return writer(_offset_schema(version))


@cache
def _write_group() -> _Write:
    return writer(_group_schema(GROUP_VALUE_VERSION))


@cache
def _read_offset(version: int) -> Any:
    return entity_reader(_offset_schema(version))


@cache
def _read_group(version: int) -> Any:
    return entity_reader(_group_schema(version))


_OFFSET_KEYS = _schema("OffsetKey", _OFFSET_KEY, 0, flexible=False)
_GROUP_KEYS = _schema("GroupKey", _GROUP_KEY, 0, flexible=False)
_write_offset_key, _write_group_key = writer(_OFFSET_KEYS), writer(_GROUP_KEYS)
_read_offset_key: Any = entity_reader(_OFFSET_KEYS)
_read_group_key: Any = entity_reader(_GROUP_KEYS)


def _bytes(prefix: int, write: _Write, record: Any) -> bytes:
    parts: Parts = [_INT16.pack(prefix)]
    write(parts, record)
    return b"".join(parts)


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record; the value of a tombstone is ``None``."""
    if isinstance(record, OffsetCommit):
        value = _bytes(record.version, _write_offset(record.version), record)
        return _bytes(OFFSET_KIND, _write_offset_key, record), value
    if isinstance(record, OffsetCommitTombstone):
        return _bytes(OFFSET_KIND, _write_offset_key, record), None
    if isinstance(record, ConsumerRecord):
        return consumer_group.encode(record)
    if isinstance(record, ShareGroupRecord):
        return share_group.encode(record)
    if isinstance(record, StreamsRecord):
        return streams_group.encode(record)
    key = _bytes(GROUP_KIND, _write_group_key, record)
    if isinstance(record, GroupMetadataTombstone):
        return key, None
    return key, _bytes(GROUP_VALUE_VERSION, _write_group(), record)


def decode(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """The record of a key and a value.

    ``None`` for an unknown kind or version, and for malformed bytes: a broker must start even if clients have written
    arbitrary records to the topic.
    """
    if key is None or len(key) < _INT16.size:
        return None
    (kind,) = _INT16.unpack_from(key)
    try:
        if kind in (LEGACY_OFFSET_KIND, OFFSET_KIND):
            return _offset(_read_offset_key(key, _INT16.size)[0], value)
        if kind == GROUP_KIND:
            return _group(_read_group_key(key, _INT16.size)[0].group_id, value)
        if streams_group.RECORDS.knows(kind):
            return streams_group.decode(kind, key, value)
        if share_group.RECORDS.knows(kind):
            return share_group.decode(kind, key, value)
        return consumer_group.decode(kind, key, value)
    except (SerialError, LookupError, struct.error, ValueError):
        return None


def _version(value: bytes) -> int | None:
    """The version of a value, ``None`` if it is not one of ours."""
    (version,) = _INT16.unpack_from(value)
    return version if 0 <= version <= _LAST_VERSION else None


def _offset(key: Any, value: bytes | None) -> OffsetCommit | OffsetCommitTombstone | None:
    if value is None:
        return OffsetCommitTombstone(key.group_id, key.topic, key.partition)
    version = _version(value)
    if version is None:
        return None
    entity, _ = _read_offset(version)(value, _INT16.size)
    return OffsetCommit(
        key.group_id,
        key.topic,
        key.partition,
        entity.offset,
        getattr(entity, "leader_epoch", -1),
        entity.metadata,
        entity.commit_timestamp_ms,
        getattr(entity, "expire_timestamp_ms", -1),
        getattr(entity, "topic_id", None),
        version,
    )


def _group(group_id: str, value: bytes | None) -> GroupMetadata | GroupMetadataTombstone | None:
    if value is None:
        return GroupMetadataTombstone(group_id)
    version = _version(value)
    if version is None:
        return None
    entity, _ = _read_group(version)(value, _INT16.size)
    members = tuple(
        GroupMember(
            member.member_id,
            member.client_id,
            member.client_host,
            getattr(member, "rebalance_timeout_ms", -1),
            member.session_timeout_ms,
            member.subscription,
            member.assignment,
            getattr(member, "group_instance_id", None),
        )
        for member in entity.members
    )
    timestamp_ms = getattr(entity, "current_state_timestamp_ms", -1)
    return GroupMetadata(
        group_id, entity.protocol_type, entity.generation, entity.protocol, entity.leader, timestamp_ms, members
    )
