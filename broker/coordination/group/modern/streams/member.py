"""A member of a streams group, and its records (groups E.6)."""

from dataclasses import replace
from enum import IntEnum

from broker.coordination.group.modern.streams.tasks import (
    AssignedTasks,
    TaskSets,
    current_tasks,
    dated_tasks,
    read_dated,
    read_tasks,
    target_tasks,
)
from protocol.deferred import dataclass
from protocol.log_records.streams_group import (
    Endpoint,
    KeyValue,
    StreamsCurrentMember,
    StreamsKind,
    StreamsMemberMetadata,
    StreamsRecord,
    StreamsTargetMember,
)


class MemberState(IntEnum):
    """Progress of a member's reconciliation, as stored in records (Kafka's ``streams.MemberState``)."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127  # any code that a newer broker wrote (transactions F.4)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a streams group; ``client_host`` is in Java's form, ``/127.0.0.1``; ``client_tags`` are in key order.

    Members with the same ``process_id`` share the state stores of a process.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: AssignedTasks = AssignedTasks()
    revoking: AssignedTasks = AssignedTasks()

    def with_metadata(self, record: StreamsMemberMetadata) -> "Member":
        """Return this member with the metadata of a record."""
        return replace(
            self,
            instance_id=record.instance_id,
            rack_id=record.rack_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            topology_epoch=record.topology_epoch,
            process_id=record.process_id,
            user_endpoint=record.user_endpoint,
            client_tags=record.client_tags,
        )

    def is_at(self, record: StreamsCurrentMember) -> "Member":
        """Return this member with the epochs and the tasks of a record."""
        states = MemberState.__members__.values()
        epoch = record.member_epoch
        return replace(
            self,
            epoch=epoch,
            previous_epoch=record.previous_member_epoch,
            state=next((state for state in states if state == record.state), MemberState.UNKNOWN),
            assigned=AssignedTasks(
                read_dated(record.active_tasks, epoch),
                read_tasks(record.standby_tasks),
                read_tasks(record.warmup_tasks),
            ),
            revoking=AssignedTasks(
                read_dated(record.active_tasks_pending_revocation, epoch),
                read_tasks(record.standby_tasks_pending_revocation),
                read_tasks(record.warmup_tasks_pending_revocation),
            ),
        )

    def metadata_record(self, group_id: str) -> StreamsRecord:
        """Return the record of the member's metadata."""
        return StreamsRecord.of(group_id, StreamsMemberMetadata(*self.metadata), self.member_id)

    def current_record(self, group_id: str) -> StreamsRecord:
        """Return the record of the member's epochs, state and tasks."""
        value = StreamsCurrentMember(
            self.epoch,
            self.previous_epoch,
            int(self.state),
            dated_tasks(self.assigned.active),
            current_tasks(self.assigned.standby),
            current_tasks(self.assigned.warmup),
            dated_tasks(self.revoking.active),
            current_tasks(self.revoking.standby),
            current_tasks(self.revoking.warmup),
        )
        return StreamsRecord.of(group_id, value, self.member_id)

    @property
    def metadata(
        self,
    ) -> tuple[str | None, str | None, str, str, int, int, str, Endpoint | None, tuple[KeyValue, ...]]:
        """The member's metadata in the order of the record, for comparison."""
        return (self.instance_id, self.rack_id, self.client_id, self.client_host, self.rebalance_timeout_ms,
                self.topology_epoch, self.process_id, self.user_endpoint, self.client_tags)  # fmt: skip

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def at(self) -> tuple[object, ...]:
        """The member's epochs, state and tasks, for comparison."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking


def target_record(group_id: str, member_id: str, target: TaskSets) -> StreamsRecord:
    """Return the record of a member's target assignment."""
    value = StreamsTargetMember(target_tasks(target.active), target_tasks(target.standby), target_tasks(target.warmup))
    return StreamsRecord.of(group_id, value, member_id)


def target_of(value: StreamsTargetMember) -> TaskSets:
    """Return the target assignment in a record."""
    return TaskSets(read_tasks(value.active_tasks), read_tasks(value.standby_tasks), read_tasks(value.warmup_tasks))


def tombstones(group_id: str, member_id: str) -> tuple[StreamsRecord, ...]:
    """Return the tombstones that delete a member (groups E.2)."""
    kinds = (StreamsKind.CURRENT_MEMBER, StreamsKind.TARGET_MEMBER, StreamsKind.MEMBER_METADATA)
    return tuple(StreamsRecord(kind, group_id, member_id) for kind in kinds)
