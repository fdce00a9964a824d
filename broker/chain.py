"""The chain that requests pass on their way to the handler."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.answers import Answer
from broker.api import AnyApi, AnyHandler, FrameHandler, FrameStage, Middleware, ResponseStage
from protocol.apis import ApiKey

if TYPE_CHECKING:
    from broker.context import Exchange, RequestContext


@dataclass(frozen=True, slots=True)
class Chain:
    """The middleware that every request passes, outermost first.

    ``frames`` wrap the bytes of a request and its answer, ``messages`` the decoded messages, within ``frames``. A
    mapping among ``messages`` holds middleware for single APIs. ``responses`` get each response that the messages'
    middleware lets out, and return it or another one: they have nothing to wait for.
    """

    frames: tuple[FrameStage, ...] = ()
    messages: tuple[Middleware | Mapping[ApiKey, Middleware], ...] = ()
    responses: tuple[ResponseStage, ...] = ()

    def around_frames(self, last: FrameHandler) -> FrameHandler:
        """One handler of frames out of many."""
        handler = last
        for stage in reversed(self.frames):
            handler = _frame_stage(stage, handler)
        return handler

    def around(self, api: AnyApi) -> AnyHandler:
        """An API's handler with all the middleware that its requests pass."""
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
