"""A streams group: the state from its records, and the state derived from it (groups E), after ``StreamsGroup``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from uuid import UUID

from broker.coordination.group.group import Committer, GroupType, PartitionCheck
from broker.coordination.group.modern.group import ModernGroup
from broker.coordination.group.modern.streams.configuration import Configuration
from broker.coordination.group.modern.streams.endpoints import Endpoints
from broker.coordination.group.modern.streams.member import Member, MemberState, target_of
from broker.coordination.group.modern.streams.owners import TaskOwners
from broker.coordination.group.modern.streams.states import State, state_of
from broker.coordination.group.modern.streams.tasks import TaskOffsets, TaskSets
from broker.coordination.group.modern.streams.topology import Topology
from broker.coordination.group.modern.topics import Topics, metadata_hash
from broker.coordination.group.rules import COMMIT, OFFSET_FETCH, STREAMS_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.log_records.group import OffsetCommit
from protocol.log_records.streams_group import (
    StreamsCurrentMember,
    StreamsGroupEpoch,
    StreamsKind,
    StreamsMemberMetadata,
    StreamsRecord,
    StreamsTargetEpoch,
    StreamsTargetMember,
    StreamsTopology,
)

FIRST_EPOCH = 1
"""Epoch of a new group."""


@dataclass(slots=True)
class MetadataCheck:
    """The last comparison of topics with the hash (``StreamsGroup.hasMetadataExpired``) that began a group epoch.

    ``epoch`` is that group epoch; the metadata version and the hash of the topics are as of then.

    It stays even if the heartbeat fails afterwards, although its epoch was not recorded: until the group reaches that
    epoch, each heartbeat compares the topics again.
    """

    epoch: int = 0
    _version: int = -1
    _hash: int = 0

    def is_due(self, epoch: int, names: Iterable[str], topics: Topics) -> bool:
        """Return whether a topic of the group has changed since the check; ``epoch`` is the group epoch."""
        if self._version == -1 or epoch < self.epoch:
            return True
        if topics.version != self._version:
            if metadata_hash(names, topics) != self._hash:
                return True
            self._version = topics.version
        return False

    def done(self, epoch: int, names: Iterable[str], topics: Topics) -> None:
        """Note a check that begins a group epoch."""
        if self._version != topics.version:
            self._hash = metadata_hash(names, topics)
        self.epoch, self._version = epoch, topics.version


@dataclass(slots=True)
class RefinedTarget:
    """Cached target from which members get their tasks in 4.4 (groups E.6): an epoch, and tasks by member id.

    After Kafka's ``AssignmentRefiner``, which is meant to hold an intermediate assignment with warm-up tasks; in 4.4.0
    it is the target itself. Kafka keeps it outside of the records, even if the heartbeat that computed it fails
    afterwards; then members do not get the next target of that epoch.
    """

    epoch: int = -1
    tasks: Mapping[str, TaskSets] = field(default_factory=dict)

    def relabel(self, member_id: str, heir_id: str) -> None:
        """Move a static member's tasks to its replacement, even if that is refused later (groups E.6)."""
        if member_id in self.tasks:
            tasks = dict(self.tasks)
            tasks[heir_id] = tasks.pop(member_id)
            self.tasks = tasks

    def keep(self, epoch: int, tasks: Mapping[str, TaskSets]) -> None:
        """Cache the tasks of an epoch; the mapping must not change afterwards."""
        self.epoch, self.tasks = epoch, tasks

    def of_epoch(self, epoch: int) -> Mapping[str, TaskSets] | None:
        """Return the cached tasks of an epoch, or ``None``."""
        return self.tasks if self.epoch == epoch else None


class StreamsGroup(ModernGroup[Member]):
    """One streams group. Only :meth:`replay` changes it, except for its soft state.

    ``targets`` are the target assignments by member id; ``static_members`` instance id -> member id;
    ``assignment_configs`` the settings of the last assignment.
    """

    __slots__ = (
        "_shares_targets", "_state", "assignment_configs", "configuration", "endpoint_epoch", "endpoints",
        "metadata_check", "owners", "refined", "shutdown_member", "targets", "task_offsets", "topology",
        "validated_topology_epoch",
    )  # fmt: skip

    type = GroupType.STREAMS
    member_rule = STREAMS_HEARTBEAT.row(".2")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, FIRST_EPOCH)
        self.validated_topology_epoch = 0
        self.assignment_configs: dict[str, str] = {}
        self.targets: dict[str, TaskSets] = {}
        self._shares_targets = False
        self._state: State | None = None  # cached until the next record
        self.topology: Topology | None = None
        self.owners = TaskOwners()
        self.metadata_check = MetadataCheck()
        """Soft: the last comparison of the topics with the hash (groups C.6)."""
        self.configuration = Configuration()
        """Soft: the topology with the partition counts of its internal topics."""
        self.endpoint_epoch = 0
        """Soft: incremented when the tasks of an endpoint change (groups E.7)."""
        self.endpoints = Endpoints()
        """Soft: cached partitions of the members' endpoints."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """Soft: the task offsets that members report, by member id."""
        self.refined = RefinedTarget()
        """Soft: the target from which members get their tasks (4.4)."""
        self.shutdown_member: str | None = None
        """Soft: the member that requested a shutdown of the application (groups E.3.12)."""

    # --- as every group (broker.coordination.group.group.Group) ------------------------------------------------------

    @property
    def state(self) -> State:
        """The group's state (groups E.6)."""
        if self._state is None:
            fits = self.topology is not None and self.topology.epoch == self.validated_topology_epoch
            self._state = state_of(self.epoch, self.assignment_epoch, self.members.values(), fits=fits)
        return self._state

    def in_states(self, names: Iterable[str]) -> bool:
        """Return whether the state is among these names, given in lower case."""
        return self.state.filter_name in names

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Fence a commit by the member's epoch (groups B.1 OC3): 22, 25, 35 or 113.

        An earlier epoch is accepted for tasks that the member has had since then (KIP-1251).
        """
        epoch = committer.generation
        if epoch < 0 and self.is_empty:
            return None
        if committer.transactional and epoch == -1 and not committer.member_id and committer.instance_id is None:
            return None
        member = self.member(committer.member_id, COMMIT.row(" OC3.2"))
        if not committer.transactional and not committer.knows_stale_epochs:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                *COMMIT.row(" OC3.3"),
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        stale = ErrorCode.STALE_MEMBER_EPOCH if committer.knows_stale_epochs else ErrorCode.ILLEGAL_GENERATION
        if epoch == member.epoch:
            return None
        if epoch > member.epoch or self.topology is None:
            raise Refusal(stale, *COMMIT.row(" OC3.5"))
        owners = self.topology.readers

        def check(topic: str, _topic_id: UUID | None, partition: int) -> None:
            subtopology = owners.get(topic, "")
            since = member.assigned.active.get(subtopology, {}).get(partition)
            if since is None:
                since = member.revoking.active.get(subtopology, {}).get(partition)
            if topic not in owners or since is None or epoch < since:
                raise Refusal(stale, *COMMIT.row(" OC3.6"))

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Fence a fetch that names a member (groups B.2): 25 or 113."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:
            raise Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR, *OFFSET_FETCH
            )  # StreamsGroup.validateOffsetFetch looks up null
        if member_epoch != self.member(member_id, OFFSET_FETCH).epoch:
            raise Refusal(ErrorCode.STALE_MEMBER_EPOCH, *OFFSET_FETCH)

    def check_offset_delete(self) -> None:
        """Accept any state: the group may have members (transactions E.4)."""

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a task reads the topic and the group is not Empty."""
        return not self.is_empty and self.topology is not None and topic in self.topology.readers

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return the function commit -> start of its retention, in ms (groups B.3)."""
        return lambda commit: commit.commit_timestamp_ms

    def tombstones(self) -> tuple[StreamsRecord, ...]:
        """Return the tombstones that delete the group, in Kafka's order (transactions F.4)."""
        kinds = (
            *((StreamsKind.CURRENT_MEMBER, member_id) for member_id in self.members),
            *((StreamsKind.TARGET_MEMBER, member_id) for member_id in self.members),
            (StreamsKind.TARGET_METADATA, ""),
            *((StreamsKind.MEMBER_METADATA, member_id) for member_id in self.members),
            (StreamsKind.GROUP_METADATA, ""),
            (StreamsKind.TOPOLOGY, ""),
        )
        return tuple(StreamsRecord(kind, self.group_id, name) for kind, name in kinds)

    # --- reading -----------------------------------------------------------------------------------------------------

    def shared_targets(self) -> Mapping[str, TaskSets]:
        """Return the current targets; the mapping is copied before it changes."""
        self._shares_targets = True
        return self.targets

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: StreamsRecord) -> None:
        """Apply a record of this group; a tombstone for a missing entry changes nothing."""
        name, value = record.name, record.value
        self._state = None
        match value:
            case StreamsGroupEpoch():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.validated_topology_epoch = value.validated_topology_epoch
                self.assignment_configs = {each.key: each.value for each in value.assignment_configs or ()}
            case StreamsMemberMetadata():
                self._put((self.members.get(name) or Member(name)).with_metadata(value))
            case StreamsTargetEpoch():
                self.assignment_epoch = value.assignment_epoch
                self.assignment_timestamp_ms = value.assignment_timestamp_ms
            case StreamsTargetMember():
                self._own_targets()[name] = target_of(value)
            case StreamsCurrentMember():
                self._put((self.members.get(name) or Member(name)).is_at(value))
            case StreamsTopology():
                self.topology = Topology.of(value)
            case None:
                self._forget(record)

    def _forget(self, record: StreamsRecord) -> None:
        match record.kind:
            case StreamsKind.MEMBER_METADATA:
                self.task_offsets.pop(record.name, None)
                self.endpoints.forget(record.name)
                member = self.members.pop(record.name)
                if member is not None:
                    self._leave(member)
                if self.is_empty:
                    self.shutdown_member = None
            case StreamsKind.CURRENT_MEMBER:
                member = self.members.get(record.name)
                if member is not None:
                    self._put(member.is_at(StreamsCurrentMember(-1, -1, int(MemberState.STABLE))))
            case StreamsKind.TARGET_MEMBER:
                self._own_targets().pop(record.name, None)
            case StreamsKind.TOPOLOGY:
                self.topology = None

    def _own_targets(self) -> dict[str, TaskSets]:
        if self._shares_targets:
            self.targets, self._shares_targets = dict(self.targets), False
        return self.targets

    def _put(self, member: Member) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._leave(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.owners.add(member)

    def _leave(self, member: Member) -> None:
        """Undo :meth:`_put`."""
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        self.owners.remove(member)
