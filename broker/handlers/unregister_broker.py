"""UnregisterBroker: removes a broker's registration (KIP-631).

Version 0. Not done: nothing.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, ctx: RequestContext) -> UnregisterBrokerResponse:
    """Unregister a broker; a running one is not notified, and is missing until it restarts (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.unregister_broker(request.broker_id, token))
    return UnregisterBrokerResponse()


API: Api[UnregisterBrokerRequest, UnregisterBrokerResponse] = Api(
    ApiKey.UNREGISTER_BROKER, handle, top_level_with_message(UnregisterBrokerResponse)
)
