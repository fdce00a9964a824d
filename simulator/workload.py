"""The clients of a run: their selection, faults that concern them, and their progress."""

import asyncio
from collections.abc import Callable, Collection
from random import Random

from simulator.actor import Actor
from simulator.clients.client import Client, World
from simulator.clients.consumer import GroupConsumer, Reader
from simulator.clients.consumer_member import MODERN_GROUP, ConsumerMember, Subscription
from simulator.clients.copier import Copier
from simulator.clients.group_prober import GROUP_PROBER, GroupProber
from simulator.clients.prober import PROBER, Prober
from simulator.clients.producer import IdempotentClient, TransactionalClient
from simulator.clients.share_member import SHARE_GROUP, ShareMember
from simulator.clients.streams_member import StreamsMember
from simulator.clients.transaction_prober import TRANSACTION_PROBER, TransactionProber

SOURCE, OTHER, TARGET = "a", "b", "copies"
COPIERS = "copiers"
_END_MS = 60_000  # twice the default request.timeout.ms: what still waits then waits for ever
CONSUMER, SHARE, RULES, STREAMS = "consumer", "share", "rules", "streams"
STANDBYS = "group.streams.num.standby.replicas"
ISOLATION = ("read_committed", "read_uncommitted")


class Workload:
    """The clients of one run, some of each type; members of modern groups if the run's ``kinds`` include them.

    The latter have their own random generator, so that they do not change a run without them.
    """

    def __init__(self, world: World, chance: Random, kinds: Collection[str], standbys: int) -> None:
        self._standbys = standbys
        self._world, self._chance, self._kinds = world, chance, kinds
        self.actors: list[Actor] = []
        self._modern = Random(f"{world.seed} modern groups")  # noqa: S311 - replayed from the seed
        self.share_topics = self._modern.choice(([OTHER], [SOURCE, OTHER]))
        self.isolation = self._modern.choice(ISOLATION)

    def start(self) -> None:
        """Start all clients.

        One or two of what the run is about, none to two of what disturbs it: few, so that a story stays readable.
        At least half of the producers follow KIP-890, as newer clients do.
        """
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
        if RULES in self._kinds:
            self._add(TRANSACTION_PROBER, lambda name: TransactionProber(world, name, place=(OTHER, 0)), feeds=True)
            self._add(GROUP_PROBER, lambda name: GroupProber(world, name, place=(OTHER, 0)), feeds=True)
        self._start_modern()
        if world.coordinators_wait:
            own = Random(f"{world.seed} coordinators")  # noqa: S311 - replayed from the seed
            # All shorter than a lag of the followers may last.
            self._add_transactional("tx-late", "impatient", topics, patience_ms=own.choice((100, 300, 1_000)))

    def _start_modern(self) -> None:
        """Start the members of modern groups that the run's kinds include."""
        if CONSUMER in self._kinds:
            # Up to three: then one may be left without a partition.
            # Static members are fewer, as in practice.
            for number in range(self._modern.randrange(1, 4)):
                self._add_consumer(f"consumer-{number}", static=self._modern.random() < 0.3)
        if SHARE in self._kinds:
            for number in range(self._modern.randrange(1, 4)):
                self._add(f"share-{number}", self.share_member)
        if STREAMS in self._kinds:
            own = Random(f"{self._world.seed} streams")  # noqa: S311 - replayed from the seed
            for number in range(own.randrange(1, 4)):
                # Releases before 4.4 do not support static members in streams groups.
                static = own.random() < 0.3 and not self._world.features_change
                process = own.choice(("here", "there", f"process-{number}"))
                self._add_streams(f"streams-{number}", process, static=static)

    def _add(self, name: str, make: Callable[[str], Client], *, lasting: bool = False, feeds: bool = False) -> None:
        self.actors.append(Actor(self._world, name, make, lasting=lasting, feeds=feeds))

    def _add_consumer(self, own: str, *, static: bool) -> None:
        everything = [SOURCE, OTHER]
        choices = [
            Subscription(everything),
            Subscription(everything, assignor=self._modern.choice(("uniform", "range"))),
            Subscription([SOURCE]),
            Subscription(everything, regex=f"{SOURCE}|{OTHER}"),
        ]

        def make(name: str) -> Client:
            instance = own if static else None
            return ConsumerMember(self._world, name, group=MODERN_GROUP, choices=choices, instance=instance)

        self._add(own, make)

    def _add_streams(self, own: str, process: str, *, static: bool) -> None:
        def make(name: str) -> Client:
            instance = own if static else None
            return StreamsMember(
                self._world,
                name,
                sources=[SOURCE, OTHER],
                process=process,
                standbys=self._standbys,
                instance=instance,
            )

        self._add(own, make)

    def share_member(self, name: str, *, greedy: bool = False) -> ShareMember:
        """Create a member of the share group; a ``greedy`` one accepts all records."""
        settings = {"share.auto.offset.reset": "earliest", "share.isolation.level": self.isolation}
        return ShareMember(
            self._world, name, group=SHARE_GROUP, topics=self.share_topics, settings=settings, greedy=greedy
        )

    def _add_transactional(
        self, transactional_id: str, kind: str, topics: list[str], patience_ms: int | None = None
    ) -> None:
        def make(name: str) -> Client:
            return TransactionalClient(
                self._world,
                name,
                topics=topics,
                transactional_id=transactional_id,
                newer=kind == "newer",
                oldest=kind == "oldest",
                patience_ms=patience_ms,
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
        """Kill a client, which restarts after ``down_ms``; return a line for the story."""
        actor = self._one(chance)
        actor.kill(down_ms)
        return f"client {actor.name} is killed"

    def replace(self, chance: Random) -> str:
        """Start another instance of a client, while the current one continues; return a line for the story."""
        actor = self._one(chance)
        actor.replace()
        return f"client {actor.name} is started once more"

    async def end_all(self) -> None:
        """End all clients before the cluster changes to another state."""
        for actor in self.actors:
            await actor.end_all()

    def begin_again(self) -> None:
        """Start all clients again."""
        for actor in self.actors:
            actor.begin_again()

    def instances(self) -> list[Client]:
        """Return all running instances of clients."""
        return [instance for actor in self.actors for instance in actor.alive()]

    # --- how far they get --------------------------------------------------------------------------------------------

    def progress(self) -> dict[str, int]:
        """Return client -> number of successes of all its instances."""
        counts = {actor.name: 0 for actor in self.actors if not actor.lasting}
        for name, count in self._world.history.progress.items():
            own = name.partition(".")[0]
            if own in counts:
                counts[own] += count
        return counts

    async def stop(self, *, feeding: bool) -> None:
        """Stop the clients with ``feeds``, or the others, and wait until they have ended."""
        actors = [each for each in self.actors if each.feeds is feeding]
        for actor in actors:
            actor.stop()
        await asyncio.wait([each.task for each in actors], timeout=_END_MS / 1000)
        for actor in actors:
            if not actor.task.done():
                self._world.history.violate(f"{actor.name} does not end within {_END_MS} ms")
