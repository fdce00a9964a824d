"""Simulated connections between clients and brokers, which faults delay, stall, break and split into pieces.

A connection carries bytes in each direction in order, as TCP does. Between connections there is no order: a request
that a client gave up may arrive long after its next attempt. :class:`Disturbance` describes the faults of the network.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from simulator.client_transport import ClientTransport, fill
from simulator.loop import VirtualLoop
from simulator.plan import PARTITION
from simulator.program import CURRENT, refuse
from simulator.trace import Trace
from simulator.wire_log import WireLog

FASTEST_US, SLOWEST_US = 200, 3_000  # a local network, with answers that overtake each other
_CHOPPED_ONE_IN = 40  # often enough that each run has frames in pieces, rarely enough to stay fast
HOST = "127.0.0.1"


@dataclass
class Disturbance:
    """Network fault that affects a share (``rate``) of the requests until it ends. ``brokers``: None for all."""

    kind: str
    until_us: int
    chance: Random
    rate: float
    brokers: frozenset[int] | None = None
    most_us: int = 0
    apis: frozenset[int] | None = None
    """The APIs of the requests; None for all."""
    apart: dict[str, bool] = field(default_factory=dict)
    """Client -> whether a partition separates it from the brokers: decided at random when it is first met."""

    def meets(self, link: "Link", frame: bytes, now_us: int) -> bool:
        """Decide at random whether a request is affected."""
        if self.apis is not None and int.from_bytes(frame[4:6]) not in self.apis:  # the API key, after the size
            return False
        if now_us >= self.until_us or (self.brokers is not None and link.broker not in self.brokers):
            return False
        if self.kind == PARTITION:
            return self.separates(link.client)
        return self.chance.random() < self.rate

    def separates(self, client: str) -> bool:
        """Decide whether a client is on the other side of a partition."""
        if client not in self.apart:
            self.apart[client] = self.chance.random() < self.rate
        return self.apart[client]


class Direction:
    """Bytes in transit, in order; a piece arrives ``latency`` after it was sent, but not before the previous one."""

    def __init__(self, loop: VirtualLoop, context: Context, arrive: Callable[[bytes | None], None]) -> None:
        self._loop, self._context, self._arrive = loop, context, arrive
        self._pieces: deque[bytes | None] = deque()
        self._last_s = 0.0
        self.cut = False
        self.stalled_until_s = 0.0

    def send(self, piece: bytes | None, latency_us: int) -> None:
        """Send bytes; None is the end of the stream."""
        if self.cut:
            return
        self._last_s = max(self._last_s, self._loop.now_s + latency_us / 1_000_000, self.stalled_until_s)
        self._pieces.append(piece)
        self._loop.call_at(self._last_s, self._deliver, context=self._context)

    @property
    def arrives_s(self) -> float:
        """When the last piece arrives that was sent, or the next one could, in virtual seconds."""
        return 0.0 if self.cut else max(self._last_s, self.stalled_until_s)

    def _deliver(self) -> None:
        piece = self._pieces.popleft()
        if not self.cut:
            self._arrive(piece)


class ServerTransport(asyncio.Transport):
    """The broker's end of a connection, as asyncio gives it to the broker's own protocol."""

    def __init__(self, link: "Link", protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._link, self._protocol = link, protocol
        self._unread: deque[bytes | None] = deque()
        self._paused = self._closing = self._lost = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the addresses of both ends; there is no socket."""
        known = {"peername": (HOST, self._link.number), "sockname": (HOST, self._link.port)}
        return known.get(name, default)

    def is_closing(self) -> bool:
        """Whether this end has been closed."""
        return self._closing

    def pause_reading(self) -> None:
        """Stop reading; leave arriving bytes unread."""
        self._paused = True

    def resume_reading(self) -> None:
        """Read again."""
        self._paused = False
        asyncio.get_running_loop().call_soon(self._read, context=self._link.network.context)

    def write(self, data: Any) -> None:
        """Send to the client."""
        if not self._closing:
            self._link.answer(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Send to the client."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """Return 0: written bytes are in transit already."""
        return 0

    def close(self) -> None:
        """Close this end after everything that was written."""
        if not self._closing:
            self._link.end_answers()
            self._close(None)

    def abort(self) -> None:
        """Close this end immediately; bytes in transit to the client are lost."""
        if not self._closing:
            self._link.reset_by_server()
            self._close(None)

    def arrive(self, piece: bytes | None) -> None:
        """Receive bytes from the client, or its end of stream (None)."""
        self._unread.append(piece)
        self._read()

    def lose(self) -> None:
        """Close this end because the connection broke."""
        if not self._closing:
            self._close(ConnectionResetError())

    def _close(self, error: Exception | None) -> None:
        self._closing = True
        asyncio.get_running_loop().call_soon(self._end, error, context=self._link.network.context)

    def _end(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._link.network.served.pop(self._link, None)
            self._protocol.connection_lost(error)

    def _read(self) -> None:
        while self._unread and not self._paused and not self._closing:
            piece = self._unread.popleft()
            if piece is None:
                self._close(None)
                return
            fill(self._protocol, piece)


class Link:
    """One connection: the client holds it, the broker has its :class:`ServerTransport`."""

    def __init__(self, network: "Network", client: str, number: int, port: int, factory: Callable[[], Any]) -> None:
        self.network, self.client, self.number, self.port = network, client, number, port
        self.broker = network.broker_of.get(port, -1)
        self.received: Callable[[bytes], None] = lambda _: None
        self.lost: Callable[[], None] = lambda: None
        self.open = True
        self.spoils: list[Disturbance] = []
        """Faults that will affect the response to the last request."""
        self._to_server = Direction(network.loop, network.context, self._at_server)
        self._to_client = Direction(network.loop, network.context, self._at_client)
        network.context.copy().run(self._accept, factory)

    def _accept(self, factory: Callable[[], Any]) -> None:
        """Create the broker's end, in the brokers' context: what it starts outlives the client's process."""
        protocol = factory()
        self.transport = ServerTransport(self, protocol)
        protocol.connection_made(self.transport)

    @property
    def addresses(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the addresses of the client's and of the broker's end."""
        return (HOST, self.number), (HOST, self.port)

    @property
    def is_late(self) -> bool:
        """Whether something arrives later than it would without disturbances, even a frame in two pieces."""
        undisturbed_s = self.network.loop.now_s + 2 * SLOWEST_US / 1_000_000
        return any(each.arrives_s > undisturbed_s for each in (self._to_server, self._to_client))

    # --- the client's side -------------------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Send a request, which disturbances may lose or delay."""
        network = self.network
        latency_us = network.latency_us()
        self.spoils = []
        for each in network.disturbances:
            if not each.meets(self, frame, network.now_us):
                continue
            if each.kind == "lose request":
                network.note(self, f"connection to broker {self.broker} breaks before the request arrives")
                self.break_()
                return
            if each.kind == "late request":
                latency_us += each.chance.randrange(each.most_us)
            elif each.kind in ("stall", PARTITION):
                self.stall(each.until_us)
            else:
                self.spoils.append(each)
        if network.chance.randrange(_CHOPPED_ONE_IN) == 0 and len(frame) > 2:
            at = network.chance.randrange(1, len(frame))
            self._to_server.send(frame[:at], latency_us)
            frame, latency_us = frame[at:], latency_us + network.latency_us()
        self._to_server.send(frame, latency_us)

    def close(self) -> None:
        """Close the client's end after everything that it sent."""
        if self.open:
            self._client_gone()
            self._to_client.cut = True
            self._to_server.send(None, self.network.latency_us())

    def stall(self, until_us: int) -> None:
        """Let nothing arrive in either direction until then."""
        for each in (self._to_server, self._to_client):
            each.stalled_until_s = max(each.stalled_until_s, until_us / 1_000_000)

    def break_(self) -> None:
        """Break the connection for both ends; all bytes in transit are lost."""
        self._to_server.cut = self._to_client.cut = True
        self.transport.lose()
        self._lose_client()

    def fall_silent(self) -> None:
        """Let nothing arrive any more in either direction; the broker does not learn of it."""
        self._to_server.cut = self._to_client.cut = True
        if self.open:
            self._client_gone()

    # --- the broker's side -------------------------------------------------------------------------------------------

    def answer(self, data: bytes) -> None:
        """Send bytes that the broker writes."""
        latency_us, spoils, self.spoils = self.network.latency_us(), self.spoils, []
        for each in spoils:
            if each.kind == "lose answer":
                self.network.note(self, f"connection to broker {self.broker} breaks before the answer arrives")
                self.break_()
                return
            latency_us += each.chance.randrange(each.most_us)
        self._to_client.send(data, latency_us)

    def end_answers(self) -> None:
        """Close the broker's end."""
        self._to_client.send(None, self.network.latency_us())

    def reset_by_server(self) -> None:
        """Reset the connection from the broker's end."""
        self._to_server.cut = True
        self._to_client.send(None, self.network.latency_us())

    # --- arrivals ----------------------------------------------------------------------------------------------------

    def _at_server(self, piece: bytes | None) -> None:
        self.transport.arrive(piece)

    def _at_client(self, piece: bytes | None) -> None:
        if piece is None:
            self._lose_client()
        elif self.open:
            self.received(piece)

    def _lose_client(self) -> None:
        if self.open:
            self._client_gone()
            self.lost()

    def _client_gone(self) -> None:
        self.open = False
        self.network.links.pop(self, None)


class _Address:
    """Entry in a server's list of sockets."""

    def __init__(self, port: int) -> None:
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        """Return host and port."""
        return HOST, self._port


class Listener:
    """A listener as `loop.create_server` returns it."""

    def __init__(self, network: "Network", factory: Callable[[], Any], port: int) -> None:
        self._network, self.factory, self.port = network, factory, port
        self.sockets = [_Address(port)]
        self.serving = False

    async def start_serving(self) -> None:
        """Accept connections."""
        self.serving = True

    def close(self) -> None:
        """Stop listening."""
        self.serving = False
        self._network.listeners.pop(self.port, None)


@dataclass(eq=False)
class Network:
    """All listeners and connections of a run."""

    loop: VirtualLoop
    chance: Random
    trace: Trace
    listeners: dict[int, Listener] = field(default_factory=dict)
    links: dict[Link, None] = field(default_factory=dict)
    served: dict[Link, None] = field(default_factory=dict)
    """Links whose broker's end is open; clients may have closed theirs."""
    disturbances: list[Disturbance] = field(default_factory=list)
    broker_of: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    """Port of the client's end of a user's connection -> its process."""
    context: Context = field(default_factory=copy_context)
    """Context of everything that happens at the brokers' ends."""
    wire: WireLog = field(default_factory=WireLog)
    """What users' programs exchanged."""
    _count: int = 0

    def __post_init__(self) -> None:
        self.loop.listen, self.loop.connect = self._listen, self._connect

    @property
    def now_us(self) -> int:
        """Virtual microseconds since the start."""
        return self.loop.now_us

    def latency_us(self) -> int:
        """Draw the latency of the next piece."""
        return self.chance.randrange(FASTEST_US, SLOWEST_US)

    def note(self, link: Link, what: str) -> None:
        """Add a line to the story."""
        self.trace.add(self.now_us, "network", f"{link.client}: {what}")

    def _listen(self, factory: Callable[[], Any], _host: str, port: int) -> Listener:
        if port in self.listeners:
            raise OSError(errno.EADDRINUSE, "address in use")
        listener = self.listeners[port] = Listener(self, factory, port)
        return listener

    async def connect(self, client: str, port: int) -> Link:
        """Connect a client, which takes a round trip.

        Raises:
            ConnectionRefusedError: no broker listens there.
        """
        await asyncio.sleep(2 * self.latency_us() / 1_000_000)  # noqa: TID251 - on the virtual loop
        for each in [each for each in self.disturbances if each.kind == PARTITION]:
            ours = each.brokers is None or self.broker_of.get(port, -1) in each.brokers
            if ours and each.until_us > self.now_us and each.separates(client):
                await asyncio.sleep((each.until_us - self.now_us) / 1_000_000)  # noqa: TID251 - on the virtual loop
        listener = self.listeners.get(port)
        if listener is None or not listener.serving:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        self._count += 1
        # Client ports: above the brokers', from 9092.
        link = Link(self, client, 10_000 + self._count, port, listener.factory)
        self.links[link] = self.served[link] = None
        return link

    async def _connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[ClientTransport, Any]:
        """Connect a user's program to a broker. Raises Unsimulated: no broker has that address."""
        if port not in self.broker_of or host not in (HOST, "localhost"):
            raise refuse(
                f"a connection to {host}:{port}, which is no broker,", "replace that service in the simulation"
            )
        program = CURRENT.get()
        name = "program" if program is None else program.name
        link = await self.connect(name, port)
        self.names[link.number] = name
        protocol, log = factory(), self.wire.connection(name, link.broker, link.number)

        def observe(what: str, data: bytes) -> None:
            self.trace.exchange(self.now_us, name, f"{what}, broker {link.broker}", data)
            (log.sends if what == "sends" else log.receives)(data, self.now_us)
            if program is not None:
                program.exchange()

        transport = ClientTransport(self.loop, link, protocol, observe)
        protocol.connection_made(transport)
        return transport, protocol

    def break_all(self) -> None:
        """Break all connections; nothing that was sent on them arrives."""
        for link in list(self.served):
            link.break_()

    def calm(self) -> None:
        """End all disturbances, and break connections with something late on its way, also those that were given up."""
        self.disturbances.clear()
        for link in {**self.links, **self.served}:
            link.spoils = []
            if link.is_late:
                link.break_()
