"""DescribeGroups: describes classic groups with their members.

Versions 0-6; from v6 on an unknown group is an error (KIP-1043). Groups of other types have their own describe APIs.
Differs from Kafka: a request whose response would have more than 250,000 members is refused.
"""

from broker.coordination.group.classic.states import State
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, described, require_group
from broker.request.topology import authorized_operations
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse


async def handle(request: DescribeGroupsRequest, ctx: RequestContext) -> DescribeGroupsResponse:
    """Describe each group as often as it is listed, each with its own error (groups A.13)."""
    groups = await described(request.groups, ctx, _describe)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups)


def _describe(group_id: str, ctx: RequestContext) -> DescribedGroup:
    try:
        require_group(AclOperation.DESCRIBE, group_id, ctx, named=False)
        return coordinator(group_id, ctx).administration.describe(group_id)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            return DescribedGroup(error.code, group_id)
        absent = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
        if features.describe_groups_knows_absence(ctx.version):
            absent.error_code, absent.error_message = error.code, error.message
        return absent


API: Api[DescribeGroupsRequest, DescribeGroupsResponse] = Api(
    ApiKey.DESCRIBE_GROUPS,
    handle,
    per_item(
        lambda request: request.groups,
        lambda group_id, error: DescribedGroup(error.code, group_id),
        lambda groups: DescribeGroupsResponse(groups=groups),
    ),
)
