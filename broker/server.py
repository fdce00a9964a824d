"""The only file with sockets: listeners, connections, and their limits.

A connection is served by one task: its requests are answered one after another, as on a real broker (core A.3), while
the transport reads ahead by a few frames at most. Bytes are read straight into the frame they belong to
(``asyncio.BufferedProtocol``; anyio's streams would cost a copy per read), tasks live in anyio's task group.
"""

import asyncio
import socket
from collections import deque
from typing import cast

import structlog
from anyio.abc import TaskGroup

from broker.chain import Disconnect, NeverAnswer
from broker.clock import Clock, Slices, Waiter, turns
from broker.connections import Connections
from broker.context import Connection
from broker.dispatch import Dispatcher, named_in
from broker.endpoints import Endpoint, PortTaken
from broker.refusals import Refusals
from broker.settings import BrokerSettings
from broker.tls import context_of, principal_of
from broker.wire import Sending
from protocol.apis import ApiKey
from protocol.compiled import Parts
from protocol.connection import SCRATCH_BYTES, FrameReader

_log = structlog.get_logger(__name__)
_READ_AHEAD_FRAMES = 64  # a peer that hangs up behind fewer is noticed while an earlier request still waits
_READ_AHEAD_BYTES = 4 * 1024 * 1024
_CAUTIOUS_BYTES = 64 * 1024  # what a large frame gets before it has arrived, where room is scarce
_TRUSTING_BYTES = 2 * 1024 * 1024  # and where it is not
_PROGRESS_BYTES = 64 * 1024  # a frame under way that grows by this much has not stalled
_TURN_US = 2000  # a peer that has sent many requests at once is served for so long, then the others are
_JOIN_BELOW_BYTES = 64 * 1024
_TURNS_FOR_THE_NEXT = 8  # of the loop, some microseconds each, until what was sent right behind has been read
_METADATA = ApiKey.METADATA.to_bytes(2, "big")


class BrokerServer:
    """The listeners and connections of one broker; ``most`` is how many connections there are descriptors for."""

    def __init__(
        self, dispatcher: Dispatcher, settings: BrokerSettings, clock: Clock, tasks: TaskGroup, *, most: int = 2**31
    ) -> None:
        self.dispatcher, self.settings, self.clock, self.tasks = dispatcher, settings, clock, tasks
        self.connections = Connections[ClientConnection](settings, clock, most)
        self.refusals = Refusals(clock)
        self.paused, self._count = False, 0
        self._waiting: set[Waiter] = set()  # other brokers, whom a paused one leaves without an answer
        self.scratch = bytearray(SCRATCH_BYTES)  # of all connections: a transport fills and reports it in one step
        self._servers: list[asyncio.Server] = []
        self._guarded: set[str] = set()

    async def listen(self, endpoint: Endpoint, port: int | None = None) -> int:
        """Bind one listener; the port that it got. Connections are taken from :meth:`accept` on.

        Raises:
            PortTaken: somebody listens there, or the address is not this machine's.
        """
        loop = asyncio.get_running_loop()
        wanted = endpoint.port if port is None else port
        try:
            server = await loop.create_server(
                lambda: ClientConnection(self, endpoint.name),
                endpoint.host or None,
                wanted,
                backlog=max(self.settings.int("socket.listen.backlog.size"), 1),
                start_serving=False,
                ssl=context_of(self.settings, endpoint),
            )
        except OSError as error:
            raise PortTaken(wanted, str(error)) from error
        self._servers.append(server)
        self._guarded |= {endpoint.name} if endpoint.has_sasl else set()
        return int(server.sockets[0].getsockname()[1])

    async def accept(self) -> None:
        """Take connections on every bound listener."""
        for server in self._servers:
            await server.start_serving()

    def most_bytes(self, listener: str, *, known: bool) -> int:
        """The largest request on a listener, from peers who are known or have to say yet who they are (core A.1.3)."""
        limit = "socket.request.max.bytes" if known or listener not in self._guarded else "sasl.server.max.receive.size"
        return self.settings.int(limit)

    def stop_listening(self) -> None:
        """Take no new connections; the open ones stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    def close(self, *, reset: bool = False) -> None:
        """Close everything, orderly or with a TCP reset."""
        self._let_go()
        self.stop_listening()
        self.connections.close(reset=reset)
        self.refusals.close()

    @property
    def listening(self) -> bool:
        """Whether it takes connections, or will once it accepts."""
        return bool(self._servers)

    def end_silence(self) -> None:
        """Hang up on whom a fault keeps without an answer for ever: the fault is gone. Nobody is throttled any more."""
        for connection in list(self.connections.open):
            connection.info.forgive()
            if connection.silent:
                connection.hang_up()

    def pause(self) -> None:
        """Accept connections and read nothing more: a broker that hangs."""
        self.paused = True
        for connection in self.connections.open:
            connection.stop_reading()

    async def wait_for_resumption(self, deadline_ms: int) -> None:
        """As another broker that has asked a paused one: until it reads again, is gone, or time is up."""
        waiter = Waiter()
        self._waiting.add(waiter)
        await waiter.wait(self.clock, deadline_ms)
        self._waiting.discard(waiter)

    def _let_go(self) -> None:
        for waiter in self._waiting:
            waiter.wake()

    def resume(self) -> None:
        """Read again."""
        self.paused = False
        self._let_go()
        for connection in self.connections.open:
            connection.go_on_reading()

    def next_id(self) -> int:
        """A number for a new connection."""
        self._count += 1
        return self._count


class ClientConnection(asyncio.BufferedProtocol):
    """One client's connection: frames in, answers out, in order."""

    def __init__(self, server: BrokerServer, listener: str) -> None:
        self._server, self._listener = server, listener
        self._reader = FrameReader(server.most_bytes(listener, known=False), server.scratch)
        self._frames: deque[bytearray] = deque()
        self._queued_bytes = 0
        self._held_bytes = 0
        self._progress_bytes = 0  # of the frame under way when it was last seen to grow
        self._held: Parts = []  # an answer that goes out with the next one
        self._told = False  # metadata, once
        self._arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading = True
        self._begun = False
        self._lost = False  # the peer is gone; what it has sent is still served
        self.silent = False
        self._closed = False

    # --- the transport's side ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the others, or close at once (core A.4)."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        peer = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        server, host = self._server, str(peer[0])
        place = f"{local[0]}:{local[1]}-{peer[0]}:{peer[1]}-{server.next_id()}"
        self.info = Connection(place, self._listener, host, int(peer[1]), principal_of(transport))
        if not server.connections.join(self, host):
            self.hang_up()
            return
        if not self._begun or server.paused:  # not here: uvloop begins to read when this method returns
            asyncio.get_running_loop().call_soon(self.stop_reading)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the transport puts the next bytes."""
        reader = self._reader
        connections = self._server.connections
        trusting = not connections.held_bytes or connections.roomy
        reader.first_bytes = _TRUSTING_BYTES if trusting else _CAUTIOUS_BYTES
        return reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Queue the frames that are complete now."""
        if self._closed:
            return
        reader = self._reader
        frames = reader.received(nbytes)
        self._server.connections.idle.heard(self)
        if frames:
            self._frames.extend(frames)
            self._queued_bytes += sum(map(len, frames))
        if len(self._frames) >= _READ_AHEAD_FRAMES or self._queued_bytes > _READ_AHEAD_BYTES or reader.complaint:
            self.stop_reading()
        self._account()
        if (frames or reader.complaint) and self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _account(self) -> None:
        """Tell what memory is held for this peer, and whether a frame under way makes progress."""
        reader, connections = self._reader, self._server.connections
        pending, held = reader.pending_bytes, self._queued_bytes
        if pending:
            held += reader.held_bytes
        if not pending:
            if self._progress_bytes:
                connections.partial.forget(self)
                self._progress_bytes = 0
        elif not self._progress_bytes or not 0 <= pending - self._progress_bytes < _PROGRESS_BYTES:
            connections.partial.heard(self)
            self._progress_bytes = pending
        if held != self._held_bytes:
            more, self._held_bytes = held - self._held_bytes, held
            connections.hold(more)

    def pause_writing(self) -> None:
        """The peer does not read: no further request is answered until it does."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """The peer reads again."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def eof_received(self) -> bool:
        """The peer sends no more: close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody listens any more. Requests that came before are still done (core A.3.3): acks=0 relies on it."""
        self._lost = True
        self._server.connections.leave(self)
        self._release()
        self.info.lose()
        for future in (self._arrived, self._writable):
            if future is not None and not future.done():
                future.set_result(None)

    def _release(self) -> None:
        """A connection that is gone holds nothing more against the budget."""
        held, self._held_bytes = self._held_bytes, 0
        self._server.connections.hold(-held)

    # --- what the server asks ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Read, and serve what is read."""
        self._begun = True
        self.go_on_reading()
        self._server.tasks.start_soon(self._serve)

    def hang_up(self, *, reset: bool = False) -> None:
        """Close; what is already written still goes out, unless it is a reset or the peer does not read."""
        if self._held and not reset:
            self._flush()
        self._closed = True
        self._server.connections.leave(self)
        self._release()
        if reset:
            raw = self.transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if reset or self._writable is not None:
            self.transport.abort()
        else:
            self.transport.close()

    def refuse(self, reason: str, frame: bytearray | None = None, *, reset: bool = False) -> None:
        """Hang up, and say so in the log: one line with the peer, the request and the reason."""
        asked = {} if frame is None else named_in(frame)
        self._server.refusals.tell(f"{self.info.client_host}:{self.info.client_port}", reason, **asked)
        self.hang_up(reset=reset)

    def stop_reading(self) -> None:
        """Let what the peer sends wait in the socket."""
        if self._reading and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def go_on_reading(self) -> None:
        """Read again, unless the whole broker is paused or this connection has to wait for its turn."""
        if not self._reading and self._begun and not self._server.paused and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    # --- serving -----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        turn = Slices(_TURN_US)
        try:
            while not self._closed:
                if self._frames:
                    await self._answer(self._next_frame())
                    if self._frames:
                        await turn.pause()
                elif self._reader.complaint:
                    self.refuse(self._reader.complaint)
                elif self._lost:
                    return
                else:
                    self._arrived = asyncio.get_running_loop().create_future()
                    await self._arrived
                    turn = Slices(_TURN_US)
        except asyncio.CancelledError:
            if not self._closed:
                self.hang_up()
            raise
        except Exception:  # noqa: BLE001 - one connection's fault is nobody else's
            _log.exception("connection failed", peer=self.info.client_host)
            self.hang_up()

    def _next_frame(self) -> bytearray:
        frame = self._frames.popleft()
        self._queued_bytes -= len(frame)
        if self._lost:
            return frame
        self._account()
        if not self._reading and not self._reader.complaint:
            few = len(self._frames) < _READ_AHEAD_FRAMES // 2 and self._queued_bytes <= _READ_AHEAD_BYTES
            if few:
                self.go_on_reading()
        return frame

    async def _answer(self, frame: bytearray) -> None:
        if self.silent:
            return  # what comes is read and forgotten, so that the peer's close is noticed
        try:
            parts = await self._server.dispatcher.answer(frame, self.info)
        except Disconnect as disconnect:
            if self._lost:
                self._closed = True
            else:
                self.refuse(disconnect.reason, frame, reset=disconnect.reset)
            return
        except NeverAnswer:
            self.silent = True
            return
        if self.info.gate is not None:
            self._reader.limit = self._server.most_bytes(self._listener, known=self.info.gate.ready)
        if isinstance(parts, Sending):
            await self._send(parts)
        elif parts is not None and not await self._may_wait(frame, parts) and not self._closed and not self._lost:
            self._write(parts)
        if self._writable is not None:
            await self._writable
        if self.info.throttled_until_ms:
            await self.info.sit_out(self._server.clock)

    async def _may_wait(self, frame: bytearray, parts: Parts) -> bool:
        """Whether an answer is held back until the next request, which is here already, is answered or waits.

        With the first metadata librdkafka gives up the connection that it asked on, and with it the FindCoordinator
        that it sent right behind; then it pauses for 50 ms. It never does where both answers come together.
        """
        if frame[:2] != _METADATA:
            return False
        if not self._frames and not self._told:
            await turns(_TURNS_FOR_THE_NEXT)
        self._told = True
        if not self._frames or self._closed or self._lost:
            return False
        self._held += parts
        asyncio.get_running_loop().call_soon(self._flush)
        return True

    def _flush(self) -> None:
        """Write what was held back."""
        if self._held and not self._closed and not self._lost:
            self._write([])

    async def _send(self, sending: Sending) -> None:
        """Write what a fault has made of an answer."""
        clock = self._server.clock
        for number, piece in enumerate(sending.pieces):
            if number and sending.every_ms:
                await Waiter().wait(clock, clock.now_ms() + sending.every_ms)
            if self._closed or self._lost:
                return
            self._write([piece])
        if sending.closes:
            self.hang_up()

    def _write(self, parts: Parts) -> None:
        self._server.connections.idle.heard(self)
        if self._held:
            parts, self._held = self._held + parts, []
        if sum(map(len, parts)) < _JOIN_BELOW_BYTES:
            self.transport.write(b"".join(parts))
        else:
            self.transport.writelines(parts)
