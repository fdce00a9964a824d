"""Snapshots of the cluster and of the clients' history, restores and resets.

A restore starts new instances of all clients. Requests of the old ones do not arrive any more. The cluster then has all
that was acknowledged before the snapshot, and nothing later.
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
        """End all clients."""
        ...

    def begin_again(self) -> None:
        """Start new instances of all clients."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    number: int
    snapshot: Snapshot
    history: History
    life: object
    """The cluster object of its process: snapshots do not outlive the process."""


class Worlds:
    """The snapshots of a run. ``prepare`` configures a cluster for the run's clients after a reset."""

    def __init__(self, servers: Servers, world: World, clients: Clients, prepare: Callable[[], None]) -> None:
        self._servers, self._world, self._clients, self._prepare = servers, world, clients, prepare
        self._kept: list[_Kept] = []
        self._taken = 0

    async def take(self) -> int | None:
        """Take a snapshot; return its number, None if it cannot be taken."""
        snapshot = await self._servers.take_snapshot()
        if snapshot is None:
            return None
        # Snapshot and history are of the same moment: the loop runs nothing in between.
        self._taken += 1
        self._kept.append(_Kept(self._taken, snapshot, self._world.history.kept(), self._servers.cluster))
        return self._taken

    def one(self, chance: Random) -> _Kept | None:
        """Choose a snapshot that can be restored, if there is one."""
        self._kept = [each for each in self._kept if each.life is self._servers.cluster]
        return chance.choice(self._kept) if self._kept else None

    async def restore(self, kept: _Kept) -> None:
        """Restore the cluster and the history to a snapshot."""
        await self._end_clients()
        await self._servers.restore(kept.snapshot)
        self._world.history = kept.history.kept()  # a copy: the snapshot may be restored again
        self._clients.begin_again()

    async def reset(self) -> None:
        """Reset the cluster and the history."""
        await self._end_clients()
        await self._servers.reset()
        self._world.history = self._world.history.forgotten()
        self._prepare()
        self._clients.begin_again()

    async def _end_clients(self) -> None:
        await self._clients.end_all()
        self._world.network.break_all()
