"""StreamsGroupDescribe: describes streams groups with their topology and members (KIP-1071).

Versions 0-1; the assignor since v1. Groups of other types have their own describe APIs. Not done: a plugin for topology
descriptions (KIP-1331). Differs from Kafka: a request whose response would have more than 250,000 members is refused.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, described, require_group, serves_streams_groups
from broker.request.topology import authorized_operations
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

_NOT_STORED = 1
"""The status of a requested topology description, without a plugin that stores it."""


async def handle(request: StreamsGroupDescribeRequest, ctx: RequestContext) -> StreamsGroupDescribeResponse:
    """Describe each group as often as it is listed, each with its own error (groups E.8)."""
    if not serves_streams_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    groups = await described(request.group_ids, ctx, _describe)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    if request.include_topology_description:
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.topology_description_status = _NOT_STORED
    return StreamsGroupDescribeResponse(groups=groups)


def _describe(group_id: str, ctx: RequestContext) -> DescribedGroup:
    # The topics last: which ones have to be authorized is known only from the topology (groups E.8).
    try:
        require_group(AclOperation.DESCRIBE, group_id, ctx)
        group = coordinator(group_id, ctx).streams.describe(group_id)
    except KafkaError as error:
        return _refused(group_id, error)
    if all(ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic) for topic in _topics(group)):
        return group
    return _refused(
        group_id,
        KafkaError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The described group uses topics that the client is not authorized to describe.",
        ),
    )


def _topics(group: DescribedGroup) -> set[str]:
    """Return the topics of the group's topology."""
    names: set[str] = set()
    for each in () if group.topology is None else group.topology.subtopologies or ():
        names.update(each.source_topics, each.repartition_sink_topics)
        names.update(topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics))
    return names


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(error.code, error.message, group_id, topology=None)


API: Api[StreamsGroupDescribeRequest, StreamsGroupDescribeResponse] = Api(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    handle,
    per_item(lambda request: request.group_ids, _refused, lambda groups: StreamsGroupDescribeResponse(groups=groups)),
)
