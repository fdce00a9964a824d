"""A client's connection: reads request frames and writes responses, in order.

Requests are processed one after another, as on a real broker (core A.3), while the transport reads at most a few frames
ahead. A request that arrives while none is in progress is answered within the transport's callback, which saves waking
a task. A response that waits goes on within the turn of the loop that ends its wait, such as that of an append. The
connection's task completes what waits for anything else than a Waiter or a coordinator, and serves what is behind it.

Bytes are read directly into the frame that they belong to (``asyncio.BufferedProtocol``; anyio's streams would cost a
copy per read); tasks belong to anyio's task group.
"""

import asyncio
import socket
from collections import deque
from contextlib import suppress
from typing import cast

from broker.access.tls.principals import MappingError
from broker.logs import Logger
from broker.request.answers import Disconnect, NeverAnswer, Sending
from broker.request.connection import Connection
from broker.server.closing import close_behind, close_with_reset
from broker.server.connections import Held
from broker.server.listening import Listening
from broker.server.writing import write_parts
from broker.time.clock import Begun, Slices, Waiter, begin, turns
from protocol.apis import ApiKey, api_and_version
from protocol.codec import BadFrameSize, FrameReader
from protocol.errors import KafkaError
from protocol.writers import Parts

_log = Logger(__name__)
_READ_AHEAD_FRAMES = 64  # with fewer, a disconnect is noticed while an earlier request still waits
_READ_AHEAD_BYTES = 4 * 1024 * 1024  # four of the largest batches that a topic takes by default
_CAUTIOUS_BYTES = 64 * 1024  # the first buffer of a large frame when memory is scarce; ours: most frames fit
_TRUSTING_BYTES = 2 * 1024 * 1024  # and when it is not; twice the largest batch of a topic by default
_PROGRESS_BYTES = 64 * 1024
"""An incomplete frame that grows by so much has not stalled: ours, for links of 2 KB a second."""
_TURN_US = 2000  # for which one client with many queued requests is served before others; ours: more is noticed
_JOIN_BELOW_BYTES = 64 * 1024
"""Copying less is cheaper than a further call of the system. Ours: half or twice as much is about as good."""
_TURNS_FOR_THE_NEXT = 8
"""Turns of the loop, some microseconds each, to read a request sent after this one: ours, more would delay others."""
_METADATA = ApiKey.METADATA.to_bytes(2, "big")


class ClientConnection(asyncio.BufferedProtocol):
    """A client's connection: reads request frames and writes responses, in order."""

    def __init__(self, server: Listening, listener: str, *, after: Held | None = None) -> None:
        """`after`: the TLS handshake of this connection, which the limits have counted so far."""
        self._after = after

        # Shared with the broker's other connections.
        self._server, self._connections, self._listener = server, server.connections, listener

        # Set when the connection is made; if the peer is gone by then, `info` stays as it is.
        self.transport: asyncio.Transport
        self.info = Connection("", listener, "", 0)

        # Requests that have arrived and are not served yet.
        self._reader = FrameReader(server.most_bytes(listener, known=False), server.scratch)
        self._frames: deque[bytearray] = deque()
        self._bad_size: BadFrameSize | None = None  # after the last complete frame
        self._queued_bytes = 0
        self._accounted_bytes = 0  # reported to the common budget of all connections
        self._partial_bytes = 0  # size of the incomplete frame at its last progress

        # Responses that are not written yet.
        self._delayed: Parts = []
        self._joined: Parts = []  # those of this turn, while further requests are queued
        self._joined_bytes = 0
        self._had_metadata = False

        # What the serving task waits for; None while it is not waiting.
        self._arrived: asyncio.Future[None] | None = None
        self._begun: Begun | None = None  # a response in progress that the serving task has not taken over
        self._task: asyncio.Task[None] | None = None  # the serving task
        self._at_once = False  # in the transport's callback, which already marks the connection as active
        self._writable: asyncio.Future[None] | None = None

        # Started, then lost by the peer or closed by the broker. Requests of a lost peer are still served, unless the
        # broker's process has ended.
        self._started = False
        self._reading = True
        self._lost = self._closed = self._ended = False
        self.silent = False
        """Whether a fault leaves the client without responses from now on."""

    # --- the transport's side ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection to the broker's, or close it immediately (core A.4).

        An exception here would leave the connection open and counted forever, because the event loop only logs it.
        """
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        try:
            self._join()
        except Exception:  # noqa: BLE001 - a failure of one connection must not affect others
            _log.exception("connection cannot be served")
            self._abandon()

    def _join(self) -> None:
        transport, server = self.transport, self._server
        peer = transport.get_extra_info("peername")
        if not peer:  # reset before it was accepted
            server.refusals.count_reset()
            self._abandon()
            return
        local = transport.get_extra_info("sockname") or ("", 0)
        host = str(peer[0])
        connection_id = f"{local[0]}:{local[1]}-{host}:{peer[1]}-{server.next_id()}"
        self.info = Connection(
            connection_id, self._listener, host, int(peer[1]), hang_up=lambda: self.hang_up(waits=True)
        )
        if self._after is not None:
            self._connections.succeed(self._after, self)
            self._after = None
        elif not self._connections.join(self, host, self._listener):
            self.hang_up()
            return
        try:
            self.info.principal = server.principal_of(self._listener, transport, host)
        except (MappingError, KafkaError) as error:
            self.refuse(str(error))
            return
        if not self._started or server.paused:  # later, since uvloop begins to read when this method returns
            asyncio.get_running_loop().call_soon(self.stop_reading)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            with suppress(OSError):  # macOS refuses once the peer is gone
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.joined(self.info)

    def _abandon(self) -> None:
        """Close the connection without an answer, and remove it from all counts."""
        self._closed = True
        self._connections.leave(self)
        self._release()
        self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer into which the transport reads next."""
        reader, connections = self._reader, self._connections
        trusting = not connections.held_bytes or connections.roomy
        reader.first_bytes = _TRUSTING_BYTES if trusting else _CAUTIOUS_BYTES
        return reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Queue the frames that are complete now."""
        if self._closed or self._bad_size is not None:
            return
        try:
            frames = self._reader.received(nbytes)
        except BadFrameSize as error:
            self._bad_size, frames = error, error.frames
        self._connections.idle.touch(self)
        bad = self._bad_size is not None
        idle = self._arrived is not None and not self._arrived.done()
        if frames:
            self._frames.extend(frames)
            self._queued_bytes += sum(map(len, frames))
            if idle:
                self._serve_at_once()
                if self._closed:
                    return
        if len(self._frames) >= _READ_AHEAD_FRAMES or self._queued_bytes > _READ_AHEAD_BYTES or bad:
            self.stop_reading()
        if self._reader.pending_bytes or self._partial_bytes or self._queued_bytes != self._accounted_bytes:
            self._account()
        if idle and (bad or (self._frames if self._begun is None else not self._begun.calls(self._wait_over))):
            self._wake()

    def _wake(self) -> None:
        """Wake the serving task."""
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _account(self) -> None:
        """Update the memory held for this client, and whether its incomplete frame makes progress."""
        reader, connections = self._reader, self._connections
        pending, held = reader.pending_bytes, self._queued_bytes
        if pending:
            held += reader.held_bytes
        if not pending:
            if self._partial_bytes:
                connections.partial.forget(self)
                self._partial_bytes = 0
        elif not self._partial_bytes or not 0 <= pending - self._partial_bytes < _PROGRESS_BYTES:
            connections.partial.touch(self)
            self._partial_bytes = pending
        if held != self._accounted_bytes:
            more, self._accounted_bytes = held - self._accounted_bytes, held
            connections.account(more)

    def pause_writing(self) -> None:
        """Pause serving: the client does not read its responses."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Continue serving: the client reads again."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def eof_received(self) -> bool:
        """Close the connection, because the client sends no more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note the disconnect. Requests that arrived before are still served (core A.3.3): acks=0 relies on it."""
        self._lost = True
        self._connections.leave(self)
        self._release()
        self.info.unserved = len(self._frames)
        self.info.lose()
        self._wake()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _release(self) -> None:
        """Return this connection's memory to the budget."""
        held, self._accounted_bytes = self._accounted_bytes, 0
        self._connections.account(-held)

    # --- the server's side -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to read and to serve."""
        self._started = True
        self.resume_reading()
        self._server.serving[self] = None
        self._server.tasks.start_soon(self._serve)

    def hang_up(self, *, reset: bool = False, waits: bool = False) -> None:
        """Close. Pending responses are still sent, unless ``reset``, or not ``waits`` and the client does not read."""
        if not reset:
            self._flush()
        self._write_joined()
        self._closed = True
        self._connections.leave(self)
        self._release()
        if reset:
            close_with_reset(self.transport)
        elif waits or self._writable is None:
            close_behind(self.transport)
        else:
            self.transport.abort()

    def end(self) -> None:
        """End with the broker's process: no request is served any more, not even what is left of one in progress.

        So that it changes neither what other brokers have nor, once it has started again, what this one has.
        """
        self._write_joined()
        self._ended = self._closed = True
        self._frames.clear()
        if self._begun is not None:
            self._begun.cancel()
            self._begun = None
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def refuse(self, reason: str, frame: bytearray | None = None, *, reset: bool = False) -> None:
        """Close the connection, and log the peer, the request and the reason in one line."""
        request = {} if frame is None else api_and_version(frame)
        self._server.refusals.log_refusal(f"{self.info.client_host}:{self.info.client_port}", reason, **request)
        self.hang_up(reset=reset)

    def stop_reading(self) -> None:
        """Stop reading from the socket."""
        if self._reading and not self.transport.is_closing():
            self._reading = False
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again, unless the broker is paused or this connection is not started yet."""
        if not self._reading and self._started and not self._server.paused and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    # --- serving -----------------------------------------------------------------------------------------------------

    def _serve_at_once(self) -> None:
        """Serve queued requests in the transport's callback, until one has to wait or the time slice is over.

        Their responses are written together, except large ones.
        """
        turn = Slices(_TURN_US) if len(self._frames) > 1 else None
        self._at_once = self._server.actions.in_request = True
        try:
            while self._frames and self._begun is None and not self._closed and not (turn is not None and turn.over):
                frame = self._frames.popleft()
                self._queued_bytes -= len(frame)
                self._begun = begin(self._answer(frame))
            self._at_once = False
            self._write_joined()
        finally:  # the actions of all connections wait until then
            self._server.actions.complete()

    def _wait_over(self) -> None:
        self._server.actions.add(self._continue)

    def _continue(self) -> None:
        """Continue the response in progress, if its wait is over and the serving task has not taken it over."""
        if self._begun is None or not self._begun.ready:
            return
        self._begun = self._begun.go_on()
        behind = self._frames or self._bad_size is not None
        if behind if self._begun is None else not self._begun.calls(self._wait_over):
            self._wake()

    async def _serve(self) -> None:
        turn, self._task = Slices(_TURN_US), asyncio.current_task()
        try:
            while not self._closed:
                if self._frames:
                    await self._answer(self._next_frame())
                    if self._frames:
                        await turn.pause()
                elif self._bad_size is not None:
                    self.refuse(str(self._bad_size))
                elif self._lost:
                    return
                else:
                    self._arrived = asyncio.get_running_loop().create_future()
                    await self._arrived
                    await self._go_on()
                    turn = Slices(_TURN_US)
        except asyncio.CancelledError:
            if not self._ended:  # else only this task is cancelled, not the task group
                self._cancel()
                raise
        except Exception:  # noqa: BLE001 - a failure of one connection must not affect others
            _log.exception("connection failed", peer=self.info.client_host)
            self.hang_up()
        finally:
            self._server.serving.pop(self, None)
            if self.info.at_end is not None:
                at_end, self.info.at_end = self.info.at_end, None
                at_end()

    async def _go_on(self) -> None:
        """Complete the response that was begun without this task, if there is one."""
        begun, self._begun = self._begun, None
        if begun is not None:
            await begun

    def _cancel(self) -> None:
        """Close the connection, because the server stops."""
        if self._begun is not None:
            self._begun.cancel()
            self._begun = None
        if not self._closed:
            self.hang_up()

    def _next_frame(self) -> bytearray:
        frame = self._frames.popleft()
        self._queued_bytes -= len(frame)
        if self._lost:
            return frame
        self._account()
        if not self._reading and self._bad_size is None:
            # Half, so that reading does not stop and resume at each frame.
            few = len(self._frames) < _READ_AHEAD_FRAMES // 2 and self._queued_bytes <= _READ_AHEAD_BYTES
            if few:
                self.resume_reading()
        return frame

    async def _answer(self, frame: bytearray) -> None:
        if self.silent:
            return  # requests are read and dropped, so that a disconnect is noticed
        is_token = self.info.gate is not None and self.info.gate.expects_token
        try:
            parts = await self._server.dispatcher.answer(frame, self.info)
            if self._server.paused:
                await self._resumption()
        except Disconnect as disconnect:
            self._disconnect(disconnect, None if is_token else frame)
            return
        except NeverAnswer:
            self.silent = True
            return
        if self.info.gate is not None:
            self._reader.limit = self._server.most_bytes(self._listener, known=self.info.gate.ready)
        if isinstance(parts, Sending):
            await self._send(parts)
        elif parts is not None and frame[:2] == _METADATA:
            await self._hold_back(parts)
        elif parts is not None:
            self._write(parts)
        if self._writable is not None or self.info.throttled_until_ms:
            await self._slow_down()

    async def _slow_down(self) -> None:
        """Serve the next request when the client has read this response, and is not throttled."""
        if self._writable is not None:
            await self._writable
        if self.info.throttled_until_ms:
            await self.info.wait_throttled(self._server.clock)

    async def _resumption(self) -> None:
        """Wait until the broker is no longer paused: until then what a request waited for has no response."""
        while self._server.paused and not self._closed:
            await self._server.wait_for_resumption()

    def _disconnect(self, disconnect: Disconnect, frame: bytearray | None) -> None:
        if self._lost:
            self._closed = True
        else:
            self.info.refused = not disconnect.on_purpose
            self.refuse(disconnect.reason, frame, reset=disconnect.reset)

    async def _hold_back(self, parts: Parts) -> None:
        """Delay a Metadata response until the next request, if it has already arrived, is answered or waits.

        After its first Metadata response librdkafka closes the bootstrap connection, dropping the FindCoordinator that
        it sent directly behind, and pauses for 50 ms. It does not if both responses arrive together.
        """
        self._delayed += parts
        if not self._frames and not self._had_metadata:
            await turns(_TURNS_FOR_THE_NEXT)
        self._had_metadata = True
        if self._frames and not self._closed and not self._lost:
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._flush()

    def _flush(self) -> None:
        """Write delayed responses."""
        if self._delayed:
            self._write([])

    async def _send(self, sending: Sending) -> None:
        """Write a response in pieces, or one after which the connection is closed."""
        clock = self._server.clock
        for number, piece in enumerate(sending.pieces):
            if number and sending.every_ms:
                await Waiter().wait(clock, clock.now_ms() + sending.every_ms)
            if self._closed or self._lost:
                return
            self._write([piece])
        if sending.closes:
            self.hang_up(waits=True)

    def _write(self, parts: Parts) -> None:
        if self._closed or self._lost:
            return
        if not self._at_once:
            self._connections.idle.touch(self)
        if self._delayed:
            parts, self._delayed = self._delayed + parts, []
        if self._at_once and self._frames:
            together_bytes = self._joined_bytes + sum(map(len, parts))
            if together_bytes < _JOIN_BELOW_BYTES:
                self._joined += parts
                self._joined_bytes = together_bytes
                return
        if self._joined:
            parts, self._joined, self._joined_bytes = self._joined + parts, [], 0
        if len(parts) == 1:
            self.transport.write(parts[0])
        else:
            write_parts(self.transport, parts, _JOIN_BELOW_BYTES)

    def _write_joined(self) -> None:
        """Write the responses of this turn that waited for the next one."""
        if self._joined and not self._lost:
            parts, self._joined, self._joined_bytes = self._joined, [], 0
            write_parts(self.transport, parts, _JOIN_BELOW_BYTES)
