"""DescribeClientQuotas: lists quotas that match a filter (KIP-546, addresses KIP-612).

Versions 0-1. Not done: nothing.
"""

from broker.coordination.metadata.quotas import find
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from broker.settings.releases import Behaviour
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


async def handle(request: DescribeClientQuotasRequest, ctx: RequestContext) -> DescribeClientQuotasResponse:
    """Return the quotas of the entities that match the filter (core G.10)."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE_CONFIGS):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    indexed = ctx.release.has(Behaviour.QUOTAS_FOUND_BY_INDEX)
    components = [(each.entity_type, each.match_type, each.match) for each in request.components]
    entries = [
        EntryData(
            [EntityData(kind, name) for kind, name in entity],
            [ValueData(key, value) for key, value in quotas.items()],
        )
        for entity, quotas in find(ctx.cluster.image, components, strict=request.strict, indexed=indexed)
    ]
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def refuse(request: DescribeClientQuotasRequest, error: KafkaError, version: int) -> DescribeClientQuotasResponse:  # noqa: ARG001
    """Put the error at the top level of the response."""
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)


API: Api[DescribeClientQuotasRequest, DescribeClientQuotasResponse] = Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, handle, refuse)
