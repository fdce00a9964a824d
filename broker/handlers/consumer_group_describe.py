"""ConsumerGroupDescribe: describes consumer groups with their members (KIP-848).

Versions 0-1; the member type since v1. Groups of other types have their own describe APIs. Differs from Kafka: a
request whose response would have more than 250,000 members is refused.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, described, require_group, serves_consumer_groups
from broker.request.topology import authorized_operations
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def handle(request: ConsumerGroupDescribeRequest, ctx: RequestContext) -> ConsumerGroupDescribeResponse:
    """Describe each group as often as it is listed, each with its own error (groups C.12)."""
    if not serves_consumer_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    groups = await described(request.group_ids, ctx, _describe)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(group_id: str, ctx: RequestContext) -> DescribedGroup:
    # The topics last: which ones have to be authorized is known only from the group (groups C.12).
    try:
        require_group(AclOperation.DESCRIBE, group_id, ctx)
        group = coordinator(group_id, ctx).consumers.describe(group_id)
    except KafkaError as error:
        return DescribedGroup(error.code, error.message, group_id)
    if all(ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic) for topic in _topics(group)):
        return group
    return DescribedGroup(
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        group_id,
    )


def _topics(group: DescribedGroup) -> set[str]:
    """Return the topics that the response contains."""
    names: set[str] = set()
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
    return names


API: Api[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse] = Api(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    handle,
    per_item(
        lambda request: request.group_ids,
        lambda group_id, error: DescribedGroup(error.code, error.message, group_id),
        lambda groups: ConsumerGroupDescribeResponse(groups=groups),
    ),
)
