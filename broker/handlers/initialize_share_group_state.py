"""InitializeShareGroupState: creates the state of share partitions; sent by group coordinators (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import Operation, StateRequests
from protocol.apis import ApiKey
from protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)

_REQUESTS = StateRequests(
    "initialize share group state",
    StateResult,
    PartitionResult,
    InitializeStateResult,
    InitializeShareGroupStateResponse,
    all_have_partitions=False,
)


async def handle(request: InitializeShareGroupStateRequest, ctx: RequestContext) -> InitializeShareGroupStateResponse:
    """Create the state of each partition at this broker's share coordinator (groups D.9)."""

    def operation(key: SharePartitionKey, each: PartitionData) -> Operation:
        return lambda machine, now_ms, to: machine.initialize(key, each.state_epoch, each.start_offset, now_ms, to)

    return await _REQUESTS.handle(request, ctx, operation)


API: Api[InitializeShareGroupStateRequest, InitializeShareGroupStateResponse] = Api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE, handle, _REQUESTS.refuse
)
