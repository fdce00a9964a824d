"""SaslAuthenticate: exchanges a mechanism's tokens (KIP-152), and returns the session lifetime (KIP-368).

Versions 0-2. Not done: nothing.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import RequestContext
from broker.request.sasl_gate import State
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(request: SaslAuthenticateRequest, ctx: RequestContext) -> SaslAuthenticateResponse:
    """Process a token (core G.2 S7 to S9); without SASL it is refused and the connection stays open (core A.9)."""
    gate = ctx.connection.gate
    if gate is None or gate.state is not State.TOKENS:
        problem = "SaslAuthenticate request received after successful authentication"
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, problem)
    await gate.prepare()
    passed = gate.token(bytes(request.auth_bytes))
    if gate.principal is not None:
        ctx.connection.principal = gate.principal
    return SaslAuthenticateResponse(auth_bytes=passed.token, session_lifetime_ms=passed.lifetime_ms)


API: Api[SaslAuthenticateRequest, SaslAuthenticateResponse] = Api(
    ApiKey.SASL_AUTHENTICATE, handle, top_level_with_message(SaslAuthenticateResponse)
)
