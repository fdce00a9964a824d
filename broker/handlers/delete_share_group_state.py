"""DeleteShareGroupState: deletes the state of share partitions; sent by group coordinators (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import ask_own, each_partition, refused_partitions
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)

_RPC = "delete share group state"


async def handle(request: DeleteShareGroupStateRequest, ctx: RequestContext) -> DeleteShareGroupStateResponse:
    """Delete the state of each partition at this broker's share coordinator (groups D.9)."""

    async def answer(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:  # noqa: ARG001
        result = await ask_own(ctx, key, StateResult, _RPC, lambda machine, now_ms, to: machine.delete(key, now_ms, to))
        return PartitionResult(key.partition, result.error, result.message)

    results = await each_partition(request, ctx, answer)
    return DeleteShareGroupStateResponse([DeleteStateResult(topic_id, partitions) for topic_id, partitions in results])


def refuse(request: DeleteShareGroupStateRequest, error: KafkaError, version: int) -> DeleteShareGroupStateResponse:  # noqa: ARG001
    """Put the error on every partition."""
    results = refused_partitions(
        request, error, lambda partition, code, text: PartitionResult(partition, error_code=code, error_message=text)
    )
    return DeleteShareGroupStateResponse([DeleteStateResult(topic_id, partitions) for topic_id, partitions in results])


API: Api[DeleteShareGroupStateRequest, DeleteShareGroupStateResponse] = Api(
    ApiKey.DELETE_SHARE_GROUP_STATE, (0, 0), handle, refuse
)
