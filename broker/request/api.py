"""The types of an API (key, versions, handler, error response), and of the stages around its handler."""

from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from broker.request.answers import Answer
from broker.request.context import Exchange, RequestContext
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Message

Request = TypeVar("Request", bound=Message)
Response_co = TypeVar("Response_co", bound=Message | None, covariant=True)
Item = TypeVar("Item")
Result = TypeVar("Result")

Handler = Callable[[Request, RequestContext], Awaitable[Response_co]]
"""Request and context -> response; ``None``: no response is sent (acks=0)."""

AnyHandler = Handler[Any, Message | None]
"""A handler of any API, as middleware calls it."""


class Middleware(Protocol):
    """A function that wraps a handler: it may call the handler, or answer without it."""

    def __call__(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Message | None]:
        """Return the response, from the handler or instead of it."""
        ...


class ForField(NamedTuple):
    """Middleware of one API for the requests that have a value in a field; all others pass it by."""

    field: str
    middleware: Middleware


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
    """One API: its key, its handler, and how it reports an error.

    ``refuse(request, error, version)`` builds the response with the error where this API has its error codes: at the
    top level, or on every item of the request (core 0.3.1). It answers unexpected failures, SASL gates and injected
    faults.
    """

    key: ApiKey
    handle: Handler[Request, Response_co]
    refuse: Callable[[Request, KafkaError, int], Response_co]


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """An API as a broker serves it: its versions, known without its handler."""

    key: ApiKey
    versions: tuple[int, int]
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

    @property
    def api(self) -> "AnyApi":
        """Return its handler, from the file of its name, which the first call imports."""
        api: AnyApi = import_module(f"broker.handlers.{self.key.name.lower()}").API
        return api


Refuse = Callable[[Request, KafkaError, int], Response_co]
"""``Api.refuse``: request, error and version -> response."""


class CodeResponse(Protocol[Response_co]):
    """The class of a response with an error code at its top level."""

    def __call__(self, *, error_code: ErrorCode) -> Response_co:
        """Return a response whose other fields have their defaults."""
        ...


class MessageResponse(Protocol[Response_co]):
    """The class of a response with an error code and a message at its top level."""

    def __call__(self, *, error_code: ErrorCode, error_message: str | None) -> Response_co:
        """Return a response whose other fields have their defaults."""
        ...


def top_level(response: CodeResponse[Response_co]) -> Refuse[Any, Response_co]:
    """Return a ``refuse`` for responses with one error code, or whose message Kafka leaves out."""
    return lambda _request, error, _version: response(error_code=error.code)


def top_level_with_message(response: MessageResponse[Response_co]) -> Refuse[Any, Response_co]:
    """Return a ``refuse`` for responses with one error code and its message."""
    return lambda _request, error, _version: response(error_code=error.code, error_message=error.message)


def per_item(
    items: Callable[[Request], Iterable[Item]],
    result: Callable[[Item, KafkaError], Result],
    response: Callable[[list[Result]], Response_co],
) -> Refuse[Request, Response_co]:
    """Return a ``refuse`` for responses with a result for each item of the request: a resource, a group, a topic.

    ``items`` gets them from the request, ``result`` puts the error on one, ``response`` is made of the results.
    """
    return lambda request, error, _version: response([result(item, error) for item in items(request)])


AnyApi = Api[Any, Message | None]
"""An API of any request and response, as the dispatcher sees it."""
