"""State that the brokers of a cluster share: metadata, partitions, clock, random numbers."""

from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import UUID

from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.quorum import Quorum
from broker.replication.partition import ReplicatedPartition
from broker.request.connection import Versions
from broker.settings.releases import Release
from broker.time.clock import Clock
from broker.time.rng import Random


class ClusterState(Protocol):
    """The cluster without its brokers (:class:`~broker.request.context.ClusterView` adds them)."""

    random: Random
    cluster_id: str
    controller_id: int
    metadata: MetadataController
    quorum: Quorum
    partitions: dict[tuple[str, int], ReplicatedPartition]
    versions: Versions
    release: Release
    lazy_coordinators: bool
    between_brokers: Callable[[], Awaitable[None]] | None
    """Awaited while a coordinator's answer is on its way to another broker; None: it takes no time."""

    @property
    def clock(self) -> Clock:
        """The cluster's clock."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The current metadata image."""
        ...

    def new_uuid(self) -> UUID:
        """Return a UUID from the cluster's seeded random numbers."""
        ...

    def allocate_producer_ids(self) -> range:
        """Allocate a block of producer ids, unique in the cluster (KIP-730)."""
        ...
