"""A broker's listeners, and the connections that they accept."""

import asyncio
import socket
from collections.abc import Container

from anyio.abc import TaskGroup

from broker.access.tls.context import TlsError, context_of, identity_of, mapping_of
from broker.logs import Logger
from broker.server.client_connection import ClientConnection
from broker.server.handshake import Handshake
from broker.server.listening import Answering, Listening, Tls
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint, PortTaken
from broker.time.clock import Clock

_log = Logger(__name__)
BACKLOG = "socket.listen.backlog.size"
_SYSTEMS_BACKLOG = max(socket.SOMAXCONN, 4096)
"""The system lowers it to its own limit (Linux: ``net.core.somaxconn``).

4096: the default of Linux.
"""


class BrokerServer(Listening):
    """The listeners and connections of one broker. It can listen again after it was closed."""

    def __init__(self, dispatcher: Answering, settings: BrokerSettings, clock: Clock, tasks: TaskGroup) -> None:
        super().__init__(dispatcher, settings, clock, tasks)
        self._servers: list[asyncio.Server] = []

    async def listen(self, endpoint: Endpoint, port: int | None = None, avoided: Container[int] = ()) -> int:
        """Bind one listener and return its port. Connections are accepted after :meth:`accept`.

        A free port (0) is none of the ``avoided`` ones.

        Raises:
            PortTaken: the port is in use, or the address is not this machine's.
            TlsError: its certificate cannot be read.
        """
        wanted = endpoint.port if port is None else port
        self._open_tls(endpoint)
        server, bound = await self._bind(endpoint, wanted)
        others: list[asyncio.Server] = []  # open until the end, so that the system does not choose their ports again
        try:
            while not wanted and bound in avoided:
                others.append(server)
                server, bound = await self._bind(endpoint, wanted)
        finally:
            for other in others:
                other.close()
        self._servers.append(server)
        self.guarded |= {endpoint.name} if endpoint.has_sasl else set()
        return bound

    async def _bind(self, endpoint: Endpoint, port: int) -> tuple[asyncio.Server, int]:
        """Bind a port, 0 for a free one; return it. Raises PortTaken."""
        accept = Handshake if endpoint.has_tls else ClientConnection
        try:
            server = await asyncio.get_running_loop().create_server(
                lambda: accept(self, endpoint.name),
                endpoint.host or None,
                port,
                backlog=self._backlog(),
                start_serving=False,
            )
        except (OSError, ValueError) as error:  # ValueError: not a valid host name
            raise PortTaken(port, error, endpoint.host) from error
        return server, int(server.sockets[0].getsockname()[1])

    # --- TLS ---------------------------------------------------------------------------------------------------------

    def _open_tls(self, endpoint: Endpoint) -> None:
        identity = identity_of(self.settings, endpoint.name)
        context = context_of(self.settings, endpoint)
        if context is not None:
            self.tls[endpoint.name] = Tls(endpoint, context, mapping_of(self.settings, endpoint.name), identity)

    def reload_tls(self) -> None:
        """Load certificates whose settings or files have changed (KIP-226); open connections keep theirs."""
        for name, opened in list(self.tls.items()):
            if identity_of(self.settings, name) == opened.identity:
                continue
            try:
                self._open_tls(opened.endpoint)
            except TlsError as error:
                _log.error("the listener keeps its certificate", listener=name, reason=str(error))
            else:
                _log.info("the listener has a new certificate", listener=name)

    # --- life --------------------------------------------------------------------------------------------------------

    def _backlog(self) -> int:
        """Return the length of the accept queue: as configured, else the most that the system allows.

        With Kafka's default of 50, about one in fifty rapid connects waits for a second.
        """
        configured = BACKLOG in self.settings.static
        return self.settings.int(BACKLOG) if configured else _SYSTEMS_BACKLOG

    async def accept(self) -> None:
        """Accept connections on every bound listener."""
        for server in self._servers:
            await server.start_serving()

    def stop_listening(self) -> None:
        """Accept no new connections; open ones stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    def close(self, *, reset: bool = False) -> None:
        """Close everything, in order or with TCP resets, as the broker's process ends."""
        self.wake_waiting()
        self.stop_listening()
        self.connections.close(reset=reset)
        for connection in list(self.serving):
            connection.end()
        self.refusals.close()

    @property
    def listening(self) -> bool:
        """Whether listeners are bound."""
        return bool(self._servers)

    def _connections(self) -> list[ClientConnection]:
        """Return the open connections whose TLS handshake, if any, is complete."""
        return [each for each in self.connections.open if isinstance(each, ClientConnection)]

    def end_silence(self) -> None:
        """Close connections that a fault left without responses, and lift all throttling (reset)."""
        for connection in self._connections():
            connection.info.end_throttling()
            if connection.silent:
                connection.hang_up()

    def pause(self) -> None:
        """Accept connections but read nothing from any of them and write no response, like a broker that hangs."""
        self.paused = True
        for connection in self._connections():
            connection.stop_reading()

    def resume(self) -> None:
        """Read again."""
        self.paused = False
        self.wake_waiting()
        for connection in list(self.connections.open):
            if isinstance(connection, ClientConnection):
                connection.resume_reading()
            elif isinstance(connection, Handshake):
                connection.go_on()
