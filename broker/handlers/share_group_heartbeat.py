"""ShareGroupHeartbeat: joins and remains in a share group (KIP-932).

Version 1. Not done: nothing.
"""

from broker.coordination.group.modern.share import validation
from broker.coordination.group.modern.share.heartbeat import Sender
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import ask_coordinator, require_group
from broker.request.share_groups import require_member_id, require_share_groups
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


async def handle(request: ShareGroupHeartbeatRequest, ctx: RequestContext) -> ShareGroupHeartbeatResponse:
    """Check feature, authorization, ids, topics and fields in Kafka's order, then call the coordinator (groups D.1)."""
    require_share_groups(ctx)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    require_member_id(request.member_id)
    for topic in request.subscribed_topic_names or ():
        if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    validation.check(request)
    sender = Sender(ctx.client_id, f"/{ctx.client_host}")
    response: ShareGroupHeartbeatResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.shares.heartbeat(request, sender, now_ms, to)
    )
    return response


API: Api[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse] = Api(
    ApiKey.SHARE_GROUP_HEARTBEAT, handle, top_level_with_message(ShareGroupHeartbeatResponse)
)
