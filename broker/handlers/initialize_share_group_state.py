"""InitializeShareGroupState: creates the state of share partitions; sent by group coordinators (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import ask_own, each_partition, refused_partitions
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)

_RPC = "initialize share group state"


async def handle(request: InitializeShareGroupStateRequest, ctx: RequestContext) -> InitializeShareGroupStateResponse:
    """Create the state of each partition at this broker's share coordinator (groups D.9)."""

    async def answer(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        result = await ask_own(
            ctx,
            key,
            StateResult,
            _RPC,
            lambda machine, now_ms, to: machine.initialize(key, asked.state_epoch, asked.start_offset, now_ms, to),
        )
        return PartitionResult(key.partition, result.error, result.message)

    results = await each_partition(request, ctx, answer, all_have_partitions=False)
    return InitializeShareGroupStateResponse(
        [InitializeStateResult(topic_id, partitions) for topic_id, partitions in results]
    )


def refuse(
    request: InitializeShareGroupStateRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> InitializeShareGroupStateResponse:
    """Put the error on every partition."""
    results = refused_partitions(
        request, error, lambda partition, code, text: PartitionResult(partition, error_code=code, error_message=text)
    )
    return InitializeShareGroupStateResponse(
        [InitializeStateResult(topic_id, partitions) for topic_id, partitions in results]
    )


API: Api[InitializeShareGroupStateRequest, InitializeShareGroupStateResponse] = Api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE, (0, 0), handle, refuse
)
