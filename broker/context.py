"""What a handler knows of the request it handles, and the few things of the cluster it may touch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from broker.authorizer import ANONYMOUS, speaks_as
from broker.chain import Api
from broker.chance import Random
from broker.clock import Clock, Waiter
from broker.releases import NEWEST, Release
from broker.releases import release as release_named
from protocol.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from broker.authentication.gate import Gate
    from broker.coordination.metadata.image import ClusterImage
    from broker.coordination.metadata.machine import MetadataMachine
    from broker.coordination.runtime import Runtime
    from broker.node import Node
    from broker.partition import ReplicatedPartition

__all__ = [
    "AS_EVER",
    "AclOperation",
    "ClusterView",
    "Connection",
    "RequestContext",
    "ResourceType",
    "Versions",
]

Versions = Mapping[int, tuple[int, int] | None]
"""API key -> the versions that steering lets clients use instead of those that the API has; ``None``: none at all."""
AS_EVER: Versions = {}


class ClusterView(Protocol):
    """What handlers use of the cluster. ``broker.cluster.Cluster`` is the only implementation outside tests."""

    random: Random
    cluster_id: str
    nodes: "dict[int, Node]"
    metadata: "Runtime[MetadataMachine]"
    partitions: "dict[tuple[str, int], ReplicatedPartition]"
    versions: "Versions"
    release: Release

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
        """A block of producer ids that nobody else gets (KIP-730)."""
        ...


@dataclass(slots=True)
class Connection:
    """What is remembered of a connection between its requests."""

    id: str
    listener: str
    client_host: str
    client_port: int
    principal: str = ANONYMOUS
    gate: "Gate | None" = None
    """Who has to say who it is: on listeners with SASL."""
    software_name: str = "unknown"
    software_version: str = "unknown"
    throttled_until_ms: int = 0
    lost: bool = False
    number: int = 0
    """Of this connection among all of the cluster's, from its first request on."""
    versions: Versions = field(default_factory=lambda: AS_EVER)
    """As of the connection's first request."""
    release: Release = field(default_factory=lambda: release_named(NEWEST))
    """The release that the broker plays on this connection: likewise."""
    _watchers: set[Callable[[], None]] | None = None
    _muted: Waiter | None = None

    def watch(self, call: Callable[[], None]) -> None:
        """Call when the peer is gone: nobody needs to wait on its behalf any more."""
        if self._watchers is None:  # most connections never wait, and the journal keeps many
            self._watchers = set()
        self._watchers.add(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        if self._watchers is not None:
            self._watchers.discard(call)

    def lose(self) -> None:
        """The peer is gone."""
        self.lost = True
        for call in tuple(self._watchers or ()):
            call()

    async def sit_out(self, clock: Clock) -> None:
        """Return when the throttle time is over, the peer is gone, or it is forgiven."""
        self._muted = waiter = Waiter()
        self.watch(waiter.wake)
        try:
            if not self.lost:
                await waiter.wait(clock, self.throttled_until_ms)
        finally:
            self.unwatch(waiter.wake)
            self._muted, self.throttled_until_ms = None, 0

    def forgive(self) -> None:
        """Nobody has to wait any more: the cluster begins anew."""
        if self._muted is not None:
            self._muted.wake()


@dataclass(slots=True)
class RequestContext:
    """One request's surroundings. ``notes`` is free room for middleware (fault that met it, timings)."""

    api: Api
    version: int
    correlation_id: int
    client_id: str
    connection: Connection
    node: "Node"
    cluster: ClusterView
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def client_host(self) -> str:
        """The peer's address, without a slash."""
        return self.connection.client_host

    @property
    def listener(self) -> str:
        """Name of the listener that the request came in on."""
        return self.connection.listener

    @property
    def principal(self) -> str:
        """Who asks, such as ``User:ANONYMOUS``: what authentication found, or else what the setting says of the client.

        The one place that says so: whoever authenticates a connection sets the connection's.
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
        """Whether the requester may do that; without an authorizer everybody may do everything."""
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
