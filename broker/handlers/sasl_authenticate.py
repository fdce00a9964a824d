"""SaslAuthenticate on a connection that needs no authentication (KIP-152).

Versions 0-2. Not done: SASL listeners.
"""

from broker.chain import Api
from broker.context import RequestContext
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse:  # noqa: ARG001
    """Core A.9: out of place. The connection stays open."""
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication")


def refuse(request: SaslAuthenticateRequest, error: KafkaError, version: int) -> SaslAuthenticateResponse:  # noqa: ARG001
    """The code and its sentence, and no bytes."""
    return SaslAuthenticateResponse(error.code, error.message)


API = Api(ApiKey.SASL_AUTHENTICATE, (0, 2), handle, refuse)
