"""DeleteGroups: deletes Empty groups with all their offsets, share groups with their state (KIP-229).

Versions 0-3; errors have a message since v3, which is null for all errors here. Not done: nothing.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, in_order_deleted, require_group
from broker.request.share_groups import delete_group_state
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse:
    """Delete each group, a repeated one once, each with its own result (groups A.13)."""
    results, slices = [], Slices()
    for group_id in in_order_deleted(dict.fromkeys(request.groups_names), ctx):
        await slices.pause()
        results.append(await _delete(group_id, ctx))
    return DeleteGroupsResponse(results=results)


async def _delete(group_id: str, ctx: RequestContext) -> DeletableGroupResult:
    try:
        require_group(AclOperation.DELETE, group_id, ctx, named=False)
        await delete_group_state(group_id, ctx)
        results: list[DeletableGroupResult] = await ask_coordinator(
            group_id, ctx, lambda machine, now_ms, to: machine.delete_groups([group_id], now_ms, to)
        )
    except KafkaError as error:
        return DeletableGroupResult(group_id, error.code)
    return results[0]


API: Api[DeleteGroupsRequest, DeleteGroupsResponse] = Api(
    ApiKey.DELETE_GROUPS,
    handle,
    per_item(
        lambda request: dict.fromkeys(request.groups_names),
        lambda group_id, error: DeletableGroupResult(group_id, error.code),
        lambda results: DeleteGroupsResponse(results=results),
    ),
)
