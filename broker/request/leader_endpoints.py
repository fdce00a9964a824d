"""The endpoints of new leaders (KIP-951), on the listener of the client's connection."""

from collections.abc import Iterable

from broker.request.context import RequestContext


def endpoints_of(ctx: RequestContext, brokers: Iterable[int]) -> list[tuple[int, str, int, str | None]]:
    """Return id, host, port and rack of those brokers that are alive and have the request's listener."""
    endpoints = []
    for broker_id in sorted(brokers):
        listener = ctx.cluster.image.listener(broker_id, ctx.listener)
        if listener is not None:
            endpoints.append((broker_id, listener.host, listener.port, ctx.cluster.image.brokers[broker_id].rack))
    return endpoints
