"""The broker closes a connection: a response that is written already is still sent, to a client that reads it."""

import asyncio

import pytest

from broker.request.answers import Sending
from broker.request.connection import Connection
from broker.server import closing
from tests.broker.server.server_harness import Bench, Peer, on_each_loop, seen, serving

LARGE = 32 << 20
"""Bytes: more than the socket buffers of a connection to the same machine hold."""


@on_each_loop
async def test_a_response_is_sent_before_its_connection_is_closed() -> None:
    """All of it, although most of it waits in the transport when the connection is closed."""

    async def answer(_payload: bytes, _connection: Connection) -> Sending:
        return Sending((bytes(LARGE),), closes=True)

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"x")
        assert len(await peer.reader.read()) == LARGE


async def paused_peer(bench: Bench) -> Peer:
    """A client that has stopped reading in the middle of its response."""
    peer = await bench.connect()
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    peer.send(b"x")
    await seen(lambda: any(each._writable is not None for each in bench.server._connections()))
    return peer


@on_each_loop
async def test_a_peer_that_reads_slowly_gets_the_rest() -> None:
    """The server hangs up meanwhile, as a proxy does that has lost its broker."""
    served: list[Connection] = []

    async def answer(_payload: bytes, connection: Connection) -> bytes:
        served.append(connection)
        return bytes(LARGE)

    async with serving(answer) as bench:
        peer = await paused_peer(bench)
        assert served[0].hang_up is not None
        served[0].hang_up()
        assert not bench.server.connections.open
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await peer.receive() == bytes(LARGE)
        await peer.check_closed()


@on_each_loop
async def test_a_peer_that_reads_nothing_loses_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `PATIENCE_MS`; otherwise its socket would stay open for ever."""
    monkeypatch.setattr(closing, "PATIENCE_MS", 1)
    served: list[Connection] = []

    async def answer(_payload: bytes, connection: Connection) -> bytes:
        served.append(connection)
        return bytes(LARGE)

    async with serving(answer) as bench:
        await paused_peer(bench)
        assert served[0].hang_up is not None
        served[0].hang_up()
        await seen(lambda: served[0].lost)


class TlsOfAsyncio(asyncio.Transport):
    """As the transport of `asyncio.sslproto`, which cannot return its buffer size after a second close."""

    closings = 0

    def close(self) -> None:
        """Count the call."""
        self.closings += 1

    def is_closing(self) -> bool:
        """Whether `close` was called."""
        return self.closings > 0

    def get_write_buffer_size(self) -> int:
        """Nothing is left to send."""
        if self.closings > 1:
            raise AttributeError("'NoneType' object has no attribute '_get_write_buffer_size'")
        return 0


async def test_a_transport_is_closed_once() -> None:
    """The peer may have closed it already, and the server may close it twice."""
    transport = TlsOfAsyncio()
    for _ in range(2):
        closing.close_behind(transport)
    assert transport.closings == 1
