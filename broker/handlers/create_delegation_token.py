"""CreateDelegationToken: creates a token for authentication without a password (KIP-48, for other owners KIP-373).

Versions 1-3. Not done: nothing.
"""

from broker.coordination.metadata import tokens
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.tokens import check_known, remember, rules_of, split
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


async def handle(request: CreateDelegationTokenRequest, ctx: RequestContext) -> CreateDelegationTokenResponse:
    """Create a token; errors of the broker carry times of -1, those of the controller 0 (quirk, core G.12.2)."""
    requester = ctx.principal
    owner = requester
    if request.owner_principal_name:
        if request.owner_principal_type is None:  # a principal has a type
            return _response(ErrorCode.UNKNOWN_SERVER_ERROR, requester, requester, (-1, -1, -1))
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    try:
        # Who asks, for whom, for which renewers: core G.12.2. Whether there is a secret key comes last, in `rules_of`.
        check_known(ctx)
        if owner != requester and not ctx.authorized(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if any(each.principal_type != tokens.USER for each in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        return _response(error.code, owner, requester, (-1, -1, -1))
    renewers = tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers)
    wanted = tokens.NewToken(owner, requester, renewers, request.max_lifetime_ms)
    try:
        rules = rules_of(ctx)
        token = tokens.create(rules, wanted, str(ctx.cluster.new_uuid()), ctx.now_ms)
    except KafkaError as error:
        return _response(error.code, owner, requester, (0, 0, 0))
    await remember(ctx, token)
    times = (token.issue_timestamp_ms, token.expiration_timestamp_ms, token.max_timestamp_ms)
    return _response(ErrorCode.NONE, owner, requester, times, token.token_id, rules.hmac(token.token_id))


def _response(
    code: ErrorCode, owner: str, requester: str, times: tuple[int, int, int], token_id: str = "", proof: bytes = b""
) -> CreateDelegationTokenResponse:
    issued_ms, expires_ms, max_ms = times
    (owner_type, owner_name), (requester_type, requester_name) = split(owner), split(requester)
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=issued_ms,
        expiry_timestamp_ms=expires_ms,
        max_timestamp_ms=max_ms,
        token_id=token_id,
        hmac=proof,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )


API: Api[CreateDelegationTokenRequest, CreateDelegationTokenResponse] = Api(
    ApiKey.CREATE_DELEGATION_TOKEN, handle, top_level(CreateDelegationTokenResponse)
)
