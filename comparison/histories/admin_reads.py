"""Steps that read the state of the whole cluster, and reassignments."""

from functools import partial
from typing import Any

from comparison.histories.step_request import PATIENCE_MS, Builder, Settle, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

TOPICS = 2  # ConfigResource.Type, as below: brokers and their loggers
BROKERS = (4, 8)  # ConfigResource.Type BROKER and BROKER_LOGGER


def _own_groups(target: Target, answer: Any) -> Any:
    return answer.changed(groups=[group for group in answer.groups if group.group_id.startswith(target.names.prefix)])


def list_groups(target: Target, step: Step) -> StepRequest:
    """ListGroups, reduced to this history's groups."""
    request = ListGroupsRequest(step.get("states", []), step.get("types", []))
    return StepRequest(ApiKey.LIST_GROUPS, step["v"], request, step["c"], reads=True, view=partial(_own_groups, target))


def describe_cluster(_target: Target, step: Step) -> StepRequest:
    """DescribeCluster."""
    request = DescribeClusterRequest(step.get("operations", False), step.get("endpoint", 1))
    return StepRequest(ApiKey.DESCRIBE_CLUSTER, step["v"], request, step["c"], reads=True)


def describe_log_dirs(target: Target, step: Step) -> StepRequest:
    """DescribeLogDirs of one topic's partitions."""
    topics = [DescribableLogDirTopic(target.called(step["topic"]), step["partitions"])]
    return StepRequest(ApiKey.DESCRIBE_LOG_DIRS, step["v"], DescribeLogDirsRequest(topics), step["c"], reads=True)


def own_resources(target: Target, answer: Any) -> Any:
    """Reduce the response to brokers and to this history's topics, groups and subscriptions."""
    resources = [
        resource
        for resource in answer.config_resources
        if resource.resource_type in BROKERS or resource.resource_name.startswith(target.names.prefix)
    ]
    return answer.changed(config_resources=resources)


def list_config_resources(target: Target, step: Step) -> StepRequest:
    """ListConfigResources of topics, reduced to this history's topics."""
    request = ListConfigResourcesRequest([TOPICS])
    view = partial(own_resources, target)
    return StepRequest(ApiKey.LIST_CONFIG_RESOURCES, step["v"], request, step["c"], reads=True, view=view)


def reassign(target: Target, step: Step) -> StepRequest:
    """AlterPartitionReassignments of one partition; null cancels a reassignment."""
    partition = ReassignablePartition(step["partition"], step.get("replicas"))
    topic = ReassignableTopic(target.called(step["topic"]), [partition])
    request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=[topic])
    return StepRequest(ApiKey.ALTER_PARTITION_REASSIGNMENTS, step["v"], request, step["c"], settle=Settle.METADATA)


def list_reassignments(target: Target, step: Step) -> StepRequest:
    """ListPartitionReassignments of one topic."""
    topics = [ListPartitionReassignmentsTopics(target.called(step["topic"]), step["partitions"])]
    request = ListPartitionReassignmentsRequest(PATIENCE_MS, topics)
    return StepRequest(ApiKey.LIST_PARTITION_REASSIGNMENTS, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "list_groups": list_groups,
    "describe_cluster": describe_cluster,
    "describe_log_dirs": describe_log_dirs,
    "list_config_resources": list_config_resources,
    "reassign": reassign,
    "list_reassignments": list_reassignments,
}
