"""ReadShareGroupState: reads the state of share partitions; sent by partition leaders (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import ReadResult, SharePartitionKey
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import Operation, StateRequests
from protocol.apis import ApiKey
from protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)


def _state(partition: int, state: ReadResult) -> PartitionResult:
    return PartitionResult(
        partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[StateBatch(*each) for each in state.batches],
    )


_REQUESTS = StateRequests(
    "read share group state", ReadResult, PartitionResult, ReadStateResult, ReadShareGroupStateResponse, _state
)


async def handle(request: ReadShareGroupStateRequest, ctx: RequestContext) -> ReadShareGroupStateResponse:
    """Read the state of each partition at this broker's share coordinator (groups D.9)."""

    def operation(key: SharePartitionKey, each: PartitionData) -> Operation:
        return lambda machine, now_ms, to: machine.read(key, each.leader_epoch, now_ms, to)

    return await _REQUESTS.handle(request, ctx, operation)


API: Api[ReadShareGroupStateRequest, ReadShareGroupStateResponse] = Api(
    ApiKey.READ_SHARE_GROUP_STATE, handle, _REQUESTS.refuse
)
