"""States that a run goes back to: a snapshot of the cluster, with what its clients knew when it was taken.

Who goes back to one starts all clients again. What they sent meanwhile does not arrive any more; what was acknowledged
before the snapshot is there, and nothing of what came after it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from broker.cluster.snapshots import Snapshot
from simulator.clients.client import World
from simulator.cluster import Servers
from simulator.history import History


class Clients(Protocol):
    """All clients of a run."""

    async def end_all(self) -> None:
        """End all of them at once."""
        ...

    def begin_again(self) -> None:
        """Start new instances of them."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    number: int
    snapshot: Snapshot
    history: History
    life: object
    """The process that has it: snapshots do not outlive it."""


class Worlds:
    """The snapshots of a run. ``prepare`` gives a cluster that was reset what the run needs besides its topics."""

    def __init__(self, servers: Servers, world: World, clients: Clients, prepare: Callable[[], None]) -> None:
        self._servers, self._world, self._clients, self._prepare = servers, world, clients, prepare
        self._kept: list[_Kept] = []
        self._taken = 0

    async def take(self) -> int | None:
        """Take a snapshot; its number, None where it cannot be taken."""
        snapshot = await self._servers.take_snapshot()
        if snapshot is None:
            return None
        # The cluster and its clients' knowledge are of the same moment: no turn of the loop is between them.
        self._taken += 1
        self._kept.append(_Kept(self._taken, snapshot, self._world.history.kept(), self._servers.cluster))
        return self._taken

    def one(self, chance: Random) -> _Kept | None:
        """One of the snapshots that can be gone back to, if there is one."""
        self._kept = [each for each in self._kept if each.life is self._servers.cluster]
        return chance.choice(self._kept) if self._kept else None

    async def restore(self, kept: _Kept) -> None:
        """Go back to a snapshot."""
        await self._end_clients()
        await self._servers.restore(kept.snapshot)
        self._world.history = kept.history.kept()  # it may be gone back to once more
        self._clients.begin_again()

    async def reset(self) -> None:
        """Go back to the state of the start."""
        await self._end_clients()
        await self._servers.reset()
        self._world.history = self._world.history.forgotten()
        self._prepare()
        self._clients.begin_again()

    async def _end_clients(self) -> None:
        await self._clients.end_all()
        self._world.network.break_all()
