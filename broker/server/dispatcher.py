"""The dispatcher: from a request's frame to its encoded answer (header, version check, body, chain, encoding).

The order of the checks is Kafka's (core A.2). A frame that cannot be answered raises
:class:`~broker.request.answers.Disconnect`.
"""

import asyncio
import struct
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.logs import Logger
from broker.request.answers import Answer, Disconnect, Sending
from broker.request.api import (
    AnyApi,
    AnyHandler,
    ForField,
    FrameHandler,
    FrameStage,
    Middleware,
    ResponseStage,
    ServedVersions,
)
from broker.request.authentication import answer_raw_token, authenticate, new_gate
from broker.request.connection import Connection
from broker.request.context import ClusterView, Exchange, RequestContext
from broker.request.node import Node
from broker.request.sasl_gate import State
from broker.settings.releases import Behaviour
from protocol.apis import ApiKey, api_key, title_of
from protocol.codec import (
    BadFrame,
    RequestHeader,
    decode_header,
    decode_request,
    encode_response,
    error_codes,
    with_response_header,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Message
from protocol.writers import Parts, Unwritable

_log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Chain:
    """The middleware that requests pass, outermost first: only what can act, so that a trace shows what is configured.

    ``frames`` wrap the bytes of a request and its answer; ``messages`` wrap the decoded messages, inside ``frames``. A
    mapping in ``messages`` holds middleware for single APIs. ``responses`` get each response that leaves ``messages``,
    and return it or another one without waiting.
    """

    frames: tuple[FrameStage, ...] = ()
    messages: tuple[Middleware | Mapping[ApiKey, Middleware | ForField], ...] = ()
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
            if isinstance(middleware, ForField):
                handler = _field_stage(middleware, handler)
            elif middleware is not None:
                handler = _message_stage(middleware, handler)
        return handler


# Closures, since calling a partial() with a keyword copies a dictionary each time.


def _frame_stage(stage: FrameStage, handle: FrameHandler) -> FrameHandler:
    def call(exchange: Exchange) -> Awaitable[Answer]:
        return stage(exchange, handle)

    return call


def _message_stage(middleware: Middleware, handle: AnyHandler) -> AnyHandler:
    def call(request: Any, ctx: RequestContext) -> Awaitable[Any]:
        return middleware(request, ctx, handle)

    return call


def _field_stage(stage: ForField, handle: AnyHandler) -> AnyHandler:
    field, middleware = stage

    def call(request: Any, ctx: RequestContext) -> Awaitable[Any]:
        return middleware(request, ctx, handle) if getattr(request, field) else handle(request, ctx)

    return call


async def answer_errors(request: Message, ctx: RequestContext, handle: AnyHandler) -> Message | None:
    """Middleware: turn an exception of a handler into the API's own error response (core 0.3.1).

    A KafkaError keeps its code and message. Any other exception is a bug of Understudy: the client gets
    UNKNOWN_SERVER_ERROR without a message, and the log has the traceback.
    """
    response: Message | None
    try:
        response = await handle(request, ctx)
    except KafkaError as error:
        # Drop the traceback, whose frames hold the request and everything built from it.
        ctx.notes.refusal = error.with_traceback(None)
        response = ctx.api.refuse(request, error, ctx.version)
    except Disconnect:
        raise
    except Exception:  # noqa: BLE001 - a fault of ours is answered, as Kafka answers its own
        _log.exception("handler failed", api=ctx.api.key.title, version=ctx.version, client_id=ctx.client_id)
        response = ctx.api.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), ctx.version)
    return response


def unsupported_version(correlation_id: int, connection: Connection, versions: tuple[int, int]) -> Parts:
    """Return the whole response, with its size, to an ApiVersions of an unknown version: a v0 body with the range.

    ``versions`` is the range that the API has where the connection has no other (core A.5.1, KIP-511).
    """
    low, high = connection.versions.get(ApiKey.API_VERSIONS) or versions
    code = ErrorCode.UNSUPPORTED_VERSION
    if not connection.release.has(Behaviour.API_VERSIONS_RANGE):
        # The first number is the size of what follows it.
        return [struct.pack(">iihi", 10, correlation_id, code, 0)]
    return [struct.pack(">iihihhh", 16, correlation_id, code, 1, ApiKey.API_VERSIONS, low, high)]


class Dispatcher:
    """Answers the frames that arrive on one broker's connections."""

    def __init__(self, node: Node, cluster: ClusterView, apis: Sequence[ServedVersions], chain: Chain) -> None:
        self._node, self._cluster, self._apis = node, cluster, apis
        self._by_key: Mapping[int, ServedVersions] = {int(api.key): api for api in apis}
        self._serve_frame = chain.around_frames(self._serve)
        self._held: asyncio.Event | None = None
        self._usual = cluster
        self.build_handlers(chain)

    @property
    def node(self) -> Node:
        """The broker, or the controller, whose connections it serves."""
        return self._node

    def build_handlers(self, chain: Chain) -> None:
        """Build the handlers from the stages of a chain, which has those that can act now, each for its first request.

        A request that has reached its handler keeps the one with which it began; its response passes the stages that
        are there when it is known.
        """
        self._chain, self._responses = chain, chain.responses
        self._handlers: dict[int, tuple[AnyApi, AnyHandler]] = {}

    def hold(self, until: asyncio.Event, meanwhile: ClusterView) -> None:
        """Hold every request but ApiVersions until ``until`` is set; ApiVersions is answered from ``meanwhile``."""
        self._held, self._cluster = until, meanwhile

    def release(self) -> None:
        """Serve requests normally again."""
        self._held, self._cluster = None, self._usual

    def answer(self, frame: bytearray, connection: Connection) -> Awaitable[Answer]:
        """Return the parts of the answer, or ``None`` if none is sent.

        Return :class:`~broker.request.answers.Sending` if a fault corrupts the bytes, or if the connection is closed
        after them.

        Raises:
            Disconnect: the connection is to be closed.
            NeverAnswer: the connection stays open, and nothing on it is answered any more.
        """
        if self._held is not None and api_key(frame) != ApiKey.API_VERSIONS:
            return self._answer_later(frame, connection, self._held)
        if not connection.begun:
            gate = new_gate(connection, self._node, self._cluster)
            connection.begin(self._cluster.versions, self._cluster.release, gate)
        if connection.gate is not None and connection.gate.state is State.RAW:
            return answer_raw_token(connection.gate, frame, connection)
        return self._serve_frame(Exchange(frame, connection, self._node.id, self._cluster.clock.now_ms()))

    async def _answer_later(self, frame: bytearray, connection: Connection, held: asyncio.Event) -> Answer:
        await held.wait()
        return await self.answer(frame, connection)

    async def _serve(self, exchange: Exchange) -> Answer:
        """Decode the request, run it through the middleware, and encode the response."""
        connection = exchange.connection
        try:
            # core A.2: the header, what SASL allows now (core G.2), key and version; the body only then.
            header = decode_header(exchange.frame)
            if connection.gate is not None:
                connection.gate.admit(header.api_key)
            served = self._api_for(header, connection)
            if served is None:
                exchange.errors = (ErrorCode.UNSUPPORTED_VERSION,)
                exchange.parts = unsupported_version(
                    header.correlation_id, connection, self._by_key[ApiKey.API_VERSIONS].versions
                )
                return exchange.parts
            exchange.request = request = decode_request(exchange.frame, header)
        except BadFrame as error:
            raise Disconnect(str(error)) from error
        key, version, number = header.api_key, header.api_version, header.correlation_id
        api, handle = self._handlers.get(key) or self._handler_of(served)
        ctx = RequestContext(
            api,
            version,
            number,
            header.client_id,
            connection,
            self._node,
            self._cluster,
            exchange,
            self._apis,
            len(exchange.frame),
        )
        gate = connection.gate
        response = await (handle(request, ctx) if gate is None else authenticate(gate, request, ctx, handle))
        for stage in self._responses:
            response = stage(request, ctx, response)
        if response is None:
            exchange.outcome = "asked for no answer"
            return None
        exchange.parts = parts = _encoded(response, request, ctx, exchange)
        if exchange.byte_fault is not None:
            return exchange.byte_fault.spoil(b"".join(parts))
        return Sending((b"".join(parts),), closes=True) if exchange.closes else parts

    def _handler_of(self, served: ServedVersions) -> tuple[AnyApi, AnyHandler]:
        api = served.api
        handler = self._handlers[int(api.key)] = api, self._chain.around(api)
        return handler

    def _api_for(self, header: RequestHeader, connection: Connection) -> ServedVersions | None:
        """Return the API that serves the request; ``None`` for an unknown version of ApiVersions (KIP-511)."""
        api = self._by_key.get(header.api_key)
        if api is None:
            raise Disconnect(f"{title_of(header.api_key)} is not served here")
        steered = connection.versions
        limits = steered.get(header.api_key, ()) if steered else ()
        if limits is None:
            raise Disconnect(f"{api.key.title} is not served on this connection")
        low, high = limits or api.versions
        if not limits and api.unstable is not None:
            low, high = api.range(unstable=self._node.settings.boolean("unstable.api.versions.enable"))
        removed = header.api_version < api.versions[0] and connection.release.has(Behaviour.OLD_VERSIONS_CLOSE)
        if low <= header.api_version <= high and not removed:
            return api
        if header.api_key == ApiKey.API_VERSIONS:
            return None
        raise Disconnect(f"{api.key.title} v{header.api_version} is outside {low} to {high}")


def _encoded(response: Message, request: Message, ctx: RequestContext, exchange: Exchange) -> Parts:
    """Encode a response.

    A string in it may be too long for its field, such as a message that quotes a long name. Then the client gets
    UNKNOWN_SERVER_ERROR, as from a broker of Kafka.

    Raises:
        Disconnect: the error response cannot be encoded either.
    """
    key, version, number = int(ctx.api.key), ctx.version, ctx.correlation_id
    exchange.errors = error_codes(response)
    if exchange.encoded is not None and exchange.encoded[0] is response:
        return with_response_header(key, version, number, exchange.encoded[1])
    try:
        return encode_response(key, version, number, response)
    except Unwritable as error:
        reason = f"the response cannot be encoded: {error}"
    refusal = ctx.api.refuse(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), version)
    if refusal is None:
        raise Disconnect(reason)
    exchange.errors = error_codes(refusal)
    try:
        return encode_response(key, version, number, refusal)
    except Unwritable as error:
        raise Disconnect(reason) from error
