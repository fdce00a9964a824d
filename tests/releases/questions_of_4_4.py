"""Questions that 4.4 and 4.3 answer differently; earlier releases were not asked."""

from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.batch import batches
from protocol.records.records import read_records
from tests.releases.asking import GROUP, Client

TOPIC, BROKER, GROUPS = 2, 4, 32


def a_client_of_another_cluster(client: Client) -> str:
    """ApiVersions v5 names the cluster and the node; either alone is no request (KIP-1242)."""
    codes = []
    for cluster_id, node_id in ((None, -1), ("elsewhere", 1), ("elsewhere", -1), (None, 1)):
        request = ApiVersionsRequest("client", "1", cluster_id, node_id)
        codes.append(client.ask(ApiKey.API_VERSIONS, request, at_least=5).error_code.name)
    return " ".join(codes)


def stored_offsets_of_a_transaction(client: Client) -> str:
    """Whether the record has the topic's id."""
    name, group, topic = client.name("tx"), client.name("group"), client.topic()
    producer = client.producer(name)
    client.coordinator(group, GROUP)
    part = TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 5)])
    request = TxnOffsetCommitRequest(name, group, producer.producer_id, producer.producer_epoch, [part])
    client.settled(
        lambda: client.ask(ApiKey.TXN_OFFSET_COMMIT, request, at_most=5),
        lambda response: response.topics[0].partitions[0].error_code,
    )
    metadata = client.ask(ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name=topic)]), at_most=12).topics[0]
    values = [value for key, value in offsets_log(client) if group.encode() in key]
    return " ".join("with the id" if metadata.topic_id.bytes in value else "without" for value in values)


def offsets_of_a_transaction_by_topic_id(client: Client) -> str:
    """TxnOffsetCommit v6 (KIP-1319): of groups, consumers, topics and partitions that exist and do not."""
    name, group, absent, topic = client.name("tx"), client.name("group"), client.name("group"), client.topic()
    producer = client.producer(name)
    client.coordinator(group, GROUP)
    client.coordinator(absent, GROUP)
    known = client.ask(ApiKey.METADATA, MetadataRequest([MetadataRequestTopic(name=topic)]), at_most=12).topics[0]

    def commit(group_id: str, epoch: int, member: str, topic_id: UUID = known.topic_id, partition: int = 0) -> str:
        part = TxnOffsetCommitRequestTopic("", [TxnOffsetCommitRequestPartition(partition, 5)], topic_id)
        request = TxnOffsetCommitRequest(
            name,
            group_id,
            producer.producer_id,
            producer.producer_epoch,
            generation_id=epoch,
            member_id=member,
            topics=[part],
        )
        answer = client.ask(ApiKey.TXN_OFFSET_COMMIT, request, at_least=6)
        return str(answer.topics[0].partitions[0].error_code.name)

    beat(client, group, topic, 0)
    codes = [
        commit(absent, -1, ""),
        commit(client.name("group"), 1, "C1"),
        commit(group, 2, "C1"),
        commit(group, 1, "C1"),
        commit(group, 9, "C1"),
        commit(group, 2, "C2"),
        commit(group, 2, "C1", UUID(int=9)),
        commit(group, 2, "C1", partition=7),
    ]
    return " ".join(codes)


def offsets_log(client: Client) -> list[tuple[bytes, bytes]]:
    """Keys and values of all records in the offsets topic."""
    partitions = [FetchPartition(index, 0, 1 << 20) for index in range(4)]
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 22, topics=[FetchTopic("__consumer_offsets", partitions)])
    answer = client.ask(ApiKey.FETCH, request, at_most=12)
    return [
        (bytes(record.key or b""), bytes(record.value or b""))
        for part in answer.responses[0].partitions
        for batch in batches(part.records or b"")
        if not batch.is_control
        for record in read_records(batch)
    ]


def newer_settings_of_a_topic(client: Client) -> str:
    """Those that 4.4 added."""
    return _settings(client, TOPIC, client.topic())


def newer_settings_of_a_broker(client: Client) -> str:
    """Those that 4.4 added."""
    return _settings(client, BROKER, "1")


def newer_settings_of_a_group(client: Client) -> str:
    """Those that 4.4 added."""
    return _settings(client, GROUPS, client.name("group"))


_NEWER = ("decompressed", "errors.", "remote.copy", "streams.", "share.assignor", "unverified", "assignor")


def _settings(client: Client, kind: int, name: str) -> str:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], True, True)
    described = client.ask(ApiKey.DESCRIBE_CONFIGS, request).results[0]
    rows = [
        f"{each.name}={each.value} type {each.config_type} from {each.config_source}{' read-only' * each.read_only} "
        + ",".join(f"{synonym.name}" for synonym in each.synonyms)
        for each in sorted(described.configs, key=lambda each: str(each.name))
        if any(part in each.name for part in _NEWER)
    ]
    return f"{described.error_code.name} " + "; ".join(rows)


def a_group_s_setting_out_of_bounds(client: Client) -> str:
    """The texts."""
    texts = []
    for key, value in (
        ("consumer.session.timeout.ms", "1"),
        ("consumer.session.timeout.ms", "9999999"),
        ("consumer.heartbeat.interval.ms", "1"),
        ("consumer.heartbeat.interval.ms", "50000"),
        ("share.session.timeout.ms", "1"),
        ("share.record.lock.duration.ms", "1"),
        ("streams.session.timeout.ms", "1"),
        ("streams.num.standby.replicas", "9"),
        ("share.delivery.count.limit", "99"),
    ):
        answer = _alter(client, GROUPS, client.name("group"), key, value, 0)
        texts.append(f"{answer.error_code.name} {answer.error_message}")
    return " | ".join(texts)


def _alter(client: Client, kind: int, name: str, key: str, value: str, operation: int) -> Any:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
    return client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest([resource])).responses[0]


def an_unknown_operation_on_a_setting(client: Client) -> str:
    """Operation 4."""
    answer = _alter(client, TOPIC, client.topic(), "retention.ms", "1", 4)
    return f"{answer.error_code.name} {answer.error_message}"


def as_many_partitions_as_an_int_has(client: Client) -> str:
    """CreatePartitions to 2^31-1."""
    request = CreatePartitionsRequest([CreatePartitionsTopic(client.topic(), 2**31 - 1)], 10_000)
    answer = client.ask(ApiKey.CREATE_PARTITIONS, request).results[0]
    return f"{answer.error_code.name} {answer.error_message}"


def a_setting_for_decompression(client: Client) -> str:
    """Values that max.decompressed.message.bytes takes."""
    return " ".join(
        client.create(client.name("topic"), {"max.decompressed.message.bytes": value}).error_code.name
        for value in ("100", "0", "-1", "2147483639", "2147483640")
    )


def a_batch_that_grows(client: Client) -> str:
    """A compressed batch whose records take more than max.decompressed.message.bytes."""
    topic = client.topic({"max.decompressed.message.bytes": "8"})
    answer = client.produce(topic, codec=1)
    return f"{answer.error_code.name} {answer.error_message}"


def a_consumer_group_that_all_have_left(client: Client) -> str:
    """Its epoch and the assignment's."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    epochs = [beat(client, group, topic, 0), beat(client, group, topic, -1)]
    description = client.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group])).groups[0]
    return f"{epochs} {description.group_state} {description.group_epoch} {description.assignment_epoch}"


def a_static_member_that_returns_to_a_full_group(client: Client) -> str:
    """Under another member id, after it left for a while; the broker takes 3 members."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    beat(client, group, topic, 0, "C1")
    beat(client, group, topic, 0, "C2")
    codes = [beat(client, group, topic, 0, "S1", "i"), beat(client, group, topic, 0, "C3")]
    codes += [beat(client, group, topic, -2, "S1", "i"), beat(client, group, topic, 0, "C3")]
    return " ".join((*codes, beat(client, group, topic, 0, "S2", "i")))


def a_vote_for_another_assignor(client: Client) -> str:
    """The epochs of the only member, whose vote is the first."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    return " ".join((beat(client, group, topic, 0), beat(client, group, topic, 2, assignor="range")))


def a_classic_group_that_cannot_be_read(client: Client) -> str:
    """A consumer comes to a group whose only member was given an assignment that is none."""
    group, topic = client.name("group"), client.topic()
    client.coordinator(group, GROUP)
    offered = [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\xff\xff\xff\xff")]
    joining = JoinGroupRequest(group, 10_000, "", "consumer", offered, 10_000)
    member = client.ask(ApiKey.JOIN_GROUP, joining, at_most=3)
    assignments = [SyncGroupRequestAssignment(member.member_id, b"no assignment")]
    client.ask(ApiKey.SYNC_GROUP, SyncGroupRequest(group, 1, member.member_id, assignments), at_most=2)
    return beat(client, group, topic, 0)


def beat(
    client: Client,
    group: str,
    topic: str,
    epoch: int,
    member: str = "C1",
    instance: str | None = None,
    assignor: str | None = None,
) -> str:
    """Code and member epoch of a heartbeat."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=10_000 if epoch == 0 else -1,
        subscribed_topic_names=[topic] if epoch == 0 else None,
        topic_partitions=() if epoch == 0 else None,
        server_assignor=assignor,
    )
    answer = client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
    return f"{answer.error_code.name} {answer.member_epoch}"


QUESTIONS = (
    a_client_of_another_cluster,
    stored_offsets_of_a_transaction,
    offsets_of_a_transaction_by_topic_id,
    newer_settings_of_a_topic,
    newer_settings_of_a_broker,
    newer_settings_of_a_group,
    a_group_s_setting_out_of_bounds,
    an_unknown_operation_on_a_setting,
    as_many_partitions_as_an_int_has,
    a_setting_for_decompression,
    a_batch_that_grows,
    a_consumer_group_that_all_have_left,
    a_static_member_that_returns_to_a_full_group,
    a_vote_for_another_assignor,
    a_classic_group_that_cannot_be_read,
)
