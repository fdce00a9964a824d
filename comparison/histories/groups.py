"""Steps of classic groups: members that join, sync, heartbeat and leave; offsets; and descriptions."""

import struct
from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import UNKNOWN_MEMBER_ID, Member, Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COMMIT_BY_ID = OFFSETS_BY_ID = 10  # versions of OffsetCommit and OffsetFetch (KIP-848)
LEAVE_BY_LIST = 3  # of LeaveGroup (KIP-345)
MANY_GROUPS = 8  # of OffsetFetch (KIP-709)
MANY_KEYS = 4  # of FindCoordinator (KIP-699)
SESSION_MS, REBALANCE_MS = 60_000, 120_000  # ours: no member may be removed while a history waits


def _member(target: Target, step: Step) -> Member:
    if "member" not in step:
        return Member(step["group"], UNKNOWN_MEMBER_ID)
    return target.member(step["member"], step["group"])


def _subscription(topics: list[str], data: bytes) -> bytes:
    """Encode a consumer's subscription, version 0: topics and user data (ConsumerProtocol)."""
    named = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + named + struct.pack(">i", len(data)) + data


def join(target: Target, step: Step) -> StepRequest:
    """JoinGroup, on the member's own connection: its response may wait for other members."""
    member = _member(target, step)
    if "instance" in step:
        member.instance_id = step["instance"]
    protocols = [
        JoinGroupRequestProtocol(name, _subscription([target.called(topic) for topic in topics], text.encode()))
        for name, text, topics in step["protocols"]
    ]
    request = JoinGroupRequest(
        target.called(step["group"]),
        step.get("session_ms", SESSION_MS),
        member.id,
        step.get("type", "consumer"),
        protocols,
        step.get("rebalance_ms", REBALANCE_MS),
        member.instance_id,
    )

    def after(answer: Any) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            member.id = answer.member_id
        if answer.error_code is ErrorCode.NONE:
            member.generation, member.leads = answer.generation_id, answer.leader == answer.member_id
            member.members = [member_data.member_id for member_data in answer.members]

    about = step["group"]
    connection = f"member {step['member']}"
    return StepRequest(ApiKey.JOIN_GROUP, step["v"], request, connection, after, Settle.GROUP, about, parks=True)


def sync(target: Target, step: Step) -> StepRequest:
    """SyncGroup; the leader assigns each member its name, as bytes."""
    member = _member(target, step)
    assignments = [
        SyncGroupRequestAssignment(member_id, target.names.name("member", member_id).encode())
        for member_id in member.members
    ]
    protocol = (step.get("type"), step.get("protocol"))
    request = SyncGroupRequest(
        target.called(step["group"]),
        member.generation + step.get("generation_shift", 0),
        member.id,
        assignments if member.leads else [],
        member.instance_id,
        *protocol,
    )
    connection = f"member {step['member']}"
    return StepRequest(ApiKey.SYNC_GROUP, step["v"], request, connection, None, Settle.GROUP, step["group"], parks=True)


def heartbeat(target: Target, step: Step) -> StepRequest:
    """Heartbeat."""
    member = _member(target, step)
    generation = member.generation + step.get("generation_shift", 0)
    request = HeartbeatRequest(target.called(step["group"]), generation, member.id, member.instance_id)
    return StepRequest(ApiKey.HEARTBEAT, step["v"], request, step["c"])


def leave(target: Target, step: Step) -> StepRequest:
    """LeaveGroup of one member."""
    member = _member(target, step)
    gone = member.id, member.instance_id
    request = LeaveGroupRequest(target.called(step["group"]), gone[0], [MemberIdentity(*gone)])

    def after(answer: Any) -> None:
        if not answer.error_code and "member" in step:
            target.members.pop(step["member"], None)

    return StepRequest(ApiKey.LEAVE_GROUP, step["v"], request, step["c"], after, Settle.GROUP, step["group"])


def commit(target: Target, step: Step) -> StepRequest:
    """OffsetCommit of one partition: for a member, or from outside the group."""
    partition = OffsetCommitRequestPartition(step["partition"], step["offset"], step.get("metadata", ""))
    if step["v"] >= COMMIT_BY_ID:
        topic = OffsetCommitRequestTopic("", [partition], target.topic_id(step["topic"]))
    else:
        topic = OffsetCommitRequestTopic(target.called(step["topic"]), [partition])
    retention_ms = step.get("retention_ms", -1)  # up to v4
    request = OffsetCommitRequest(target.called(step["group"]), topics=[topic], retention_time_ms=retention_ms)
    if "member" in step:
        member = _member(target, step)
        request.generation_id_or_member_epoch = member.generation + step.get("generation_shift", 0)
        request.member_id, request.group_instance_id = member.id, member.instance_id
    return StepRequest(ApiKey.OFFSET_COMMIT, step["v"], request, step["c"])


def fetch_offsets(target: Target, step: Step) -> StepRequest:
    """OffsetFetch of one group: some partitions, or all of them."""
    topics = None
    if step.get("partitions") is not None:
        by_id = step["v"] >= OFFSETS_BY_ID
        topics = [
            OffsetFetchRequestTopics(*(("", parts, target.topic_id(topic)) if by_id else (target.called(topic), parts)))
            for topic, parts in step["partitions"].items()
        ]
    group = OffsetFetchRequestGroup(target.called(step["group"]), topics)
    request = OffsetFetchRequest(require_stable=step.get("stable", False), groups=[group])
    return StepRequest(ApiKey.OFFSET_FETCH, step["v"], request, step["c"], reads=True)


def delete_offset(target: Target, step: Step) -> StepRequest:
    """OffsetDelete of one partition."""
    topic = OffsetDeleteRequestTopic(target.called(step["topic"]), [OffsetDeleteRequestPartition(step["partition"])])
    request = OffsetDeleteRequest(target.called(step["group"]), [topic])
    return StepRequest(ApiKey.OFFSET_DELETE, step["v"], request, step["c"])


def delete_group(target: Target, step: Step) -> StepRequest:
    """DeleteGroups of one group."""
    return StepRequest(ApiKey.DELETE_GROUPS, step["v"], DeleteGroupsRequest([target.called(step["group"])]), step["c"])


def describe_group(target: Target, step: Step) -> StepRequest:
    """DescribeGroups of one group."""
    request = DescribeGroupsRequest([target.called(step["group"])], step.get("operations", False))
    return StepRequest(ApiKey.DESCRIBE_GROUPS, step["v"], request, step["c"], reads=True)


def find_coordinator(target: Target, step: Step) -> StepRequest:
    """FindCoordinator of a group (0) or a transactional id (1)."""
    key = target.called(step["name"])
    request = FindCoordinatorRequest(key, step["type"], [key])
    return StepRequest(ApiKey.FIND_COORDINATOR, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "leave": leave,
    "commit": commit,
    "fetch_offsets": fetch_offsets,
    "delete_offset": delete_offset,
    "delete_group": delete_group,
    "describe_group": describe_group,
    "find_coordinator": find_coordinator,
}
