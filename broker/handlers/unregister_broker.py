"""UnregisterBroker: forget a broker (KIP-631).

Version 0. Not done: nothing.
"""

from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, ctx: RequestContext) -> UnregisterBrokerResponse:
    """Core B.13. A broker that runs is not told; it is missing until it starts again."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.unregister_broker(request.broker_id, token))
    return UnregisterBrokerResponse()


def refuse(request: UnregisterBrokerRequest, error: KafkaError, version: int) -> UnregisterBrokerResponse:  # noqa: ARG001
    """At the top."""
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)


API = Api(ApiKey.UNREGISTER_BROKER, (0, 0), handle, refuse)
