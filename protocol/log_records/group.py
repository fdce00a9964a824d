"""Records of ``__consumer_offsets``: committed offsets and classic groups (transactions F.1, F.3).

A key is an int16 kind and non-flexible fields, a value an int16 version and the body; a null value is a tombstone. The
records of consumer, share and streams groups are in ``consumer_group``, ``share_group`` and ``streams_group``;
:func:`decode` skips other kinds, as a broker skips kinds that it does not know.
"""

import struct
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records import consumer_group, share_group, streams_group
from protocol.log_records.consumer_group import ConsumerRecord
from protocol.log_records.share_group import ShareGroupRecord
from protocol.log_records.streams_group import StreamsRecord
from protocol.readers import (
    Budget,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tag,
    read_tags,
    skip_tags,
    uuid_or_none,
)
from protocol.writers import (
    Parts,
    write_bytes,
    write_compact_string,
    write_count,
    write_nullable_string,
    write_string,
    write_tags,
)

LEGACY_OFFSET_KIND, OFFSET_KIND, GROUP_KIND = 0, 1, 2
GROUP_VALUE_VERSION = 3
"""The version written for classic groups, even in 4.4 (groups A.11)."""

_WITH_REBALANCE_TIMEOUT = _WITH_EXPIRY = 1
_WITH_STATE_TIMESTAMP = 2
_WITH_INSTANCE_ID = _WITH_LEADER_EPOCH = 3
_FLEXIBLE = 4
"""The newest version of both values (KIP-915)."""
_TOPIC_ID_TAG = 0

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_TIMEOUTS = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class OffsetCommitTombstone:
    """Removal of the committed and pending offsets of one partition."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


# --- keys ------------------------------------------------------------------------------------------------------------


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    parts: Parts = [_INT16.pack(OFFSET_KIND)]
    write_string(parts, group_id)
    write_string(parts, topic)
    parts.append(_INT32.pack(partition))
    return b"".join(parts)


def _group_key(group_id: str) -> bytes:
    parts: Parts = [_INT16.pack(GROUP_KIND)]
    write_string(parts, group_id)
    return b"".join(parts)


# --- committed offsets -----------------------------------------------------------------------------------------------


def _offset_value(record: OffsetCommit) -> bytes:
    version = record.version
    parts: Parts = [_INT16.pack(version), _INT64.pack(record.offset)]
    if version >= _WITH_LEADER_EPOCH:
        parts.append(_INT32.pack(record.leader_epoch))
    if version < _FLEXIBLE:
        write_string(parts, record.metadata)
    else:
        write_compact_string(parts, record.metadata)
    parts.append(_INT64.pack(record.commit_timestamp_ms))
    if version == _WITH_EXPIRY:
        parts.append(_INT64.pack(record.expire_timestamp_ms))
    if version >= _FLEXIBLE:
        write_tags(parts, [] if record.topic_id is None else [(_TOPIC_ID_TAG, [record.topic_id.bytes])])
    return b"".join(parts)


def _offset(key: bytes, value: bytes | None) -> OffsetCommit | OffsetCommitTombstone | None:
    group_id, at = read_string(key, _INT16.size)
    topic, at = read_string(key, at)
    (partition,) = _INT32.unpack_from(key, at)
    if value is None:
        return OffsetCommitTombstone(group_id, topic, partition)
    version = _version(value)
    if version is None:
        return None
    (offset,) = _INT64.unpack_from(value, 2)
    at, leader_epoch, expire_timestamp_ms, topic_id = 10, -1, -1, None  # after version and offset
    if version >= _WITH_LEADER_EPOCH:
        (leader_epoch,) = _INT32.unpack_from(value, at)
        at += 4
    metadata, at = read_string(value, at) if version < _FLEXIBLE else read_compact_string(value, at)
    (commit_timestamp_ms,) = _INT64.unpack_from(value, at)
    at += 8
    if version == _WITH_EXPIRY:
        (expire_timestamp_ms,) = _INT64.unpack_from(value, at)
    if version >= _FLEXIBLE:
        topic_id = _topic_id(value, at)
    return OffsetCommit(
        group_id,
        topic,
        partition,
        offset,
        leader_epoch,
        metadata,
        commit_timestamp_ms,
        expire_timestamp_ms,
        topic_id,
        version,
    )


def _topic_id(value: bytes, at: int) -> UUID | None:
    """Read the topic id, the only known tag of a committed offset; tags of later versions are skipped."""
    topic_id = None
    tags, at = read_tags(value, at, Budget())
    for _ in range(tags):
        tag, at, end = read_tag(value, at)
        if tag == _TOPIC_ID_TAG:
            topic_id = uuid_or_none(value[at : at + 16])
        at = end
    return topic_id


# --- classic groups --------------------------------------------------------------------------------------------------


def _group_value(record: GroupMetadata) -> bytes:
    """Encode the value in :data:`GROUP_VALUE_VERSION`, which has no compact types."""
    parts: Parts = [_INT16.pack(GROUP_VALUE_VERSION)]
    write_string(parts, record.protocol_type)
    parts.append(_INT32.pack(record.generation))
    write_nullable_string(parts, record.protocol)
    write_nullable_string(parts, record.leader)
    parts.append(_INT64.pack(record.current_state_timestamp_ms))
    for member in write_count(parts, record.members):
        write_string(parts, member.member_id)
        write_nullable_string(parts, member.group_instance_id)
        write_string(parts, member.client_id)
        write_string(parts, member.client_host)
        parts.append(_TIMEOUTS.pack(member.rebalance_timeout_ms, member.session_timeout_ms))
        write_bytes(parts, member.subscription)
        write_bytes(parts, member.assignment)
    return b"".join(parts)


def _group(key: bytes, value: bytes | None) -> GroupMetadata | GroupMetadataTombstone | None:
    group_id, _ = read_string(key, _INT16.size)
    if value is None:
        return GroupMetadataTombstone(group_id)
    version = _version(value)
    if version is None:
        return None
    flexible = version >= _FLEXIBLE
    text, nullable = (
        (read_compact_string, read_compact_nullable_string) if flexible else (read_string, read_nullable_string)
    )
    protocol_type, at = text(value, _INT16.size)
    (generation,) = _INT32.unpack_from(value, at)
    protocol, at = nullable(value, at + 4)
    leader, at = nullable(value, at)
    timestamp_ms = -1
    if version >= _WITH_STATE_TIMESTAMP:
        (timestamp_ms,) = _INT64.unpack_from(value, at)
        at += 8
    count, at = (read_compact_count if flexible else read_count)(value, at, Budget())
    members = []
    for _ in range(count):
        member, at = _member(value, at, version)
        members.append(member)
    return GroupMetadata(group_id, protocol_type, generation, protocol, leader, timestamp_ms, tuple(members))


def _member(value: bytes, at: int, version: int) -> tuple[GroupMember, int]:
    flexible = version >= _FLEXIBLE
    text, data = (read_compact_string, read_compact_bytes) if flexible else (read_string, read_bytes)
    member_id, at = text(value, at)
    instance_id, rebalance_timeout_ms = None, -1
    if version >= _WITH_INSTANCE_ID:
        instance_id, at = (read_compact_nullable_string if flexible else read_nullable_string)(value, at)
    client_id, at = text(value, at)
    client_host, at = text(value, at)
    if version >= _WITH_REBALANCE_TIMEOUT:
        (rebalance_timeout_ms,) = _INT32.unpack_from(value, at)
        at += 4
    (session_timeout_ms,) = _INT32.unpack_from(value, at)
    subscription, at = data(value, at + 4)
    assignment, at = data(value, at)
    at = skip_tags(value, at, Budget()) if flexible else at
    timeouts_ms = (rebalance_timeout_ms, session_timeout_ms)
    return GroupMember(member_id, client_id, client_host, *timeouts_ms, subscription, assignment, instance_id), at


# --- any record ------------------------------------------------------------------------------------------------------


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    if isinstance(record, OffsetCommit):
        return _offset_key(record.group_id, record.topic, record.partition), _offset_value(record)
    if isinstance(record, OffsetCommitTombstone):
        return _offset_key(record.group_id, record.topic, record.partition), None
    if isinstance(record, ConsumerRecord):
        return consumer_group.encode(record)
    if isinstance(record, ShareGroupRecord):
        return share_group.encode(record)
    if isinstance(record, StreamsRecord):
        return streams_group.encode(record)
    key = _group_key(record.group_id)
    return key, None if isinstance(record, GroupMetadataTombstone) else _group_value(record)


def decode(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    """Decode a record from its key and value.

    ``None`` for an unknown kind or version, and for malformed bytes: a broker must start even if clients have written
    arbitrary records to the topic.
    """
    if key is None or len(key) < _INT16.size:
        return None
    (kind,) = _INT16.unpack_from(key)
    try:
        if kind in (LEGACY_OFFSET_KIND, OFFSET_KIND):
            return _offset(key, value)
        if kind == GROUP_KIND:
            return _group(key, value)
        if streams_group.RECORDS.knows(kind):
            return streams_group.decode(kind, key, value)
        if share_group.RECORDS.knows(kind):
            return share_group.decode(kind, key, value)
        return consumer_group.decode(kind, key, value)
    except (LookupError, struct.error, ValueError):
        return None


def _version(value: bytes) -> int | None:
    """Return the version of a value, ``None`` if it is unknown."""
    (version,) = _INT16.unpack_from(value)
    return version if 0 <= version <= _FLEXIBLE else None
