"""The clients of a run: which there are, what becomes of them, how far they get."""

import asyncio
from collections.abc import Callable
from random import Random

from simulator.actor import Actor
from simulator.clients.client import Client, World
from simulator.clients.consumer import GroupConsumer, Reader
from simulator.clients.copier import Copier
from simulator.clients.prober import PROBER, Prober
from simulator.clients.producer import IdempotentClient, TransactionalClient

SOURCE, OTHER, TARGET = "a", "b", "copies"
COPIERS = "copiers"
_END_MS = 60_000


class Workload:
    """The clients of one run, some of each kind."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world, self._chance = world, chance
        self.actors: list[Actor] = []

    def start(self) -> None:
        """Begin all of them."""
        world, chance, topics = self._world, self._chance, [SOURCE, OTHER]
        self._add("reader", lambda name: Reader(world, name, topics=[*topics, TARGET]), lasting=True)
        self._add("idempotent", lambda name: IdempotentClient(world, name, topics=topics), feeds=True)
        for number in range(chance.randrange(1, 3)):
            self._add_transactional(f"tx-{number}", chance.choice(("newer", "newer", "older", "oldest")), topics)
        for number in range(chance.randrange(0, 3)):
            self._add(f"member-{number}", lambda name: GroupConsumer(world, name, group="g", topics=topics))
        for number in range(chance.randrange(0, 3)):
            self._add_copier(number, newer=chance.random() < 0.7)
        if chance.random() < 0.5:
            self._add(PROBER, lambda name: Prober(world, name, place=(OTHER, 0)), feeds=True)

    def _add(self, name: str, make: Callable[[str], Client], *, lasting: bool = False, feeds: bool = False) -> None:
        self.actors.append(Actor(self._world, name, make, lasting=lasting, feeds=feeds))

    def _add_transactional(self, transactional_id: str, kind: str, topics: list[str]) -> None:
        def make(name: str) -> Client:
            return TransactionalClient(
                self._world,
                name,
                topics=topics,
                transactional_id=transactional_id,
                newer=kind == "newer",
                oldest=kind == "oldest",
            )

        self._add(f"{kind}-{transactional_id}", make, feeds=True)

    def _add_copier(self, number: int, *, newer: bool) -> None:
        def make(name: str) -> Client:
            own = f"copier-{number}"
            return Copier(
                self._world, name, group=COPIERS, source=SOURCE, target=TARGET, transactional_id=own, newer=newer
            )

        self._add(f"copier-{number}", make)

    # --- faults ------------------------------------------------------------------------------------------------------

    def _one(self, chance: Random) -> Actor:
        return chance.choice([each for each in self.actors if not each.lasting])

    def kill(self, chance: Random, down_ms: int) -> str:
        """End one in the middle of its work; it comes back after so long."""
        actor = self._one(chance)
        actor.kill(down_ms)
        return actor.name

    def replace(self, chance: Random) -> str:
        """Start another instance of one; the present one goes on and does not know."""
        actor = self._one(chance)
        actor.replace()
        return actor.name

    # --- how far they get --------------------------------------------------------------------------------------------

    def progress(self) -> dict[str, int]:
        """Client -> how often all its instances together have succeeded."""
        counts = {actor.name: 0 for actor in self.actors if not actor.lasting}
        for name, count in self._world.history.progress.items():
            own = name.partition(".")[0]
            if own in counts:
                counts[own] += count
        return counts

    async def stop(self, *, feeding: bool) -> None:
        """Have those that feed the topics, or the others, come to their end."""
        actors = [each for each in self.actors if each.feeds is feeding]
        for actor in actors:
            actor.stop()
        await asyncio.wait([each.task for each in actors], timeout=_END_MS / 1000)
        for actor in actors:
            if not actor.task.done():
                self._world.history.violate(f"{actor.name} does not come to an end in {_END_MS} ms")
