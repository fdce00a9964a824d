"""A connection to a broker that does not read: it ends when the client is gone, and no socket is left of it."""

import asyncio
import socket

import pytest

from broker.request.answers import Disconnect
from broker.server import closing
from proxy.link import Link
from tests.broker.server.server_harness import on_each_loop, seen

LARGE = 32 << 20


async def linked() -> tuple[Link, socket.socket]:
    """A connection, and the broker's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        link = await Link.open("127.0.0.1", listener.getsockname()[1], None)
        peer, _ = listener.accept()
    peer.setblocking(False)
    return link, peer


@on_each_loop
async def test_a_broker_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client that came again left a socket, its request and the task that waited for the answer."""
    monkeypatch.setattr(closing, "PATIENCE_MS", 1)
    link, peer = await linked()
    with peer:
        asking = asyncio.ensure_future(link.ask(bytes(LARGE)))
        async with asyncio.timeout(60):
            await seen(lambda: link._writable is not None)
            link.close()
            with pytest.raises(Disconnect, match="the client hung up"):
                await asking


@on_each_loop
async def test_a_broker_that_reads_gets_all_that_was_sent() -> None:
    """acks=0, and the client hangs up at once."""
    link, peer = await linked()
    with peer:
        async with asyncio.timeout(60):
            await link.send(bytes(LARGE))
            link.close()
            size = 0
            while data := await asyncio.get_running_loop().sock_recv(peer, 1 << 20):
                size += len(data)
    assert size == 4 + LARGE
