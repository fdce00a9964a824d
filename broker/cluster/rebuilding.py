"""Work that rebuilds the whole cluster: clients see the state before it, or the state afterwards.

With a few hundred partitions it is done in one turn of the loop. With more it is long work, and no client sees the
cluster meanwhile: requests and commands that have come wait until it is done, in their order, and no timer fires. Two
things are answered at once, as neither needs more than what was known before: ApiVersions, by which clients and
proxies see whether a broker is alive, and the health check.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from broker.cluster.base import ClusterBase
from broker.long_work import LongWork

if TYPE_CHECKING:
    from broker.coordination.metadata.image import ClusterImage

T = TypeVar("T")
FEW_PARTITIONS = 500
"""That are rebuilt in about 20 ms."""


class AsItWas:
    """The cluster as ApiVersions sees it meanwhile: with the metadata as they were."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self.image: ClusterImage = cluster.image

    def __getattr__(self, name: str) -> Any:
        """Everything else is the cluster's."""
        return getattr(self._cluster, name)


class Rebuilding:
    """Whether the cluster is being rebuilt, and the work that does it."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self._work: LongWork[Any] | None = None
        self._done = asyncio.Event()
        self._done.set()
        self.turn = asyncio.Lock()
        """Held by what takes brokers or the whole cluster down or brings them up, from its first look to its last port.

        Two at once would find what the other has half done; and in the order in which they came, each has its turn.
        """

    @property
    def under_way(self) -> bool:
        """Whether it is being rebuilt now."""
        return not self._done.is_set()

    async def over(self) -> None:
        """Wait until the cluster is not being rebuilt."""
        while not self._done.is_set():
            await self._done.wait()

    def finish(self) -> None:
        """Do all that is left of it now: the server ends."""
        if self._work is not None:
            self._work.finish()

    async def run(self, work: Callable[[], T], partitions: int, *, copied: bool = False) -> T:
        """Do such work, and raise what it raises.

        ``partitions`` is about how many there were, or will be; ``copied``: files are copied on the disk, which may
        take long with few partitions.
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
