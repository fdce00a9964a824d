"""SyncGroup: the leader sends a generation's assignments, and every member receives its own.

Versions 0-5; from v5 on members send the protocol type and name (KIP-559). Not done: nothing.
"""

from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse:
    """Sync a member; a follower is answered when the leader's request has arrived (groups A.7)."""
    # Before the authorization, as in KafkaApis.handleSyncGroupRequest.
    if features.sync_group_names_protocol(ctx.version) and None in (request.protocol_type, request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    require_group(AclOperation.READ, request.group_id, ctx)
    response: SyncGroupResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.sync(request, now_ms, to)
    )
    return response


API: Api[SyncGroupRequest, SyncGroupResponse] = Api(ApiKey.SYNC_GROUP, handle, top_level(SyncGroupResponse))
