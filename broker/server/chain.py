"""The chain of middleware around every handler."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.request.answers import Answer
from broker.request.api import AnyApi, AnyHandler, FrameHandler, FrameStage, Middleware, ResponseStage
from protocol.apis import ApiKey

if TYPE_CHECKING:
    from broker.request.context import Exchange, RequestContext


@dataclass(frozen=True, slots=True)
class Chain:
    """The middleware that every request passes, outermost first.

    ``frames`` wrap the bytes of a request and its answer; ``messages`` wrap the decoded messages, inside ``frames``. A
    mapping in ``messages`` holds middleware for single APIs. ``responses`` get each response that leaves ``messages``,
    and return it or another one without waiting.
    """

    frames: tuple[FrameStage, ...] = ()
    messages: tuple[Middleware | Mapping[ApiKey, Middleware], ...] = ()
    responses: tuple[ResponseStage, ...] = ()

    def around_frames(self, last: FrameHandler) -> FrameHandler:
        """Return one frame handler that passes all stages of ``frames`` and ends in ``last``."""
        handler = last
        for stage in reversed(self.frames):
            handler = _frame_stage(stage, handler)
        return handler

    def around(self, api: AnyApi) -> AnyHandler:
        """Return an API's handler wrapped in the middleware that applies to this API."""
        handler = api.handle
        for each in reversed(self.messages):
            middleware = each.get(api.key) if isinstance(each, Mapping) else each
            if middleware is not None:
                handler = _message_stage(middleware, handler)
        return handler


# Closures, since calling a partial() with a keyword copies a dictionary each time.


def _frame_stage(stage: FrameStage, handle: FrameHandler) -> FrameHandler:
    def call(exchange: "Exchange") -> Awaitable[Answer]:
        return stage(exchange, handle)

    return call


def _message_stage(middleware: Middleware, handle: AnyHandler) -> AnyHandler:
    def call(request: Any, ctx: "RequestContext") -> Awaitable[Any]:
        return middleware(request, ctx, handle)

    return call
