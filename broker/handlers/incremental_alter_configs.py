"""IncrementalAlterConfigs: sets, deletes, appends to and subtracts from single configs of a resource (KIP-339).

Versions 0-1. Not done: alter.config.policy.class.name of Java.
"""

from broker.request.api import Api, per_item
from broker.request.configs import alter
from broker.request.context import RequestContext
from broker.settings.alter import Alteration, Change
from protocol.apis import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: IncrementalAlterConfigsRequest, ctx: RequestContext) -> IncrementalAlterConfigsResponse:
    """Change single configs of each resource; if one is invalid, that resource is not changed (core C.4, C.5)."""
    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.value, config.config_operation) for config in resource.configs],
        )
        for resource in request.resources
    ]
    decisions = await alter(ctx, wanted, incremental=True, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(decision.error, decision.message, one.type, one.name)
            for one, decision in zip(wanted, decisions, strict=True)
        ]
    )


API: Api[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse] = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    handle,
    per_item(
        lambda request: request.resources,
        lambda resource, error: AlterConfigsResourceResponse(
            error.code, error.message, resource.resource_type, resource.resource_name
        ),
        lambda responses: IncrementalAlterConfigsResponse(responses=responses),
    ),
)
