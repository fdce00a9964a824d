"""What the connections of one broker share: its limits, its settings, and what answers their requests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from anyio.abc import TaskGroup

from broker.answers import Answer
from broker.clock import Clock
from broker.connection import Connection
from broker.network.alerts import AlertingContext
from broker.network.connections import Connections, Held
from broker.network.endpoints import Endpoint
from broker.network.principals import ANONYMOUS, PrincipalMapping, distinguished_name
from broker.network.refusal_log import RefusalLog
from broker.network.tls import Identity
from broker.settings import BrokerSettings
from protocol.connection import SCRATCH_BYTES


class Answering(Protocol):
    """What answers requests: :class:`broker.dispatcher.Dispatcher`, or the proxy's forwarder."""

    def answer(self, frame: bytearray, connection: Connection) -> Awaitable[Answer]:
        """The answer to a request that came on a connection. Raises Disconnect, NeverAnswer."""
        ...


@dataclass(slots=True)
class Tls:
    """The TLS of one listener, and what it was made of."""

    endpoint: Endpoint
    context: AlertingContext
    mapping: PrincipalMapping
    identity: Identity


def _ignore(connection: Connection) -> None:
    """A connection is nothing before its first request."""


class Listening:
    """One broker as its connections see it; :class:`~broker.network.server.BrokerServer` opens and closes them."""

    def __init__(self, dispatcher: Answering, settings: BrokerSettings, clock: Clock, tasks: TaskGroup) -> None:
        self.dispatcher, self.settings, self.clock, self.tasks = dispatcher, settings, clock, tasks

        # Shared by the connections. A transport fills the scratch buffer and reports it in one step.
        self.connections = Connections[Held](settings, clock)
        self.refusals = RefusalLog(clock)
        self.scratch = bytearray(SCRATCH_BYTES)
        self._count = 0

        # The listeners that ask for authentication; those that are encrypted.
        self.guarded: set[str] = set()
        self.tls: dict[str, Tls] = {}

        self.farewells = 0
        """Sockets of peers whose handshake failed, kept open for a moment so that they read why."""

        self.paused = False
        """Whether the broker hangs."""

        self.joined: Callable[[Connection], None] = _ignore
        """Called with each new connection, before its first request."""

    def tls_context(self, listener: str) -> AlertingContext:
        """The context of a listener that is encrypted."""
        return self.tls[listener].context

    def principal_of(self, listener: str, transport: asyncio.BaseTransport) -> str:
        """The principal that the peer's certificate names; ANONYMOUS without a certificate.

        With SASL too: there the certificate names no one, and no rule has to apply (DefaultKafkaPrincipalBuilder).

        Raises:
            MappingError: no rule applies to the name.
        """
        named = listener in self.tls and listener not in self.guarded
        name = distinguished_name(transport) if named else None
        return ANONYMOUS if name is None else f"User:{self.tls[listener].mapping.name_of(name)}"

    def most_bytes(self, listener: str, *, known: bool) -> int:
        """The largest request on a listener, before and after authentication (core A.1.3)."""
        limit = "socket.request.max.bytes" if known or listener not in self.guarded else "sasl.server.max.receive.size"
        return self.settings.int(limit)

    def next_id(self) -> int:
        """A number for a new connection."""
        self._count += 1
        return self._count
