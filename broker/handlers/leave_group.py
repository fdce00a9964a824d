"""LeaveGroup: removes members; an administrator may remove static ones by instance id (KIP-345).

Versions 0-5. Not done: nothing.
"""

from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from protocol.apis import ApiKey
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


async def handle(request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse:
    """Remove the listed members, each with its own result (groups A.9)."""
    require_group(AclOperation.READ, request.group_id, ctx)
    response: LeaveGroupResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.leave(request, now_ms, to)
    )
    return response


API: Api[LeaveGroupRequest, LeaveGroupResponse] = Api(ApiKey.LEAVE_GROUP, handle, top_level(LeaveGroupResponse))
