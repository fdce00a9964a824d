"""Rebuilding of the whole cluster (reset, restore): clients see the state before or after it, nothing in between.

A few hundred partitions are rebuilt in one turn of the event loop. With more it is long work, and no client sees the
cluster meanwhile: requests and commands wait in their order until it is done, and no timer fires. Two things are
answered immediately, as neither needs more than the state before: ApiVersions, by which clients and proxies check
whether a broker is alive, and the health check.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from broker.cluster.base import ClusterBase
from broker.time.long_work import LongWork

if TYPE_CHECKING:
    from broker.coordination.metadata.image import ClusterImage

T = TypeVar("T")
FEW_PARTITIONS = 500
"""The number of partitions that are rebuilt in about 20 ms: ours, a pause that no client notices."""


class AsItWas:
    """The cluster for ApiVersions while it is rebuilt: with the metadata image from before."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self.image: ClusterImage = cluster.image

    def __getattr__(self, name: str) -> Any:
        """Return the cluster's attribute."""
        return getattr(self._cluster, name)


class Rebuilding:
    """Whether the cluster is being rebuilt, and the work that does it."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self._work: LongWork[Any] | None = None
        self._done = asyncio.Event()
        self._done.set()
        self.turn = asyncio.Lock()
        """Held while brokers or the whole cluster stop, start or are rebuilt, from the first check to the last port.

        Two such operations at a time would see each other's partial state; they run in the order of their arrival.
        """

    @property
    def under_way(self) -> bool:
        """Whether the cluster is being rebuilt now."""
        return not self._done.is_set()

    async def over(self) -> None:
        """Wait until the cluster is not being rebuilt."""
        while not self._done.is_set():
            await self._done.wait()

    def finish(self) -> None:
        """Complete the work now, because the server stops."""
        if self._work is not None:
            self._work.finish()

    async def run(self, work: Callable[[], T], partitions: int, *, copied: bool = False) -> T:
        """Run a function that rebuilds the cluster, and raise what it raises.

        ``partitions`` is roughly how many there were or will be; ``copied``: files are copied on disk, which may take
        long even with few partitions.
        """
        await self.over()
        cluster = self._cluster
        cluster.metadata.finish()
        if partitions <= FEW_PARTITIONS and not copied:
            return work()
        self._work, dispatchers = LongWork(work), list(cluster.dispatchers.values())
        self._done.clear()
        for dispatcher in dispatchers:
            dispatcher.hold(self._done, AsItWas(cluster))
        cluster.clock.hold()
        try:
            result: T = await self._work.run()
            return result
        finally:
            cluster.clock.release()
            for dispatcher in dispatchers:
                dispatcher.release()
            self._work = None
            self._done.set()
