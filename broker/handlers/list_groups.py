"""ListGroups: lists the groups that this broker coordinates.

Versions 0-5; filters by state since v4 (KIP-518), by type since v5 (KIP-848). Not done: nothing.
"""

from broker.coordination.runtime import State
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinators_in_order
from protocol.apis import ApiKey
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def handle(request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse:
    """List the groups; one coordinator that is still loading fails the request (groups A.13)."""
    states = {name.strip().lower() for name in request.states_filter}
    types = {name.strip().lower() for name in request.types_filter}
    groups: list[ListedGroup] = []
    for runtime in coordinators_in_order(ctx):
        if runtime.state is not State.CLOSED:
            # A coordinator that is elsewhere is left out; one that loads would make the list incomplete (groups A.13).
            runtime.check_active()
            groups.extend(runtime.machine.administration.listed(states, types))
    if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster"):
        groups = [group for group in groups if _visible(group, ctx)]
    return ListGroupsResponse(groups=groups)


def _visible(group: ListedGroup, ctx: RequestContext) -> bool:
    return ctx.authorized(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)


API: Api[ListGroupsRequest, ListGroupsResponse] = Api(ApiKey.LIST_GROUPS, handle, top_level(ListGroupsResponse))
