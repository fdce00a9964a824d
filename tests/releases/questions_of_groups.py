"""Questions about groups and topics."""

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.sync_group import SyncGroupRequest
from tests.releases.asking import GROUP, Client
from tests.releases.questions_of_4_4 import offsets_log


def a_group_that_is_not_there_deleted(client: Client) -> str:
    """DeleteGroups (KIP-229)."""
    group = client.name("group")
    client.coordinator(group, GROUP)
    return str(client.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group])).results[0].error_code.name)


def a_stranger_s_heartbeat(client: Client) -> str:
    """Heartbeat, SyncGroup and LeaveGroup to a group that is not there."""
    group = client.name("group")
    client.coordinator(group, GROUP)
    beat = client.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group, 1, "absent")).error_code
    sync = client.ask(ApiKey.SYNC_GROUP, SyncGroupRequest(group, 1, "absent")).error_code
    left = client.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group, "absent", [MemberIdentity("absent")]))
    return f"{beat.name} {sync.name} {left.error_code.name} {[each.error_code.name for each in left.members]}"


def a_stranger_s_offsets(client: Client) -> str:
    """OffsetCommit with an unknown member and generation, then without a member."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)

    def commit(generation: int, member: str) -> str:
        part = OffsetCommitRequestTopic(topic, [OffsetCommitRequestPartition(0, 7)])
        request = OffsetCommitRequest(group, generation, member, topics=[part])
        answer = client.ask(ApiKey.OFFSET_COMMIT, request, at_most=9)
        return str(answer.topics[0].partitions[0].error_code.name)

    return f"{commit(3, 'absent')} {commit(-1, '')}"


def a_member_without_an_id(client: Client) -> str:
    """The first JoinGroup (KIP-394), and one with a session that is too short."""
    group = client.name("group")
    client.coordinator(group, GROUP)

    def join(session_ms: int) -> str:
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(group, session_ms, "", "consumer", protocols, 1000)
        return str(client.ask(ApiKey.JOIN_GROUP, request).error_code.name)

    return f"{join(10_000)} {join(10)}"


def a_group_that_is_not_there(client: Client) -> str:
    """DescribeGroups (KIP-1043)."""
    group = client.name("group")
    client.coordinator(group, GROUP)
    description = client.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group])).groups[0]
    return f"{description.error_code.name} {description.group_state}"


def a_topic_with_an_unknown_setting(client: Client) -> str:
    """No release knows it."""
    return str(client.create(client.name("topic"), {"no.such.setting": "1"}).error_code.name)


def a_topic_with_as_many_partitions_as_the_broker_likes(client: Client) -> str:
    """-1 (KIP-464), and what the answer has of the topic (KIP-525)."""
    created = client.create(client.name("topic"), partitions=-1)
    return f"{created.error_code.name} partitions {created.num_partitions} factor {created.replication_factor}"


def a_topic_with_small_segments(client: Client) -> str:
    """segment.bytes of a thousand (KIP-1030)."""
    return str(client.create(client.name("topic"), {"segment.bytes": "1000"}).error_code.name)


def a_topic_that_metadata_creates(client: Client) -> str:
    """Metadata that may create what it does not find: the first answer, and the one that stays."""
    request = MetadataRequest([MetadataRequestTopic(name=client.name("topic"))])
    first = client.ask(ApiKey.METADATA, request).topics[0].error_code
    last = client.settled(lambda: client.ask(ApiKey.METADATA, request).topics[0], lambda topic: topic.error_code)
    return f"{first.name} then {last.error_code.name}"


def a_member_that_never_syncs(client: Client) -> str:
    """Its heartbeats before the rebalance timeout of 500 ms, and after it has been over for long (KAFKA-12890)."""
    group = client.name("group")
    client.coordinator(group, GROUP)
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest(group, 10_000, "", "consumer", protocols, 500)
    joined = client.settled(lambda: client.ask(ApiKey.JOIN_GROUP, request), lambda answer: answer.error_code)
    if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = joined.member_id
        joined = client.ask(ApiKey.JOIN_GROUP, request)
    beat = HeartbeatRequest(group, joined.generation_id, joined.member_id)
    answers = []
    for _ in range(20):
        answers.append(client.ask(ApiKey.HEARTBEAT, beat).error_code.name)
        client.pause(0.1)
    return " then ".join(dict.fromkeys(answers))


def stored_offsets(client: Client) -> str:
    """The version of a committed offset's value in the log: 4 can carry the topic's id (groups B.1 OC7)."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    part = OffsetCommitRequestTopic(topic, [OffsetCommitRequestPartition(0, 5)])
    request = OffsetCommitRequest(group, -1, "", topics=[part])
    client.settled(
        lambda: client.ask(ApiKey.OFFSET_COMMIT, request, at_most=9),
        lambda response: response.topics[0].partitions[0].error_code,
    )
    values = [value for key, value in offsets_log(client) if group.encode() in key]
    return " ".join(f"version {int.from_bytes(value[:2])}" for value in values)


QUESTIONS = (
    stored_offsets,
    a_stranger_s_heartbeat,
    a_stranger_s_offsets,
    a_member_without_an_id,
    a_group_that_is_not_there,
    a_group_that_is_not_there_deleted,
    a_topic_with_an_unknown_setting,
    a_topic_with_as_many_partitions_as_the_broker_likes,
    a_topic_with_small_segments,
    a_topic_that_metadata_creates,
    a_member_that_never_syncs,
)
