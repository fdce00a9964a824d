"""A share group: the state from its records (groups D.1), after Kafka's ``ShareGroup``."""

from collections import Counter
from collections.abc import Callable
from uuid import UUID

from broker.coordination.group.group import Committer, GroupType, PartitionCheck
from broker.coordination.group.modern.group import ModernGroup
from broker.coordination.group.modern.share.member import Partitions, ShareMember, read_partitions
from broker.coordination.group.modern.share.state_partitions import SharePartitions, read_state
from broker.coordination.group.modern.share.states import State
from broker.coordination.group.rules import SHARE_COMMIT, SHARE_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.log_records.group import OffsetCommit
from protocol.log_records.share_group import (
    ShareCurrentMember,
    ShareGroupEpoch,
    ShareGroupKind,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareTargetEpoch,
    ShareTargetMember,
    StatePartitions,
)

FIRST_EPOCH = 1
"""Epoch of a new group (before 4.3 it was 0)."""


class ShareGroup(ModernGroup[ShareMember]):
    """One share group. Only :meth:`replay` changes it.

    ``targets`` are the target assignments by member id; ``partitions`` the lists of its share partitions.
    """

    __slots__ = ("_names", "checked_version", "has_partitions", "partitions", "targets")

    type = GroupType.SHARE
    member_rule = SHARE_HEARTBEAT.row(" S4")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, FIRST_EPOCH)
        self.targets: dict[str, Partitions] = {}
        self.partitions = SharePartitions()
        self.has_partitions = False
        """Whether the log has a record of the share partitions, which may be empty."""
        self.checked_version = -1
        """Soft: the metadata version that was last compared with the hash (groups C.6)."""
        self._names: Counter[str] = Counter()

    # --- as every group (broker.coordination.group.group.Group) ------------------------------------------------------

    @property
    def state(self) -> State:
        """The group's state: Empty without members."""
        return State.EMPTY if self.is_empty else State.STABLE

    def check_commit(self, committer: Committer) -> PartitionCheck | None:  # noqa: ARG002
        """Raise GROUP_ID_NOT_FOUND: a share group has no committed offsets (groups B.1 OC4)."""
        raise self._no_consumer_group()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Accept any member: OffsetFetch treats a share group as a missing one (groups B.2.5)."""

    def check_offset_delete(self) -> None:
        """Raise GROUP_ID_NOT_FOUND: a share group has no committed offsets."""
        raise self._no_consumer_group()

    def _no_consumer_group(self) -> Refusal:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *SHARE_COMMIT, f"Group {self.group_id} is not a consumer group.")

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return topic in self._names

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return ``None``: the group has no offsets that expire."""
        return None

    def tombstones(self) -> tuple[ShareGroupRecord, ...]:
        """Return the tombstones that delete the group, in Kafka's order."""
        kinds = (
            *((ShareGroupKind.CURRENT_MEMBER, member_id) for member_id in self.members),
            *((ShareGroupKind.TARGET_MEMBER, member_id) for member_id in self.members),
            (ShareGroupKind.TARGET_METADATA, ""),
            *((ShareGroupKind.MEMBER_METADATA, member_id) for member_id in self.members),
            (ShareGroupKind.STATE_PARTITIONS, ""),
            (ShareGroupKind.GROUP_METADATA, ""),
        )
        return tuple(ShareGroupRecord(kind, self.group_id, name) for kind, name in kinds)

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> frozenset[str]:
        """The topics that members subscribe to."""
        return frozenset(self._names)

    @property
    def awaits_assignment(self) -> bool:
        """Whether the targets differ from the initialized partitions of the subscribed topics."""
        assigned: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            state.name in self._names and assigned.get(topic_id, set()) != state.partitions
            for topic_id, state in self.partitions.initialized.items()
        )

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: ShareGroupRecord) -> None:
        """Apply a record of this group; a tombstone for a missing entry changes nothing."""
        name, value = record.name, record.value
        match value:
            case ShareGroupEpoch():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareMemberMetadata():
                self._put((self.members.get(name) or ShareMember(name)).with_metadata(value))
            case ShareTargetEpoch():
                self.assignment_epoch = value.assignment_epoch
                self.assignment_timestamp_ms = value.assignment_timestamp_ms
            case ShareTargetMember():
                self.targets[name] = read_partitions(value.topic_partitions)
            case ShareCurrentMember():
                self._put((self.members.get(name) or ShareMember(name)).is_at(value))
            case StatePartitions():
                self.partitions, self.has_partitions = read_state(value), True
            case None:
                self._forget(record)

    def _forget(self, record: ShareGroupRecord) -> None:
        match record.kind:
            case ShareGroupKind.MEMBER_METADATA:
                member = self.members.pop(record.name)
                if member is not None:
                    self._leave(member)
            case ShareGroupKind.CURRENT_MEMBER:
                member = self.members.get(record.name)
                if member is not None:
                    self._put(member.is_at(ShareCurrentMember(-1, -1)))
            case ShareGroupKind.TARGET_MEMBER:
                self.targets.pop(record.name, None)
            case ShareGroupKind.STATE_PARTITIONS:
                self.partitions, self.has_partitions = SharePartitions(), False

    def _put(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._leave(before)
        self.members[member.member_id] = member
        self._names.update(member.subscribed)

    def _leave(self, member: ShareMember) -> None:
        self._names.subtract(member.subscribed)
        self._names = +self._names
