"""Shared by the handlers of delegation tokens: who may use these APIs, and the broker's rules."""

from typing import Any

from broker.access.authorizer import ANONYMOUS
from broker.coordination.metadata.tokens import Rules
from broker.request.authentication import token_rules
from broker.request.context import RequestContext
from protocol.errors import ErrorCode, KafkaError


def check_known(ctx: RequestContext) -> None:
    """Refuse unauthenticated clients, and those that authenticated by a token (core G.12.1).

    Without SASL a client counts as authenticated by its certificate (KafkaApis.allowTokenRequests).

    Raises:
        KafkaError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
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
    """Return the broker's token rules. Raises DELEGATION_TOKEN_AUTH_DISABLED if it has no secret key."""
    rules = token_rules(ctx.node.settings)
    if rules is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return rules


async def remember(ctx: RequestContext, record: Any) -> None:
    """Write a record to the metadata."""
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.remember([record], token))


def split(principal: str) -> tuple[str, str]:
    """Split a principal into type and name."""
    kind, _, name = principal.partition(":")
    return kind, name
