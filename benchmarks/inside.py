"""A broker inside this process, whose clients send frames without sockets: measures operations with little noise.

On a shared machine, wall-clock figures of clients and servers vary. The cheapest of many rounds of the same operation
in one process is steadier, and a profiler counts calls exactly. `python -m benchmarks.profiles` and tests of call
counts use this.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio

from broker.cluster.cluster import Cluster
from broker.options import ServeOptions, topic_option
from broker.server.client_connection import ClientConnection
from broker.settings.endpoints import Endpoint
from broker.time.clock import PushedClock, turns
from protocol.apis import ApiKey
from protocol.client.in_flight import InFlightRequests
from protocol.types import Buffer

_PLACE = ("127.0.0.1", 9)


class Wire(asyncio.Transport):
    """Transport without a socket: a write wakes the coroutine that waits for the next response."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Buffer] = []
        self.writes = 0
        self.heard: asyncio.Future[None] | None = None
        self.on_write: Callable[[], None] | None = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return addresses, but no socket."""
        return _PLACE if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        """Return false: this transport never closes."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return 0: a response is consumed immediately."""
        return 0

    def pause_reading(self) -> None:
        """Do nothing: nothing is read here."""

    def resume_reading(self) -> None:
        """Do nothing: nothing is read here."""

    def write(self, data: Buffer) -> None:
        """Store one buffer of a response."""
        self.writelines((data,))

    def writelines(self, list_of_data: Any) -> None:
        """Store all buffers of a response."""
        self.written.extend(list_of_data)
        self.writes += 1
        if self.on_write is not None:
            self.on_write()
        if self.heard is not None and not self.heard.done():
            self.heard.set_result(None)

    def abort(self) -> None:
        """Do nothing, like `close`."""

    def close(self) -> None:
        """Do nothing: there is no socket."""


class Peer:
    """A client that sends frames to a connection of the broker."""

    def __init__(self, cluster: Cluster) -> None:
        self.wire = Wire()
        self.connection = ClientConnection(cluster.servers[cluster.nodes[1]], "PLAINTEXT")
        self.connection.connection_made(self.wire)
        self._requests = InFlightRequests("bench")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.connection_lost(None)

    def send(self, frame: Buffer) -> None:
        """Deliver bytes as a socket would, in reads of the connection's buffer size."""
        view = memoryview(frame)
        while view:
            into = self.connection.get_buffer(-1)
            count = min(len(into), len(view))
            into[:count] = view[:count]
            self.connection.buffer_updated(count)
            view = view[count:]

    async def ask(self, frame: Buffer) -> list[Buffer]:
        """Send a request; return the buffers of its response as they were written."""
        wire = self.wire
        wire.written.clear()
        wire.heard = asyncio.get_running_loop().create_future()
        self.send(frame)
        await wire.heard
        return wire.written

    async def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request message; return the response message."""
        for data in await self.ask(self._requests.encode(key, version, request)):
            self._requests.receive(data)
        frame = self._requests.frame()
        assert frame is not None
        return self._requests.decode(frame)


@asynccontextmanager
async def broker(*topics: str, brokers: int = 1, settings: dict[str, str] | None = None) -> AsyncIterator[Cluster]:
    """Run a cluster in memory; it listens on free ports that are not used."""
    here = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
    options = ServeOptions(
        broker_ids=tuple(range(1, brokers + 1)),
        listeners=((here,),) * brokers,
        topics=tuple(map(topic_option, topics)),
        settings=settings or {},
        control_port=None,
        seed=7,
    )
    async with anyio.create_task_group() as tasks:
        cluster = Cluster(options, PushedClock(asyncio.get_running_loop()), tasks)
        await cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()
            tasks.cancel_scope.cancel()


def run(body: Callable[[], Any]) -> Any:
    """Run a coroutine function on the event loop that the server uses."""
    import uvloop  # noqa: PLC0415 - not on every platform

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(body())


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until a condition is true."""
    async with asyncio.timeout(20):
        while not condition():
            await turns(1)
