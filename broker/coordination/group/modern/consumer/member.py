"""A member of a consumer group, and its records (groups C.1)."""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import IntEnum
from uuid import UUID

from protocol.deferred import dataclass
from protocol.java import table_order
from protocol.log_records.consumer_group import (
    AssignedPartitions,
    ClassicMember,
    ConsumerKind,
    ConsumerRecord,
    CurrentMember,
    MemberMetadata,
    TargetMember,
    TargetPartitions,
)

Assigned = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> the epoch in which it was assigned."""
Partitions = Mapping[UUID, frozenset[int]]
"""Topic id -> partitions."""


class MemberState(IntEnum):
    """Progress of a member's reconciliation, as stored in records (Kafka's ``MemberState``)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127  # any code that a newer broker wrote (transactions F.4)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a consumer group; ``client_host`` is in Java's form, ``/127.0.0.1``.

    ``classic`` is set if it uses the classic protocol. ``epoch`` is -2 after a static member has left temporarily.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMember | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)

    def with_metadata(self, record: MemberMetadata) -> "Member":
        """Return this member with the metadata of a record."""
        return replace(
            self,
            instance_id=record.instance_id,
            rack_id=record.rack_id,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            client_id=record.client_id,
            client_host=record.client_host,
            subscribed=frozenset(record.subscribed_topic_names or ()),
            regex=record.subscribed_topic_regex or "",
            assignor=record.server_assignor,
            classic=record.classic_member,
        )

    def is_at(self, record: CurrentMember) -> "Member":
        """Return this member with the epochs and the assignment of a record."""
        states = MemberState.__members__.values()
        known = next((state for state in states if state == record.state), MemberState.UNKNOWN)
        epoch = record.member_epoch
        return replace(
            self,
            epoch=epoch,
            previous_epoch=record.previous_member_epoch,
            state=known,
            assigned=_assigned(record.assigned_partitions, epoch),
            revoking=_assigned(record.partitions_pending_revocation, epoch),
        )

    def metadata_record(self, group_id: str) -> ConsumerRecord:
        """Return the record of the member's metadata."""
        value = MemberMetadata(
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            tuple(sorted(self.subscribed)),
            self.regex,
            self.rebalance_timeout_ms,
            self.assignor,
            self.classic,
        )
        return ConsumerRecord.of(group_id, value, self.member_id)

    def current_record(self, group_id: str) -> ConsumerRecord:
        """Return the record of the member's epochs, state and assignment."""
        value = CurrentMember(
            self.epoch, self.previous_epoch, int(self.state), _recorded(self.assigned), _recorded(self.revoking)
        )
        return ConsumerRecord.of(group_id, value, self.member_id)

    @property
    def metadata(self) -> tuple[object, ...]:
        """The member's metadata, for comparison."""
        return (self.instance_id, self.rack_id, self.rebalance_timeout_ms, self.client_id, self.client_host,
                self.subscribed, self.regex, self.assignor, self.classic)  # fmt: skip

    @property
    def at(self) -> tuple[object, ...]:
        """The member's epochs, state and assignment, for comparison."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking


def target_record(group_id: str, member_id: str, target: Partitions) -> ConsumerRecord:
    """Return the record of a member's target assignment."""
    value = TargetMember(
        tuple(TargetPartitions(topic_id, tuple(sorted(partitions))) for topic_id, partitions in target.items())
    )
    return ConsumerRecord.of(group_id, value, member_id)


def target_of(value: TargetMember) -> Partitions:
    """Return the target assignment in a record."""
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def tombstones(group_id: str, member_id: str) -> tuple[ConsumerRecord, ...]:
    """Return the tombstones that delete a member (groups C.8)."""
    kinds = (ConsumerKind.CURRENT_MEMBER, ConsumerKind.TARGET_MEMBER, ConsumerKind.MEMBER_METADATA)
    return tuple(ConsumerRecord(kind, group_id, member_id) for kind in kinds)


def _assigned(recorded: tuple[AssignedPartitions, ...], epoch: int) -> Assigned:
    """Read assigned partitions, in the order of a ``HashMap``.

    Records before 4.3 have no assignment epochs: the member's epoch replaces them.
    """
    assigned = {}
    for each in recorded:
        epochs = dict(zip(each.partitions, each.assignment_epochs or (epoch,) * len(each.partitions), strict=False))
        assigned[each.topic_id] = {at: epochs[at] for at in table_order(list(epochs), hash_of_partition)}
    return assigned


def hash_of_partition(partition: int) -> int:
    """Return Java's hash of a partition number (``Integer.hashCode``)."""
    return partition


def _recorded(assigned: Assigned) -> tuple[AssignedPartitions, ...]:
    return tuple(
        AssignedPartitions(topic_id, tuple(epochs), tuple(epochs.values())) for topic_id, epochs in assigned.items()
    )
