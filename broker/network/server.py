"""A broker's listeners, and the connections that they accept. With ``client_connection`` the only file of sockets."""

import asyncio
import socket
from dataclasses import dataclass

import structlog
from anyio.abc import TaskGroup

from broker.clock import Clock, Waiter
from broker.dispatcher import Dispatcher
from broker.network.client_connection import ClientConnection
from broker.network.connections import Connections
from broker.network.endpoints import Endpoint, PortTaken
from broker.network.handshake import AlertingContext, Handshake
from broker.network.principals import ANONYMOUS, PrincipalMapping, distinguished_name
from broker.network.refusal_log import RefusalLog
from broker.network.tls import Identity, TlsError, context_of, identity_of, mapping_of
from broker.settings import BrokerSettings
from protocol.connection import SCRATCH_BYTES

_log = structlog.get_logger(__name__)
BACKLOG = "socket.listen.backlog.size"
_SYSTEMS_BACKLOG = max(socket.SOMAXCONN, 4096)
"""The system lowers it to its own limit (Linux: ``net.core.somaxconn``)."""


@dataclass(slots=True)
class _Tls:
    """The TLS of one listener, and what it was made of."""

    endpoint: Endpoint
    context: AlertingContext
    mapping: PrincipalMapping
    identity: Identity


class BrokerServer:
    """The listeners and connections of one broker. A server that was closed may listen again."""

    def __init__(self, dispatcher: Dispatcher, settings: BrokerSettings, clock: Clock, tasks: TaskGroup) -> None:
        self.dispatcher, self.settings, self.clock, self.tasks = dispatcher, settings, clock, tasks

        # Shared by the connections. A transport fills the scratch buffer and reports it in one step.
        self.connections = Connections[ClientConnection | Handshake](settings, clock)
        self.refusals = RefusalLog(clock)
        self.scratch = bytearray(SCRATCH_BYTES)
        self._count = 0

        # The listeners; those that ask for authentication.
        self._servers: list[asyncio.Server] = []
        self._guarded: set[str] = set()
        self._tls: dict[str, _Tls] = {}

        # Whether the broker hangs, and the other brokers that wait for an answer from it.
        self.paused = False
        self._waiting: dict[Waiter, None] = {}

    async def listen(self, endpoint: Endpoint, port: int | None = None) -> int:
        """Bind one listener; the port that it got. Connections are accepted from :meth:`accept` on.

        Raises:
            PortTaken: another process listens there, or the address is not this machine's.
            TlsError: its certificate cannot be read.
        """
        loop = asyncio.get_running_loop()
        wanted = endpoint.port if port is None else port
        self._open_tls(endpoint)
        accept = Handshake if endpoint.has_tls else ClientConnection
        try:
            server = await loop.create_server(
                lambda: accept(self, endpoint.name),
                endpoint.host or None,
                wanted,
                backlog=self._backlog(),
                start_serving=False,
            )
        except OSError as error:
            raise PortTaken(wanted, error, endpoint.host) from error
        self._servers.append(server)
        self._guarded |= {endpoint.name} if endpoint.has_sasl else set()
        return int(server.sockets[0].getsockname()[1])

    # --- TLS ---------------------------------------------------------------------------------------------------------

    def _open_tls(self, endpoint: Endpoint) -> None:
        identity = identity_of(self.settings, endpoint.name)
        context = context_of(self.settings, endpoint)
        if context is not None:
            self._tls[endpoint.name] = _Tls(endpoint, context, mapping_of(self.settings, endpoint.name), identity)

    def reload_tls(self) -> None:
        """Take over certificates whose settings or files have changed (KIP-226); open connections keep theirs."""
        for name, opened in list(self._tls.items()):
            if identity_of(self.settings, name) == opened.identity:
                continue
            try:
                self._open_tls(opened.endpoint)
            except TlsError as error:
                _log.error("the listener keeps its certificate", listener=name, reason=str(error))
            else:
                _log.info("the listener has a new certificate", listener=name)

    def tls_context(self, listener: str) -> AlertingContext:
        """The context of a listener that is encrypted."""
        return self._tls[listener].context

    def principal_of(self, listener: str, transport: asyncio.BaseTransport) -> str:
        """The principal that the peer's certificate names; ANONYMOUS without a certificate.

        Raises:
            MappingError: no rule applies to the name.
        """
        name = distinguished_name(transport) if listener in self._tls else None
        return ANONYMOUS if name is None else f"User:{self._tls[listener].mapping.name_of(name)}"

    # --- life --------------------------------------------------------------------------------------------------------

    def _backlog(self) -> int:
        """The length of the accept queue: as given, else as many as the system allows.

        With Kafka's default of 50 each fiftieth of many quick connects waits for a second.
        """
        given = BACKLOG in self.settings.static
        return self.settings.int(BACKLOG) if given else _SYSTEMS_BACKLOG

    async def accept(self) -> None:
        """Accept connections on every bound listener."""
        for server in self._servers:
            await server.start_serving()

    def most_bytes(self, listener: str, *, known: bool) -> int:
        """The largest request on a listener, before and after authentication (core A.1.3)."""
        limit = "socket.request.max.bytes" if known or listener not in self._guarded else "sasl.server.max.receive.size"
        return self.settings.int(limit)

    def stop_listening(self) -> None:
        """Accept no new connections; the open ones stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    def close(self, *, reset: bool = False) -> None:
        """Close everything, orderly or with a TCP reset."""
        self._wake_waiting()
        self.stop_listening()
        self.connections.close(reset=reset)
        self.refusals.close()

    @property
    def listening(self) -> bool:
        """Whether listeners are bound."""
        return bool(self._servers)

    def _connections(self) -> list[ClientConnection]:
        """The open connections, without those whose handshake is not complete."""
        return [each for each in self.connections.open if isinstance(each, ClientConnection)]

    def end_silence(self) -> None:
        """On reset: close the connections that a fault leaves without an answer forever, and lift all throttling."""
        for connection in self._connections():
            connection.info.end_throttling()
            if connection.silent:
                connection.hang_up()

    def pause(self) -> None:
        """Accept connections and read nothing more: a broker that hangs."""
        self.paused = True
        for connection in self._connections():
            connection.stop_reading()

    async def wait_for_resumption(self, deadline_ms: int) -> None:
        """Wait as another broker would whose request is not read: until it is, this broker is gone, or time is up."""
        waiter = Waiter()
        self._waiting[waiter] = None
        await waiter.wait(self.clock, deadline_ms)
        self._waiting.pop(waiter, None)

    def _wake_waiting(self) -> None:
        for waiter in self._waiting:
            waiter.wake()

    def resume(self) -> None:
        """Read again."""
        self.paused = False
        self._wake_waiting()
        for connection in self._connections():
            connection.resume_reading()

    def next_id(self) -> int:
        """A number for a new connection."""
        self._count += 1
        return self._count
