"""UnregisterBroker: removes a broker's registration (KIP-631).

Version 0. Not done: nothing.
"""

from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, ctx: RequestContext) -> UnregisterBrokerResponse:
    """Unregister a broker; a running one is not notified, and is missing until it restarts (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.unregister_broker(request.broker_id, token))
    return UnregisterBrokerResponse()


def refuse(request: UnregisterBrokerRequest, error: KafkaError, version: int) -> UnregisterBrokerResponse:  # noqa: ARG001
    """Put the error at the top level of the response."""
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)


API: Api[UnregisterBrokerRequest, UnregisterBrokerResponse] = Api(ApiKey.UNREGISTER_BROKER, (0, 0), handle, refuse)
