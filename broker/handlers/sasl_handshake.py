"""SaslHandshake on a connection that needs no authentication.

Versions 0-1. Not done: SASL listeners.
"""

from broker.chain import Api
from broker.context import RequestContext
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(request: SaslHandshakeRequest, ctx: RequestContext) -> SaslHandshakeResponse:  # noqa: ARG001
    """Core A.9: out of place, with no mechanism on offer. The connection stays open."""
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)


def refuse(request: SaslHandshakeRequest, error: KafkaError, version: int) -> SaslHandshakeResponse:  # noqa: ARG001
    """The code, and no mechanisms."""
    return SaslHandshakeResponse(error.code)


API = Api(ApiKey.SASL_HANDSHAKE, (0, 1), handle, refuse)
