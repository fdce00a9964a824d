"""AlterConfigs: replaces all dynamic configs of a resource.

Versions 0-2. Not done: alter.config.policy.class.name of Java.
"""

from broker.request.api import Api, per_item
from broker.request.configs import alter
from broker.request.context import RequestContext
from broker.settings.alter import Alteration, Change
from protocol.apis import ApiKey
from protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse


async def handle(request: AlterConfigsRequest, ctx: RequestContext) -> AlterConfigsResponse:
    """Replace the configs of each resource; if one is invalid, that resource is not changed (core C.4)."""
    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    decisions = await alter(ctx, wanted, incremental=False, validate_only=request.validate_only)
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(decision.error, decision.message, one.type, one.name)
            for one, decision in zip(wanted, decisions, strict=True)
        ]
    )


API: Api[AlterConfigsRequest, AlterConfigsResponse] = Api(
    ApiKey.ALTER_CONFIGS,
    handle,
    per_item(
        lambda request: request.resources,
        lambda resource, error: AlterConfigsResourceResponse(
            error.code, error.message, resource.resource_type, resource.resource_name
        ),
        lambda responses: AlterConfigsResponse(responses=responses),
    ),
)
