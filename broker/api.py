"""The API type: versions, handler, errors; and what a request passes on the way to its handler."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from broker.answers import Answer
from broker.context import Exchange, RequestContext
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.types import Message

Request = TypeVar("Request", bound=Message)
Response_co = TypeVar("Response_co", bound=Message | None, covariant=True)

Handler = Callable[[Request, RequestContext], Awaitable[Response_co]]
"""From a request and its context to a response; ``None``: nothing is sent (acks=0)."""

AnyHandler = Handler[Any, Message | None]
"""A handler as middleware sees it: of any API."""


class Middleware(Protocol):
    """Like a handler, with the next one to call, or not to call."""

    def __call__(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Message | None]:
        """The response, from the handler or instead of it."""
        ...


FrameHandler = Callable[[Exchange], Awaitable[Answer]]
"""From a request's frame to the bytes of its answer."""


class ResponseStage(Protocol):
    """Gets a request with its response, and returns the response that goes out."""

    def __call__(self, request: Message, ctx: RequestContext, response: Message | None) -> Message | None:
        """Must not wait."""
        ...


class FrameStage(Protocol):
    """Like a frame handler, with the next one to call."""

    def __call__(self, exchange: Exchange, handle: FrameHandler) -> Awaitable[Answer]:
        """The bytes that go out."""
        ...


@dataclass(frozen=True, slots=True)
class Api(Generic[Request, Response_co]):
    """One API: its key, the versions served, the handler, and how this API reports an error.

    ``refuse(request, error, version)`` builds the response that carries the error where the API carries errors: at the
    top, or on every item of the request (core 0.3.1). It serves unexpected failures, gates and injected faults.
    """

    key: ApiKey
    versions: tuple[int, int]
    handle: Handler[Request, Response_co]
    refuse: Callable[[Request, KafkaError, int], Response_co]
    listed: bool = True
    """Whether ApiVersions lists it (telemetry is served unlisted, core A.7)."""
    unstable: int | None = None
    """A version still in development, served and listed where ``unstable.api.versions.enable`` is true."""
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


AnyApi = Api[Any, Message | None]
"""An API as the dispatcher sees it: of any request and response."""
