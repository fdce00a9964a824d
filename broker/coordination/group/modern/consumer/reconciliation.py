"""Reconciliation of one member with its target: revocation, assignment, and the member epoch (groups C.5).

After Kafka's ``CurrentAssignmentBuilder``. A partition belongs to one member at a time: its next owner waits until the
current one has confirmed the revocation with a heartbeat that no longer lists the partition.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from broker.coordination.group.modern.consumer.member import (
    Assigned,
    Member,
    MemberState,
    Partitions,
    hash_of_partition,
)
from broker.coordination.group.rules import RECONCILIATION
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import reserved_capacity, table_order


@dataclass(frozen=True, slots=True)
class TargetState:
    """A member's target, and the state that its heartbeat reports.

    ``owned`` are the partitions in its heartbeat, ``None`` for null. ``subscribes``: whether it names topics, or its
    expression matches some; ``subscribed`` are the ids of those that exist. ``owner_epoch`` returns the epoch of a
    partition's owner.
    """

    epoch: int
    target: Partitions
    owned: Partitions | None
    subscription_changed: bool
    subscribes: bool
    subscribed: Collection[UUID]
    owner_epoch: Callable[[UUID, int], int | None]

    def owns_any(self, of: Assigned) -> bool:
        """Return whether the member may still own one of these; true if its heartbeat has no list."""
        if self.owned is None:
            return True
        return any(
            not partitions.keys().isdisjoint(self.owned.get(topic_id, ())) for topic_id, partitions in of.items()
        )


def reconciled(member: Member, goal: TargetState) -> Member:
    """Return the member after this heartbeat.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH if the member's state is unknown.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch != goal.epoch:
                return _next(member, goal)
            return _shrunk(member, goal) if goal.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if goal.owns_any(member.revoking):
                return _shrunk(member, goal) if goal.subscription_changed else member
            return _next(member, goal)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, goal)
        case MemberState.UNKNOWN:
            if goal.owned is None or any(goal.owned.values()):
                raise Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    *RECONCILIATION,
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and "
                    "rejoin.",
                )
            return _next(member, goal)


def _next(member: Member, goal: TargetState) -> Member:
    keep: dict[UUID, Mapping[int, int]] = {}
    revoke: dict[UUID, Mapping[int, int]] = {}
    add: dict[UUID, list[int]] = {}
    unreleased = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        target = goal.target.get(topic_id, frozenset()) if topic_id in goal.subscribed else frozenset()
        assigned = _copied(member.assigned.get(topic_id, {}))
        if kept := {at: epoch for at, epoch in assigned.items() if at in target}:
            keep[topic_id] = kept
        if gone := {at: epoch for at, epoch in assigned.items() if at not in target}:
            revoke[topic_id] = gone
        mine = member.revoking.get(topic_id, {})
        wanted = [at for at in sorted(target) if at not in assigned]
        # What the member has yet to give up is not another's: it may have it back at once.
        free = [at for at in wanted if at in mine or goal.owner_epoch(topic_id, at) is None]
        unreleased |= len(free) < len(wanted)
        if free:
            add[topic_id] = free
    if revoke and goal.owns_any(revoke):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=keep,
            revoking=revoke,
        )
    assigned_now = {
        topic_id: _grown(keep.get(topic_id, {}), member.assigned.get(topic_id, {}), add.get(topic_id, ()), goal.epoch)
        for topic_id in dict.fromkeys((*keep, *add))
    }
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=assigned_now,
        revoking={},
    )


def _copied(partitions: Mapping[int, int]) -> Mapping[int, int]:
    """Return partitions in the order of a ``HashMap`` that is a copy of theirs."""
    return _ordered(partitions, len(partitions))


def _joined(partitions: Mapping[int, int], more: Mapping[int, int]) -> Mapping[int, int]:
    """Return partitions in the order of a ``HashMap`` copied from the first, with the others put into it."""
    return _ordered({**partitions, **more}, len(partitions))


def _grown(kept: Mapping[int, int], of: Mapping[int, int], added: Sequence[int], epoch: int) -> Mapping[int, int]:
    """Return partitions in the order of a copied ``HashMap`` (a new one if none is kept), with others put into it."""
    return _ordered({**kept, **dict.fromkeys(added, epoch)}, len(of) if kept else 0)


def _ordered(partitions: Mapping[int, int], copied: int) -> Mapping[int, int]:
    """Return partitions in the order of a ``HashMap`` copied from one with ``copied`` entries (0: a new one)."""
    order = table_order(list(partitions), hash_of_partition, reserved_capacity(copied))
    return {partition: partitions[partition] for partition in order}


def _shrunk(member: Member, goal: TargetState) -> Member:
    """Revoke partitions of topics that the member no longer subscribes to, before there is a new target.

    A member without subscriptions is recorded again even if it has no partitions (``updateCurrentAssignment``).
    """
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in goal.subscribed}
    if not gone and (goal.subscribes or member.revoking):
        return member
    moved = replace(
        member,
        previous_epoch=member.epoch,
        assigned={topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in gone},
    )
    revoking = {**member.revoking}
    for topic_id, epochs in gone.items():
        revoking[topic_id] = _joined(revoking[topic_id], epochs) if topic_id in revoking else epochs
    if not goal.owns_any(revoking) or not revoking:
        return moved
    return replace(moved, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
