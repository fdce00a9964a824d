"""The TLS handshake of a connection: counted among the connections from accept on, and ended in good order.

asyncio's own TLS servers hand a connection over once its handshake is complete. Until then no limit counts it, and
where the client's certificate is refused, the alert that reports it is not sent.
"""

import asyncio
import os
import socket
import ssl
from typing import cast

import structlog

from broker.clock import soon
from broker.network.client_connection import ClientConnection
from broker.network.listening import Listening

_log = structlog.get_logger(__name__)
_LINGER_MS = 2000
"""How long the socket of a refused peer stays open, so that it reads the alert: to close over unread bytes resets."""
_MOST_FAREWELLS = 64
"""Sockets of refused peers that stay open at the same time; further peers get no alert."""
_FOREVER_S = 86_400.0
"""asyncio's own limit of a handshake, which is never reached: `understudy.partial.frame.timeout.ms` ends it before."""


class Handshake(asyncio.Protocol):
    """A connection from its accept to the end of its handshake, when a `ClientConnection` takes its place."""

    def __init__(self, server: Listening, listener: str) -> None:
        self._server, self._listener = server, listener
        self._transport: asyncio.Transport
        self._host = self._peer = ""
        self._waits = self._over = False
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the broker's other connections, or close at once."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        if not peer:  # reset before it was accepted
            self._server.refusals.count_reset()
            self._transport.abort()
            return
        self._host, self._peer = str(peer[0]), f"{peer[0]}:{peer[1]}"
        if not self._server.connections.join(self, self._host):
            self.hang_up()

    def data_received(self, data: bytes) -> None:
        """Keep what comes before the handshake begins; a peer that has to wait is not read for long."""
        self._data += data
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The peer is gone before its handshake has begun."""
        self._end()

    # --- the broker's limits -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin the handshake, once the broker reads; it has as long as an incomplete request."""
        self._waits = True
        self.go_on()

    def go_on(self) -> None:
        """Begin the handshake, if it has waited for its turn or for a broker that hangs, and not begun yet."""
        if self._waits and not self._server.paused and not self._over:
            self._waits = False
            self._server.connections.partial.touch(self)
            self._server.tasks.start_soon(self._shake)

    def hang_up(self, *, reset: bool = False) -> None:  # noqa: ARG002
        """Close."""
        self._end()
        self._transport.abort()

    def refuse(self, reason: str) -> None:
        """Close, with one line in the log."""
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
                self._server.refusals.log_refusal(self._peer, f"the TLS handshake was not finished: {error}")
            self._end()
            return
        except Exception:  # noqa: BLE001 - one connection's failure does not end the others
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
        """Send the alert, and close once the peer has closed or had the time to read it."""
        if not self._over:
            self._server.refusals.log_refusal(self._peer, f"the TLS handshake failed: {_reason(error)}")
        self._end()
        alert: bytes = getattr(error, "alert", b"")
        if spare is not None and alert and self._server.farewells < _MOST_FAREWELLS:
            _Farewell(self._server, socket.socket(fileno=spare.detach()), alert)


def _reason(error: ssl.SSLError) -> str:
    detail = getattr(error, "verify_message", None)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    return f"{reason}: {detail}" if detail else reason


def _duplicate(transport: asyncio.Transport) -> socket.socket | None:
    """A second descriptor of a connection; ``None`` where the process has none left."""
    found = transport.get_extra_info("socket")
    try:
        return socket.socket(fileno=os.dup(found.fileno()))
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
        except OSError:  # the peer was faster
            peer.close()
            return
        server.farewells += 1
        self._loop.add_reader(peer, self._drop)
        self._timer = soon(_LINGER_MS, self._close)

    def _drop(self) -> None:
        """Read what still comes, and drop it."""
        try:
            ended = not self._peer.recv(65_536)
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
    """Keeps what a client sends right behind its handshake, until the connection that it is for has been made."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.lost = False

    def data_received(self, data: bytes) -> None:
        """Keep it."""
        self._data += data

    def eof_received(self) -> bool:
        """Note that nothing follows."""
        self.lost = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that the peer is gone."""
        self.lost = True

    def hand_over(self, connection: ClientConnection) -> None:
        """Give the connection what has come for it."""
        rest = memoryview(self._data)
        while rest:
            buffer = connection.get_buffer(len(rest))
            size = min(len(buffer), len(rest))
            buffer[:size] = rest[:size]
            connection.buffer_updated(size)
            rest = rest[size:]
