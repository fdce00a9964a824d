"""AlterPartitionReassignments: moves partitions to other brokers, or cancels that (KIP-455; KIP-860).

Versions 0-1. Differs from Kafka: new replicas get all records in the same step, so a reassignment completes immediately
if their brokers are up.
"""

from itertools import islice

from broker.coordination.metadata.machine import Result
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, ctx: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Start, change or cancel the reassignment of each partition (core B.11); one result per entry."""
    check_on_cluster(ctx, AclOperation.ALTER)
    if not request.topics:  # QuorumController.alterPartitionReassignments: the default response
        return AlterPartitionReassignmentsResponse(error_message="")
    # Permission at the front of the controller, the deadline in its queue (ControllerApis, QuorumController).
    if request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    targets = [
        (topic.name, each.partition_index, each.replicas) for topic in request.topics for each in topic.partitions
    ]
    answers: list[Result] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.alter_partition_reassignments(
            targets, token, factor_may_change=request.allow_replication_factor_change
        ),
        records=len(targets),
    )
    results = iter([_result(index, error) for (_, index), error in answers])
    responses = [
        ReassignableTopicResponse(topic.name, list(islice(results, len(topic.partitions)))) for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=responses,
        allow_replication_factor_change=request.allow_replication_factor_change,
    )


def _result(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(index, error_message=None)
    return ReassignablePartitionResponse(index, error.code, error.message)


def refuse(
    request: AlterPartitionReassignmentsRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> AlterPartitionReassignmentsResponse:
    """Put the error at the top level and on every partition; the request's flag is not returned."""
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(topic.name, [_result(each.partition_index, error) for each in topic.partitions])
            for topic in request.topics
        ],
    )


API: Api[AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse] = Api(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, handle, refuse
)
