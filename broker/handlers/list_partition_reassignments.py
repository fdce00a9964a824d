"""ListPartitionReassignments: lists reassignments in progress (KIP-455).

Version 0. Not done: nothing.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(request: ListPartitionReassignmentsRequest, ctx: RequestContext) -> ListPartitionReassignmentsResponse:
    """List reassignments; unknown topics and partitions without one are left out (core B.11)."""
    check_on_cluster(ctx, AclOperation.DESCRIBE)
    image = ctx.cluster.image
    if request.topics is None:
        requested = [(topic.name, index) for topic, index, _ in image.all_partitions()]
    else:
        requested = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    topics: dict[str, list[OngoingPartitionReassignment]] = {}
    for name, index in requested:
        partition = image.partition(name, index)
        if partition is not None and partition.reassigning:
            topics.setdefault(name, []).append(
                OngoingPartitionReassignment(
                    index, partition.replicas, partition.adding_replicas, partition.removing_replicas
                )
            )
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[OngoingTopicReassignment(name, partitions) for name, partitions in topics.items()]
    )


API: Api[ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse] = Api(
    ApiKey.LIST_PARTITION_REASSIGNMENTS, handle, top_level_with_message(ListPartitionReassignmentsResponse)
)
