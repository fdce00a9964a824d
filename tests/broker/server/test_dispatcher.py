"""From a frame to an answer: the checks in Kafka's order, and what becomes of what goes wrong (core A.2, 0.3.1)."""

import gc
import struct
import weakref
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from broker.request.answers import Disconnect, NeverAnswer
from broker.request.api import AnyApi, Api, ServedVersions
from broker.request.connection import Connection
from broker.request.context import RequestContext, RequestNotes
from broker.server.dispatcher import Chain, Dispatcher, answer_errors
from broker.settings import BrokerSettings
from broker.settings.releases import release
from broker.steering.journal.ring import Journal
from broker.time.clock import ManualClock
from protocol.apis import ApiKey, api_and_version
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.types import Message
from tests.wire import header

Handle = Callable[[HeartbeatRequest, RequestContext], Awaitable[HeartbeatResponse | None]]
REQUEST = HeartbeatRequest("g", 3, "m")


def refuse(request: HeartbeatRequest, error: KafkaError, version: int) -> HeartbeatResponse:  # noqa: ARG001
    """Heartbeat's refusal, with the version as its throttle time, so that a test sees it."""
    return HeartbeatResponse(throttle_time_ms=version, error_code=error.code)


class Served(ServedVersions):
    """An API of a test, with its handler."""

    def __init__(self, versions: tuple[int, int], api: AnyApi) -> None:
        super().__init__(api.key, versions)
        self._api = api

    @property
    def api(self) -> AnyApi:
        """The API with its handler."""
        return self._api


class Bench:
    """A dispatcher that serves Heartbeat 1 to 3 with this handler, ApiVersions 0 to 4, and more."""

    def __init__(self, handle: Handle, *more: Served) -> None:
        async def no_versions(_request: object, _ctx: RequestContext) -> None: ...

        apis = [
            Served((1, 3), Api(ApiKey.HEARTBEAT, handle, refuse)),
            Served((0, 5), Api(ApiKey.API_VERSIONS, no_versions, refuse)),
            *more,
        ]
        self.journal = Journal()
        self.connection = Connection("c", "PLAINTEXT", "127.0.0.1", 40_000)
        node = SimpleNamespace(id=1, settings=BrokerSettings(1), bound={}, quotas=None, is_controller=False)
        cluster = SimpleNamespace(clock=ManualClock(5), versions={}, release=release("4.3"))
        chain = Chain((self.journal.record,), (answer_errors,))
        self.dispatcher = Dispatcher(cast("Any", node), cast("Any", cluster), apis, chain)

    async def answer(self, frame: bytes) -> bytes | None:
        """The answer to a payload as one byte string, without its size."""
        parts = await self.dispatcher.answer(bytearray(frame), self.connection)
        if parts is None:
            return None
        assert isinstance(parts, list)
        whole = b"".join(parts)
        assert len(whole) == 4 + int.from_bytes(whole[:4])
        return whole[4:]

    async def heartbeat(self, version: int = 3) -> tuple[int, HeartbeatResponse] | None:
        """Correlation id and response of a heartbeat."""
        frame = encode_request(ApiKey.HEARTBEAT, version, 77, "me", REQUEST)[4:]
        answer = await self.answer(frame)
        return None if answer is None else decode_response(ApiKey.HEARTBEAT, version, answer)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of the requests in the journal."""
        return [str(entry[-2]) for chunk in self.journal.chunks for entry in chunk.entries]


async def served(request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Check the request, and answer it."""
    assert (request.group_id, request.member_id, ctx.client_id) == ("g", "m", "me")
    return HeartbeatResponse(throttle_time_ms=request.generation_id)


def raising(error: BaseException) -> Handle:
    """A handler that fails."""

    async def handle(_request: HeartbeatRequest, _ctx: RequestContext) -> HeartbeatResponse:
        raise error

    return handle


async def check_disconnect(frame: bytes, reason: str) -> None:
    """Expect the connection to be closed, with this reason."""
    bench = Bench(served)
    with pytest.raises(Disconnect, match=reason):
        await bench.answer(frame)
    assert bench.outcomes[0].startswith("closed: ")


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_request_is_answered_with_its_number(version: int) -> None:
    """The correlation id comes back, the body passes the handler."""
    bench = Bench(served)
    assert await bench.heartbeat(version) == (77, HeartbeatResponse(throttle_time_ms=3))
    assert bench.outcomes == ["answered"]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"", "too short for a request header"),
        (header(9999, 0, tags=b""), "unknown api key 9999"),
        (header(ApiKey.METADATA, 1), "Metadata is not served here"),
        (header(ApiKey.HEARTBEAT, 0), "Heartbeat v0 is outside 1 to 3"),
        (header(ApiKey.HEARTBEAT, 4), "Heartbeat v4 is outside 1 to 3"),
        (header(ApiKey.HEARTBEAT, 3) + b"\0\1", "Heartbeat v3"),
    ],
    ids=["no header", "unknown api", "unserved api", "old version", "new version", "no body"],
)
async def test_what_cannot_be_answered_closes_the_connection(frame: bytes, reason: str) -> None:
    """Unreadable headers, unknown versions, unreadable bodies (core A.2.1, A.2.2, A.2.4)."""
    await check_disconnect(frame, reason)


async def test_the_version_is_looked_at_before_the_body() -> None:
    """Bytes that are no body do not matter where the version is not served."""
    await check_disconnect(header(ApiKey.HEARTBEAT, 9, tags=b"\0") + b"\xff", "is outside")


async def test_bytes_after_the_body_are_ignored() -> None:
    """The request is answered as if they were not there (core A.2.5)."""
    frame = encode_request(ApiKey.HEARTBEAT, 3, 77, "me", REQUEST)[4:] + b"more"
    assert await Bench(served).answer(frame)


async def test_ApiVersions_of_the_future_is_answered_as_v0() -> None:
    """An unknown version of ApiVersions gets a v0 response, with any body (KIP-511)."""
    answer = await Bench(served).answer(header(ApiKey.API_VERSIONS, 99, tags=b"\0") + b"\xff")
    assert answer == struct.pack(">ihihhh", 7, 35, 1, 18, 0, 5)


async def test_versions_may_be_steered_for_a_connection() -> None:
    """A range of its own, or nothing at all; taken when the connection makes its first request."""
    bench = Bench(served)
    bench.connection.begin({ApiKey.HEARTBEAT: (1, 2)}, release("4.3"), gate=None)
    assert await bench.heartbeat(2)
    with pytest.raises(Disconnect, match="is outside 1 to 2"):
        await bench.heartbeat(3)
    bench.connection.versions = {ApiKey.HEARTBEAT: None}
    with pytest.raises(Disconnect, match="not served on this connection"):
        await bench.heartbeat(2)


async def test_an_error_of_the_protocol_is_the_apis_own_answer() -> None:
    """With the code, in the request's version."""
    bench = Bench(raising(KafkaError(ErrorCode.FENCED_INSTANCE_ID, "another instance")))
    assert await bench.heartbeat(2) == (77, HeartbeatResponse(ErrorCode.FENCED_INSTANCE_ID, throttle_time_ms=2))


async def test_what_a_refused_request_made_is_freed_at_once() -> None:
    """The error that is noted holds no frame of the handler, and so no list of a million entries."""
    references = list[weakref.ref[Bench]]()

    async def refusing(_request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
        large = Bench(served)
        references.append(weakref.ref(large))
        notes.append(ctx.notes)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "x")

    notes = list[RequestNotes]()
    bench = Bench(refusing)
    gc.disable()
    try:
        assert await bench.heartbeat() is not None
        assert [each() for each in references] == [None]
    finally:
        gc.enable()
    assert notes[0].refusal is not None
    assert notes[0].refusal.code is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_fault_of_ours_is_answered_and_logged() -> None:
    """UNKNOWN_SERVER_ERROR for the client, the traceback for us."""
    bench = Bench(raising(ZeroDivisionError("ours")))
    with capture_logs() as lines:
        assert await bench.heartbeat() == (77, HeartbeatResponse(ErrorCode.UNKNOWN_SERVER_ERROR, throttle_time_ms=3))
    (line,) = lines
    assert (line["event"], line["log_level"], line["api"], line["version"]) == (
        "handler failed",
        "error",
        "Heartbeat",
        3,
    )


async def test_a_handler_may_close_the_connection() -> None:
    """acks=0: there is no answer that could carry the error."""
    bench = Bench(raising(Disconnect("for a reason")))
    with pytest.raises(Disconnect, match="for a reason"):
        await bench.heartbeat()
    assert bench.outcomes == ["closed: for a reason"]


async def test_a_handler_may_answer_nothing() -> None:
    """A handler that returns None sends no response, as for acks=0 where nothing failed."""

    async def silent(_request: HeartbeatRequest, _ctx: RequestContext) -> None: ...

    bench = Bench(silent)
    assert await bench.heartbeat() is None
    assert bench.outcomes == ["asked for no answer"]


async def test_a_fault_that_was_asked_for_may_answer_never() -> None:
    """It passes the middleware as it is."""

    async def never(_request: HeartbeatRequest, _ctx: RequestContext) -> None:
        raise NeverAnswer

    bench = Bench(never)
    bench.dispatcher._handlers[ApiKey.HEARTBEAT] = Api(ApiKey.HEARTBEAT, never, refuse), never
    with pytest.raises(NeverAnswer):
        await bench.heartbeat()
    assert bench.outcomes == ["never answered"]


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (b"\0\3\0", {}),
        (b"\0\3\0\x0c", {"api": "Metadata", "version": 12}),
        (b"\x27\x0f\xff\xff and more", {"api": "api key 9999", "version": -1}),
    ],
)
def test_a_request_is_named_by_its_first_bytes(frame: bytes, named: dict[str, Any]) -> None:
    """For the log, where nothing else can be read."""
    assert api_and_version(frame) == named


async def test_an_answer_that_cannot_be_written_is_an_error_of_the_api() -> None:
    """A text in it is longer than the protocol allows; if the refusal has it too, the connection closes."""
    texts = ["x" * 32_768]

    async def handle(_request: HeartbeatRequest, _ctx: RequestContext) -> Message:
        return DescribeConfigsResponse(results=[DescribeConfigsResult(resource_name="n", error_message=texts[0])])

    def refuse(_request: Message, error: KafkaError, _version: int) -> Message:
        return DescribeConfigsResponse(results=[DescribeConfigsResult(error.code, texts[-1], 2, "n")])

    api: AnyApi = Api(ApiKey.DESCRIBE_CONFIGS, handle, refuse)
    bench = Bench(served, Served((1, 4), api))
    for version in (1, 4):
        frame = encode_request(ApiKey.DESCRIBE_CONFIGS, version, 77, "me", DescribeConfigsRequest([]))[4:]
        texts[1:] = ["short"]
        answer = await bench.answer(frame)
        assert answer is not None
        (result,) = decode_response(ApiKey.DESCRIBE_CONFIGS, version, answer)[1].results
        assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, "short")
        texts[1:] = []
        with pytest.raises(Disconnect, match="the response cannot be encoded: a string of 32768 bytes"):
            await bench.answer(frame)
