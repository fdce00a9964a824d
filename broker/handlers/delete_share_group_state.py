"""DeleteShareGroupState: deletes the state of share partitions; sent by group coordinators (KIP-932).

Version 0. Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, StateResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import Operation, StateRequests
from protocol.apis import ApiKey
from protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)

_REQUESTS = StateRequests(
    "delete share group state", StateResult, PartitionResult, DeleteStateResult, DeleteShareGroupStateResponse
)


async def handle(request: DeleteShareGroupStateRequest, ctx: RequestContext) -> DeleteShareGroupStateResponse:
    """Delete the state of each partition at this broker's share coordinator (groups D.9)."""

    def operation(key: SharePartitionKey, _each: PartitionData) -> Operation:
        return lambda machine, now_ms, to: machine.delete(key, now_ms, to)

    return await _REQUESTS.handle(request, ctx, operation)


API: Api[DeleteShareGroupStateRequest, DeleteShareGroupStateResponse] = Api(
    ApiKey.DELETE_SHARE_GROUP_STATE, handle, _REQUESTS.refuse
)
