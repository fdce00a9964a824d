"""PushTelemetry: receives a client's metrics (KIP-714).

Version 0, served but not listed. Not done: plugins that receive metrics; pushes are validated and dropped.
"""

from uuid import UUID

from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.telemetry import Client, Subscriptions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

_OWN_ERRORS = frozenset(
    {
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.TELEMETRY_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
    }
)


async def handle(request: PushTelemetryRequest, ctx: RequestContext) -> PushTelemetryResponse:
    """Validate a client's metrics and drop them (core H.1)."""
    connection, image = ctx.connection, ctx.cluster.image
    client = Client(
        request.client_instance_id or UUID(int=0),
        connection.id,
        ctx.client_id,
        connection.software_name,
        connection.software_version,
        connection.client_host,
        connection.client_port,
    )
    subscriptions = Subscriptions(image.configs, image.subscription_changes)
    most_bytes = ctx.node.settings.int("telemetry.max.bytes")
    ctx.node.telemetry.push(client, connection.watch_end, subscriptions, request, most_bytes, ctx.now_ms)
    return PushTelemetryResponse()


def refuse(request: PushTelemetryRequest, error: KafkaError, version: int) -> PushTelemetryResponse:  # noqa: ARG001
    """Return the error code; errors that this API does not have become INVALID_REQUEST."""
    own = error.code in _OWN_ERRORS
    return PushTelemetryResponse(error_code=error.code if own else ErrorCode.INVALID_REQUEST)


API: Api[PushTelemetryRequest, PushTelemetryResponse] = Api(ApiKey.PUSH_TELEMETRY, handle, refuse)
