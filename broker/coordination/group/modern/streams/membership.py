"""Lookup of a heartbeat's member: dynamic and static members, replacements, epochs (groups E.3.1, E.3.2)."""

from collections.abc import Sequence
from dataclasses import replace

from broker.coordination.group.modern.epochs import JOINING, check_member_epoch
from broker.coordination.group.modern.streams.context import StreamsContext
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import LEAVING_STATIC, Member, target_record, tombstones
from broker.coordination.group.modern.streams.tasks import NO_TASKS, Tasks
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds


def check_size(context: StreamsContext, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, rule: Rule) -> None:
    """Raise GROUP_MAX_SIZE_REACHED for a join to a full group; since 4.4 not for a known member."""
    limit = context.settings.int("group.streams.max.size")
    known = request.member_id in group.members or request.instance_id in group.static_members
    if len(group.members) < limit or (context.newer() and known):
        return
    message = f"The streams group has reached its maximum capacity of {limit} members."
    raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, *rule, message)


def member_of(
    builder: OutcomeBuilder, group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> tuple[Member, Member | None]:
    """Find or create the member and fence a wrong epoch; return it and the static member that it replaces, if any.

    Raises:
        KafkaError: 25, 82, 110 or 111.
    """
    epoch, instance_id = request.member_epoch, request.instance_id
    if instance_id is not None and (epoch != JOINING or instance_id in group.static_members):
        held = group.static_member(instance_id, None if epoch == JOINING else request.member_id)
        if epoch == JOINING:
            return _replaced(builder, group, held, request.member_id), held
        known: Member | None = held
    else:
        known = group.members.get(request.member_id) if epoch == JOINING else group.member(request.member_id)
    if known is None:
        return Member(request.member_id), None
    assigned = known.assigned.undated
    subset = (
        _are_within(request.active_tasks, assigned.active)
        and _are_within(request.standby_tasks, assigned.standby)
        and _are_within(request.warmup_tasks, assigned.warmup)
    )
    check_member_epoch(
        known.epoch, known.previous_epoch, epoch, owns_subset=subset, kind="streams", rule=group.member_rule
    )
    return known, None


def _are_within(owned: Sequence[TaskIds] | None, assigned: Tasks) -> bool:
    """Return whether the list is not null and each task in it is assigned; each subtopology must be assigned too."""
    return owned is not None and all(
        each.subtopology_id in assigned and assigned[each.subtopology_id].issuperset(each.partitions) for each in owned
    )


def _replaced(builder: OutcomeBuilder, group: StreamsGroup, held: Member, member_id: str) -> Member:
    """Replace the static member that holds the instance id, if it has left temporarily.

    The timers of the old member keep running, as in Kafka: it stays if the heartbeat fails, else the timers have no
    effect.
    """
    if held.epoch != LEAVING_STATIC:
        raise Refusal(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            *group.member_rule,
            f"Static member {member_id} with instance id {held.instance_id} cannot join the group because the "
            f"instance id is owned by {held.member_id} member.",
        )
    heir = replace(held, member_id=member_id, epoch=0, previous_epoch=0)
    for record in tombstones(group.group_id, held.member_id):
        builder.record(record)
    builder.record(heir.metadata_record(group.group_id))
    builder.record(target_record(group.group_id, member_id, group.targets.get(held.member_id, NO_TASKS)))
    builder.record(heir.current_record(group.group_id))
    return heir
