"""Steps of an administrator: topics, partitions, settings, records deleted, and the looks at them."""

from functools import partial
from typing import Any

from comparison.histories.asked import Asked, Builder, Settle, Step
from comparison.side import Side
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

TOPIC, BROKER = 2, 4
PATIENCE_MS = 15_000


def _learn(side: Side, symbol: str, answer: Any) -> None:
    """A topic's id, out of CreateTopics or Metadata."""
    for topic in answer.topics:
        if topic.name == side.called(symbol) and topic.topic_id not in (None, ZERO_UUID):
            side.topics[symbol] = topic.topic_id


def create_topic(side: Side, step: Step) -> Asked:
    """CreateTopics of one topic."""
    configs = [CreatableTopicConfig(name, value) for name, value in step.get("configs", {}).items()]
    placed = [CreatableReplicaAssignment(index, each) for index, each in enumerate(step.get("assign", ()))]
    count, factor = (-1, -1) if placed else (step["partitions"], step.get("factor", 1))
    topic = CreatableTopic(side.called(step["topic"]), count, factor, placed, configs)
    request = CreateTopicsRequest([topic], PATIENCE_MS, step.get("validate", False))
    after = partial(_learn, side, step["topic"])
    return Asked(ApiKey.CREATE_TOPICS, step["v"], request, step["c"], after, Settle.METADATA)


def delete_topic(side: Side, step: Step) -> Asked:
    """DeleteTopics of one topic, by id where the step says so."""
    name = side.called(step["topic"])
    if step["v"] >= 6:  # topics by id (KIP-516)
        by_id = step.get("by_id", False)
        topic = DeleteTopicState(None, side.topic_id(step["topic"])) if by_id else DeleteTopicState(name)
        request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[topic])
    else:
        request = DeleteTopicsRequest([name], PATIENCE_MS, [DeleteTopicState(name)])
    return Asked(ApiKey.DELETE_TOPICS, step["v"], request, step["c"], settle=Settle.METADATA)


def create_partitions(side: Side, step: Step) -> Asked:
    """CreatePartitions: a topic gets more of them."""
    placed = [CreatePartitionsAssignment(each) for each in step["assign"]] if "assign" in step else None
    topic = CreatePartitionsTopic(side.called(step["topic"]), step["count"], placed)
    request = CreatePartitionsRequest([topic], PATIENCE_MS, step.get("validate", False))
    return Asked(ApiKey.CREATE_PARTITIONS, step["v"], request, step["c"], settle=Settle.METADATA)


def metadata(side: Side, step: Step) -> Asked:
    """Metadata of some topics; it may create them."""
    topics = [MetadataRequestTopic(side.called(symbol)) for symbol in step["topics"]]
    auto = step.get("auto", False)
    request = MetadataRequest(topics, auto, include_topic_authorized_operations=step.get("operations", False))

    def after(answer: Any) -> None:
        for symbol in step["topics"]:
            _learn(side, symbol, answer)

    settle = Settle.METADATA if auto else Settle.NOTHING
    return Asked(ApiKey.METADATA, step["v"], request, step["c"], after, settle, reads=not auto)


def describe_topic(side: Side, step: Step) -> Asked:
    """DescribeTopicPartitions."""
    topics = [TopicRequest(side.called(symbol)) for symbol in sorted(step["topics"])]
    request = DescribeTopicPartitionsRequest(topics, step.get("limit", 2000), None)
    return Asked(ApiKey.DESCRIBE_TOPIC_PARTITIONS, step["v"], request, step["c"], reads=True)


def describe_configs(side: Side, step: Step) -> Asked:
    """DescribeConfigs of a topic."""
    resource = DescribeConfigsResource(TOPIC, side.called(step["topic"]), step.get("keys"))
    request = DescribeConfigsRequest([resource], step.get("synonyms", False), False)
    return Asked(ApiKey.DESCRIBE_CONFIGS, step["v"], request, step["c"], reads=True)


def alter_configs(side: Side, step: Step) -> Asked:
    """IncrementalAlterConfigs of a topic; each change is [name, operation, value]."""
    changes = [Alteration(name, operation, value) for name, operation, value in step["changes"]]
    resource = Altered(TOPIC, side.called(step["topic"]), changes)
    request = IncrementalAlterConfigsRequest([resource], step.get("validate", False))
    return Asked(ApiKey.INCREMENTAL_ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def replace_configs(side: Side, step: Step) -> Asked:
    """AlterConfigs of a topic: what is not named goes."""
    configs = [AlterableConfig(name, value) for name, value in step["configs"].items()]
    resource = AlterConfigsResource(TOPIC, side.called(step["topic"]), configs)
    request = AlterConfigsRequest([resource], step.get("validate", False))
    return Asked(ApiKey.ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def delete_records(side: Side, step: Step) -> Asked:
    """DeleteRecords of one partition."""
    partitions = [DeleteRecordsPartition(step["partition"], step["offset"])]
    request = DeleteRecordsRequest([DeleteRecordsTopic(side.called(step["topic"]), partitions)], PATIENCE_MS)
    return Asked(ApiKey.DELETE_RECORDS, step["v"], request, step["c"])


def elect_leaders(side: Side, step: Step) -> Asked:
    """ElectLeaders of one partition."""
    asked = [TopicPartitions(side.called(step["topic"]), [step["partition"]])]
    request = ElectLeadersRequest(asked, PATIENCE_MS, step["type"])
    return Asked(ApiKey.ELECT_LEADERS, step["v"], request, step["c"], settle=Settle.METADATA)


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
