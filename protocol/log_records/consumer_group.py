"""Records of ``__consumer_offsets`` for consumer groups (KIP-848; transactions F.4).

The name of a record is a member id or a regular expression.
"""

from enum import IntEnum
from typing import Any
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records.flexible import wire
from protocol.log_records.keyed import KeyedRecords
from protocol.types import ZERO_UUID


class ConsumerKind(IntEnum):
    """Record kinds: the first number of a key."""

    GROUP_METADATA = 3
    PARTITION_METADATA = 4
    """Written by 4.0 only; later releases write only its tombstone, where a log still has one."""
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
    """Topic metadata as a group last used it."""

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
    """Assignor offered by a member that uses the classic protocol."""

    name: str = wire("string", "")
    metadata: bytes = wire("bytes", b"")


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """State of a member that uses the classic protocol."""

    session_timeout_ms: int = wire("int32", 0)
    supported_protocols: tuple[ClassicProtocol, ...] = wire(ClassicProtocol, (), array=True)


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """Member metadata, as sent by the member (``ConsumerGroupMemberMetadataValue``)."""

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
    """Epoch and time of a target assignment (``ConsumerGroupTargetAssignmentMetadataValue``)."""

    assignment_epoch: int = wire("int32", 0)
    assignment_timestamp_ms: int = wire("int64", 0, tag=0)


@dataclass(frozen=True, slots=True)
class TargetPartitions:
    """Partitions of a topic in a member's target assignment."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    partitions: tuple[int, ...] = wire("int32", (), array=True)


@dataclass(frozen=True, slots=True)
class TargetMember:
    """Target assignment of a member (``ConsumerGroupTargetAssignmentMemberValue``)."""

    topic_partitions: tuple[TargetPartitions, ...] = wire(TargetPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """Partitions of a topic that a member owns, each with the epoch of its assignment (null before 4.3)."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    partitions: tuple[int, ...] = wire("int32", (), array=True)
    assignment_epochs: tuple[int, ...] | None = wire("int32", None, tag=0, array=True)


@dataclass(frozen=True, slots=True)
class CurrentMember:
    """Current assignment of a member (``ConsumerGroupCurrentMemberAssignmentValue``); state 0, 1, 2 or 127."""

    member_epoch: int = wire("int32", 0)
    previous_member_epoch: int = wire("int32", 0)
    state: int = wire("int8", 0)
    assigned_partitions: tuple[AssignedPartitions, ...] = wire(AssignedPartitions, (), array=True)
    partitions_pending_revocation: tuple[AssignedPartitions, ...] = wire(AssignedPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """Topics that a regular expression matched (``ConsumerGroupRegularExpressionValue``).

    ``version`` is the metadata offset at that time, ``timestamp_ms`` the time of resolution.
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
_RECORDS = KeyedRecords(_VALUES, _NAMED)


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """One record; ``name`` is a member's id or a regular expression, ``value`` is ``None`` in a tombstone."""

    kind: ConsumerKind
    group_id: str
    name: str = ""
    value: ConsumerValue | None = None

    @classmethod
    def of(cls, group_id: str, value: ConsumerValue, name: str = "") -> "ConsumerRecord":
        """Return the record of a value."""
        return cls(_RECORDS.kinds[type(value)], group_id, name, value)


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    return _RECORDS.encode(record.kind, record.group_id, record.name, record.value)


def decode(kind: int, key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """Decode a record from its key and value; ``None`` if the kind or version is unknown.

    Raises:
        MalformedRecordsError, struct.error, UnicodeDecodeError, IndexError: the bytes do not follow the format.
    """
    record = _RECORDS.decode(kind, key, value)
    return (
        None
        if record is None
        else ConsumerRecord(ConsumerKind(record.kind), record.group_id, record.name, record.value)
    )
