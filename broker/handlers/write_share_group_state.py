"""WriteShareGroupState: writes the state of share partitions; sent by partition leaders (KIP-932).

Versions 0-1; the delivery-complete count since v1 (KIP-1226). Not done: nothing.
"""

from broker.coordination.share_state.machine import StateWrite
from broker.coordination.share_state.persister import SharePartitionKey, StateBatch, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import Operation, StateRequests
from protocol.apis import ApiKey
from protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

_REQUESTS = StateRequests(
    "write share group state", StateResult, PartitionResult, WriteStateResult, WriteShareGroupStateResponse
)


async def handle(request: WriteShareGroupStateRequest, ctx: RequestContext) -> WriteShareGroupStateResponse:
    """Write the state of each partition at this broker's share coordinator (groups D.9)."""

    def operation(key: SharePartitionKey, each: PartitionData) -> Operation:
        batches = [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in each.state_batches
        ]
        write = StateWrite(
            each.state_epoch, each.leader_epoch, each.start_offset, each.delivery_complete_count, batches
        )
        return lambda machine, now_ms, to: machine.write(key, write, now_ms, to)

    return await _REQUESTS.handle(request, ctx, operation)


API: Api[WriteShareGroupStateRequest, WriteShareGroupStateResponse] = Api(
    ApiKey.WRITE_SHARE_GROUP_STATE, handle, _REQUESTS.refuse
)
