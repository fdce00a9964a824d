"""TLS handshakes, which count as connections from the accept on, and fail with an alert to the client.

asyncio's own TLS servers pass on a connection only when its handshake is complete. Until then no limit counts it, and
if the client's certificate is refused, the alert is not sent.
"""

import asyncio
import os
import socket
import ssl
from typing import cast

from broker.logs import Logger
from broker.server.client_connection import ClientConnection
from broker.server.listening import Listening
from broker.time.clock import soon

_log = Logger(__name__)
_LINGER_MS = 2000
"""How long the socket of a refused client stays open for it to read the alert: closing over unread bytes resets.

Ours, a round trip around the world and more.
"""
_NOT_TLS = frozenset({"wrong version number", "http request", "record layer failure", "packet length too long"})
"""OpenSSL's reasons if the first bytes are not those of TLS."""
_MOST_FAREWELLS = 64
"""The maximum of sockets of refused clients that stay open; further clients get no alert.

Arbitrary, each takes a descriptor.
"""
_FOREVER_S = 86_400.0
"""asyncio's own handshake timeout, never reached because `understudy.partial.frame.timeout.ms` is shorter."""


class Handshake(asyncio.Protocol):
    """A connection from its accept to the end of its TLS handshake, when a `ClientConnection` replaces it."""

    def __init__(self, server: Listening, listener: str) -> None:
        self._server, self._listener = server, listener
        self._transport: asyncio.Transport
        self._host = self._peer = ""
        self._waits = self._over = False
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection to the broker's, or close it immediately."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        if not peer:  # reset before it was accepted
            self._server.refusals.count_reset()
            self._transport.abort()
            return
        self._host, self._peer = str(peer[0]), f"{peer[0]}:{peer[1]}"
        if not self._server.connections.join(self, self._host, self._listener):
            self.hang_up()

    def data_received(self, data: bytes) -> None:
        """Keep bytes that arrive before the handshake begins, and stop reading."""
        self._data += data
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that the client has disconnected before its handshake began."""
        self._end()

    # --- the broker's limits -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let the handshake begin, unless the broker is paused; its deadline is that of an incomplete request."""
        self._waits = True
        self.go_on()

    def go_on(self) -> None:
        """Begin the handshake, if it was waiting for its turn or for a paused broker."""
        if self._waits and not self._server.paused and not self._over:
            self._waits = False
            self._server.connections.partial.touch(self)
            self._server.tasks.start_soon(self._shake)

    def hang_up(self, *, reset: bool = False) -> None:  # noqa: ARG002
        """Close the connection."""
        self._end()
        self._transport.abort()

    def refuse(self, reason: str) -> None:
        """Close the connection, and log the reason in one line."""
        self._server.refusals.log_refusal(self._peer, reason)
        self.hang_up()

    def _end(self) -> None:
        self._over = True
        self._server.connections.leave(self)

    # --- the handshake -----------------------------------------------------------------------------------------------

    async def _shake(self) -> None:
        if self._transport.is_closing():
            self._end()
            return
        loop, early = asyncio.get_running_loop(), _Early()
        spare, connections = _duplicate(self._transport), self._server.connections
        connections.spares += spare is not None
        context = self._server.tls_context(self._listener)
        context.arrived.append(bytes(self._data))
        try:
            transport = await loop.start_tls(
                self._transport, early, context, server_side=True, ssl_handshake_timeout=_FOREVER_S
            )
        except ssl.SSLError as error:
            self._refuse_alerting(error, spare)
            return
        except OSError as error:
            if not self._over:
                self._server.refusals.log_refusal(self._peer, f"the TLS handshake was not completed: {error}")
            self._end()
            return
        except Exception:  # noqa: BLE001 - a failure of one connection must not affect others
            _log.exception("connection cannot be served", peer=self._peer)
            self.hang_up()
            return
        finally:
            if spare is not None:
                spare.close()
                connections.spares -= 1
        if transport is None or self._over or early.lost:
            self.hang_up()
            return
        connection = ClientConnection(self._server, self._listener, after=self)
        transport.set_protocol(connection)
        connection.connection_made(transport)
        early.hand_over(connection)

    def _refuse_alerting(self, error: ssl.SSLError, spare: socket.socket | None) -> None:
        """Send the alert, and close once the client has closed or had time to read it."""
        if not self._over:
            self._server.refusals.log_refusal(self._peer, f"the TLS handshake failed: {_reason(error)}")
        self._end()
        alert: bytes = getattr(error, "alert", b"")
        if spare is not None and alert and self._server.farewells < _MOST_FAREWELLS:
            _Farewell(self._server, socket.socket(fileno=spare.detach()), alert)


def _reason(error: ssl.SSLError) -> str:
    detail = getattr(error, "verify_message", None)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if reason in _NOT_TLS:
        return f"{reason}: the client does not use TLS, as this listener does"
    return f"{reason}: {detail}" if detail else reason


def _duplicate(transport: asyncio.Transport) -> socket.socket | None:
    """Duplicate the descriptor of a connection; ``None`` if the process has none left."""
    original = transport.get_extra_info("socket")
    try:
        return socket.socket(fileno=os.dup(original.fileno()))
    except OSError:
        return None


class _Farewell:
    """Sends a last message, and closes the socket when the peer has closed it, or after two seconds."""

    def __init__(self, server: Listening, peer: socket.socket, message: bytes) -> None:
        self._server, self._peer, self._loop = server, peer, asyncio.get_running_loop()
        peer.setblocking(False)
        try:
            peer.send(message)
            peer.shutdown(socket.SHUT_WR)
        except OSError:  # the peer has closed it already
            peer.close()
            return
        server.farewells += 1
        self._loop.add_reader(peer, self._drop)
        self._timer = soon(_LINGER_MS, self._close)

    def _drop(self) -> None:
        """Read and drop further bytes."""
        try:
            ended = not self._peer.recv(65_536)  # more than a record of TLS
        except BlockingIOError:
            return
        except OSError:
            ended = True
        if ended:
            self._close()

    def _close(self) -> None:
        self._timer.cancel()
        if self._peer.fileno() >= 0:
            self._loop.remove_reader(self._peer)
            self._peer.close()
            self._server.farewells -= 1


class _Early(asyncio.Protocol):
    """Keeps what a client sends directly after its handshake, until its `ClientConnection` exists."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.lost = False

    def data_received(self, data: bytes) -> None:
        """Keep the bytes."""
        self._data += data

    def eof_received(self) -> bool:
        """Note that the client sends no more."""
        self.lost = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that the client has disconnected."""
        self.lost = True

    def hand_over(self, connection: ClientConnection) -> None:
        """Pass the kept bytes to the connection."""
        rest = memoryview(self._data)
        while rest:
            buffer = connection.get_buffer(len(rest))
            size = min(len(buffer), len(rest))
            buffer[:size] = rest[:size]
            connection.buffer_updated(size)
            rest = rest[size:]
