"""DescribeDelegationToken: lists delegation tokens that the requester may see (KIP-48).

Versions 1-3. Not done: nothing.
"""

from broker.coordination.metadata import tokens
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.tokens import check_known, rules_of, split
from protocol.apis import ApiKey
from protocol.log_records.metadata_security import DelegationTokenRecord
from protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


async def handle(request: DescribeDelegationTokenRequest, ctx: RequestContext) -> DescribeDelegationTokenResponse:
    """Return the tokens that the requester may see (core G.12.5, G.8)."""
    check_known(ctx)
    rules = rules_of(ctx)
    owners = request.owners
    named = None if owners is None else [f"{each.principal_type}:{each.principal_name}" for each in owners]
    visible = [token for token in tokens.owned(ctx.cluster.image, named) if _visible(token, ctx)]
    return DescribeDelegationTokenResponse(tokens=[_described(token, rules) for token in visible])


def _visible(token: DelegationTokenRecord, ctx: RequestContext) -> bool:
    return (
        tokens.is_theirs(token, ctx.principal)
        or ctx.authorized(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or ctx.authorized(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(token: DelegationTokenRecord, rules: tokens.Rules) -> DescribedDelegationToken:
    (owner_type, owner_name), (requester_type, requester_name) = split(token.owner), split(token.requester)
    return DescribedDelegationToken(
        owner_type,
        owner_name,
        token.issue_timestamp_ms,
        token.expiration_timestamp_ms,
        token.max_timestamp_ms,
        token.token_id,
        rules.hmac(token.token_id),
        [DescribedDelegationTokenRenewer(*split(renewer)) for renewer in token.renewers],
        requester_type,
        requester_name,
    )


API: Api[DescribeDelegationTokenRequest, DescribeDelegationTokenResponse] = Api(
    ApiKey.DESCRIBE_DELEGATION_TOKEN, handle, top_level(DescribeDelegationTokenResponse)
)
