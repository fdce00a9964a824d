"""ExpireDelegationToken: lets a token expire earlier, or immediately (KIP-48).

Versions 1-2. Not done: nothing.
"""

from broker.coordination.metadata import tokens
from broker.request.api import Api, top_level
from broker.request.context import RequestContext
from broker.request.tokens import check_known, remember, rules_of
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.log_records.metadata_security import DelegationTokenRecord
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(request: ExpireDelegationTokenRequest, ctx: RequestContext) -> ExpireDelegationTokenResponse:
    """Set when a token expires, or expire it now (core G.12.4); only the broker's own errors carry -1."""
    try:
        check_known(ctx)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    rules, image, period_ms = rules_of(ctx), ctx.cluster.image, request.expiry_time_period_ms
    left = tokens.expire(image, rules, bytes(request.hmac), ctx.principal, period_ms, ctx.now_ms)
    await remember(ctx, left)
    if isinstance(left, DelegationTokenRecord):
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=left.expiration_timestamp_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ctx.now_ms)


API: Api[ExpireDelegationTokenRequest, ExpireDelegationTokenResponse] = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN, handle, top_level(ExpireDelegationTokenResponse)
)
