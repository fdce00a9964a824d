"""Verbs about groups: members, assignments, committed offsets, lag, rebalances and evictions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.control.coordinators import group_coordinator, group_coordinators, transaction_coordinators
from broker.control.lags import lags
from broker.control.problems import Problem, conflict, not_found
from broker.control.request import ControlRequest
from broker.control.share_groups import share_partitions
from broker.control.topics import log_of
from broker.control.verbs import answers
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.group import Group, GroupType
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.consumer.description import held
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.share.description import ASSIGNOR
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.streams.assignor import STICKY
from broker.coordination.group.modern.streams.description import task_names
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.metadata.image import Topic
from broker.coordination.runtime import State
from broker.request.node import Node
from broker.settings.specification import cite
from broker.steering.timelines.group_events import NO_HISTORY, GroupHistory
from control_api.answers import groups as answer
from control_api.encoding import copied
from control_api.spelling import suggestion
from protocol.consumer_protocol import read_assignment
from protocol.log_records.transaction import TransactionState

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator


NodeAndCoordinator = tuple[Node, "GroupCoordinator"]


def _named(request: ControlRequest) -> tuple[str, NodeAndCoordinator]:
    """Return the group in the path, and its coordinator. Raises Problem 404 or 409."""
    name = request.names["group"]
    node_and_coordinator = group_coordinator(request.cluster, name)
    if node_and_coordinator is not None and node_and_coordinator[1].state is State.LOADING:
        raise conflict(f"the coordinator of group {name!r} is loading; advance the clock, or wait")
    if node_and_coordinator is None or name not in node_and_coordinator[1].machine.groups:
        raise no_group(request, name)
    return name, node_and_coordinator


def no_group(request: ControlRequest, name: str) -> Problem:
    """Build a 404 for an unknown group; the detail suggests similar names."""
    coordinators = [] if request.source.own is None else group_coordinators(request.cluster)
    names = [str(each) for _, coordinator in coordinators for each in coordinator.machine.groups]
    return not_found(f"there is no group {name!r}{suggestion(name, names)}")


@answers("groups list")
async def read_all(request: ControlRequest) -> answer.Groups:
    """List all groups, by name."""
    groups = [
        (group, node, coordinator.machine)
        for node, coordinator in group_coordinators(request.cluster)
        for group in coordinator.machine.groups.values()
    ]
    groups.sort(key=lambda each: str(each[0].group_id))
    return {"groups": [describe(request, *each) for each in groups]}


@answers("groups show")
async def read(request: ControlRequest) -> answer.Group:
    """Show one group: members, assignment, committed offsets, lag, timeline."""
    name, (node, coordinator) = _named(request)
    history = request.cluster.group_timelines.of(name)
    return describe(request, coordinator.machine.groups[name], node, coordinator.machine, history)


def known_group(request: ControlRequest, name: str) -> bool:
    """Return whether the group's coordinator knows it."""
    node_and_coordinator = group_coordinator(request.cluster, name)
    return node_and_coordinator is not None and name in node_and_coordinator[1].machine.groups


_MODERN_HEARTBEATS = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"})


def is_classic(request: ControlRequest, name: str) -> bool:
    """Return whether a group is classic, with generations instead of epochs.

    For a deleted group, or one behind a proxy, the requests of its members decide.
    """
    node_and_coordinator = None if request.source.own is None else group_coordinator(request.cluster, name)
    group = None if node_and_coordinator is None else node_and_coordinator[1].machine.groups.get(name)
    if group is not None:
        return group.type is GroupType.CLASSIC
    return not any(event.api in _MODERN_HEARTBEATS for event in request.source.group_timelines.of(name).events)


def describe(
    request: ControlRequest, group: Group, node: Node, machine: GroupMachine, history: GroupHistory = NO_HISTORY
) -> answer.Group:
    """Describe a group for an answer; without a history, its timeline is empty."""
    protocol = None
    if isinstance(group, ClassicGroup):
        protocol = group.protocol_name
    elif isinstance(group, ConsumerGroup):
        protocol = machine.consumers.assignor_of(group)
    elif isinstance(group, ShareGroup):
        protocol = ASSIGNOR
    elif isinstance(group, StreamsGroup):
        protocol = STICKY
    offsets = tuple(_offsets(request, group.group_id, machine))
    partitions = tuple(lags(request.cluster, group, machine))
    known_lags = [partition.lag for partition in partitions if partition.lag is not None]
    return answer.Group(
        group_id=group.group_id,
        type=group.type.value,
        state=group.state_name,
        protocol=protocol,
        epoch=group.epoch,
        coordinator=node.id,
        members=_members(request, group),
        offsets=offsets,
        pending_offsets=tuple(pending_offsets(request, str(group.group_id), machine)),
        lags=partitions,
        share_partitions=tuple(share_partitions(request.cluster, str(group.group_id))),
        timeline=tuple(
            copied(answer.GroupEvent, event, citation=cite(event.rule, event.source)) for event in history.events
        ),
        forgotten=history.forgotten,
        lag=sum(known_lags) if known_lags else None,
    )


def assignment_of(request: ControlRequest, group: Group, member: Any) -> list[str]:
    """Return a member's partitions, such as ``t-0``, or tasks; also those that it still revokes."""
    topics = request.cluster.image.topics_by_id
    if isinstance(group, ClassicGroup):
        return assigned(bytes(member.assignment)) if group.is_consumer_type else []
    if isinstance(group, ConsumerGroup):
        return _partitions(held(member), topics)
    return task_names(member) if isinstance(group, StreamsGroup) else _partitions(member.assigned, topics)


def _members(request: ControlRequest, group: Group) -> tuple[answer.Member, ...]:
    """Describe the members of a group of any kind. Only classic groups have a leader."""
    members: Any = getattr(group, "members", {})
    leader = group.leader if isinstance(group, ClassicGroup) else None
    return tuple(
        answer.Member(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host.lstrip("/"),
            instance_id=member.instance_id,
            epoch=group.epoch if isinstance(group, ClassicGroup) else member.epoch,
            assignment=tuple(assignment_of(request, group, member)),
            leads=member.member_id == leader,
        )
        for member in members.values()
    )


def _partitions(held_by_member: Mapping[UUID, Iterable[int]], topics: Mapping[UUID, Topic]) -> list[str]:
    """Return partitions such as ``t-0``, without those of deleted topics."""
    return [
        f"{topics[topic_id].name}-{index}"
        for topic_id, indexes in held_by_member.items()
        if topic_id in topics
        for index in sorted(indexes)
    ]


def assigned(assignment: bytes) -> list[str]:
    """Decode a ``ConsumerProtocolAssignment`` to partitions such as ``topic-0``; none if it cannot be decoded."""
    decoded = read_assignment(assignment)
    return [] if decoded is None else [f"{name}-{at}" for name, indexes in decoded.partitions.items() for at in indexes]


def _offsets(request: ControlRequest, group_id: str, machine: GroupMachine) -> Iterator[answer.GroupOffset]:
    for topic, partitions in sorted(machine.offsets.topics(group_id).items()):
        for index, offset in sorted(partitions.items()):
            hosted = request.cluster.partitions.get((topic, index))
            log = None if hosted is None else log_of(hosted)
            yield answer.GroupOffset(
                topic=topic,
                partition=index,
                offset=offset.commit.offset,
                metadata=offset.commit.metadata,
                lag=-1 if log is None else max(log.high_watermark - offset.commit.offset, 0),
                committed_ms=offset.commit.commit_timestamp_ms,
            )


def pending_offsets(request: ControlRequest, group_id: str, machine: GroupMachine) -> Iterator[answer.PendingOffset]:
    """Yield the offsets of a group that open transactions have committed, by topic and partition."""
    by_place = machine.offsets.pending(group_id)
    if not by_place:
        return
    records = {
        record.producer_id: record
        for _, coordinator in transaction_coordinators(request.cluster)
        for record in coordinator.machine.transactions.values()
    }
    for (topic, index), producer_ids in sorted(by_place.items()):
        for producer_id in producer_ids:
            commit = dict(machine.offsets.pending_of(producer_id))[group_id, topic, index].commit
            record = records.get(producer_id)
            ongoing = record is not None and record.state is TransactionState.ONGOING
            yield answer.PendingOffset(
                topic=topic,
                partition=index,
                offset=commit.offset,
                producer_id=producer_id,
                transactional_id=None if record is None else record.transactional_id,
                since_ms=commit.commit_timestamp_ms,
                until_ms=record.start_ms + record.timeout_ms if record is not None and ongoing else None,
            )


# --- steering --------------------------------------------------------------------------------------------------------


@answers("groups rebalance")
async def rebalance(request: ControlRequest) -> answer.Group:
    """Start a rebalance: the members are notified by their next heartbeat response."""
    name, (node, coordinator) = _named(request)
    group = _steerable(coordinator.machine, name)
    if group.is_empty:
        raise conflict(f"group {name!r} has no members")
    coordinator.submit(lambda now_ms: coordinator.machine.rebalance(name, now_ms))
    return describe(request, group, node, coordinator.machine)


@answers("groups evict")
async def evict(request: ControlRequest) -> answer.Group:
    """Remove a member as if its session had timed out."""
    name, (node, coordinator) = _named(request)
    group, member = _steerable(coordinator.machine, name), request.names["member"]
    if member not in [each.member_id for each in group.members.values()]:
        member_ids = ", ".join(each.member_id for each in group.members.values()) or "none"
        raise not_found(f"group {name!r} has no member {member!r}; its members: {member_ids}")
    coordinator.submit(lambda now_ms: coordinator.machine.evict(name, member, now_ms))
    return describe(request, group, node, coordinator.machine)


def _steerable(machine: GroupMachine, name: str) -> ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup:
    group = machine.groups[name]
    if not isinstance(group, ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup):
        raise conflict(f"group {name!r} is of type {group.type.value}, which does not support this command")
    return group
