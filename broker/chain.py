"""What an API is to the broker, and how a request passes the middleware on its way to the handler."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protocol.apis import ApiKey
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.context import RequestContext

Handler = Callable[[Any, "RequestContext"], Awaitable[Any]]
"""A request and its context to a response; ``None``: nothing is sent (acks=0)."""

Middleware = Callable[[Any, "RequestContext", Handler], Awaitable[Any]]
"""As a handler, with the next one to call, or not."""


class Disconnect(Exception):
    """Close the connection without an answer, as Kafka does where a reply makes no sense.

    ``reason`` goes into one log line; ``reset`` asks for a TCP reset instead of an orderly close.
    """

    def __init__(self, reason: str, *, reset: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.reset = reason, reset


class NeverAnswer(Exception):
    """Answer nothing, and nothing more on this connection, which stays open: a fault that was asked for."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, the versions served, the handler, and how this API says no.

    ``refuse(request, error, version)`` builds the response that carries the error where the API carries errors: at the
    top, or on every item that was asked for (core 0.3.1). It serves unexpected failures, gates and injected faults.
    """

    key: ApiKey
    versions: tuple[int, int]
    handle: Handler
    refuse: Callable[[Any, KafkaError, int], Any]
    listed: bool = True
    """Whether ApiVersions lists it (telemetry is served unlisted, core A.7)."""
    unstable: int | None = None
    """A version still in development, served and listed where ``unstable.api.versions.enable`` says so."""
    removed: int | None = None
    """The lowest version that releases before 4.0 served (KIP-896), where it is below that of ``versions``."""

    @property
    def oldest(self) -> int:
        """The lowest version that any release served and that is answered here."""
        return self.versions[0] if self.removed is None else self.removed

    def range(self, *, unstable: bool) -> tuple[int, int]:
        """The versions that are answered."""
        low, high = self.versions
        return low, self.unstable if unstable and self.unstable is not None else high


def chain(middleware: Sequence[Middleware], last: Handler) -> Handler:
    """One handler out of many: the first middleware is the outermost."""

    def wrap(outer: Middleware, inner: Handler) -> Handler:
        def call(request: Any, ctx: "RequestContext") -> Awaitable[Any]:
            return outer(request, ctx, inner)

        return call

    handler = last
    for each in reversed(middleware):
        handler = wrap(each, handler)
    return handler
