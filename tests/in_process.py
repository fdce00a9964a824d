"""Clusters in the test's own process, without sockets and threads: what `make quick` asks the rows of.

A blocking test drives the event loop of its cluster. Where it waits for a response, sends a command or polls, the loop
runs; the time of the loop is virtual, so that a wait takes no time: if nothing is ready, it jumps to the next timer.
Everything from the connection's protocol on is what a server's process runs. Below it are no sockets, but queues of
bytes, which arrive in the order in which the test sent them, on any connection.
"""

import asyncio
import errno
import ipaddress
import json
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio

from broker.cluster.cluster import Cluster
from broker.control.app import build_app
from broker.control.hosting import Clusters, Hosted
from broker.options import parse
from broker.start.server import announcement, further
from broker.time.clock import PushedClock
from control_api.spelling import host_and_port
from simulator.loop import VirtualLoop
from simulator.network import HOST, ServerTransport
from tests.server import Pausing, Server
from tests.wire import PATIENCE_S, Wire
from understudy.launcher import command_line, off_the_command_line
from understudy.serve import gather

T = TypeVar("T")
FIRST_PORT, FIRST_CLIENT = 20_000, 40_000
MOMENT_S = 0.001
"""Of virtual time: all that is ready runs before it has passed."""


class Loop(VirtualLoop):
    """A virtual loop that does the work of threads at once, and keeps unhandled errors."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []
        self.set_exception_handler(self._failed)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context['message']}: {context.get('exception')!r}")

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # noqa: ARG002
        """Call the function now."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            done.set_exception(error)
        return done

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        """Return an address as given; of names there is none."""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
        return await super().getaddrinfo(host, port)

    def wait_for(self, event: "asyncio.Future[None]", seconds: float) -> None:
        """Run until the event, for at most so many seconds of virtual time."""
        timer = self.call_later(seconds, _happen, event)
        try:
            self.run_until_complete(event)
        finally:
            timer.cancel()

    def run_for(self, seconds: float) -> None:
        """Run for so many seconds of virtual time."""
        self.wait_for(self.create_future(), seconds)


def _happen(event: "asyncio.Future[None]") -> None:
    if not event.done():
        event.set_result(None)


@dataclass
class Listener:
    """A listener as `loop.create_server` returns it; it is its own list of sockets."""

    network: "Network"
    factory: Callable[[], Any]
    port: int
    serving: bool = False

    @property
    def sockets(self) -> "list[Listener]":
        """The one socket."""
        return [self]

    def getsockname(self) -> tuple[str, int]:
        """Host and port."""
        return HOST, self.port

    async def start_serving(self) -> None:
        """Accept connections."""
        self.serving = True

    def close(self) -> None:
        """Stop listening."""
        self.serving = False
        if self.network.listeners.get(self.port) is self:
            del self.network.listeners[self.port]


class _Transport(ServerTransport):
    """The broker's end, whose client has an address of its own."""

    def __init__(self, link: "Link", protocol: asyncio.BufferedProtocol) -> None:
        super().__init__(link, protocol)  # type: ignore[arg-type]  # has what is used of a simulated link
        self._names = {"peername": (link.host, link.number), "sockname": (HOST, link.port)}

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the addresses of both ends; there is no socket."""
        return self._names.get(name, default)


class Link:
    """A connection: what a blocking client uses of a socket, and what the broker's transport uses of its link."""

    def __init__(self, network: "Network", number: int, port: int, host: str, patience_s: float) -> None:
        self.network, self.number, self.port, self.host, self._patience_s = network, number, port, host, patience_s
        self._arrived = bytearray()
        self._ended = self._reset = self._closed = False
        self._event: asyncio.Future[None] | None = None
        self.transport: _Transport

    def accept(self, factory: Callable[[], Any]) -> None:
        """Create the broker's end."""
        protocol = factory()
        self.transport = _Transport(self, protocol)
        protocol.connection_made(self.transport)

    # --- the client's end --------------------------------------------------------------------------------------------

    def setsockopt(self, *_: int) -> None:
        """Nothing to set."""

    def sendall(self, data: bytes) -> None:
        """Send; it arrives after all that was sent before, on any connection."""
        if self._reset:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        self.network.soon(self.transport.arrive, bytes(data))

    def has_arrived(self, within_s: float) -> bool:
        """Whether bytes or the end arrive within that time."""
        if not (self._arrived or self._ended):
            self._event = self.network.loop.create_future()
            self.network.loop.wait_for(self._event, max(within_s, MOMENT_S))
            self._event = None
        return bool(self._arrived) or self._ended

    def recv(self, most: int) -> bytes:
        """The next bytes; none at the end."""
        if self._closed:
            raise OSError(errno.EBADF, "closed")
        if not self.has_arrived(self._patience_s):
            raise TimeoutError("timed out")
        data = bytes(self._arrived[:most])
        del self._arrived[:most]
        if not data and self._reset:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        return data

    def close(self) -> None:
        """Close the client's end."""
        if not self._closed:
            self._closed = True
            self.network.soon(self.transport.arrive, None)

    # --- the broker's end --------------------------------------------------------------------------------------------

    def answer(self, data: bytes) -> None:
        """Bytes that the broker wrote."""
        self._arrived += data
        self._wake()

    def end_answers(self) -> None:
        """The broker has closed."""
        self._ended = True
        self._wake()

    def reset_by_server(self) -> None:
        """The broker has reset the connection."""
        self._ended = self._reset = True
        self._wake()

    def _wake(self) -> None:
        if self._event is not None:
            _happen(self._event)


class LinkedWire(Wire):
    """A connection without a socket."""

    def __init__(self, link: Link, client_id: str | None) -> None:
        super(Wire, self).__init__(link, client_id)  # type: ignore[arg-type]  # what is used of a socket
        self._link = link

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether bytes arrive, or the broker closes, within that time."""
        return bool(self._read_ahead) or self._link.has_arrived(within_s)


@dataclass
class Network:
    """The listeners and connections of all clusters of this process, on one loop."""

    loop: Loop = field(default_factory=Loop)
    listeners: dict[int, Listener] = field(default_factory=dict)
    served: dict[Any, None] = field(default_factory=dict)
    context: Context = field(default_factory=copy_context)
    _ports: int = FIRST_PORT
    _clients: int = FIRST_CLIENT

    def __post_init__(self) -> None:
        self.loop.listen = self._listen

    def _listen(self, factory: Callable[[], Any], _host: str, port: int) -> Listener:
        if not port:
            self._ports += 1
            port = self._ports
        if port in self.listeners:
            raise OSError(errno.EADDRINUSE, "address in use")
        listener = self.listeners[port] = Listener(self, factory, port)
        return listener

    def soon(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call it when the loop runs, after all that is scheduled already."""
        self.loop.call_soon(call, *arguments, context=self.context)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self.loop.run_until_complete(work)

    def connect(self, address: str, source: str | None, patience_s: float) -> Link:
        """Connect. Raises ConnectionRefusedError."""
        port = int(address.rpartition(":")[2])
        listener = self.listeners.get(port)
        if listener is None or not listener.serving:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        self._clients += 1
        link = Link(self, self._clients, port, source or HOST, patience_s)

        async def accept() -> None:
            link.accept(listener.factory)

        self.run(accept())
        return link

    def close(self) -> None:
        """End what is left on the loop."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_for(MOMENT_S)
        self.loop.close()


class InProcess(Server):
    """A cluster with these options of `understudy serve`, on the loop of a network."""

    def __init__(self, network: Network, options: Mapping[str, Any]) -> None:
        self.opened, self._network = [], network
        self._over = network.loop.create_future()
        self._started: asyncio.Future[None] = network.loop.create_future()
        all_options = {"port": 0, "control_port": 0, "seed": 1, **options}
        self._options = parse(gather(*off_the_command_line(command_line(**all_options))))
        self._life = network.loop.create_task(self._live())
        network.run(self._start())

    async def _start(self) -> None:
        await asyncio.wait({self._life, self._started}, return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            self._life.result()

    async def _live(self) -> None:
        loop = self._network.loop
        async with anyio.create_task_group() as tasks:
            self.cluster = Cluster(self._options, PushedClock(loop, loop.time_ns), tasks)
            try:
                await self.cluster.start()
                self._app = build_app(Clusters(Hosted(self.cluster), tasks, further), None)
                self._started.set_result(None)
                await self._over
            finally:
                self.cluster.stop()
            tasks.cancel_scope.cancel()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of each broker's first listener; also of those that are down."""
        return tuple(host_and_port(host, port) for host, port in self.cluster.bootstrap)

    @property
    def brokers(self) -> Sequence[Mapping[str, Any]]:
        """As the ready file has them."""
        return announcement(self.cluster).brokers

    def connected(
        self,
        address: str,
        *,
        client_id: str | None = "test",
        patience_s: float = PATIENCE_S,
        source: str | None = None,
    ) -> Wire:
        """Connect."""
        return LinkedWire(self._network.connect(address, source, patience_s), client_id)

    def control(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A call of the control plane; fails the test on any answer but 200 and 201."""
        status, content = self._network.run(self._ask(method, path, b"" if body is None else json.dumps(body).encode()))
        assert status in {200, 201}, f"{method} {path}: {status} {content!r}"
        return json.loads(content)

    async def _ask(self, method: str, url: str, body: bytes) -> tuple[int, bytes]:
        path, _, query = url.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", HOST.encode())],
            "server": (HOST, 80),
            "client": (HOST, 1),
        }
        requests = [{"type": "http.request", "body": body}]
        responses: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if requests:
                return requests.pop()
            await self._network.loop.create_future()  # the client stays
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            responses.append(message)

        await self._app(scope, receive, send)  # type: ignore[arg-type]
        return responses[0]["status"], b"".join(each.get("body", b"") for each in responses[1:])

    # --- its end -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop all brokers in order."""
        self.finish_test()
        if not self._life.done():
            self._over.set_result(None)
            self._network.run(self._end())

    def kill(self) -> None:
        """Kill all brokers, as the end of their process would."""
        self.finish_test()
        if not self._life.done():
            self._network.run(self._kill())
            self.stop()

    async def _kill(self) -> None:
        for node in self.cluster.nodes.values():
            if node.up:
                self.cluster.lifecycle.kill(node)

    async def _end(self) -> None:
        await self._life


class ServersInProcess:
    """The clusters of a session, all on one loop; each test has its own."""

    def __init__(self) -> None:
        self.network = Network()
        self._running: list[InProcess] = []

    def fresh(self, **options: Any) -> InProcess:
        """A new cluster with these options of ``understudy.launcher.command_line``."""
        self._running.append(InProcess(self.network, options))
        return self._running[-1]

    def finish_test(self) -> None:
        """End the clusters of the test; errors that nothing handled fail it."""
        while self._running:
            self._running.pop().stop()
        errors, self.network.loop.errors = self.network.loop.errors, []
        assert not errors, "\n".join(errors)

    @contextmanager
    def test(self) -> Iterator[Self]:
        """While a test runs, its polls let the time of the clusters pass."""
        before, Pausing.pause = Pausing.pause, self.network.loop.run_for
        try:
            yield self
        finally:
            Pausing.pause = before
            self.finish_test()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.network.close()
