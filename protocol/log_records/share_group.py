"""Records of ``__consumer_offsets`` for share groups (KIP-932; transactions F.4).

A key is an int16 kind, the group id and, for records of members, the member id. A value is an int16 version, 0, and a
flexible struct; a null value is a tombstone.
"""

from enum import IntEnum
from typing import Any
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records.consumer_group import TargetPartitions
from protocol.log_records.flexible import wire
from protocol.log_records.keyed import KeyedRecords
from protocol.types import ZERO_UUID


class ShareGroupKind(IntEnum):
    """Record kinds: the first number of a key."""

    MEMBER_METADATA = 10
    GROUP_METADATA = 11
    TARGET_METADATA = 12
    TARGET_MEMBER = 13
    CURRENT_MEMBER = 14
    STATE_PARTITIONS = 15


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """Member metadata, as sent by the member (``ShareGroupMemberMetadataValue``)."""

    rack_id: str | None = wire("string", None)
    client_id: str = wire("string", "")
    client_host: str = wire("string", "")
    subscribed_topic_names: tuple[str, ...] = wire("string", (), array=True)


@dataclass(frozen=True, slots=True)
class ShareGroupEpoch:
    """The group's epoch, and the hash of the topics that it was bumped for (``ShareGroupMetadataValue``)."""

    epoch: int = wire("int32", 0)
    metadata_hash: int = wire("int64", 0)


@dataclass(frozen=True, slots=True)
class ShareTargetEpoch:
    """Epoch and time of a target assignment (``ShareGroupTargetAssignmentMetadataValue``)."""

    assignment_epoch: int = wire("int32", 0)
    assignment_timestamp_ms: int = wire("int64", 0, tag=0)


@dataclass(frozen=True, slots=True)
class ShareTargetMember:
    """Target assignment of a member (``ShareGroupTargetAssignmentMemberValue``)."""

    topic_partitions: tuple[TargetPartitions, ...] = wire(TargetPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class ShareCurrentMember:
    """Current assignment of a member (``ShareGroupCurrentMemberAssignmentValue``); the state is always 0, stable."""

    member_epoch: int = wire("int32", 0)
    previous_member_epoch: int = wire("int32", 0)
    state: int = wire("int8", 0)
    assigned_partitions: tuple[TargetPartitions, ...] = wire(TargetPartitions, (), array=True)


@dataclass(frozen=True, slots=True)
class StateTopic:
    """Partitions of a topic whose state is being created, or exists."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    topic_name: str = wire("string", "")
    partitions: tuple[int, ...] = wire("int32", (), array=True)


@dataclass(frozen=True, slots=True)
class DeletingTopic:
    """A topic whose state is being deleted."""

    topic_id: UUID = wire("uuid", ZERO_UUID)
    topic_name: str = wire("string", "")


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """Share partitions of a group, by the state of their initialization (``ShareGroupStatePartitionMetadataValue``)."""

    initializing: tuple[StateTopic, ...] = wire(StateTopic, (), array=True)
    initialized: tuple[StateTopic, ...] = wire(StateTopic, (), array=True)
    deleting: tuple[DeletingTopic, ...] = wire(DeletingTopic, (), array=True)


ShareGroupValue = (
    ShareMemberMetadata | ShareGroupEpoch | ShareTargetEpoch | ShareTargetMember | ShareCurrentMember | StatePartitions
)
_VALUES: dict[ShareGroupKind, Any] = {
    ShareGroupKind.MEMBER_METADATA: ShareMemberMetadata,
    ShareGroupKind.GROUP_METADATA: ShareGroupEpoch,
    ShareGroupKind.TARGET_METADATA: ShareTargetEpoch,
    ShareGroupKind.TARGET_MEMBER: ShareTargetMember,
    ShareGroupKind.CURRENT_MEMBER: ShareCurrentMember,
    ShareGroupKind.STATE_PARTITIONS: StatePartitions,
}
RECORDS = KeyedRecords(
    _VALUES, {ShareGroupKind.MEMBER_METADATA, ShareGroupKind.TARGET_MEMBER, ShareGroupKind.CURRENT_MEMBER}
)


@dataclass(frozen=True, slots=True)
class ShareGroupRecord:
    """One record; ``name`` is a member's id, ``value`` is ``None`` in a tombstone."""

    kind: ShareGroupKind
    group_id: str
    name: str = ""
    value: ShareGroupValue | None = None

    @classmethod
    def of(cls, group_id: str, value: ShareGroupValue, name: str = "") -> "ShareGroupRecord":
        """Return the record of a value."""
        return cls(RECORDS.kinds[type(value)], group_id, name, value)


def encode(record: ShareGroupRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    return RECORDS.encode(record.kind, record.group_id, record.name, record.value)


def decode(kind: int, key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """Decode a record from its key and value; ``None`` if the kind or version is unknown.

    Raises:
        MalformedRecordsError, struct.error, UnicodeDecodeError, IndexError: the bytes do not follow the format.
    """
    record = RECORDS.decode(kind, key, value)
    if record is None:
        return None
    return ShareGroupRecord(ShareGroupKind(record.kind), record.group_id, record.name, record.value)
