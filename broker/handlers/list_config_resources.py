"""ListConfigResources: lists the resources that have configs (KIP-714, KIP-1142).

Versions 0-1: v0 lists client metrics subscriptions only. Not done: nothing.
"""

from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.topology import topology_of
from broker.settings import ConfigResourceType
from protocol import features
from protocol.acls import CLUSTER_NAME
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import concurrent_order, persistent_order
from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_IN_ORDER = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)


async def handle(request: ListConfigResourcesRequest, ctx: RequestContext) -> ListConfigResourcesResponse:
    """Return the names of resources that can have configs, by type (core C.7)."""
    if not ctx.authorized(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = set(request.resource_types or _IN_ORDER)
    if not features.list_config_resources_chooses_types(ctx.version):
        wanted = {ConfigResourceType.CLIENT_METRICS}
    # After v0 has replaced the list: its field of types does not exist, and cannot be wrong (core C.7).
    if not wanted <= set(_IN_ORDER):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind) for kind in _IN_ORDER if kind in wanted for name in _names(kind, ctx)
        ]
    )


def _names(kind: ConfigResourceType, ctx: RequestContext) -> list[str]:
    """Return groups and subscriptions with configs, alive brokers, all topics, in the order of Kafka's maps."""
    image = ctx.cluster.image
    if kind is ConfigResourceType.TOPIC:
        return persistent_order(image.topics)
    if kind in {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}:
        return [str(broker.id) for broker in topology_of(ctx).brokers]
    return concurrent_order([name for (own, name), configs in image.configs.items() if own == kind and configs])


API: Api[ListConfigResourcesRequest, ListConfigResourcesResponse] = Api(
    ApiKey.LIST_CONFIG_RESOURCES, handle, top_level(ListConfigResourcesResponse)
)
