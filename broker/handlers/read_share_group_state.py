"""ReadShareGroupState: reads the state of share partitions; sent by partition leaders (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import ReadResult, SharePartitionKey
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import ask_own, each_partition, refused_partitions
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

_RPC = "read share group state"


async def handle(request: ReadShareGroupStateRequest, ctx: RequestContext) -> ReadShareGroupStateResponse:
    """Read the state of each partition at this broker's share coordinator (groups D.9)."""

    async def answer(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        result = await ask_own(
            ctx, key, ReadResult, _RPC, lambda machine, now_ms, to: machine.read(key, asked.leader_epoch, now_ms, to)
        )
        if result.failed:
            return PartitionResult(key.partition, result.error, result.message)
        return PartitionResult(
            key.partition,
            state_epoch=result.state_epoch,
            start_offset=result.start_offset,
            state_batches=[StateBatch(*each) for each in result.batches],
        )

    results = await each_partition(request, ctx, answer)
    return ReadShareGroupStateResponse([ReadStateResult(topic_id, partitions) for topic_id, partitions in results])


def refuse(request: ReadShareGroupStateRequest, error: KafkaError, version: int) -> ReadShareGroupStateResponse:  # noqa: ARG001
    """Put the error on every partition."""
    results = refused_partitions(
        request, error, lambda partition, code, text: PartitionResult(partition, error_code=code, error_message=text)
    )
    return ReadShareGroupStateResponse([ReadStateResult(topic_id, partitions) for topic_id, partitions in results])


API: Api[ReadShareGroupStateRequest, ReadShareGroupStateResponse] = Api(
    ApiKey.READ_SHARE_GROUP_STATE, (0, 0), handle, refuse
)
