"""WriteShareGroupState: writes the state of share partitions; sent by partition leaders (KIP-932).

Versions 0-1; the delivery-complete count since v1 (KIP-1226). Not done: nothing.
"""

from broker.coordination.share_state.machine import StateWrite
from broker.coordination.share_state.persister import SharePartitionKey, StateBatch, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import ask_own, each_partition, refused_partitions
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

_RPC = "write share group state"


async def handle(request: WriteShareGroupStateRequest, ctx: RequestContext) -> WriteShareGroupStateResponse:
    """Write the state of each partition at this broker's share coordinator (groups D.9)."""

    async def answer(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        change = StateWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            [
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in asked.state_batches
            ],
        )
        result = await ask_own(
            ctx, key, StateResult, _RPC, lambda machine, now_ms, to: machine.write(key, change, now_ms, to)
        )
        return PartitionResult(key.partition, result.error, result.message)

    results = await each_partition(request, ctx, answer)
    return WriteShareGroupStateResponse([WriteStateResult(topic_id, partitions) for topic_id, partitions in results])


def refuse(request: WriteShareGroupStateRequest, error: KafkaError, version: int) -> WriteShareGroupStateResponse:  # noqa: ARG001
    """Put the error on every partition."""
    results = refused_partitions(
        request, error, lambda partition, code, text: PartitionResult(partition, error_code=code, error_message=text)
    )
    return WriteShareGroupStateResponse([WriteStateResult(topic_id, partitions) for topic_id, partitions in results])


API: Api[WriteShareGroupStateRequest, WriteShareGroupStateResponse] = Api(
    ApiKey.WRITE_SHARE_GROUP_STATE, (0, 1), handle, refuse
)
