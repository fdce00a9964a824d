"""Reconciliation of one member with its target tasks: revocation, assignment, and the member epoch (groups E.6).

After Kafka's ``streams.CurrentAssignmentBuilder``. One member at a time runs an active task, and a process has a task
in one role at a time, because its members share the state stores.
"""

from collections.abc import Callable
from dataclasses import replace

from broker.coordination.group.modern.streams.member import Member, MemberState
from broker.coordination.group.modern.streams.owners import Task, TaskOwners
from broker.coordination.group.modern.streams.tasks import AssignedTasks, DatedTasks, Tasks, TaskSets, any_in_common
from broker.coordination.group.rules import STREAMS_RECONCILIATION
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class TargetState:
    """A member's target, and the tasks in its heartbeat: ``owned`` is ``None`` unless it lists all three roles.

    ``newer``: as in 4.4, where a member changes the role of a task in place.
    """

    epoch: int
    target: TaskSets
    owned: TaskSets | None
    owners: TaskOwners
    newer: bool = False

    def owns_any(self, of: AssignedTasks) -> bool:
        """Return whether the member may still own one of these; true if ``owned`` is ``None``."""
        return self.owned is None or any_in_common(self.owned, of.undated)


def reconciled(member: Member, goal: TargetState) -> Member:
    """Return the member after this heartbeat.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH if the member's state is unknown.
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
    """Difference between the tasks of one role that a member has and its target."""

    keep: dict[str, frozenset[int]]
    revoke: dict[str, frozenset[int]]
    add: dict[str, frozenset[int]]
    unreleased: bool


def _next(member: Member, goal: TargetState, epoch: int) -> Member:
    before, target = member.assigned.undated, goal.target
    taken = _TakenInPlace(member, goal.owners) if goal.newer else _Taken(member, goal.owners)
    active = _difference(before.active, target.active, taken.as_active)
    standby = _difference(before.standby, target.standby, taken.as_standby)
    warmup = _difference(before.warmup, target.warmup, taken.as_warmup)
    if goal.newer:
        _change_replicas(before, standby, warmup)
        for has, replica in ((before.standby, standby), (before.warmup, warmup)):
            _remove(replica.revoke, _shared(has, target.active))
    revoke = AssignedTasks(_dated(member.assigned.active, active.revoke), standby.revoke, warmup.revoke)
    waits = bool(revoke) and goal.owns_any(revoke)
    if goal.newer:
        granted = {} if waits else active.add
        for has, replica in ((before.standby, standby), (before.warmup, warmup)):
            _add(replica.keep, _without(_shared(has, target.active), granted))
    kept = _dated(member.assigned.active, active.keep)
    if waits:
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


class _Taken:
    """Predicates by role: whether a new task of a member is still owned elsewhere."""

    def __init__(self, member: Member, owners: TaskOwners) -> None:
        self.process_id, self.owners, self.has = member.process_id, owners, member.assigned.undated

    def as_active(self, task: Task) -> bool:
        """Return whether it cannot be an active task of the member yet."""
        return self.owners.active(task) is not None or self.owners.has_replica(task, self.process_id)

    def as_standby(self, task: Task) -> bool:
        """Return whether it cannot be a standby task of the member yet."""
        return self.owners.has(task, self.process_id)

    def as_warmup(self, task: Task) -> bool:
        """Return whether it cannot be a warm-up task of the member yet."""
        return self.owners.has(task, self.process_id)


class _TakenInPlace(_Taken):
    """The predicates of 4.4: a task that the member itself has in another role is not owned elsewhere."""

    def as_active(self, task: Task) -> bool:
        """Return whether it cannot be an active task of the member yet."""
        return self.owners.active(task) is not None or self._other_standby(task) or self._other_warmup(task)

    def as_standby(self, task: Task) -> bool:
        """Return whether it cannot be a standby task of the member yet."""
        runs = self.owners.active(task) == self.process_id and not _contains(self.has.active, task)
        return runs or self.owners.has_standby(task, self.process_id) or self._other_warmup(task)

    def as_warmup(self, task: Task) -> bool:
        """Return whether it cannot be a warm-up task yet; also if it is an active task of the member itself."""
        runs = self.owners.active(task) == self.process_id
        return runs or self._other_standby(task) or self.owners.has_warmup(task, self.process_id)

    def _other_standby(self, task: Task) -> bool:
        return self.owners.has_standby(task, self.process_id) and not _contains(self.has.standby, task)

    def _other_warmup(self, task: Task) -> bool:
        return self.owners.has_warmup(task, self.process_id) and not _contains(self.has.warmup, task)


def _change_replicas(before: TaskSets, standby: _Difference, warmup: _Difference) -> None:
    """Change the roles of tasks within the member immediately, such as active and warm-up to standby (4.4)."""
    _grant(standby, _shared(before.active, standby.add))
    into_warmup = _shared(before.standby, warmup.add)
    _grant(warmup, into_warmup)
    _remove(standby.revoke, into_warmup)
    into_standby = _shared(before.warmup, standby.add)
    _grant(standby, into_standby)
    _remove(warmup.revoke, into_standby)


def _grant(role: _Difference, tasks: Tasks) -> None:
    _remove(role.add, tasks)
    _add(role.keep, tasks)


def _contains(tasks: Tasks, task: Task) -> bool:
    return task[1] in tasks.get(task[0], ())


def _shared(tasks: Tasks, others: Tasks) -> Tasks:
    shared = {name: partitions & others.get(name, frozenset()) for name, partitions in tasks.items()}
    return {name: partitions for name, partitions in shared.items() if partitions}


def _without(tasks: Tasks, others: Tasks) -> Tasks:
    rest = {name: partitions - others.get(name, frozenset()) for name, partitions in tasks.items()}
    return {name: partitions for name, partitions in rest.items() if partitions}


def _remove(tasks: dict[str, frozenset[int]], others: Tasks) -> None:
    for name, partitions in others.items():
        left = tasks.pop(name, frozenset()) - partitions
        if left:
            tasks[name] = left


def _add(tasks: dict[str, frozenset[int]], others: Tasks) -> None:
    for name, partitions in others.items():
        tasks[name] = tasks.get(name, frozenset()) | partitions


def _difference(before: Tasks, target: Tasks, is_taken: Callable[[Task], bool]) -> _Difference:
    difference = _Difference({}, {}, {}, unreleased=False)
    for name in dict.fromkeys((*target, *before)):
        has, wants = before.get(name, frozenset()), target.get(name, frozenset())
        free = frozenset(at for at in wants - has if not is_taken((name, at)))
        difference.unreleased |= len(free) < len(wants - has)
        for tasks, partitions in (
            (difference.keep, has & wants),
            (difference.revoke, has - wants),
            (difference.add, free),
        ):
            if partitions:
                tasks[name] = partitions
    return difference


def _dated(assigned: DatedTasks, tasks: Tasks) -> DatedTasks:
    return {name: {at: assigned[name][at] for at in sorted(partitions)} for name, partitions in tasks.items()}


def _merged(tasks: Tasks, others: Tasks) -> Tasks:
    return {
        name: tasks.get(name, frozenset()) | others.get(name, frozenset()) for name in dict.fromkeys((*tasks, *others))
    }
