"""Verbs about groups: members, what they were assigned, how far they have come."""

import struct
from typing import Any

from broker.control.asked import Asked
from broker.control.coordinators import coordinator_of, runtimes
from broker.control.log import log_of
from broker.control.problems import Problem, conflict, nearest, not_found
from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer.describing import held
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.model import Group
from broker.coordination.runtime import Runtime, State
from broker.node import GROUP_TOPIC, Node

_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
Found = tuple[Node, "Runtime[GroupMachine]"]


_EVENT = ("at_ms", "event", "state_before", "state_after", "epoch_before", "epoch_after", "member_id", "instance_id",
          "client_id", "connection", "broker", "api", "version", "error", "rule", "fault")  # fmt: skip


def _named(asked: Asked) -> tuple[str, Found]:
    """The group in the path, and who coordinates it. Raises Problem 404 or 409."""
    name = asked.names["group"]
    found = coordinator_of(asked.cluster, GROUP_TOPIC, name)
    if found is not None and found[1].state is State.LOADING:
        raise conflict(f"the coordinator of group {name!r} is loading; push the clock, or wait")
    if found is None or name not in found[1].machine.groups:
        raise no_group(asked, name)
    return name, found


def no_group(asked: Asked, name: str) -> Problem:
    """There is no such group; which there are."""
    known = [str(each) for _, runtime in runtimes(asked.cluster, GROUP_TOPIC) for each in runtime.machine.groups]
    return not_found(f"there is no group {name!r}{nearest(name, known)}")


async def read_all(asked: Asked) -> dict[str, Any]:
    """All groups, by name."""
    found = [
        (group, node, runtime.machine)
        for node, runtime in runtimes(asked.cluster, GROUP_TOPIC)
        for group in runtime.machine.groups.values()
    ]
    found.sort(key=lambda each: str(each[0].group_id))
    return {"groups": [_told(asked, *each) for each in found]}


async def read(asked: Asked) -> dict[str, Any]:
    """One group: members, assignment, committed offsets, lag."""
    name, (node, runtime) = _named(asked)
    found = _told(asked, runtime.machine.groups[name], node, runtime.machine)
    events = asked.cluster.group_timelines.of(name, watched_group(asked, name))
    return {**found, "timeline": [{field: getattr(event, field) for field in _EVENT} for event in events]}


def known_group(asked: Asked, name: str) -> bool:
    """Whether its coordinator knows it."""
    found = coordinator_of(asked.cluster, GROUP_TOPIC, name)
    return found is not None and name in found[1].machine.groups


def watched_group(asked: Asked, name: str) -> ClassicGroup | ConsumerGroup | None:
    """The group, if it is there and of a kind that has a timeline."""
    found = coordinator_of(asked.cluster, GROUP_TOPIC, name)
    group = None if found is None else found[1].machine.groups.get(name)
    return group if isinstance(group, ClassicGroup | ConsumerGroup) else None


def _told(asked: Asked, group: Group, node: Node, machine: GroupMachine) -> dict[str, Any]:
    protocol, epoch, members = None, -1, []
    if isinstance(group, ClassicGroup):
        protocol, epoch, members = group.protocol_name, group.generation, _members(group)
    elif isinstance(group, ConsumerGroup):
        protocol, epoch, members = machine.consumers.assignor_of(group), group.epoch, _consumers(asked, group)
    return {
        "group_id": group.group_id,
        "type": group.type.value,
        "state": group.state_name,
        "protocol": protocol,
        "epoch": epoch,
        "coordinator": node.id,
        "members": members,
        "offsets": _offsets(asked, group.group_id, machine),
    }


def _members(group: ClassicGroup) -> list[dict[str, Any]]:
    return [
        {
            "member_id": member.member_id,
            "client_id": member.client_id,
            "client_host": member.client_host.lstrip("/"),
            "instance_id": member.instance_id,
            "epoch": group.generation,
            "assignment": assigned(bytes(member.assignment)) if group.is_consumer_type else [],
            "leads": member.member_id == group.leader,
        }
        for member in group.members.values()
    ]


def _consumers(asked: Asked, group: ConsumerGroup) -> list[dict[str, Any]]:
    """Members of a consumer group, with what they have, be it giving it up."""
    topics = asked.cluster.image.topics_by_id
    return [
        {
            "member_id": member.member_id,
            "client_id": member.client_id,
            "client_host": member.client_host.lstrip("/"),
            "instance_id": member.instance_id,
            "epoch": member.epoch,
            "assignment": [
                f"{topics[topic_id].name}-{index}"
                for topic_id, indexes in held(member).items()
                if topic_id in topics
                for index in sorted(indexes)
            ],
            "leads": False,
        }
        for member in group.members.values()
    ]


def assigned(assignment: bytes) -> list[str]:
    """The partitions of Kafka's ``ConsumerProtocolAssignment``, as ``topic-0``; none where the bytes are none."""
    found = []
    try:
        at = _INT16.size
        (topics,) = _INT32.unpack_from(assignment, at)
        at += _INT32.size
        for _ in range(topics):
            (size,) = _INT16.unpack_from(assignment, at)
            at += _INT16.size
            name = assignment[at : at + size].decode()
            at += size
            (count,) = _INT32.unpack_from(assignment, at)
            at += _INT32.size
            found += [f"{name}-{index}" for index in struct.unpack_from(f">{count}i", assignment, at)]
            at += 4 * count
    except (struct.error, UnicodeDecodeError):
        return []
    return found


def _offsets(asked: Asked, group_id: str, machine: GroupMachine) -> list[dict[str, Any]]:
    found = []
    for topic, partitions in sorted(machine.offsets.topics(group_id).items()):
        for index, offset in sorted(partitions.items()):
            hosted = asked.cluster.partitions.get((topic, index))
            log = None if hosted is None else log_of(hosted)
            found.append(
                {
                    "topic": topic,
                    "partition": index,
                    "offset": offset.commit.offset,
                    "metadata": offset.commit.metadata,
                    "lag": -1 if log is None else max(log.high_watermark - offset.commit.offset, 0),
                }
            )
    return found


# --- steering --------------------------------------------------------------------------------------------------------


async def rebalance(asked: Asked) -> dict[str, Any]:
    """Let a group rebalance now: its members hear of it at their next heartbeat."""
    asked.only()
    name, (node, runtime) = _named(asked)
    group = _steerable(runtime.machine, name)
    if group.is_empty:
        raise conflict(f"group {name!r} has no members")
    runtime.submit(lambda now_ms: runtime.machine.rebalance(name, now_ms))
    return _told(asked, group, node, runtime.machine)


async def evict(asked: Asked) -> dict[str, Any]:
    """Remove a member as if its session had timed out."""
    asked.only()
    name, (node, runtime) = _named(asked)
    group, member = _steerable(runtime.machine, name), asked.names["member"]
    if member not in [each.member_id for each in group.members.values()]:
        known = ", ".join(each.member_id for each in group.members.values()) or "nobody"
        raise not_found(f"group {name!r} has no member {member!r}; there is {known}")
    runtime.submit(lambda now_ms: runtime.machine.evict(name, member, now_ms))
    return _told(asked, group, node, runtime.machine)


def _steerable(machine: GroupMachine, name: str) -> ClassicGroup | ConsumerGroup:
    group = machine.groups[name]
    if not isinstance(group, ClassicGroup | ConsumerGroup):
        raise conflict(f"group {name!r} is of the type {group.type.value}, which cannot be steered so yet")
    return group
