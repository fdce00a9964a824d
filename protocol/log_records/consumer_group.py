"""Records of ``__consumer_offsets`` that speak of consumer groups (KIP-848; transactions F.4).

A key is an int16 kind, the group's id and, for what there are many of, a name: a member's id or a regular expression.
A value is an int16 version, 0, and a flexible struct; a null value is a tombstone.
"""

# ruff: noqa: RUF009 - wire() is dataclasses.field() with what the field is

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from protocol.log_records.flexible import shape_of, wire
from protocol.records.errors import MalformedRecordsError
from protocol.types import ZERO_UUID

_INT16 = struct.Struct(">h")
_VERSION = 0


class ConsumerKind(IntEnum):
    """The kinds of records, as keys begin."""

    GROUP_METADATA = 3
    PARTITION_METADATA = 4
    """Written by 4.0 alone; since then only its tombstone, where one was left."""
    MEMBER_METADATA = 5
    TARGET_METADATA = 6
    TARGET_MEMBER = 7
    CURRENT_MEMBER = 8
    REGULAR_EXPRESSION = 16


_NAMED = frozenset(
    {
        ConsumerKind.MEMBER_METADATA,
        ConsumerKind.TARGET_MEMBER,
        ConsumerKind.CURRENT_MEMBER,
        ConsumerKind.REGULAR_EXPRESSION,
    }
)


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The group's epoch, and the hash of the topics that it was bumped for (``ConsumerGroupMetadataValue``)."""

    epoch: int = wire("int32", 0)
    metadata_hash: int = wire("int64", 0, tag=0)


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    """The racks of one partition's replicas."""

    partition: int = wire("int32", 0)
    racks: tuple[str, ...] = wire("string", (), array=True)


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as a group saw it."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    topic_name: str = wire("string", "")
    num_partitions: int = wire("int32", 0)
    partition_metadata: tuple[PartitionRacks, ...] = wire(PartitionRacks, (), array=True)


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The topics of a group's subscription (``ConsumerGroupPartitionMetadataValue``)."""

    topics: tuple[TopicMetadata, ...] = wire(TopicMetadata, (), array=True)


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """What a member that speaks the classic protocol offers."""

    name: str = wire("string", "")
    metadata: bytes = wire("bytes", b"")


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """What is remembered of a member because it speaks the classic protocol."""

    session_timeout_ms: int = wire("int32", 0)
    supported_protocols: tuple[ClassicProtocol, ...] = wire(ClassicProtocol, (), array=True)


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """What a member says of itself (``ConsumerGroupMemberMetadataValue``)."""

    instance_id: str | None = wire("string", None)
    rack_id: str | None = wire("string", None)
    client_id: str = wire("string", "")
    client_host: str = wire("string", "")
    subscribed_topic_names: tuple[str, ...] = wire("string", (), array=True)
    subscribed_topic_regex: str | None = wire("string", None)
    rebalance_timeout_ms: int = wire("int32", -1)
    server_assignor: str | None = wire("string", None)
    classic_member: ClassicMember | None = wire(ClassicMember, None, tag=0, nullable=True)


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The epoch for which a target was computed, and when (``ConsumerGroupTargetAssignmentMetadataValue``)."""

    assignment_epoch: int = wire("int32", 0)
    assignment_timestamp_ms: int = wire("int64", 0, tag=0)


@dataclass(frozen=True, slots=True)
class TargetPartitions:
    """Partitions of a topic that a member shall have."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    partitions: tuple[int, ...] = wire("int32", (), array=True)


@dataclass(frozen=True, slots=True)
class TargetMember:
    """What a member shall have (``ConsumerGroupTargetAssignmentMemberValue``)."""

    topic_partitions: tuple[TargetPartitions, ...] = wire(TargetPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of a topic that a member has, each with the epoch in which it got it (null before 4.3)."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    partitions: tuple[int, ...] = wire("int32", (), array=True)
    assignment_epochs: tuple[int, ...] | None = wire("int32", None, tag=0, array=True)


@dataclass(frozen=True, slots=True)
class CurrentMember:
    """Where a member is (``ConsumerGroupCurrentMemberAssignmentValue``). ``state``: 0, 1, 2 or 127."""

    member_epoch: int = wire("int32", 0)
    previous_member_epoch: int = wire("int32", 0)
    state: int = wire("int8", 0)
    assigned_partitions: tuple[AssignedPartitions, ...] = wire(AssignedPartitions, (), array=True)
    partitions_pending_revocation: tuple[AssignedPartitions, ...] = wire(AssignedPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """The topics that a regular expression matched (``ConsumerGroupRegularExpressionValue``).

    ``version`` is the metadata's offset of that moment, ``timestamp_ms`` when it was asked.
    """

    topics: tuple[str, ...] = wire("string", (), array=True)
    version: int = wire("int64", 0)
    timestamp_ms: int = wire("int64", 0)


ConsumerValue = (
    GroupEpoch | PartitionMetadata | MemberMetadata | TargetEpoch | TargetMember | CurrentMember | RegularExpression
)
_VALUES: dict[ConsumerKind, Any] = {
    ConsumerKind.GROUP_METADATA: GroupEpoch,
    ConsumerKind.PARTITION_METADATA: PartitionMetadata,
    ConsumerKind.MEMBER_METADATA: MemberMetadata,
    ConsumerKind.TARGET_METADATA: TargetEpoch,
    ConsumerKind.TARGET_MEMBER: TargetMember,
    ConsumerKind.CURRENT_MEMBER: CurrentMember,
    ConsumerKind.REGULAR_EXPRESSION: RegularExpression,
}
_KINDS = {cls: kind for kind, cls in _VALUES.items()}


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record; ``name`` is a member's id or a regular expression, ``value`` is ``None`` in a tombstone."""

    kind: ConsumerKind
    group_id: str
    name: str = ""
    value: ConsumerValue | None = None

    @classmethod
    def of(cls, group_id: str, value: ConsumerValue, name: str = "") -> "ConsumerRecord":
        """The record of a value."""
        return cls(_KINDS[type(value)], group_id, name, value)


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record; the value of a tombstone is ``None``."""
    key = _INT16.pack(record.kind) + _string(record.group_id)
    if record.kind in _NAMED:
        key += _string(record.name)
    if record.value is None:
        return key, None
    parts = [_INT16.pack(_VERSION)]
    shape_of(_VALUES[record.kind], _VERSION).write(parts, record.value)
    return key, b"".join(parts)


def decode(kind: int, key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """The record of a key of that kind and a value; ``None`` for a kind or version that is not known.

    Raises:
        MalformedRecordsError, struct.error, UnicodeDecodeError, IndexError: bytes that are no such record.
    """
    if kind not in _KNOWN:
        return None
    group_id, at = _read_string(key, _INT16.size)
    name, _ = _read_string(key, at) if kind in _NAMED else ("", at)
    if value is None:
        return ConsumerRecord(ConsumerKind(kind), group_id, name)
    if _INT16.unpack_from(value)[0] != _VERSION:
        return None
    read, _ = shape_of(_VALUES[ConsumerKind(kind)], _VERSION).read(value, _INT16.size)
    return ConsumerRecord(ConsumerKind(kind), group_id, name, read)


_KNOWN = frozenset(int(kind) for kind in ConsumerKind)


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _INT16.unpack_from(data, at)
    at += _INT16.size
    if not 0 <= size <= len(data) - at:
        raise MalformedRecordsError("a string longer than what is left")
    return data[at : at + size].decode(), at + size
