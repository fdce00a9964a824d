"""DeleteGroups: forget Empty groups with all their offsets (KIP-229).

Versions 0-2. Not done: nothing.
"""

from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.group_requests import ask_coordinator, require_group
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, ctx: RequestContext) -> DeleteGroupsResponse:
    """Groups A.13: each group on its own, a repeated one once."""
    return DeleteGroupsResponse(
        results=[await _delete(group_id, ctx) for group_id in dict.fromkeys(request.groups_names)]
    )


async def _delete(group_id: str, ctx: RequestContext) -> DeletableGroupResult:
    try:
        require_group(AclOperation.DELETE, group_id, ctx, named=False)
        (result,) = await ask_coordinator(
            group_id, ctx, lambda machine, now_ms, to: machine.delete_groups([group_id], now_ms, to)
        )
    except KafkaError as error:
        return DeletableGroupResult(group_id, error.code)
    answer: DeletableGroupResult = result
    return answer


def refuse(request: DeleteGroupsRequest, error: KafkaError, version: int) -> DeleteGroupsResponse:  # noqa: ARG001
    """On every group."""
    results = [DeletableGroupResult(group_id, error.code) for group_id in dict.fromkeys(request.groups_names)]
    return DeleteGroupsResponse(results=results)


API = Api(ApiKey.DELETE_GROUPS, (0, 2), handle, refuse)
