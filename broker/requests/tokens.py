"""Shared by the handlers of delegation tokens: permission to ask, and the broker's rules."""

from typing import Any

from broker.context import RequestContext
from broker.coordination.metadata.tokens import Rules
from broker.requests.authentication import token_rules
from broker.security.authorizer import ANONYMOUS
from protocol.errors import ErrorCode, KafkaError


def check_known(ctx: RequestContext) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for strangers, and for who came by a token himself (core G.12.1).

    Without SASL a client is known by its certificate (KafkaApis.allowTokenRequests).
    """
    gate = ctx.connection.gate
    if gate is None:
        endpoint, _ = ctx.node.bound.get(ctx.listener, (None, 0))
        known = endpoint is not None and endpoint.has_tls and ctx.principal != ANONYMOUS
    else:
        known = not gate.by_token
    if not known:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def rules_of(ctx: RequestContext) -> Rules:
    """The broker's. Raises DELEGATION_TOKEN_AUTH_DISABLED where it has no key."""
    rules = token_rules(ctx.node.settings)
    if rules is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return rules


async def remember(ctx: RequestContext, record: Any) -> None:
    """Write it into the metadata."""
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.remember([record], token))


def split(principal: str) -> tuple[str, str]:
    """Type and name."""
    kind, _, name = principal.partition(":")
    return kind, name
