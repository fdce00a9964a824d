"""One member's way to its target: what it gives up, what it gets, and when its epoch moves (groups C.5).

After Kafka's ``CurrentAssignmentBuilder``. A partition belongs to one member at a time: who shall have one waits until
the owner has confirmed, by a heartbeat that lists it no more, that it has stopped reading.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from broker.coordination.group.consumer.members import Assigned, Member, MemberState, Partitions
from protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a member shall go.

    ``owned`` is what its heartbeat lists, ``None`` for nothing said. ``subscribed`` are the ids of the topics that it
    subscribes to and that exist. ``owner_epoch`` tells of a topic's partition the epoch of whoever has it.
    """

    epoch: int
    target: Partitions
    owned: Partitions | None
    subscription_changed: bool
    subscribed: Collection[UUID]
    owner_epoch: Callable[[UUID, int], int | None]

    def owns_any(self, of: Assigned) -> bool:
        """Whether the member may still read one of these; who says nothing may."""
        if self.owned is None:
            return True
        return any(
            not partitions.keys().isdisjoint(self.owned.get(topic_id, ())) for topic_id, partitions in of.items()
        )


def reconciled(member: Member, aim: Aim) -> Member:
    """The member after this heartbeat.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, from a state that is not known.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch != aim.epoch:
                return _next(member, aim)
            return _shrunk(member, aim) if aim.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if aim.owns_any(member.revoking):
                return _shrunk(member, aim) if aim.subscription_changed else member
            return _next(member, aim)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, aim)
        case MemberState.UNKNOWN:
            if aim.owned is None or any(aim.owned.values()):
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. The member must abandon all its partitions and "
                    "rejoin.",
                )
            return _next(member, aim)


def _next(member: Member, aim: Aim) -> Member:
    keep: dict[UUID, Mapping[int, int]] = {}
    revoke: dict[UUID, Mapping[int, int]] = {}
    add: dict[UUID, list[int]] = {}
    unreleased = False
    for topic_id in dict.fromkeys((*aim.target, *member.assigned)):
        target = aim.target.get(topic_id, frozenset()) if topic_id in aim.subscribed else frozenset()
        assigned = member.assigned.get(topic_id, {})
        if kept := {at: epoch for at, epoch in assigned.items() if at in target}:
            keep[topic_id] = kept
        if gone := {at: epoch for at, epoch in assigned.items() if at not in target}:
            revoke[topic_id] = gone
        mine = member.revoking.get(topic_id, {})
        wanted = [at for at in sorted(target) if at not in assigned]
        free = [at for at in wanted if at in mine or aim.owner_epoch(topic_id, at) is None]
        unreleased |= len(free) < len(wanted)
        if free:
            add[topic_id] = free
    if revoke and aim.owns_any(revoke):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=keep,
            revoking=revoke,
        )
    assigned_now = {
        topic_id: {**keep.get(topic_id, {}), **dict.fromkeys(add.get(topic_id, ()), aim.epoch)}
        for topic_id in dict.fromkeys((*keep, *add))
    }
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        epoch=aim.epoch,
        previous_epoch=member.epoch,
        assigned=assigned_now,
        revoking={},
    )


def _shrunk(member: Member, aim: Aim) -> Member:
    """What it does not subscribe to any more goes at once, before there is a new target."""
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in aim.subscribed}
    if not gone:
        return member
    keep = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in aim.subscribed}
    if not aim.owns_any(gone):
        return replace(member, assigned=keep)
    return replace(member, state=MemberState.UNREVOKED_PARTITIONS, assigned=keep, revoking={**member.revoking, **gone})
