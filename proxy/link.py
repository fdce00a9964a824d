"""The upstream half of a client's connection: requests to a broker and its responses, one at a time and in order."""

import asyncio
import ssl
from typing import cast

from broker.request.answers import Disconnect
from broker.server.closing import close_behind
from broker.server.writing import write_parts
from protocol.codec import BadFrameSize, FrameReader

_MOST_BYTES = 2**31 - 1
"""Largest response: a frame's buffer grows with the bytes that arrive, so an announced size takes no memory."""
_CONNECT_PATIENCE_S = 10.0  # below the 30 s for which clients wait for a response
_JOIN_BELOW_BYTES = 16 * 1024  # copying less is cheaper than a further call of the system; ours, its order counts


class Link(asyncio.BufferedProtocol):
    """A connection to a broker, for one connection of a client.

    ``broker`` is the broker's address for messages. ``lost`` is true once the connection is closed, by either side.
    """

    def __init__(self, broker: str) -> None:
        self.broker = broker
        self.lost = False
        self.tokens = False
        """Whether SASL tokens are sent without request headers, after SaslHandshake v0."""
        self.renew_at_s: float | None = None
        """The loop's time at which the proxy's own authentication has to be renewed; ``None``: never."""
        self.closed_by_broker = asyncio.get_running_loop().create_future()
        self._reader = FrameReader(_MOST_BYTES)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[bytearray] | None = None
        self._writable: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None) -> "Link":
        """Connect.

        Raises:
            Disconnect: the broker cannot be reached, or the TLS handshake fails.
        """
        link = cls(f"{host}:{port}")
        loop = asyncio.get_running_loop()
        name = host if tls is not None else None
        connecting = loop.create_connection(lambda: link, host, port, ssl=tls, server_hostname=name)
        try:
            await asyncio.wait_for(connecting, _CONNECT_PATIENCE_S)
        except TimeoutError:
            raise Disconnect(f"upstream broker {link.broker} does not answer") from None
        except (OSError, ValueError, OverflowError) as error:  # TLS, an impossible host name or port
            raise Disconnect(f"upstream broker {link.broker} cannot be reached: {error}") from error
        return link

    # --- the transport's side ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer for the next bytes."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Complete the pending request when its response is complete; nothing else is expected."""
        try:
            frames = self._reader.received(nbytes)
        except BadFrameSize:
            self._transport.abort()
            return
        for frame in frames:
            if self._answer is None or self._answer.done():
                self._transport.abort()
                return
            self._answer.set_result(frame)

    def pause_writing(self) -> None:
        """Stop sending requests: the broker does not read."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Send again: the broker reads."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def eof_received(self) -> bool:
        """Close the connection: the broker sends nothing more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Fail the pending request: the connection is closed."""
        was_open, self.lost = not self.lost, True
        reason = "the upstream broker closed the connection" if was_open else "the client hung up"
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Disconnect(reason))
        self.resume_writing()
        if was_open and not self.closed_by_broker.done():
            self.closed_by_broker.set_result(None)

    # --- the proxy's side --------------------------------------------------------------------------------------------

    async def ask(self, frame: bytes | bytearray) -> bytearray:
        """Send a request and wait for its response.

        Raises:
            Disconnect: the connection is closed before the response arrives.
        """
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self.send(frame)
            return await self._answer
        finally:
            self._answer.cancel()
            self._answer = None

    async def send(self, frame: bytes | bytearray) -> None:
        """Send a request without a response. Raises Disconnect."""
        while self._writable is not None:
            await self._writable
        if self.lost:
            raise Disconnect("the upstream connection is closed")
        write_parts(self._transport, (len(frame).to_bytes(4, "big"), frame), _JOIN_BELOW_BYTES)

    def close(self) -> None:
        """Close the connection; bytes that are written already are still sent while the broker reads."""
        self.lost = True
        close_behind(self._transport)
