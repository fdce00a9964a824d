"""ListPartitionReassignments: core B.11."""

import pytest

from broker.handlers.list_partition_reassignments import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.handlers.admin_harness import AdminStage

RequestedTopics = list[ListPartitionReassignmentsTopics] | None


@pytest.mark.parametrize("topics", [None, [ListPartitionReassignmentsTopics("foo", [0, 1, 9])]])
async def test_only_partitions_that_move_are_listed(topics: RequestedTopics) -> None:
    """Of all partitions, or of those that are named; with added and removed replicas."""
    stage = AdminStage(2)
    stage.topic("foo", [1], [1])
    stage.topic("bar", [1])
    stage.cluster.metadata.submit(lambda _now_ms: stage.machine.alter_partition_reassignments([("foo", 1, [2])]))
    answer = await stage.ask(API, ListPartitionReassignmentsRequest(topics=topics))
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    ((topic, (partition,)),) = [(t.name, t.partitions) for t in answer.topics]
    assert (topic, partition.partition_index) == ("foo", 1)
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ((2, 1), (2,), (1,))


async def test_names_that_mean_nothing_are_left_out() -> None:
    """Topics and partitions that do not exist are left out of the response, without an error."""
    topics = [ListPartitionReassignmentsTopics("no", [0])]
    assert (await AdminStage().ask(API, ListPartitionReassignmentsRequest(topics=topics))).topics == ()


async def test_it_needs_describe_on_the_cluster() -> None:
    """CLUSTER_AUTHORIZATION_FAILED at the top level."""
    denied = {(AclOperation.DESCRIBE, ResourceType.CLUSTER)}
    answer = await AdminStage().ask(API, ListPartitionReassignmentsRequest(topics=None), denied=denied)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
