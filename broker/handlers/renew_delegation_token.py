"""RenewDelegationToken: extends the expiry of a token (KIP-48).

Versions 1-2. Not done: nothing.
"""

from broker.coordination.metadata import tokens
from broker.request.api import Api, top_level
from broker.request.context import RequestContext
from broker.request.tokens import check_known, remember, rules_of
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(request: RenewDelegationTokenRequest, ctx: RequestContext) -> RenewDelegationTokenResponse:
    """Extend a token's expiry, up to its maximum lifetime (core G.12.3); only the broker's own errors carry -1."""
    try:
        check_known(ctx)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    rules, image = rules_of(ctx), ctx.cluster.image
    token = tokens.renew(image, rules, bytes(request.hmac), ctx.principal, request.renew_period_ms, ctx.now_ms)
    await remember(ctx, token)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiration_timestamp_ms)


API: Api[RenewDelegationTokenRequest, RenewDelegationTokenResponse] = Api(
    ApiKey.RENEW_DELEGATION_TOKEN, handle, top_level(RenewDelegationTokenResponse)
)
