"""Reconciliation of one member with its target tasks: revocation, assignment, and the member epoch (groups E.6).

After Kafka's ``streams.CurrentAssignmentBuilder``. An active task belongs to one member at a time, and a process has a
task in one role at a time, because its members share the state stores.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from broker.coordination.group.rules import STREAMS_RECONCILIATION
from broker.coordination.group.streams.member import Member, MemberState
from broker.coordination.group.streams.owners import Task, TaskOwners
from broker.coordination.group.streams.tasks import (
    AssignedTasks,
    DatedTasks,
    Tasks,
    TaskSets,
    any_in_common,
)
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class TargetState:
    """A member's target, and what its heartbeat reports: ``owned`` is ``None`` unless it lists all three roles."""

    epoch: int
    target: TaskSets
    owned: TaskSets | None
    owners: TaskOwners

    def owns_any(self, of: AssignedTasks) -> bool:
        """Whether the member may still run one of these; true if its heartbeat lists nothing."""
        return self.owned is None or any_in_common(self.owned, of.undated)


def reconciled(member: Member, goal: TargetState) -> Member:
    """The member after this heartbeat.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, from a state that is not known.
    """
    match member.state:
        case MemberState.STABLE:
            return member if member.epoch == goal.epoch else _next(member, goal, member.epoch)
        case MemberState.UNREVOKED_TASKS:
            return member if goal.owns_any(member.revoking) else _next(member, goal, member.epoch + 1)
        case MemberState.UNRELEASED_TASKS:
            return _next(member, goal, member.epoch)
        case MemberState.UNKNOWN:
            if goal.owned is None or goal.owned:
                raise Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    *STREAMS_RECONCILIATION,
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
                )
            return _next(member, goal, goal.epoch)


@dataclass(slots=True)
class _Difference:
    """Between the tasks of one role that a member has and its target."""

    keep: Tasks
    revoke: Tasks
    add: Tasks
    unreleased: bool


def _next(member: Member, goal: TargetState, epoch: int) -> Member:
    process_id, owners = member.process_id, goal.owners
    before = member.assigned.undated

    def active_is_taken(task: Task) -> bool:
        return owners.active(task) is not None or owners.has_replica(task, process_id)

    def replica_is_taken(task: Task) -> bool:
        return owners.has(task, process_id)

    active = _difference(before.active, goal.target.active, active_is_taken)
    standby = _difference(before.standby, goal.target.standby, replica_is_taken)
    warmup = _difference(before.warmup, goal.target.warmup, replica_is_taken)
    revoke = AssignedTasks(_dated(member.assigned.active, active.revoke), standby.revoke, warmup.revoke)
    kept = _dated(member.assigned.active, active.keep)
    if revoke and goal.owns_any(revoke):
        return replace(
            member,
            state=MemberState.UNREVOKED_TASKS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=AssignedTasks(kept, standby.keep, warmup.keep),
            revoking=revoke,
        )
    unreleased = active.unreleased or standby.unreleased or warmup.unreleased
    added = {name: dict.fromkeys(partitions, goal.epoch) for name, partitions in active.add.items()}
    return replace(
        member,
        state=MemberState.UNRELEASED_TASKS if unreleased else MemberState.STABLE,
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=AssignedTasks(
            {name: {**kept.get(name, {}), **added.get(name, {})} for name in dict.fromkeys((*kept, *added))},
            _merged(standby.keep, standby.add),
            _merged(warmup.keep, warmup.add),
        ),
        revoking=AssignedTasks(),
    )


def _difference(before: Tasks, target: Tasks, is_taken: Callable[[Task], bool]) -> _Difference:
    keep: dict[str, frozenset[int]] = {}
    revoke: dict[str, frozenset[int]] = {}
    add: dict[str, frozenset[int]] = {}
    unreleased = False
    for name in dict.fromkeys((*target, *before)):
        has, wants = before.get(name, frozenset()), target.get(name, frozenset())
        free = frozenset(at for at in wants - has if not is_taken((name, at)))
        unreleased |= len(free) < len(wants - has)
        for found, partitions in ((keep, has & wants), (revoke, has - wants), (add, free)):
            if partitions:
                found[name] = partitions
    return _Difference(keep, revoke, add, unreleased)


def _dated(assigned: DatedTasks, tasks: Tasks) -> DatedTasks:
    return {name: {at: assigned[name][at] for at in sorted(partitions)} for name, partitions in tasks.items()}


def _merged(tasks: Tasks, others: Tasks) -> Tasks:
    return {
        name: tasks.get(name, frozenset()) | others.get(name, frozenset()) for name in dict.fromkeys((*tasks, *others))
    }
