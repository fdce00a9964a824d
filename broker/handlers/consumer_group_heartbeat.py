"""ConsumerGroupHeartbeat: joins and remains in a group whose assignment the coordinator computes (KIP-848).

Versions 0-1; since v1 members generate their own ids and may subscribe by regular expression. Not done: nothing.
"""

from broker.coordination.group.modern.consumer import validation
from broker.coordination.group.modern.consumer.heartbeat import Sender
from broker.coordination.group.modern.target_assignment import assignor_names
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import ask_coordinator, require_group, serves_consumer_groups
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


async def handle(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> ConsumerGroupHeartbeatResponse:
    """Check feature, authorization, topics and fields in Kafka's order, then call the coordinator (groups C.2)."""
    if not serves_consumer_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)

    def visible(topic: str) -> bool:
        return ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)

    if not all(visible(topic) for topic in request.subscribed_topic_names or ()):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    validation.check(
        request,
        assignor_names(ctx.node.settings),
        makes_own_id=features.consumer_group_heartbeat_makes_own_id(ctx.version),
    )
    sender = Sender(ctx.client_id, f"/{ctx.client_host}", visible)
    response: ConsumerGroupHeartbeatResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.consumers.heartbeat(request, sender, now_ms, to)
    )
    return response


API: Api[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse] = Api(
    ApiKey.CONSUMER_GROUP_HEARTBEAT, handle, top_level_with_message(ConsumerGroupHeartbeatResponse)
)
