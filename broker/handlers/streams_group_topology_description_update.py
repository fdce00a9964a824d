"""StreamsGroupTopologyDescriptionUpdate: a member's topology description, for a plugin of the broker (KIP-1331).

Version 0. Not done: plugins (group.streams.topology.description.plugin.class); without one Kafka refuses it too.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import require_group, serves_streams_groups
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


async def handle(
    request: StreamsGroupTopologyDescriptionUpdateRequest, ctx: RequestContext
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse the request, because there is no plugin (groups E.8)."""
    if not serves_streams_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
    )


API: Api[StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse] = Api(
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    handle,
    top_level_with_message(StreamsGroupTopologyDescriptionUpdateResponse),
)
