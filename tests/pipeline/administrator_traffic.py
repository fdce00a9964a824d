"""What an administrator writes to a cluster of one broker and reads again, and a classic group of two members."""

from collections.abc import Sequence
from contextlib import closing
from threading import Event
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from protocol.messages.alter_client_quotas import EntityData as QuotaEntity
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.pipeline.journal_lines import assignment
from tests.scenarios.core.asking import created, metadata, produce, records_deleted
from tests.scenarios.core.batches import batch
from tests.serving import until
from tests.wire import Wire

SETTINGS: dict[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Permissions are kept, and asked of no one."""
TOPIC, BROKER = 2, 4
ANY = 1
BETWEEN = Event()
"""Never set: what retries wait for."""


def greeted(bootstrap: str, client_id: str) -> Wire:
    """A connection that has asked for the versions, as clients do."""
    wire = Wire(bootstrap, client_id)
    wire.call(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    return wire


def coordinator_found(wire: Wire, group_id: str) -> bool:
    """Whether the coordinator of a group is there."""
    request = FindCoordinatorRequest(coordinator_keys=[group_id])
    is_available = not wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].error_code
    return is_available or BETWEEN.wait(0.2)  # a client pauses between its retries


def written(wire: Wire, topic: str, records: bytearray, *, partition: int = 0) -> None:
    """Produce, as soon as the partition has a leader."""

    def taken() -> bool:
        (topic_metadata,) = metadata(wire, topic)
        led = any(each.partition_index == partition and each.leader_id >= 0 for each in topic_metadata.partitions)
        return led and not produce(wire, topic, records, partition=partition).error_code

    until(taken, "a leader")


def make(bootstrap: str) -> None:
    """Settings, partitions, quotas, permissions, credentials, deleted records, a classic group."""
    with closing(greeted(bootstrap, "administrator")) as wire:
        created(wire, "kept", 2, retention_ms="600000000000", segment_bytes="1048576")
        for partition in (0, 1):
            written(wire, "kept", batch(*[b"v"] * 10), partition=partition)
        _settings(wire)
        _partitions(wire)
        _quotas(wire)
        _permissions(wire)
        _described(wire)
        _classic(bootstrap, wire)


def _settings(wire: Wire) -> None:
    changes = [AlterableConfig("retention.ms", 0, "700000000000"), AlterableConfig("segment.bytes", 1, None)]
    changes.append(AlterableConfig("cleanup.policy", 2, "compact"))
    _configs(wire, TOPIC, "kept", ["retention.ms", "segment.bytes", "cleanup.policy", "max.message.bytes"])
    for resource, name, each in (
        (TOPIC, "kept", changes),
        (BROKER, "1", [AlterableConfig("log.cleaner.threads", 0, "2")]),
        (BROKER, "", [AlterableConfig("message.max.bytes", 0, "1048600")]),
    ):
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(resource, name, each)])
        answered = wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0]
        assert not answered.error_code, answered
    for _ in range(2):
        _configs(wire, TOPIC, "kept", None)
        _configs(wire, BROKER, "1", None)
        _configs(wire, BROKER, "", None)
    wire.call(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([]))


def _configs(wire: Wire, resource: int, name: str, keys: Sequence[str] | None) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(resource, name, keys)], include_synonyms=True)
    wire.call(ApiKey.DESCRIBE_CONFIGS, 4, request)


def _partitions(wire: Wire) -> None:
    created(wire, "grown", 1)
    wire.call(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([CreatePartitionsTopic("grown", 3, None)], 5000))
    until(lambda: len(metadata(wire, "grown")[0].partitions) == 3, "the new partitions")
    for _ in range(2):
        request = DescribeTopicPartitionsRequest([TopicRequest("grown"), TopicRequest("kept")])
        wire.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert records_deleted(wire, "kept", 3).low_watermark == 3
    epochs = [OffsetForLeaderPartition(each, -1, 0) for each in (0, 1)]
    wire.call(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest([OffsetForLeaderTopic("kept", epochs)], -1)
    )


def _quotas(wire: Wire) -> None:
    entity = [QuotaEntity("user", "someone")]
    ops = [OpData("producer_byte_rate", 1e9), OpData("request_percentage", 90.0)]
    request = DescribeClientQuotasRequest([ComponentData("user", 0, "someone")])
    for change in (ops, [OpData("request_percentage", 0.0, remove=True)]):
        wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([EntryData(entity, change)]))
        until(lambda: wire.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request).entries, "the quota")
    credential = ScramCredentialUpsertion("someone", 1, 4096, b"salt" * 4, b"p" * 32)
    wire.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest([], [credential]))
    named = DescribeUserScramCredentialsRequest([UserName("someone")])
    until(
        lambda: not wire.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, named).results[0].error_code, "the credential"
    )


def _permissions(wire: Wire) -> None:
    rules = [AclCreation(TOPIC, "kept", 3, "User:someone", "*", operation, 3) for operation in (3, 4, 8)]
    wire.call(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(rules))
    every = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    until(lambda: len(wire.call(ApiKey.DESCRIBE_ACLS, 3, every).resources) == 1, "the rules")
    gone = DeleteAclsRequest([DeleteAclsFilter(TOPIC, "kept", 3, "User:someone", None, 8, ANY)])
    wire.call(ApiKey.DELETE_ACLS, 3, gone)
    until(lambda: len(wire.call(ApiKey.DESCRIBE_ACLS, 3, every).resources[0].acls) == 2, "the rule's end")
    wire.call(ApiKey.DESCRIBE_ACLS, 3, every)


def _described(wire: Wire) -> None:
    for _ in range(2):
        wire.call(ApiKey.DESCRIBE_CLUSTER, 2, DescribeClusterRequest())
        wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
        wire.call(
            ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        )


def _classic(bootstrap: str, admin: Wire) -> None:
    """A member alone, then with another; commits, reads, deletes an offset; both leave."""
    until(lambda: coordinator_found(admin, "classic"), "the coordinator")
    with closing(greeted(bootstrap, "one")) as one, closing(greeted(bootstrap, "two")) as two:
        ids = [_named(one), _named(two)]
        _joined([one], ids[:1], admin)
        _joined([one, two], ids, admin)
        part = OffsetCommitRequestPartition(0, 5, "note", 0)
        for number, wire in enumerate((one, two)):
            part = OffsetCommitRequestPartition(number, 5 + number, "note", 0)
            request = OffsetCommitRequest("classic", 2, ids[number], -1, [OffsetCommitRequestTopic("kept", [part])])
            wire.call(ApiKey.OFFSET_COMMIT, 9, request)
        topics: list[Any] = [OffsetFetchRequestTopics("kept", [0, 1])]
        for each in (topics, None):
            admin.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("classic", each)]))
        admin.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest())
        admin.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(["classic"]))
        for wire, member in ((one, ids[0]), (two, ids[1])):
            leaving = [MemberIdentity(member)]
            wire.call(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest("classic", members=leaving))
        dropped = OffsetDeleteRequestTopic("kept", [OffsetDeleteRequestPartition(1)])
        admin.call(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest("classic", [dropped]))
        admin.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("classic", topics)]))


def _join(member: str) -> JoinGroupRequest:
    subscribed = b"\0\1\0\0\0\1\0\4kept\xff\xff\xff\xff\0\0\0\0"
    protocols = [JoinGroupRequestProtocol("range", subscribed)]
    return JoinGroupRequest("classic", 30_000, member, "consumer", protocols, 60_000)


def _named(wire: Wire) -> str:
    """The id that the coordinator gives, once it has loaded the group."""
    return str(until(lambda: wire.call(ApiKey.JOIN_GROUP, 9, _join("")).member_id, "a member id"))


def _joined(wires: Sequence[Wire], ids: Sequence[str], admin: Wire) -> None:
    """A generation of these members, one partition for each; the first of them leads and has noticed that it begins."""
    generation = 1
    if len(wires) > 1:
        wires[1].send(ApiKey.JOIN_GROUP, 9, _join(ids[1]))
        beat = HeartbeatRequest("classic", 1, ids[0])
        until(lambda: wires[0].call(ApiKey.HEARTBEAT, 4, beat).error_code, "the rebalance")
        generation = 2
        wires[0].call(ApiKey.JOIN_GROUP, 9, _join(ids[0]))
        wires[1].answer()
    else:
        wires[0].call(ApiKey.JOIN_GROUP, 9, _join(ids[0]))
    parts = [(0, 1)] if len(ids) == 1 else [(0,), (1,)]
    plans = [
        SyncGroupRequestAssignment(member, assignment("kept", *owned) + b"\xff\xff\xff\xff")
        for member, owned in zip(ids, parts, strict=True)
    ]
    for number, wire in enumerate(wires):
        assignments = plans if number == 0 else []
        request = SyncGroupRequest("classic", generation, ids[number], assignments, None, "consumer", "range")
        wire.call(ApiKey.SYNC_GROUP, 5, request)
        wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("classic", generation, ids[number]))
    admin.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(["classic"]))
