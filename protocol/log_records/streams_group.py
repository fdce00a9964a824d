"""Records of ``__consumer_offsets`` for streams groups (KIP-1071; transactions F.4)."""

from enum import IntEnum
from typing import Any

from protocol.deferred import dataclass
from protocol.log_records.flexible import wire
from protocol.log_records.keyed import KeyedRecords


class StreamsKind(IntEnum):
    """Record kinds: the first number of a key."""

    GROUP_METADATA = 17
    MEMBER_METADATA = 19
    TARGET_METADATA = 20
    TARGET_MEMBER = 21
    CURRENT_MEMBER = 22
    TOPOLOGY = 23


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A client tag, a topic's setting or an assignment's setting."""

    key: str = wire("string", "")
    value: str = wire("string", "")


@dataclass(frozen=True, slots=True)
class StreamsGroupEpoch:
    """The group's epoch, the hash of its topics, and the topology that they were valid for (``StreamsGroupMetadata``).

    ``validated_topology_epoch`` is -1 while the topics do not fit the topology; ``assignment_configs`` are the settings
    of the last assignment. The last two fields belong to KIP-1331 (4.4), and are -1 without a plugin.
    """

    epoch: int = wire("int32", 0)
    metadata_hash: int = wire("int64", 0)
    validated_topology_epoch: int = wire("int32", -1, tag=0)
    assignment_configs: tuple[KeyValue, ...] | None = wire(KeyValue, None, tag=1, array=True)
    stored_description_topology_epoch: int = wire("int32", -1, tag=2)
    failed_description_topology_epoch: int = wire("int32", -1, tag=3)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address at which a member answers interactive queries."""

    host: str = wire("string", "")
    port: int = wire("uint16", 0)


@dataclass(frozen=True, slots=True)
class StreamsMemberMetadata:
    """Member metadata, as sent by the member (``StreamsGroupMemberMetadataValue``)."""

    instance_id: str | None = wire("string", None)
    rack_id: str | None = wire("string", None)
    client_id: str = wire("string", "")
    client_host: str = wire("string", "")
    rebalance_timeout_ms: int = wire("int32", -1)
    topology_epoch: int = wire("int32", 0)
    process_id: str = wire("string", "")
    user_endpoint: Endpoint | None = wire(Endpoint, None, nullable=True)
    client_tags: tuple[KeyValue, ...] = wire(KeyValue, (), array=True)


@dataclass(frozen=True, slots=True)
class StreamsTargetEpoch:
    """Epoch and time of a target assignment (``StreamsGroupTargetAssignmentMetadataValue``)."""

    assignment_epoch: int = wire("int32", 0)
    assignment_timestamp_ms: int = wire("int64", 0, tag=0)


@dataclass(frozen=True, slots=True)
class TargetTasks:
    """Tasks of one subtopology in a target assignment."""

    subtopology_id: str = wire("string", "")
    partitions: tuple[int, ...] = wire("int32", (), array=True)


@dataclass(frozen=True, slots=True)
class StreamsTargetMember:
    """Target assignment of a member (``StreamsGroupTargetAssignmentMemberValue``)."""

    active_tasks: tuple[TargetTasks, ...] = wire(TargetTasks, (), array=True)
    standby_tasks: tuple[TargetTasks, ...] = wire(TargetTasks, (), array=True)
    warmup_tasks: tuple[TargetTasks, ...] = wire(TargetTasks, (), array=True)


@dataclass(frozen=True, slots=True)
class CurrentTasks:
    """Tasks of one subtopology that a member has; active ones with the epochs of their assignment (null before 4.3)."""

    subtopology_id: str = wire("string", "")
    partitions: tuple[int, ...] = wire("int32", (), array=True)
    assignment_epochs: tuple[int, ...] | None = wire("int32", None, tag=0, array=True)


@dataclass(frozen=True, slots=True)
class StreamsCurrentMember:
    """Current assignment of a member (``StreamsGroupCurrentMemberAssignmentValue``)."""

    member_epoch: int = wire("int32", 0)
    previous_member_epoch: int = wire("int32", 0)
    state: int = wire("int8", 0)
    active_tasks: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)
    standby_tasks: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)
    warmup_tasks: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)
    active_tasks_pending_revocation: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)
    standby_tasks_pending_revocation: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)
    warmup_tasks_pending_revocation: tuple[CurrentTasks, ...] = wire(CurrentTasks, (), array=True)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """An internal topic: 0 partitions are to be derived, 0 replicas are the broker's default."""

    name: str = wire("string", "")
    partitions: int = wire("int32", 0)
    replication_factor: int = wire("int16", 0)
    topic_configs: tuple[KeyValue, ...] = wire(KeyValue, (), array=True)


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics that need equal partition counts, as indexes into the lists of their subtopology."""

    source_topics: tuple[int, ...] = wire("int16", (), array=True)
    source_topic_regex: tuple[int, ...] = wire("int16", (), array=True)
    repartition_source_topics: tuple[int, ...] = wire("int16", (), array=True)


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of the topology whose tasks run on their own."""

    subtopology_id: str = wire("string", "")
    source_topics: tuple[str, ...] = wire("string", (), array=True)
    source_topic_regex: tuple[str, ...] = wire("string", (), array=True)
    state_changelog_topics: tuple[TopicInfo, ...] = wire(TopicInfo, (), array=True)
    repartition_sink_topics: tuple[str, ...] = wire("string", (), array=True)
    repartition_source_topics: tuple[TopicInfo, ...] = wire(TopicInfo, (), array=True)
    copartition_groups: tuple[CopartitionGroup, ...] = wire(CopartitionGroup, (), array=True)


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """The topology that the group's first member sent (``StreamsGroupTopologyValue``)."""

    epoch: int = wire("int32", 0)
    subtopologies: tuple[Subtopology, ...] = wire(Subtopology, (), array=True)


StreamsValue = (
    StreamsGroupEpoch
    | StreamsMemberMetadata
    | StreamsTargetEpoch
    | StreamsTargetMember
    | StreamsCurrentMember
    | StreamsTopology
)
_VALUES: dict[StreamsKind, Any] = {
    StreamsKind.GROUP_METADATA: StreamsGroupEpoch,
    StreamsKind.MEMBER_METADATA: StreamsMemberMetadata,
    StreamsKind.TARGET_METADATA: StreamsTargetEpoch,
    StreamsKind.TARGET_MEMBER: StreamsTargetMember,
    StreamsKind.CURRENT_MEMBER: StreamsCurrentMember,
    StreamsKind.TOPOLOGY: StreamsTopology,
}
RECORDS = KeyedRecords(_VALUES, {StreamsKind.MEMBER_METADATA, StreamsKind.TARGET_MEMBER, StreamsKind.CURRENT_MEMBER})


@dataclass(frozen=True, slots=True)
class StreamsRecord:
    """One record; ``name`` is a member's id, ``value`` is ``None`` in a tombstone."""

    kind: StreamsKind
    group_id: str
    name: str = ""
    value: StreamsValue | None = None

    @classmethod
    def of(cls, group_id: str, value: StreamsValue, name: str = "") -> "StreamsRecord":
        """Return the record of a value."""
        return cls(RECORDS.kinds[type(value)], group_id, name, value)


def encode(record: StreamsRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    return RECORDS.encode(record.kind, record.group_id, record.name, record.value)


def decode(kind: int, key: bytes, value: bytes | None) -> StreamsRecord | None:
    """Decode a record from its key and value; ``None`` if the kind or version is unknown.

    Raises:
        MalformedRecordsError, struct.error, UnicodeDecodeError, IndexError: the bytes do not follow the format.
    """
    record = RECORDS.decode(kind, key, value)
    return (
        None if record is None else StreamsRecord(StreamsKind(record.kind), record.group_id, record.name, record.value)
    )
