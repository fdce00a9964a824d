"""Heartbeat: keeps a member in its group; the response requests a rejoin if a rebalance is in progress.

Versions 0-4. Not done: nothing.
"""

from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Answer a heartbeat; while the coordinator is loading, without an error (groups A.8, 0.6.4)."""
    require_group(AclOperation.READ, request.group_id, ctx)
    try:
        response: HeartbeatResponse = await ask_coordinator(
            request.group_id, ctx, lambda machine, now_ms, to: machine.heartbeat(request, now_ms, to)
        )
    except KafkaError as error:
        # Quirk, on purpose: the member stays, and its next heartbeat is decided on (groups 0.6.4).
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return response


API: Api[HeartbeatRequest, HeartbeatResponse] = Api(ApiKey.HEARTBEAT, handle, top_level(HeartbeatResponse))
