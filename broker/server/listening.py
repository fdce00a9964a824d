"""The state that the connections of one broker share: limits, settings, TLS, and the dispatcher."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from anyio.abc import TaskGroup

from broker.access.tls.alerts import AlertingContext
from broker.access.tls.context import Identity
from broker.access.tls.principals import ANONYMOUS, PrincipalMapping, distinguished_name
from broker.request.answers import Answer
from broker.request.connection import Connection
from broker.request.refusal_log import RefusalLog
from broker.server.connections import Connections, Held
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from broker.settings.plugins import AuthenticationRequest, build_principal, principal_builder
from broker.time.clock import ActionQueue, Clock, Waiter
from protocol.codec import SCRATCH_BYTES
from protocol.deferred import dataclass


class Answering(Protocol):
    """Answers requests: :class:`broker.server.dispatcher.Dispatcher`, or the proxy's forwarder."""

    def answer(self, frame: bytearray, connection: Connection) -> Awaitable[Answer]:
        """Answer a request that arrived on a connection. Raises Disconnect, NeverAnswer."""
        ...


class Serving(Protocol):
    """A connection whose requests are served."""

    def end(self) -> None:
        """End its requests with the broker's process."""
        ...


@dataclass(slots=True)
class Tls:
    """The TLS context of one listener, and the settings from which it was built."""

    endpoint: Endpoint
    context: AlertingContext
    mapping: PrincipalMapping
    identity: Identity


def _ignore(connection: Connection) -> None:
    """Do nothing: a connection has no state before its first request."""


class Listening:
    """One broker as its connections use it; :class:`~broker.server.server.BrokerServer` opens and closes listeners."""

    def __init__(self, dispatcher: Answering, settings: BrokerSettings, clock: Clock, tasks: TaskGroup) -> None:
        self.dispatcher, self.settings, self.clock, self.tasks = dispatcher, settings, clock, tasks

        # Shared by the connections. A transport fills the scratch buffer and reports it in the same step.
        self.connections = Connections[Held](settings, clock)
        self.serving: dict[Serving, None] = {}
        """The connections whose requests are served, also those that their clients have closed meanwhile."""
        self.actions = ActionQueue()
        """Requests of all connections whose wait is over."""
        self.refusals = RefusalLog(clock)
        self.scratch = bytearray(SCRATCH_BYTES)
        self._count = 0

        # Listeners with SASL, and listeners with TLS.
        self.guarded: set[str] = set()
        self.tls: dict[str, Tls] = {}

        self.farewells = 0
        """The number of sockets kept open so that clients whose handshake failed can read the alert."""

        self.paused = False
        """Whether the broker is paused: it reads nothing, and writes no response."""
        self._waiting: dict[Waiter, None] = {}
        """Other brokers' requests, and responses to clients, that wait while this broker is paused."""

        self.joined: Callable[[Connection], None] = _ignore
        """Called with each new connection, before its first request."""

    async def wait_for_resumption(self, deadline_ms: int | None = None) -> None:
        """Wait until this broker resumes, it stops, or the deadline passes."""
        waiter = Waiter()
        self._waiting[waiter] = None
        try:
            await (waiter.wait_woken() if deadline_ms is None else waiter.wait(self.clock, deadline_ms))
        finally:
            self._waiting.pop(waiter, None)

    def wake_waiting(self) -> None:
        """Wake what waits while this broker is paused."""
        for waiter in list(self._waiting):  # a response that goes on removes its own
            waiter.wake()

    def tls_context(self, listener: str) -> AlertingContext:
        """Return the TLS context of a listener."""
        return self.tls[listener].context

    def principal_of(self, listener: str, transport: asyncio.BaseTransport, address: str) -> str:
        """Return the principal in the client's certificate; ANONYMOUS without a certificate.

        ANONYMOUS with SASL too: there the certificate identifies no one, and no mapping rule has to match
        (DefaultKafkaPrincipalBuilder).

        Raises:
            MappingError: no rule matches the name.
            KafkaError: the principal builder failed.
        """
        if listener in self.guarded:
            return ANONYMOUS
        name = distinguished_name(transport) if listener in self.tls else None
        builder = principal_builder(self.settings, listener)
        if builder is not None:
            protocol = "SSL" if listener in self.tls else "PLAINTEXT"
            return build_principal(builder, AuthenticationRequest(protocol, listener, address, name))
        return ANONYMOUS if name is None else f"User:{self.tls[listener].mapping.name_of(name)}"

    def most_bytes(self, listener: str, *, known: bool) -> int:
        """Return the maximum request size on a listener, before or after authentication (core A.1.3)."""
        limit = "socket.request.max.bytes" if known or listener not in self.guarded else "sasl.server.max.receive.size"
        return self.settings.int(limit)

    def next_id(self) -> int:
        """Return a number for a new connection."""
        self._count += 1
        return self._count
