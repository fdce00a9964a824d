"""Steps of an administrator with several entries in one request, including duplicates and conflicting entries."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from comparison.histories.step_request import PATIENCE_MS, Builder, Settle, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import AlterableConfig as Alteration
from protocol.messages.incremental_alter_configs import AlterConfigsResource as Altered
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.types import ZERO_UUID

TOPICS_BY_ID = 6
"""First version of DeleteTopics with topic ids (KIP-516)."""


def _learn(target: Target, symbols: Sequence[str], answer: Any) -> None:
    for topic in answer.topics:
        for symbol in symbols:
            if topic.name == target.called(symbol) and topic.topic_id not in (None, ZERO_UUID):
                target.topics[symbol] = topic.topic_id


def create_topics(target: Target, step: Step) -> StepRequest:
    """CreateTopics: each topic has `topic`, `partitions`, `factor`, `assign` ([[index, replicas]]) and `configs`."""
    topics = [
        CreatableTopic(
            target.called(topic["topic"]),
            topic["partitions"],
            topic["factor"],
            [CreatableReplicaAssignment(index, replicas) for index, replicas in topic.get("assign", ())],
            [CreatableTopicConfig(name, value) for name, value in topic.get("configs", ())],
        )
        for topic in step["topics"]
    ]
    request = CreateTopicsRequest(topics, PATIENCE_MS, step.get("validate", False))
    after = partial(_learn, target, [topic["topic"] for topic in step["topics"]])
    return StepRequest(ApiKey.CREATE_TOPICS, step["v"], request, step["c"], after, Settle.METADATA)


def delete_topics(target: Target, step: Step) -> StepRequest:
    """DeleteTopics: each is [how, topic], where `how` is name, id, both or neither."""
    topics = [
        DeleteTopicState(
            target.called(symbol) if how in ("name", "both") else None,
            target.topic_id(symbol) if how in ("id", "both") else ZERO_UUID,
        )
        for how, symbol in step["topics"]
    ]
    names = [target.called(symbol) for _, symbol in step["topics"]]
    if step["v"] >= TOPICS_BY_ID:
        request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=topics)
    else:
        request = DeleteTopicsRequest(names, PATIENCE_MS, [DeleteTopicState(name) for name in names])
    return StepRequest(ApiKey.DELETE_TOPICS, step["v"], request, step["c"], settle=Settle.METADATA)


def create_more(target: Target, step: Step) -> StepRequest:
    """CreatePartitions: each is [topic, count, replicas of each new one or null]."""
    topics = [
        CreatePartitionsTopic(
            target.called(symbol),
            count,
            None if assign is None else [CreatePartitionsAssignment(replicas) for replicas in assign],
        )
        for symbol, count, assign in step["topics"]
    ]
    request = CreatePartitionsRequest(topics, PATIENCE_MS, step.get("validate", False))
    return StepRequest(ApiKey.CREATE_PARTITIONS, step["v"], request, step["c"], settle=Settle.METADATA)


def alter_resources(target: Target, step: Step) -> StepRequest:
    """IncrementalAlterConfigs: each is [type, name, [[key, operation, value]]]."""
    resources = [
        Altered(kind, target.called(name), [Alteration(*change) for change in changes])
        for kind, name, changes in step["resources"]
    ]
    request = IncrementalAlterConfigsRequest(resources, step.get("validate", False))
    return StepRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def replace_resources(target: Target, step: Step) -> StepRequest:
    """AlterConfigs: each is [type, name, [[key, value]]]."""
    resources = [
        AlterConfigsResource(kind, target.called(name), [AlterableConfig(*config) for config in configs])
        for kind, name, configs in step["resources"]
    ]
    request = AlterConfigsRequest(resources, step.get("validate", False))
    return StepRequest(ApiKey.ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def describe_resources(target: Target, step: Step) -> StepRequest:
    """DescribeConfigs: each is [type, name, keys or null]."""
    resources = [DescribeConfigsResource(kind, target.called(name), keys) for kind, name, keys in step["resources"]]
    request = DescribeConfigsRequest(resources, step.get("synonyms", False), False)
    return StepRequest(ApiKey.DESCRIBE_CONFIGS, step["v"], request, step["c"], reads=True)


def elect_many(target: Target, step: Step) -> StepRequest:
    """ElectLeaders: each is [topic, partitions]; null: of all partitions."""
    step_topics = step["topics"]
    topics = (
        None
        if step_topics is None
        else [TopicPartitions(target.called(symbol), partitions) for symbol, partitions in step_topics]
    )
    request = ElectLeadersRequest(topics, PATIENCE_MS, step["type"])
    return StepRequest(ApiKey.ELECT_LEADERS, step["v"], request, step["c"], settle=Settle.METADATA)


def reassign_many(target: Target, step: Step) -> StepRequest:
    """AlterPartitionReassignments: each is [topic, [[partition, replicas or null]]]."""
    topics = [
        ReassignableTopic(target.called(symbol), [ReassignablePartition(*partition) for partition in partitions])
        for symbol, partitions in step["topics"]
    ]
    request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=topics)
    if "factor" in step:
        request.allow_replication_factor_change = step["factor"]
    return StepRequest(ApiKey.ALTER_PARTITION_REASSIGNMENTS, step["v"], request, step["c"], settle=Settle.METADATA)


def delete_many_records(target: Target, step: Step) -> StepRequest:
    """DeleteRecords: each is [topic, [[partition, offset]]]."""
    topics = [
        DeleteRecordsTopic(target.called(symbol), [DeleteRecordsPartition(*partition) for partition in partitions])
        for symbol, partitions in step["topics"]
    ]
    request = DeleteRecordsRequest(topics, PATIENCE_MS)
    return StepRequest(ApiKey.DELETE_RECORDS, step["v"], request, step["c"])


STEPS: dict[str, Builder] = {
    "create_topics": create_topics,
    "delete_topics": delete_topics,
    "create_more": create_more,
    "alter_resources": alter_resources,
    "replace_resources": replace_resources,
    "describe_resources": describe_resources,
    "elect_many": elect_many,
    "reassign_many": reassign_many,
    "delete_many_records": delete_many_records,
}
