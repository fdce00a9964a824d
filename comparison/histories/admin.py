"""Steps of an administrator: topics, partitions, configs, deleted records, and their descriptions."""

from functools import partial
from typing import Any

from comparison.histories.step_request import PATIENCE_MS, Builder, Settle, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
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
from protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import AlterableConfig as Alteration
from protocol.messages.incremental_alter_configs import AlterConfigsResource as Altered
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import ZERO_UUID

TOPIC, BROKER = 2, 4  # ConfigResource.Type


def _learn(target: Target, symbol: str, answer: Any) -> None:
    """Store a topic's id from a CreateTopics or Metadata response."""
    for topic in answer.topics:
        if topic.name == target.called(symbol) and topic.topic_id not in (None, ZERO_UUID):
            target.topics[symbol] = topic.topic_id


def create_topic(target: Target, step: Step) -> StepRequest:
    """CreateTopics of one topic."""
    configs = [CreatableTopicConfig(name, value) for name, value in step.get("configs", {}).items()]
    assignments = [CreatableReplicaAssignment(index, each) for index, each in enumerate(step.get("assign", ()))]
    count, factor = (-1, -1) if assignments else (step["partitions"], step.get("factor", 1))
    topic = CreatableTopic(target.called(step["topic"]), count, factor, assignments, configs)
    request = CreateTopicsRequest([topic], PATIENCE_MS, step.get("validate", False))
    after = partial(_learn, target, step["topic"])
    return StepRequest(ApiKey.CREATE_TOPICS, step["v"], request, step["c"], after, Settle.METADATA)


def delete_topic(target: Target, step: Step) -> StepRequest:
    """DeleteTopics of one topic, by id if the step has `by_id`."""
    name = target.called(step["topic"])
    if step["v"] >= 6:  # topics by id (KIP-516)
        by_id = step.get("by_id", False)
        topic = DeleteTopicState(None, target.topic_id(step["topic"])) if by_id else DeleteTopicState(name)
        request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[topic])
    else:
        request = DeleteTopicsRequest([name], PATIENCE_MS, [DeleteTopicState(name)])
    return StepRequest(ApiKey.DELETE_TOPICS, step["v"], request, step["c"], settle=Settle.METADATA)


def create_partitions(target: Target, step: Step) -> StepRequest:
    """CreatePartitions of one topic."""
    assignments = [CreatePartitionsAssignment(replicas) for replicas in step["assign"]] if "assign" in step else None
    topic = CreatePartitionsTopic(target.called(step["topic"]), step["count"], assignments)
    request = CreatePartitionsRequest([topic], PATIENCE_MS, step.get("validate", False))
    return StepRequest(ApiKey.CREATE_PARTITIONS, step["v"], request, step["c"], settle=Settle.METADATA)


def metadata(target: Target, step: Step) -> StepRequest:
    """Metadata of some topics; it may create them."""
    topics = [MetadataRequestTopic(target.called(symbol)) for symbol in step["topics"]]
    auto = step.get("auto", False)
    request = MetadataRequest(topics, auto, include_topic_authorized_operations=step.get("operations", False))

    def after(answer: Any) -> None:
        for symbol in step["topics"]:
            _learn(target, symbol, answer)

    settle = Settle.METADATA if auto else Settle.NOTHING
    return StepRequest(ApiKey.METADATA, step["v"], request, step["c"], after, settle, reads=not auto)


def describe_topic(target: Target, step: Step) -> StepRequest:
    """DescribeTopicPartitions."""
    topics = [TopicRequest(target.called(symbol)) for symbol in sorted(step["topics"])]
    # 2000: the default of max.request.partition.size.limit.
    request = DescribeTopicPartitionsRequest(topics, step.get("limit", 2000), None)
    return StepRequest(ApiKey.DESCRIBE_TOPIC_PARTITIONS, step["v"], request, step["c"], reads=True)


def describe_configs(target: Target, step: Step) -> StepRequest:
    """DescribeConfigs of a topic."""
    resource = DescribeConfigsResource(TOPIC, target.called(step["topic"]), step.get("keys"))
    request = DescribeConfigsRequest([resource], step.get("synonyms", False), False)
    return StepRequest(ApiKey.DESCRIBE_CONFIGS, step["v"], request, step["c"], reads=True)


def alter_configs(target: Target, step: Step) -> StepRequest:
    """IncrementalAlterConfigs of a topic; each change is [name, operation, value]."""
    changes = [Alteration(name, operation, value) for name, operation, value in step["changes"]]
    resource = Altered(TOPIC, target.called(step["topic"]), changes)
    request = IncrementalAlterConfigsRequest([resource], step.get("validate", False))
    return StepRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def replace_configs(target: Target, step: Step) -> StepRequest:
    """AlterConfigs of a topic: configs that are not named are removed."""
    configs = [AlterableConfig(name, value) for name, value in step["configs"].items()]
    resource = AlterConfigsResource(TOPIC, target.called(step["topic"]), configs)
    request = AlterConfigsRequest([resource], step.get("validate", False))
    return StepRequest(ApiKey.ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def delete_records(target: Target, step: Step) -> StepRequest:
    """DeleteRecords of one partition."""
    partitions = [DeleteRecordsPartition(step["partition"], step["offset"])]
    request = DeleteRecordsRequest([DeleteRecordsTopic(target.called(step["topic"]), partitions)])
    request.timeout_ms = step.get("timeout", PATIENCE_MS)
    return StepRequest(ApiKey.DELETE_RECORDS, step["v"], request, step["c"])


def elect_leaders(target: Target, step: Step) -> StepRequest:
    """ElectLeaders of one partition."""
    topics = [TopicPartitions(target.called(step["topic"]), [step["partition"]])]
    request = ElectLeadersRequest(topics, PATIENCE_MS, step["type"])
    return StepRequest(ApiKey.ELECT_LEADERS, step["v"], request, step["c"], settle=Settle.METADATA)


STEPS: dict[str, Builder] = {
    "create_topic": create_topic,
    "delete_topic": delete_topic,
    "create_partitions": create_partitions,
    "metadata": metadata,
    "describe_topic": describe_topic,
    "describe_configs": describe_configs,
    "alter_configs": alter_configs,
    "replace_configs": replace_configs,
    "delete_records": delete_records,
    "elect_leaders": elect_leaders,
}
