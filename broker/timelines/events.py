"""What the events of all timelines have in common: the request that caused an event, and how much a refusal weighs."""

from dataclasses import dataclass
from typing import TypedDict

from broker.context import RequestContext
from broker.timelines.event_log import Weight
from protocol.errors import ErrorCode

COORDINATOR_CODES = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""The answers of a broker that does not coordinate, or not yet."""


@dataclass(slots=True, kw_only=True)
class RequestEvent:
    """The request behind an event, and its answer; the fields are empty where no request caused the event.

    ``error`` is the name of an error code, ``rule`` and ``source`` are those of the decision, ``fault`` names the
    injected faults that changed the answer. ``count`` is how many events are folded into this one.
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
    """The request of that context."""
    return {
        "client_id": ctx.client_id,
        "connection": ctx.connection.number,
        "broker": ctx.node.id,
        "api": ctx.api.key.title,
        "version": ctx.version,
    }


class Refusals:
    """Which refusals of a timeline are retriable: clients answer those by sending the request again."""

    def __init__(self, *retriable: ErrorCode) -> None:
        self._retriable = frozenset(code.name for code in retriable)

    def are_retriable(self, error: str | None) -> bool:
        """Whether an error of that name is one; false for none."""
        return error in self._retriable

    def weight(self, error: str | None) -> Weight:
        """The weight of an event with that error."""
        if error is None:
            return Weight.ROUTINE
        return Weight.RETRIABLE if error in self._retriable else Weight.LASTING
