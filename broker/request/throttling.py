"""Applies client quotas: charges requests, and throttles their connections (core A.6, G.10).

Follows Kafka's ``RequestHandlerHelper`` (KIP-219): the response is sent immediately with the throttle time, and the
broker reads nothing from the connection until that is over.
"""

from typing import Final

from broker.access.authorizer import java_host
from broker.access.quotas import REQUEST_COST, BrokerQuotas
from broker.request.context import RequestContext
from broker.request.node import Node
from broker.request.sasl_gate import State
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchRequest
from protocol.messages.produce import ProduceRequest
from protocol.types import Message

_ACKS_NONE: Final = 0
_EXEMPT: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})  # brokers send these to each other
_AUTHENTICATING: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})


def user_of(principal: str) -> str:
    """Return a principal's name in quotas: without its type (``User:``)."""
    return principal.partition(":")[2]


def charge_quotas(request: Message, ctx: RequestContext, response: Message | None) -> Message | None:
    """Charge a handled request to its client's quotas, and put the throttle time into the response; response stage."""
    quotas = ctx.node.quotas  # the current ones, which the request may have altered
    if quotas is None or _is_exempt(request, ctx):
        return response
    throttle_ms = _charge(quotas, request, ctx)
    if not throttle_ms:
        return response
    mute(ctx, throttle_ms)
    already_ms: int | None = getattr(response, "throttle_time_ms", None)
    if response is None or already_ms is None:
        return response
    return response.changed(throttle_time_ms=max(already_ms, throttle_ms))


def _is_exempt(request: Message, ctx: RequestContext) -> bool:
    """Whether a request is exempt: authentication, followers and coordinators, or it was charged by its handler."""
    gate, key = ctx.connection.gate, ctx.api.key
    if gate is not None and (gate.state is not State.READY or key in _AUTHENTICATING):
        return True
    follower = isinstance(request, FetchRequest) and request.replica_state.replica_id >= 0
    return follower or key in _EXEMPT or ctx.notes.charged


def _charge(quotas: BrokerQuotas, request: Message, ctx: RequestContext) -> int:
    """Charge a request; return the throttle time in ms."""
    user, client_id, now_ms = user_of(ctx.principal), ctx.client_id, ctx.now_ms
    throttle_ms = 0
    if isinstance(request, ProduceRequest):
        throttle_ms = quotas.produce.charge(user, client_id, ctx.request_bytes, now_ms)
        if request.acks == _ACKS_NONE:
            return throttle_ms
    return max(throttle_ms, quotas.request.charge(user, client_id, REQUEST_COST, now_ms))


def mute(ctx: RequestContext, throttle_ms: int) -> None:
    """Read nothing from the connection for this time."""
    ctx.connection.throttled_until_ms = max(ctx.connection.throttled_until_ms, ctx.now_ms + throttle_ms)


def throttle_connection(node: Node, host: str, now_ms: int) -> int:
    """Charge a connection to its address; return for how many ms it is left unread, then closed; 0: it is served."""
    return 0 if node.quotas is None else node.quotas.connections.charge(java_host(host), now_ms)


# --- Fetch -----------------------------------------------------------------------------------------------------------


def most_fetched(quotas: BrokerQuotas, ctx: RequestContext) -> int | None:
    """Return the maximum response size in bytes under a consumer's quota; ``None``: no limit."""
    return quotas.fetch.most_at_once(user_of(ctx.principal), ctx.client_id)


def charge_fetch(quotas: BrokerQuotas, ctx: RequestContext, size: int) -> int:
    """Charge a consumer for this many bytes; return the throttle time in ms.

    If it is throttled, it gets no records, and the bytes are not counted.
    """
    ctx.notes.charged = True
    user, client_id, now_ms = user_of(ctx.principal), ctx.client_id, ctx.now_ms
    throttle_ms = max(
        quotas.request.charge(user, client_id, REQUEST_COST, now_ms),
        quotas.fetch.charge(user, client_id, size, now_ms),
    )
    if throttle_ms:
        quotas.fetch.give_back(user, client_id, size, now_ms)
        mute(ctx, throttle_ms)
    return throttle_ms


# --- changes of partitions -------------------------------------------------------------------------------------------


class Mutations:
    """The partition changes of one request, charged to its sender's quota (KIP-599).

    ``strict``: refuse those above the quota with THROTTLING_QUOTA_EXCEEDED; otherwise perform them, and throttle the
    sender.
    """

    def __init__(self, ctx: RequestContext, *, strict: bool) -> None:
        self._ctx, self._strict = ctx, strict
        self._until_ms = 0

    def charge(self, partitions: int) -> None:
        """Charge for creating or deleting this many partitions. Raises THROTTLING_QUOTA_EXCEEDED."""
        quotas = self._ctx.cluster.nodes[self._ctx.cluster.controller_id].quotas
        if quotas is None:
            return
        ctx = self._ctx
        user = user_of(ctx.principal)
        missing_ms = quotas.mutations.charge(user, ctx.client_id, partitions, ctx.now_ms, strict=self._strict)
        if missing_ms:
            self._until_ms = ctx.now_ms + missing_ms
            if self._strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def settle(self) -> int:
        """Throttle the connection, and return the ThrottleTimeMs of the response."""
        throttle_ms = max(self._until_ms - self._ctx.now_ms, 0)
        if throttle_ms:
            mute(self._ctx, throttle_ms)
        return throttle_ms
