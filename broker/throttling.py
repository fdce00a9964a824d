"""Who is over a quota waits: what a request is charged, and for how long its connection is not read (core A.6, G.10).

After Kafka's ``RequestHandlerHelper`` (KIP-219): the answer goes out at once and says how long, and the broker reads
nothing from that connection until then.
"""

from typing import Any

from broker.authorizer import java_host
from broker.context import RequestContext
from broker.node import Node
from broker.quotas import REQUEST_COST, BrokerQuotas
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError

CHARGED_NOTE = "charged"
"""Under this name a request's notes say that its handler has charged it already."""
CONTROLLER = 1
"""The broker that counts what concerns the controller."""
_ACKS_NONE = 0
_EXEMPT = frozenset({ApiKey.WRITE_TXN_MARKERS})  # what brokers ask each other


def user_of(principal: str) -> str:
    """The name that quotas know a principal by: ``User:`` before it says nothing to them."""
    return principal.partition(":")[2]


def charged(quotas: BrokerQuotas, ctx: RequestContext, request: Any, response: Any, frame_bytes: int) -> Any:
    """The response to a request that was handled, with what its sender has to wait for."""
    key = ctx.api.key
    if key in _EXEMPT or CHARGED_NOTE in ctx.notes or (key is ApiKey.FETCH and request.replica_state.replica_id >= 0):
        return response
    user, client_id, now_ms = user_of(ctx.principal), ctx.client_id, ctx.now_ms
    throttle_ms = 0
    if key is ApiKey.PRODUCE:
        throttle_ms = quotas.produce.charge(user, client_id, frame_bytes, now_ms)
    if key is not ApiKey.PRODUCE or request.acks != _ACKS_NONE:
        throttle_ms = max(throttle_ms, quotas.request.charge(user, client_id, REQUEST_COST, now_ms))
    if not throttle_ms:
        return response
    mute(ctx, throttle_ms)
    if response is None or "throttle_time_ms" not in response.__slots__:
        return response
    return response.changed(throttle_time_ms=max(response.throttle_time_ms, throttle_ms))


def mute(ctx: RequestContext, throttle_ms: int) -> None:
    """Read nothing from the connection for so long."""
    ctx.connection.throttled_until_ms = max(ctx.connection.throttled_until_ms, ctx.now_ms + throttle_ms)


def throttle_connection(node: Node, host: str, now_ms: int) -> int:
    """A connection comes from an address: for how many ms it is left unread, and then closed. 0: it is served."""
    return 0 if node.quotas is None else node.quotas.connections.charge(java_host(host), now_ms)


# --- Fetch -----------------------------------------------------------------------------------------------------------


def most_fetched(quotas: BrokerQuotas, ctx: RequestContext) -> int | None:
    """How many bytes a consumer may be given in one answer; ``None``: as many as it wants."""
    return quotas.fetch.most_at_once(user_of(ctx.principal), ctx.client_id)


def charge_fetch(quotas: BrokerQuotas, ctx: RequestContext, size: int) -> int:
    """A consumer is about to be given so many bytes; if it has to wait instead, for how many ms.

    Then it is given nothing, and the bytes do not count.
    """
    ctx.notes[CHARGED_NOTE] = True
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
    """What one request changes, held against the quota of its sender (KIP-599).

    ``strict``: what exceeds it is refused with THROTTLING_QUOTA_EXCEEDED; else it is done, and the sender waits.
    """

    def __init__(self, ctx: RequestContext, *, strict: bool) -> None:
        self._ctx, self._strict = ctx, strict
        self._until_ms = 0

    def charge(self, partitions: int) -> None:
        """So many partitions come or go. Raises THROTTLING_QUOTA_EXCEEDED."""
        quotas = self._ctx.cluster.nodes[CONTROLLER].quotas
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
        """ThrottleTimeMs of the answer; the connection is not read for so long."""
        throttle_ms = max(self._until_ms - self._ctx.now_ms, 0)
        if throttle_ms:
            mute(self._ctx, throttle_ms)
        return throttle_ms
