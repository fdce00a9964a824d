"""StreamsGroupTopologyDescriptionUpdate: a member's topology description, for a plugin of the broker (KIP-1331).

Version 0. Not done: plugins (group.streams.topology.description.plugin.class); without one Kafka refuses it too.
"""

from broker.request.api import Api
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


def refuse(
    request: StreamsGroupTopologyDescriptionUpdateRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Return the error code and message."""
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=error.code, error_message=error.message)


API: Api[StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse] = Api(
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, (0, 0), handle, refuse
)
