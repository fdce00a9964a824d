"""UnregisterController: removes the registration of a controller that no longer exists (4.4).

Version 0. Not done: nothing.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.messages.unregister_controller import UnregisterControllerRequest, UnregisterControllerResponse


async def handle(request: UnregisterControllerRequest, ctx: RequestContext) -> UnregisterControllerResponse:
    """Unregister a controller left over in a real quorum's directory; never the active one (core B.13)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    active = ctx.cluster.quorum.leader_id
    await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.unregister_controller(request.controller_id, active, token)
    )
    return UnregisterControllerResponse()


API: Api[UnregisterControllerRequest, UnregisterControllerResponse] = Api(
    ApiKey.UNREGISTER_CONTROLLER, handle, top_level_with_message(UnregisterControllerResponse)
)
