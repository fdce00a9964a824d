"""UnregisterController: removes the registration of a controller that no longer exists (4.4).

Version 0. Not done: nothing.
"""

from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse


async def handle(request: UnregisterControllerRequest, ctx: RequestContext) -> UnregisterControllerResponse:
    """Unregister a controller left over in a real quorum's directory; never the active one (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    active = ctx.cluster.quorum.voter_id
    await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.unregister_controller(request.controller_id, active, token)
    )
    return UnregisterControllerResponse()


def refuse(
    request: UnregisterControllerRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> UnregisterControllerResponse:
    """Put the error at the top level of the response."""
    return UnregisterControllerResponse(error_code=error.code, error_message=error.message)


API: Api[UnregisterControllerRequest, UnregisterControllerResponse] = Api(
    ApiKey.UNREGISTER_CONTROLLER, (0, 0), handle, refuse
)
