"""GetTelemetrySubscriptions: the metrics that a client is to push, and how often (KIP-714).

Version 0, served but not listed, as by a Kafka without a telemetry plugin. Not done: plugins that receive metrics.
"""

from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.telemetry import COMPRESSION_TYPES, Client, Subscriptions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


async def handle(request: GetTelemetrySubscriptionsRequest, ctx: RequestContext) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription; a client without an instance id gets one (core H.1)."""
    connection, image = ctx.connection, ctx.cluster.image
    client = Client(
        request.client_instance_id or ctx.cluster.new_uuid(),
        connection.id,
        ctx.client_id,
        connection.software_name,
        connection.software_version,
        connection.client_host,
        connection.client_port,
    )
    subscriptions = Subscriptions(image.configs, image.subscription_changes)
    instance = ctx.node.telemetry.ask(client, connection.watch_end, subscriptions, ctx.now_ms)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=COMPRESSION_TYPES,
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=ctx.node.settings.int("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )


def refuse(
    request: GetTelemetrySubscriptionsRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> GetTelemetrySubscriptionsResponse:
    """Return the error code alone; errors that this API does not have become INVALID_REQUEST."""
    own = error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return GetTelemetrySubscriptionsResponse(error_code=error.code if own else ErrorCode.INVALID_REQUEST)


API: Api[GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse] = Api(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, handle, refuse
)
