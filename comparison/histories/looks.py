"""Steps that look at the cluster as a whole, or ask for what it has nothing to do for."""

from functools import partial
from typing import Any

from comparison.histories.asked import Asked, Builder, Settle, Step
from comparison.side import Side
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

PATIENCE_MS = 15_000
TOPICS = 2


def _own_groups(side: Side, answer: Any) -> Any:
    return answer.changed(groups=[each for each in answer.groups if each.group_id.startswith(side.names.prefix)])


def list_groups(side: Side, step: Step) -> Asked:
    """ListGroups, of which this history's count."""
    request = ListGroupsRequest(step.get("states", []), step.get("types", []))
    return Asked(ApiKey.LIST_GROUPS, step["v"], request, step["c"], reads=True, view=partial(_own_groups, side))


def describe_cluster(_side: Side, step: Step) -> Asked:
    """DescribeCluster."""
    request = DescribeClusterRequest(step.get("operations", False), step.get("endpoint", 1))
    return Asked(ApiKey.DESCRIBE_CLUSTER, step["v"], request, step["c"], reads=True)


def describe_log_dirs(side: Side, step: Step) -> Asked:
    """DescribeLogDirs of one topic's partitions."""
    asked = [DescribableLogDirTopic(side.called(step["topic"]), step["partitions"])]
    return Asked(ApiKey.DESCRIBE_LOG_DIRS, step["v"], DescribeLogDirsRequest(asked), step["c"], reads=True)


def _own_topics(side: Side, answer: Any) -> Any:
    own = [each for each in answer.config_resources if each.resource_name.startswith(side.names.prefix)]
    return answer.changed(config_resources=own)


def list_config_resources(side: Side, step: Step) -> Asked:
    """ListConfigResources of topics, of which this history's count."""
    request = ListConfigResourcesRequest([TOPICS])
    view = partial(_own_topics, side)
    return Asked(ApiKey.LIST_CONFIG_RESOURCES, step["v"], request, step["c"], reads=True, view=view)


def reassign(side: Side, step: Step) -> Asked:
    """AlterPartitionReassignments of one partition; null takes a reassignment back."""
    partition = ReassignablePartition(step["partition"], step.get("replicas"))
    topic = ReassignableTopic(side.called(step["topic"]), [partition])
    request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=[topic])
    return Asked(ApiKey.ALTER_PARTITION_REASSIGNMENTS, step["v"], request, step["c"], settle=Settle.METADATA)


def list_reassignments(side: Side, step: Step) -> Asked:
    """ListPartitionReassignments of one topic."""
    topics = [ListPartitionReassignmentsTopics(side.called(step["topic"]), step["partitions"])]
    request = ListPartitionReassignmentsRequest(PATIENCE_MS, topics)
    return Asked(ApiKey.LIST_PARTITION_REASSIGNMENTS, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "list_groups": list_groups,
    "describe_cluster": describe_cluster,
    "describe_log_dirs": describe_log_dirs,
    "list_config_resources": list_config_resources,
    "reassign": reassign,
    "list_reassignments": list_reassignments,
}
