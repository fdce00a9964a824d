"""SaslHandshake: chooses a mechanism (KIP-43), also for re-authentication (KIP-368).

Versions 0-1. Not done: nothing.
"""

from broker.request.api import Api, top_level
from broker.request.context import RequestContext
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(request: SaslHandshakeRequest, ctx: RequestContext) -> SaslHandshakeResponse:
    """Choose a mechanism (core G.2 S2, G.5); without SASL it is refused and the connection stays open (core A.9)."""
    gate = ctx.connection.gate
    # The state before the mechanism: without SASL no mechanism is listed (core A.9).
    if gate is None:
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
    names = gate.handshake(request.mechanism, ctx.version)
    known = request.mechanism in names
    return SaslHandshakeResponse(ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM, names)


API: Api[SaslHandshakeRequest, SaslHandshakeResponse] = Api(
    ApiKey.SASL_HANDSHAKE, handle, top_level(SaslHandshakeResponse)
)
