"""ShareGroupDescribe: describes share groups with their members (KIP-932).

Version 1. Groups of other types have their own describe APIs. Differs from Kafka: a request whose response would have
more than 250,000 members is refused.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, described, require_group
from broker.request.share_groups import require_share_groups
from broker.request.topology import authorized_operations
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError, texts_of
from protocol.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest, ShareGroupDescribeResponse

_OF_COORDINATORS = texts_of(ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Kafka's messages of these codes, which only this describe API sends (``ShareGroupDescribeRequest``)."""


async def handle(request: ShareGroupDescribeRequest, ctx: RequestContext) -> ShareGroupDescribeResponse:
    """Describe each group as often as it is listed, each with its own error (groups D.1)."""
    require_share_groups(ctx)
    groups = await described(request.group_ids, ctx, _describe)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    return ShareGroupDescribeResponse(groups=groups)


def _describe(group_id: str, ctx: RequestContext) -> DescribedGroup:
    # The topics last: which ones have to be authorized is known only from the group (groups D.1).
    try:
        require_group(AclOperation.DESCRIBE, group_id, ctx)
        group = coordinator(group_id, ctx).shares.describe(group_id)
    except KafkaError as error:
        return DescribedGroup(error.code, error.message or _OF_COORDINATORS.get(error.code), group_id)
    if all(ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic) for topic in _topics(group)):
        return group
    return DescribedGroup(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        group_id,
    )


def _topics(group: DescribedGroup) -> set[str]:
    """Return the topics assigned to members, which require DESCRIBE; those only subscribed to do not."""
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


API: Api[ShareGroupDescribeRequest, ShareGroupDescribeResponse] = Api(
    ApiKey.SHARE_GROUP_DESCRIBE,
    handle,
    per_item(
        lambda request: request.group_ids,
        lambda group_id, error: DescribedGroup(error.code, error.message, group_id),
        lambda groups: ShareGroupDescribeResponse(groups=groups),
    ),
)
