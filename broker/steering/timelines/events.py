"""Shared by the events of all timelines: the request that caused an event."""

from typing import TypedDict

from broker.request.context import RequestContext
from protocol.deferred import dataclass


@dataclass(slots=True, kw_only=True)
class RequestEvent:
    """An event with the request that caused it and its response; the fields are empty if no request caused it.

    ``error`` is the name of an error code; ``rule`` and ``source`` belong to the decision; ``fault`` has the ids of the
    injected faults that changed the response. ``count`` is the number of events folded into this one.
    """

    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""
    source: str = ""
    fault: str | None = None
    count: int = 1


class Origin(TypedDict):
    """The fields of a :class:`RequestEvent` that identify the request."""

    client_id: str
    connection: int
    broker: int
    api: str
    version: int


def origin_of(ctx: RequestContext) -> Origin:
    """Return the origin fields for the request of a context."""
    return {
        "client_id": ctx.client_id,
        "connection": ctx.connection.number,
        "broker": ctx.node.id,
        "api": ctx.api.key.title,
        "version": ctx.version,
    }
