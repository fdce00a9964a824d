"""The context of a request for its handler, and the parts of the cluster that handlers may use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from broker.api import AnyApi, Sending
from broker.clock import Clock, Waiter, stopwatch_ns
from broker.releases import DEFAULT, Release
from broker.releases import release as release_named
from broker.rng import Random
from broker.security.authorizer import ANONYMOUS, speaks_as
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.types import Message
from protocol.writers import Parts

if TYPE_CHECKING:
    from broker.coordination.coordinators import MetadataController
    from broker.coordination.metadata.image import ClusterImage
    from broker.coordination.metadata.quorum import Quorum
    from broker.coordination.share.persister import Persister
    from broker.node import Node
    from broker.produce.results import Produced
    from broker.replication.partition import ReplicatedPartition
    from broker.security.sasl_gate import Gate

__all__ = [
    "AS_EVER",
    "AclOperation",
    "ClusterView",
    "Connection",
    "Exchange",
    "RequestContext",
    "RequestNotes",
    "ResourceType",
    "Versions",
]

Versions = Mapping[int, tuple[int, int] | None]
"""API key -> the versions that steering lets clients use instead of those that the API has; ``None``: none at all."""
AS_EVER: Versions = {}


class ClusterView(Protocol):
    """The cluster as handlers use it. ``broker.cluster.cluster.Cluster`` is the only implementation outside tests."""

    random: Random
    cluster_id: str
    controller_id: int
    nodes: "dict[int, Node]"
    metadata: "MetadataController"
    quorum: "Quorum"
    partitions: "dict[tuple[str, int], ReplicatedPartition]"
    versions: "Versions"
    release: Release
    persister: "Persister"
    lazy_coordinators: bool

    @property
    def clock(self) -> Clock:
        """The cluster's time."""
        ...

    @property
    def image(self) -> "ClusterImage":
        """The metadata as of now."""
        ...

    def new_uuid(self) -> UUID:
        """A UUID from the cluster's seeded chance."""
        ...

    def allocate_producer_ids(self) -> range:
        """Allocate a block of producer ids, unique in the cluster (KIP-730)."""
        ...


@dataclass(slots=True)
class Connection:
    """The state of a connection between its requests."""

    id: str
    listener: str
    client_host: str
    client_port: int
    principal: str = ANONYMOUS
    gate: "Gate | None" = None
    """Its authentication; ``None`` on listeners without SASL."""
    software_name: str = "unknown"
    software_version: str = "unknown"
    throttled_until_ms: int = 0
    lost: bool = False
    number: int = 0
    """Of this connection in the journal, which gives it one with the first request."""
    era: int = 0
    """The journal's era at the first request: connections of an earlier one have outlived a reset."""
    first_at_ms: int = 0
    """The cluster's time of the first request."""
    begun: bool = False
    """Whether it has sent a request: :meth:`begin` was called."""
    versions: Versions = field(default_factory=lambda: AS_EVER)
    """As of the connection's first request."""
    release: Release = field(default_factory=lambda: release_named(DEFAULT))
    """The release that the broker emulates on this connection, as of its first request."""
    unserved: int = 0
    """Requests that had arrived and were not served yet when the peer was lost."""
    hang_up: Callable[[], None] | None = None
    """Closes it from our side; ``None`` outside a server."""
    at_end: Callable[[], None] | None = None
    """Called once, when everything that came on it is served and nothing more will be."""
    _watchers: dict[Callable[[], None], None] | None = None
    _muted: Waiter | None = None

    def begin(self, versions: Versions, release: Release, gate: "Gate | None") -> None:
        """The first request has come: what is fixed for the connection's life from then on."""
        self.begun, self.versions, self.release, self.gate = True, versions, release, gate

    def watch(self, call: Callable[[], None]) -> None:
        """Call when the peer is gone, and there is nothing to wait for any more."""
        if self._watchers is None:  # most connections never wait, and the journal keeps many
            self._watchers = {}  # in order
        self._watchers[call] = None

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        if self._watchers is not None:
            self._watchers.pop(call, None)

    def lose(self) -> None:
        """The peer is gone."""
        self.lost = True
        self.hang_up = None  # the journal keeps this object; what the connection has read must not stay with it
        for call in tuple(self._watchers or ()):
            call()

    async def wait_throttled(self, clock: Clock) -> None:
        """Return when the throttle time is over, the peer is gone, or throttling is lifted."""
        self._muted = waiter = Waiter()
        self.watch(waiter.wake)
        try:
            if not self.lost:
                await waiter.wait(clock, self.throttled_until_ms)
        finally:
            self.unwatch(waiter.wake)
            self._muted, self.throttled_until_ms = None, 0

    def end_throttling(self) -> None:
        """Stop waiting out the throttle time (reset)."""
        if self._muted is not None:
            self._muted.wake()


class ByteFault(Protocol):
    """Spoils the bytes of an answer on purpose (``broker.faults.byte_faults``)."""

    def spoil(self, answer: bytes) -> Sending:
        """The bytes that go out instead."""
        ...


class RequestNotes:
    """Notes of handlers and middleware on one request, beside its response.

    The defaults are the class's: most requests leave all of them alone, and every request has them.

    Attributes:
        faults: the ids of the faults that it met, joined by commas; ``None`` for none.
        byte_fault: spoils the answer's bytes.
        closes: whether the connection is closed behind the answer.
        charged: whether the handler has charged the client's quotas itself.
        produced: the partitions of a Produce request and what became of them, once they are known.
        encoded: the response and its encoded body, if the handler had to know the size; it counts for that response.
        id: the request's in the journal; 0: it is in none.
    """

    id = 0

    faults: str | None = None
    byte_fault: ByteFault | None = None
    closes: bool = False
    charged: bool = False
    produced: "Sequence[Produced] | None" = None
    encoded: tuple[Message, Parts] | None = None

    def note_fault(self, fault_id: str) -> None:
        """A fault has met the request."""
        self.faults = f"{self.faults},{fault_id}" if self.faults else fault_id


class Exchange(RequestNotes):
    """A request that is being served, and what becomes of it; the notes of its handler are part of it.

    ``outcome`` describes how it ended; ``parts`` is the answer as it was encoded, before a byte fault spoils it.
    ``id`` and ``era`` are the journal's.
    """

    outcome = "answered"
    request: Message | None = None
    parts: Parts | None = None
    errors: Sequence[ErrorCode] = ()
    """The codes in the answer, those of faults included."""
    era = 0

    def __init__(self, frame: bytearray, connection: Connection, broker: int, at_ms: int) -> None:
        self.frame, self.connection, self.broker, self.at_ms = frame, connection, broker, at_ms
        self.began_ns = stopwatch_ns()


@dataclass(slots=True)
class RequestContext:
    """One request's surroundings. ``apis`` are those that this broker serves; ``request_bytes`` is the frame's size."""

    api: AnyApi
    version: int
    correlation_id: int
    client_id: str
    connection: Connection
    node: "Node"
    cluster: ClusterView
    notes: RequestNotes = field(default_factory=RequestNotes)
    apis: Sequence[AnyApi] = ()
    request_bytes: int = 0

    @property
    def client_host(self) -> str:
        """The peer's address, without a slash."""
        return self.connection.client_host

    @property
    def listener(self) -> str:
        """Name of the listener that the request came in on."""
        return self.connection.listener

    @property
    def at_controller(self) -> bool:
        """Whether the request came in on the controller's listener."""
        return self.node.is_controller

    @property
    def principal(self) -> str:
        """The principal, such as ``User:ANONYMOUS``: authenticated, else from the setting for the client.

        The single source of a request's principal: authentication sets the connection's.
        """
        own, rules = self.connection.principal, self.node.settings.string("understudy.principals")
        return speaks_as(rules, self.client_id) or own if rules and own == ANONYMOUS else own

    @property
    def release(self) -> Release:
        """The release of Kafka that the requester is shown."""
        return self.connection.release

    @property
    def now_ms(self) -> int:
        """The cluster's time."""
        return self.cluster.clock.now_ms()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the requester may do that; without an authorizer all operations are allowed."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.cluster.image, self, operation, resource_type, name)

    def authorized_somewhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the requester may do that to any resource of a kind, which need not exist (KIP-679)."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_somewhere(self.cluster.image, self, operation, resource_type)
