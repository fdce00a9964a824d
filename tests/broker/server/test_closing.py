"""The end of a connection from our side: what is written still goes out, to a peer that takes it."""

import asyncio

import pytest

from broker.request.answers import Sending
from broker.request.connection import Connection
from broker.server import closing
from tests.broker.server.server_harness import Bench, Peer, on_each_loop, seen, serving

LARGE = 32 << 20
"""More than the system keeps of a connection to the same machine."""


@on_each_loop
async def test_an_answer_behind_which_the_connection_is_closed_goes_out() -> None:
    """All of it, though most of it is not sent yet when it is closed."""

    async def answer(_payload: bytes, _connection: Connection) -> Sending:
        return Sending((bytes(LARGE),), closes=True)

    async with serving(answer) as bench:
        peer = await bench.connect()
        peer.send(b"x")
        assert len(await peer.reader.read()) == LARGE


async def pausing(bench: Bench) -> Peer:
    """A client that has stopped reading in the middle of its answer."""
    peer = await bench.connect()
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    peer.send(b"x")
    await seen(lambda: any(each._writable is not None for each in bench.server._connections()))
    return peer


@on_each_loop
async def test_a_peer_that_reads_slowly_gets_the_rest() -> None:
    """What serves the connection ends it meanwhile, as a proxy does whose broker is gone."""
    served: list[Connection] = []

    async def answer(_payload: bytes, connection: Connection) -> bytes:
        served.append(connection)
        return bytes(LARGE)

    async with serving(answer) as bench:
        peer = await pausing(bench)
        assert served[0].hang_up is not None
        served[0].hang_up()
        assert not bench.server.connections.open
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await peer.receive() == bytes(LARGE)
        await peer.check_closed()


@on_each_loop
async def test_a_peer_that_takes_nothing_loses_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket would be kept for ever."""
    monkeypatch.setattr(closing, "PATIENCE_MS", 1)
    served: list[Connection] = []

    async def answer(_payload: bytes, connection: Connection) -> bytes:
        served.append(connection)
        return bytes(LARGE)

    async with serving(answer) as bench:
        await pausing(bench)
        assert served[0].hang_up is not None
        served[0].hang_up()
        await seen(lambda: served[0].lost)


class TlsOfAsyncio(asyncio.Transport):
    """As the transport of `asyncio.sslproto`: a second close takes its protocol away, which counts what is written."""

    closings = 0

    def close(self) -> None:
        """Begin the end."""
        self.closings += 1

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.closings > 0

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        if self.closings > 1:
            raise AttributeError("'NoneType' object has no attribute '_get_write_buffer_size'")
        return 0


async def test_a_transport_is_closed_once() -> None:
    """The peer may have closed it, and what serves it may end it twice."""
    transport = TlsOfAsyncio()
    for _ in range(2):
        closing.close_behind(transport)
    assert transport.closings == 1
