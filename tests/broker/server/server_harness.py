"""A server with real sockets, and a dispatcher that does what a test wants, on each kind of loop."""

import asyncio
import functools
import inspect
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from broker.request.answers import Sending
from broker.request.connection import Connection
from broker.server.server import BrokerServer
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from broker.time.clock import ManualClock

try:
    import uvloop
except ImportError:
    uvloop = None  # type: ignore[assignment]

Answer = Callable[[bytes, Connection], Awaitable[bytes | Sending | None]]
HERE = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": getattr(uvloop, "new_event_loop", None)}


def on_each_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test on asyncio's loop and on uvloop: their transports differ in when they begin to read."""

    @functools.wraps(test)
    def run(loop: str, **arguments: Any) -> None:
        if LOOPS[loop] is None:
            pytest.skip("there is no uvloop here")
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(test(**arguments))

    first = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([first, *inspect.signature(test).parameters.values()])  # type: ignore[attr-defined]
    decorated: Callable[..., None] = pytest.mark.parametrize("loop", list(LOOPS))(run)
    return decorated


class FakeDispatcher:
    """Answers each payload by the test's function; ``frames`` are the payloads that came, in order."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.frames: list[bytes] = []

    async def answer(self, frame: bytearray, connection: Connection) -> list[bytes] | Sending | None:
        """As a real one: the parts, the size first; what is sent otherwise is as it was made."""
        self.frames.append(bytes(frame))
        response = await self._answer(bytes(frame), connection)
        return [struct.pack(">i", len(response)), response] if isinstance(response, bytes) else response


class Peer:
    """A client of raw frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *payloads: bytes) -> None:
        """Frames, all at once."""
        self.writer.write(b"".join(struct.pack(">i", len(each)) + each for each in payloads))

    async def receive(self) -> bytes:
        """The next payload."""
        size = int.from_bytes(await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def check_closed(self) -> None:
        """The server has closed the connection, and sent nothing more."""
        try:
            assert await self.reader.read() == b""
        except ConnectionResetError:
            return


class Bench:
    """A server on a free port."""

    def __init__(self, server: BrokerServer, dispatcher: FakeDispatcher, clock: ManualClock, port: int) -> None:
        self.server, self.dispatcher, self.clock, self.port = server, dispatcher, clock, port
        self._peers: list[Peer] = []

    async def connect(self) -> Peer:
        """A client."""
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self.port))
        self._peers.append(peer)
        return peer

    async def close(self) -> None:
        """Everybody goes home."""
        self.server.close()
        for peer in self._peers:
            peer.writer.close()


@asynccontextmanager
async def serving(answer: Answer, endpoint: Endpoint = HERE, **settings: object) -> AsyncIterator[Bench]:
    """A broker's listener; settings are written with ``_`` for the dots."""
    clock, dispatcher = ManualClock(), FakeDispatcher(answer)
    texts = {name.replace("_", "."): str(value) for name, value in settings.items()}
    async with asyncio.timeout(60), anyio.create_task_group() as tasks:
        server = BrokerServer(cast("Any", dispatcher), BrokerSettings(1, texts), clock, tasks)
        port = await server.listen(endpoint)
        await server.accept()
        bench = Bench(server, dispatcher, clock, port)
        try:
            yield bench
        finally:
            await bench.close()
            tasks.cancel_scope.cancel()


async def echo(payload: bytes, _connection: Connection) -> bytes | None:
    """The payload again."""
    return payload


async def seen(condition: Callable[[], bool]) -> None:
    """Let other tasks run until the condition holds; the timeout of the bench ends one that never does."""
    while not condition():  # noqa: ASYNC110 - what it waits for is inside the server, and sets no event
        await asyncio.sleep(0)
