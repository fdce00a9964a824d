"""The type of an API (key, versions, handler, error response), and the types of the stages around its handler."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from broker.request.answers import Answer
from broker.request.context import Exchange, RequestContext
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.types import Message

Request = TypeVar("Request", bound=Message)
Response_co = TypeVar("Response_co", bound=Message | None, covariant=True)

Handler = Callable[[Request, RequestContext], Awaitable[Response_co]]
"""Request and context -> response; ``None``: no response is sent (acks=0)."""

AnyHandler = Handler[Any, Message | None]
"""A handler of any API, as middleware calls it."""


class Middleware(Protocol):
    """A function that wraps a handler: it may call the handler, or answer without it."""

    def __call__(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Message | None]:
        """Return the response, from the handler or instead of it."""
        ...


FrameHandler = Callable[[Exchange], Awaitable[Answer]]
"""A request's frame -> the bytes of its answer."""


class ResponseStage(Protocol):
    """A function that gets each request with its response, and returns the response to send."""

    def __call__(self, request: Message, ctx: RequestContext, response: Message | None) -> Message | None:
        """Return the response to send, without waiting."""
        ...


class FrameStage(Protocol):
    """A function that wraps a frame handler."""

    def __call__(self, exchange: Exchange, handle: FrameHandler) -> Awaitable[Answer]:
        """Return the bytes to send."""
        ...


@dataclass(frozen=True, slots=True)
class Api(Generic[Request, Response_co]):
    """One API: its key, its versions, its handler, and how it reports an error.

    ``refuse(request, error, version)`` builds the response with the error where this API has its error codes: at the
    top level, or on every item of the request (core 0.3.1). It answers unexpected failures, SASL gates and injected
    faults.
    """

    key: ApiKey
    versions: tuple[int, int]
    handle: Handler[Request, Response_co]
    refuse: Callable[[Request, KafkaError, int], Response_co]
    listed: bool = True
    """Whether ApiVersions lists it (the telemetry APIs are served but not listed, core A.7)."""
    unstable: int | None = None
    """A version still in development, served and listed if ``unstable.api.versions.enable`` is true."""
    removed: int | None = None
    """The lowest version that releases before 4.0 served (KIP-896), if it is lower than those in ``versions``."""

    @property
    def oldest(self) -> int:
        """Return the lowest version that any emulated release serves."""
        return self.versions[0] if self.removed is None else self.removed

    def range(self, *, unstable: bool) -> tuple[int, int]:
        """Return the lowest and the highest version that are served."""
        low, high = self.versions
        return low, self.unstable if unstable and self.unstable is not None else high


AnyApi = Api[Any, Message | None]
"""An API of any request and response, as the dispatcher sees it."""
