"""Forward clients' requests to a broker and return its responses, as `broker.server.dispatcher` serves them.

A frame is forwarded unchanged, byte for byte. It is read only if something needs its contents: a fault for its API, a
view (journal, timelines), or addresses in its response. Frames that cannot be read, such as those of an unknown API or
version, are forwarded too, unless their responses would lead clients past the proxy.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast

from anyio.abc import TaskGroup

from broker.handlers import APIS
from broker.request.answers import Answer, Disconnect, Sending
from broker.request.api import AnyApi, AnyHandler, ServedVersions
from broker.request.connection import Connection
from broker.request.context import Exchange, RequestContext
from broker.server.dispatcher import Chain
from broker.steering.journal.ring import WHOLE_BYTES
from broker.time.clock import PushedClock
from protocol.apis import ApiKey
from protocol.codec import (
    BadFrame,
    RequestHeader,
    decode_header,
    decode_request,
    decode_response,
    decode_response_as_sent,
    encode_request,
    encode_response,
    encode_response_as_sent,
)
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest
from protocol.types import Message
from protocol.writers import Parts
from proxy.addresses import ADDRESSED, has_addresses, rewritten
from proxy.authentication import has_to_be_renewed
from proxy.frames import UNREADABLE, is_known, is_request, journal_parts, refusal_of
from proxy.link import Link
from proxy.upstream import Upstream

_BY_KEY = {int(api.key): api for api in APIS}
_NO_ACKS = 0


class Passing(Exchange):
    """A forwarded request: ``raw`` is the broker's response as bytes, ``answered`` the same as a message."""

    header: RequestHeader | None = None
    link: Link
    raw: bytearray | bytes | None = None
    answered: Message | None = None


class Upstreams(Protocol):
    """Interface of :class:`proxy.proxy.Proxy` for its forwarders."""

    clock: PushedClock
    chain: Chain

    def reads(self, key: int) -> bool:
        """Whether requests of an API have to be read."""
        ...

    def learn(self, response: Any) -> None:
        """Note brokers and topics in a response."""
        ...

    async def open_link(self, upstream: Upstream) -> Link:
        """Connect to a broker. Raises Disconnect."""
        ...

    async def authenticate(self, link: Link) -> None:
        """Renew the proxy's own authentication. Raises Disconnect."""
        ...

    async def place(self, kind: int, broker_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the proxy's address for the upstream broker at this address."""
        ...


class Forwarder:
    """Forwards the frames that arrive on one broker's listener to that broker."""

    def __init__(self, proxy: Upstreams, upstream: Upstream, tasks: TaskGroup) -> None:
        self._proxy, self._upstream, self._tasks = proxy, upstream, tasks
        self._links: dict[str, Link] = {}
        self._opening: dict[str, asyncio.Future[Link]] = {}
        """Upstream connections from the client's connect to its end; an early request waits for the connection."""
        self._served: set[str] = set()
        """Ids of the client connections with a request in flight."""
        self._handlers: dict[int, tuple[AnyApi, AnyHandler]] = {}
        self._serve_frame = proxy.chain.around_frames(self._serve)

    def answer(self, frame: bytearray, connection: Connection) -> Awaitable[Answer]:
        """Serve a frame; return the parts of the response, ``None`` if there is none.

        Raises:
            Disconnect: the client's connection has to be closed, perhaps because the broker closed its own.
            NeverAnswer: a fault leaves the client without a response.
        """
        link = self._links.get(connection.id)
        if link is not None and link.tokens:
            if not is_request(frame):
                return self._to_its_end(_pass_token(frame, link), connection)
            link.tokens = False
        passing = Passing(frame, connection, self._upstream.id, self._proxy.clock.now_ms())
        return self._to_its_end(self._serve_frame(passing), connection)

    # --- connections -------------------------------------------------------------------------------------------------

    async def _to_its_end(self, served: Awaitable[Answer], connection: Connection) -> Answer:
        """Await the response; if the broker closes the connection after it, it is still sent, as the last one."""
        self._served.add(connection.id)
        answer: Answer = None
        try:
            answer = await served
        finally:
            self._served.discard(connection.id)
            link = self._links.get(connection.id)
            ended = link is not None and link.lost
            if ended and answer is None:
                self._lost(connection)
        if not ended or answer is None:
            return answer
        if isinstance(answer, Sending):
            return replace(answer, closes=True)
        return Sending((b"".join(answer),), closes=True)

    def connect(self, connection: Connection) -> None:
        """Connect to the broker for a client that has connected, as the client itself would have."""
        self._opening[connection.id] = asyncio.get_running_loop().create_future()
        connection.watch(lambda: self._left(connection))
        connection.at_end = lambda: self._end(connection)
        self._tasks.start_soon(self._open, connection)

    async def _open(self, connection: Connection) -> None:
        opening = self._opening.get(connection.id)
        if opening is None:
            return
        try:
            link = await self._proxy.open_link(self._upstream)
        except Disconnect as error:
            if connection.id not in self._opening:
                return
            opening.set_exception(error)
            opening.exception()  # retrieved, since perhaps no request awaits it
            if connection.hang_up is not None and connection.id not in self._served:
                peer = f"{connection.client_host}:{connection.client_port}"
                self._upstream.server.refusals.log_refusal(peer, error.reason)
                connection.hang_up()
            return
        if connection.id not in self._opening:
            link.close()
            return
        self._links[connection.id] = link
        opening.set_result(link)
        link.closed_by_broker.add_done_callback(lambda _: self._lost(connection))

    async def _link(self, connection: Connection) -> Link:
        """Return the upstream connection of a client connection. Raises Disconnect."""
        link = self._links.get(connection.id)
        if link is None:
            opening = self._opening.get(connection.id)
            if opening is None:
                raise Disconnect("the client hung up")
            link = await opening
        if link.lost:
            raise Disconnect("the upstream broker closed the connection")
        if has_to_be_renewed(link):
            await self._proxy.authenticate(link)
        return link

    def _left(self, connection: Connection) -> None:
        """Handle a client's disconnect. Its earlier requests, such as those with acks=0, are still forwarded."""
        waits = connection.id in self._served and connection.id not in self._links
        if not connection.unserved and not waits:
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        """Close the upstream connection of a client that is gone, after all its requests were forwarded."""
        opening = self._opening.pop(connection.id, None)
        if opening is not None and not opening.done():
            opening.set_exception(Disconnect("the client hung up"))
            opening.exception()
        link = self._links.pop(connection.id, None)
        if link is not None:
            link.close()

    def _lost(self, connection: Connection) -> None:
        """Close the client's connection after the broker closed its own, unless a response is in flight."""
        if connection.id not in self._served and connection.hang_up is not None and not connection.lost:
            connection.hang_up()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _serve(self, exchange: Exchange) -> Answer:
        passing = cast("Passing", exchange)
        passing.link = await self._link(passing.connection)
        with suppress(BadFrame):
            passing.header = decode_header(passing.frame)
        header = passing.header
        if header is None or not is_known(header):
            return await self._pass_unknown(passing)
        if self._proxy.reads(header.api_key) or _has_records(passing):
            try:
                passing.request = decode_request(passing.frame, header)
            except BadFrame:  # the broker decides about it
                return await self._pass(passing, header)
        if passing.request is not None and self._proxy.reads(header.api_key):
            return await self._handle(passing, header, passing.request)
        return await self._pass(passing, header)

    async def _pass_unknown(self, passing: Passing) -> Answer:
        """Forward a request of an unknown API or version unchanged.

        Raises:
            Disconnect: the response would contain the brokers' own addresses, which lead clients past the proxy.
        """
        if passing.header is not None and passing.header.api_key in ADDRESSED:
            raise Disconnect("this version is unknown to the proxy, and its response has addresses in it")
        passing.parts = refusal_of(passing.frame)
        return passing.parts or _as_parts(passing, await passing.link.ask(passing.frame))

    async def _pass(self, passing: Passing, header: RequestHeader) -> Answer:
        """Forward a request unchanged, and return its response with the proxy's addresses."""
        if _wants_no_answer(passing, header):
            await passing.link.send(passing.frame)
            passing.outcome = "asked for no answer"
            return None
        answer = await passing.link.ask(passing.frame)
        if header.api_key == ApiKey.FETCH:
            self._upstream.sessions.note(header, passing.frame, answer)
        return _as_parts(passing, await self._rewritten(header, answer))

    async def _handle(self, passing: Passing, header: RequestHeader, request: Message) -> Answer:
        """Forward a request through views and faults."""
        key, version, number = header.api_key, header.api_version, header.correlation_id
        api, handle = self._handlers.get(key) or self._handler_of(_BY_KEY[key])
        ctx = RequestContext(
            api,
            version,
            number,
            header.client_id,
            passing.connection,
            cast("Any", self._upstream),
            cast("Any", self._proxy),
            passing,
            APIS,
            len(passing.frame),
        )
        response = await handle(request, ctx)
        if response is None:
            if passing.raw is not None:  # the response cannot be read
                return _as_parts(passing, passing.raw)
            passing.outcome = "asked for no answer"
            return None
        if response is passing.answered and passing.raw is not None:
            parts = _as_parts(passing, passing.raw, response)
        else:
            parts = passing.parts = encode_response(key, version, number, response)
        return parts if passing.byte_fault is None else passing.byte_fault.spoil(b"".join(parts))

    def _handler_of(self, served: ServedVersions) -> tuple[AnyApi, AnyHandler]:
        """Build the handler of an API for its first request: views and faults around the forwarding."""
        api = served.api
        handler = self._handlers[int(api.key)] = api, self._proxy.chain.around(replace(api, handle=self._forward))
        return handler

    async def _forward(self, request: Any, ctx: RequestContext) -> Message | None:
        """Innermost handler: return the broker's response; ``None`` if there is none, or it cannot be read."""
        passing = cast("Passing", ctx.notes)
        key, version = int(ctx.api.key), ctx.version
        frame: bytes | bytearray = passing.frame
        if request is not passing.request:
            frame = encode_request(key, version, ctx.correlation_id, ctx.client_id, request)[4:]  # without the size
        if isinstance(request, ProduceRequest) and request.acks == _NO_ACKS:
            await passing.link.send(frame)
            return None
        assert passing.header is not None
        answer = await passing.link.ask(frame)
        if key == ApiKey.FETCH:
            self._upstream.sessions.note(passing.header, passing.frame, answer)
        raw = await self._rewritten(passing.header, answer)
        passing.raw, passing.answered = raw, None
        with suppress(*UNREADABLE):
            passing.answered = decode_response(key, version, raw)[1]
        self._note(request, passing)
        return passing.answered

    def _note(self, request: Any, passing: Passing) -> None:
        """Note the properties of the client that its request contains, such as its software."""
        key = None if passing.header is None else passing.header.api_key
        if key == ApiKey.API_VERSIONS and request.client_software_name:
            connection = passing.connection
            connection.software_name = request.client_software_name
            connection.software_version = request.client_software_version
        elif key == ApiKey.SASL_HANDSHAKE and passing.header is not None and passing.header.api_version == 0:
            accepted = passing.answered is not None and cast("Any", passing.answered).error_code is ErrorCode.NONE
            passing.link.tokens = accepted

    async def _rewritten(self, header: RequestHeader, raw: bytearray) -> bytearray | bytes:
        """Return a response with the addresses of the proxy's listeners; an unreadable one is returned unchanged.

        Raises:
            Disconnect: an unreadable one would contain the brokers' addresses, which lead clients past the proxy.
        """
        key, version = header.api_key, header.api_version
        if not has_addresses(key, version):
            return raw
        try:
            number, response = decode_response_as_sent(key, version, raw)
        except UNREADABLE as error:
            if key in ADDRESSED:
                raise Disconnect(f"the broker's response has addresses in it, and cannot be read: {error}") from error
            return raw
        self._proxy.learn(response)
        changed = await rewritten(response, self._proxy.place)
        if changed is response:
            return raw
        return b"".join(encode_response_as_sent(key, version, number, changed))[4:]  # without the size


# --- frames ----------------------------------------------------------------------------------------------------------


async def _pass_token(frame: bytearray, link: Link) -> Answer:
    """Forward a SASL token, which no view records."""
    raw = await link.ask(frame)
    return [len(raw).to_bytes(4, "big"), raw]


def _has_records(passing: Passing) -> bool:
    """Whether this is a large Produce request, whose records the journal leaves out."""
    return passing.header is not None and passing.header.api_key == ApiKey.PRODUCE and len(passing.frame) > WHOLE_BYTES


def _wants_no_answer(passing: Passing, header: RequestHeader) -> bool:
    """Whether this is a Produce request with acks=0."""
    if header.api_key != ApiKey.PRODUCE:
        return False
    request = passing.request
    if request is None:
        with suppress(BadFrame):
            request = decode_request(passing.frame, header)
    return isinstance(request, ProduceRequest) and request.acks == _NO_ACKS


def _as_parts(passing: Passing, raw: bytearray | bytes, response: Any = None) -> Parts:
    """Split a response into the parts that are sent, and that the journal records."""
    passing.parts = journal_parts(passing.header, raw, response)
    return [len(raw).to_bytes(4, "big"), raw]
