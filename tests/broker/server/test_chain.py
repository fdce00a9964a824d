"""What a request passes on its way to the handler: in the order in which the chain names it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.request.api import AnyHandler, Api, ForField, FrameHandler, FrameStage, Middleware
from broker.request.connection import Connection
from broker.request.context import Exchange, RequestContext
from broker.server.dispatcher import Chain
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.writers import Parts


def named(name: str, passed: list[str]) -> Middleware:
    """Middleware that notes when it is entered and left."""

    async def middleware(request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
        passed.append(f"{name}>")
        response = await handle(request, ctx)
        passed.append(f"<{name}")
        return response

    return middleware


def frame_stage(name: str, passed: list[str]) -> FrameStage:
    """A stage around frames that notes the same."""

    async def stage(exchange: Exchange, handle: FrameHandler) -> Any:
        passed.append(f"{name}>")
        answer = await handle(exchange)
        passed.append(f"<{name}")
        return answer

    return stage


def context() -> RequestContext:
    """A request's, of which the stages here need nothing."""
    nothing = cast("Any", SimpleNamespace())
    return RequestContext(nothing, 0, 1, "test", Connection("c", "PLAINTEXT", "127.0.0.1", 1), nothing, nothing)


async def handle(_request: HeartbeatRequest, _ctx: RequestContext) -> HeartbeatResponse:
    """The handler."""
    return HeartbeatResponse()


def refuse(_request: HeartbeatRequest, error: KafkaError, _version: int) -> HeartbeatResponse:
    """The code."""
    return HeartbeatResponse(error.code)


async def test_messages_pass_the_middleware_outermost_first() -> None:
    """A mapping among it is for its own APIs alone."""
    passed: list[str] = []
    for_one = {ApiKey.HEARTBEAT: named("heartbeat", passed)}
    for_another = {ApiKey.FETCH: named("fetch", passed)}
    chain = Chain(messages=(named("a", passed), for_one, for_another, named("b", passed)))
    handler = chain.around(Api(ApiKey.HEARTBEAT, handle, refuse))
    response = await handler(HeartbeatRequest("g", 1, "m"), context())
    assert response == HeartbeatResponse()
    assert passed == ["a>", "heartbeat>", "b>", "<b", "<heartbeat", "<a"]


@pytest.mark.parametrize(("group_id", "expected"), [("g", ["a>", "<a"]), ("", [])])
async def test_middleware_for_a_field_is_passed_by_requests_with_a_value_in_it(
    group_id: str, expected: list[str]
) -> None:
    """A request without one reaches the handler all the same."""
    passed: list[str] = []
    chain = Chain(messages=({ApiKey.HEARTBEAT: ForField("group_id", named("a", passed))},))
    handler = chain.around(Api(ApiKey.HEARTBEAT, handle, refuse))
    response = await handler(HeartbeatRequest(group_id, 1, "m"), context())
    assert (response, passed) == (HeartbeatResponse(), expected)


async def test_frames_pass_their_stages_outermost_first() -> None:
    """Each stage is entered before the next one and left after it; the last one makes the bytes."""
    passed: list[str] = []

    async def last(_exchange: Exchange) -> Parts:
        passed.append("last")
        return [b"bytes"]

    chain = Chain(frames=(frame_stage("a", passed), frame_stage("b", passed)))
    exchange = Exchange(bytearray(), Connection("c", "PLAINTEXT", "127.0.0.1", 1), 1, 0)
    assert await chain.around_frames(last)(exchange) == [b"bytes"]
    assert passed == ["a>", "b>", "last", "<b", "<a"]
