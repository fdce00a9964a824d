"""The brokers of a run: the code that `understudy serve` runs, on the virtual loop, with disks in memory."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import cast

from anyio.abc import TaskGroup

from broker.cluster.cluster import Cluster
from broker.cluster.isr import expand
from broker.cluster.reset import reset, restore, take_snapshot
from broker.cluster.snapshots import CannotKeep, Snapshot
from broker.cluster.startup import new_node
from broker.coordination.coordinators import TransactionCoordinator
from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.image import NO_LEADER
from broker.options import ServeOptions, TopicOption
from broker.partitions.transactions.markers import MarkerNote, Step
from broker.request.node import Node
from broker.settings.endpoints import Endpoint
from broker.settings.releases import release as played
from broker.time.clock import PushedClock
from protocol.errors import KafkaError
from simulator.history import LAST_EPOCH
from simulator.log_states import LogState, log_states
from simulator.loop import VirtualLoop
from simulator.network import HOST
from simulator.process import SETTINGS, Tasks
from storage.checkpoints import PARTITION_METADATA
from storage.files import MemoryFiles

FIRST_PORT = 9092  # Kafka's, so that traces read as usual
RELEASES = ("4.2", "4.3", "4.4")
"""Kafka releases that have all APIs and versions that the clients of a run use."""


class Servers:
    """The brokers of a run, and the faults that can be applied to them."""

    def __init__(
        self, loop: VirtualLoop, seed: int, brokers: int, topics: Mapping[str, int], settings: Mapping[str, str]
    ) -> None:
        self._loop, self._seed = loop, seed
        self.tasks = Tasks()
        self.lives = 0
        self.pushed_ms = 0
        """Total of all jumps of the brokers' clock, across restarts."""
        self.stranded: list[str] = []
        """Partitions that stay without a leader in Kafka, too, until an operator elects one; and why."""
        self._left_out_before: dict[MarkerNote, None] = {}
        self._raised: dict[tuple[int, int], int] = {}
        """Producer id and epoch, where a fault raised it -> the epoch before."""
        self.leaves: Callable[[], None] = lambda: None
        """Called before the cluster goes back to a snapshot or is reset."""
        self._before: dict[int, dict[str, LogState]] = {}
        """Broker -> state of its logs when it ended."""
        self.violate: Callable[[str], None] = lambda _: None
        self.between_brokers: Callable[[], Awaitable[None]] | None = None
        """Awaited while an answer is on its way from a coordinator to another broker."""
        endpoints = [Endpoint("PLAINTEXT", "PLAINTEXT", HOST, FIRST_PORT + n) for n in range(brokers)]
        self._options = ServeOptions(
            broker_ids=tuple(range(1, brokers + 1)),
            listeners=tuple((each,) for each in endpoints),
            topics=tuple(TopicOption(name, count) for name, count in topics.items()),
            settings={**SETTINGS, **settings},
            lazy_coordinators=True,  # as on Kafka: clients retry until the coordinators' topics exist
            control_port=None,
            seed=seed,
        )
        self.cluster: Cluster

    @property
    def left_out_markers(self) -> list[MarkerNote]:
        """Markers that were left out, as their partition had no leader (KAFKA-20734), of all states of the cluster."""
        own = self.cluster.markers.notes.left_out() if self.lives else ()
        return list(self._left_out_before | dict.fromkeys(own))

    @property
    def stuck_coordinators(self) -> list[int]:
        """Brokers with a transactional id that is stuck in a transition because transaction.version was lowered.

        As in Kafka, they retry only when they load their transactions again.
        """
        nodes = (node for node in self.cluster.nodes.values() if node.up)
        return sorted(
            each.id for each in nodes if any(own.machine.stuck for own in each.coordinators.transactions.values())
        )

    @property
    def ports(self) -> dict[int, int]:
        """Port -> broker."""
        return {own[0].port: 1 + index for index, own in enumerate(self._options.listeners)}

    async def start(self, disks: Mapping[int, MemoryFiles] | None = None) -> None:
        """Start all brokers, on empty disks or on the disks of an earlier process."""
        self._left_out_before = dict.fromkeys(self.left_out_markers)
        ahead_ms = self.cluster.clock.pushed_ms if self.lives else 0
        clock = PushedClock(self._loop, self._loop.time_ns)
        clock.put(ahead_ms, None)  # the time of the machines stays when brokers start again
        self.cluster = Cluster(self._options, clock, cast("TaskGroup", self.tasks))
        self.cluster.between_brokers = self.between_brokers
        self.lives += 1
        for broker_id, disk in (disks or {}).items():
            node = self.cluster.nodes[broker_id] = new_node(self.cluster, broker_id)
            node.files = (disk,)
        await self.cluster.start()
        for broker_id in sorted(disks or {}):
            self._compare(broker_id)

    def _compare(self, broker: int) -> None:
        """Compare a started broker's logs with those before: with the same records, their state must be the same."""
        before = self._before.pop(broker, {})
        for name, state in log_states(self.cluster, broker).items():
            changed = before[name].changed_by(state) if name in before else ""
            if changed:
                self.violate(f"broker {broker} has {name} up to offset {state.end} after its start, but {changed}")
            if state.shows_open_transactions:
                self.violate(f"broker {broker} shows {name} beyond {state.open_from}, where a transaction is open")

    def _remember(self, broker: int) -> None:
        self._before[broker] = log_states(self.cluster, broker)

    def node(self, broker: int) -> Node:
        """Return a broker."""
        return self.cluster.nodes[broker]

    @property
    def up(self) -> list[int]:
        """Running brokers, paused or not."""
        return [node.id for node in self.cluster.nodes.values() if node.up]

    @property
    def paused(self) -> list[int]:
        """Running brokers that are paused."""
        return [node.id for node in self.cluster.nodes.values() if node.up and node.server.paused]

    @property
    def fences_give_ids(self) -> bool:
        """Whether fencing at the last epoch allocates a producer id: since Kafka 4.3, with ``transaction.version`` 2.

        Otherwise the epoch becomes 32767, which is also the response to a late EndTxn from before the fencing.
        """
        return self.cluster.release.name != "4.2" and self.cluster.image.features.get("transaction.version", 0) == 2

    # --- faults ------------------------------------------------------------------------------------------------------

    def play(self, release: str | None) -> None:
        """Emulate that release of Kafka from the next start on; None: the newest one."""
        self._options = replace(self._options, as_version=release)

    def another_release(self, chance: Random) -> str | None:
        """Choose one of :data:`RELEASES`, not the current one, that supports all finalized feature levels, if any."""
        levels = self.cluster.image.features
        fitting = [
            each
            for each in RELEASES
            if each != self.cluster.release.name
            and all(level <= played(each).supported.get(name, (0, 0))[1] for name, level in levels.items())
        ]
        return chance.choice(fitting) if fitting else None

    def has_partition_without_replica_in_sync(self) -> bool:
        """Whether a partition of any topic has no in-sync replica."""
        return any(not state.isr for _, _, state in self.cluster.image.all_partitions())

    def kill(self, broker: int) -> None:
        """Kill a broker as SIGKILL does: what it has written survives."""
        self._remember(broker)
        self.cluster.lifecycle.kill(self.node(broker))

    def cut_power(self, broker: int, chance: Random) -> None:
        """Cut the power of a broker: of each file's unsynced bytes, a random number of the first ones survives."""
        node = self.node(broker)
        self._remember(broker)
        self.cluster.lifecycle.kill(node)
        before = disk_of(node)
        after = before.crash(lambda unsynced: chance.randint(0, unsynced))
        node.files = (after,)
        for directory in before.list():
            if before.exists(
                path := f"{directory}/{PARTITION_METADATA}"
            ):  # regarded as synced: it was written long ago
                after.replace(path, before.read_file(path))

    def may_lose_power(self, broker: int) -> bool:
        """Whether each partition of a broker has another in-sync replica that runs.

        Without in-sync replicas, the last known leader has records that no other replica may have.
        Never for the broker whose disk has the metadata: the controller survives when its broker is killed.
        """
        others = [each for each in self.up if each != broker and each not in (*self.broken, *self.paused)]
        states = [each.state for each in self.cluster.partitions.values()]
        # If no in-sync replica runs, an eligible one is elected: those that were killed return as unclean (KIP-966).
        running = set(self.up)
        in_sync = [
            {*state.isr} if running & {*state.isr} else {*state.isr, *state.elr} or {*state.last_known_elr}
            for state in states
        ]
        alone = any(broker in each and not each & set(others) for each in in_sync)
        return broker != self.cluster.controller_id and not alone

    def may_be_killed(self, broker: int, powerless: Collection[int]) -> bool:
        """Whether without this broker no ISR is left to replicas that lost power.

        The controller regards brokers that lost power as alive until their sessions end; a broker that leaves meanwhile
        leaves them as the only ones in the ISR: more unclean shutdowns than min.insync.replicas 2 can bear (KIP-966).
        Those that are down leave the ISR when they start again. If none is left in it, an eligible replica is elected.
        """
        states = [each.state for each in self.cluster.partitions.values()]
        rest = ({*each.isr} - {broker} or {*each.elr} for each in states if broker in each.isr)
        return all(isr.isdisjoint(powerless) or not isr.isdisjoint({*self.up} - {*powerless}) for isr in rest)

    def fail_write(self, broker: int, keep: int | None) -> None:
        """Let the next write of a broker fail after ``keep`` bytes; None: before the first one."""
        disk_of(self.node(broker)).fail_next_write(keep=keep)

    def mend(self, broker: int) -> None:
        """Repair a broker's disk; its contents stay."""
        node = self.node(broker)
        node.files = (disk_of(node).snapshot(),)

    def fails_next(self, broker: int) -> bool:
        """Whether the next write of a broker is to fail."""
        return disk_of(self.node(broker)).faults_planned > 0

    @property
    def broken(self) -> list[int]:
        """Brokers that run and have a disk that failed, or is about to."""
        broken_ids = []
        for node in self.cluster.nodes.values():
            is_offline = any(log_dir.is_offline for log_dir in node.log_dirs)
            if node.up and (is_offline or disk_of(node).faults_planned):
                broken_ids.append(node.id)
        return broken_ids

    def near_last_epoch(self, chance: Random, spared: str) -> str | None:
        """Raise a transactional id's epoch to one of the last; return the id, None if none was found.

        Ids that begin with ``spared`` are left alone.
        """
        runtimes = [each for node in self.cluster.nodes.values() for each in node.coordinators.transactions.values()]
        known = sorted((name, index) for index, each in enumerate(runtimes) for name in each.machine.transactions)
        if not known:
            return None
        name, _ = chance.choice(known)
        if name.startswith(spared):
            return None
        # Six, two and one below 32766, the last epoch that clients get (transactions A.3).
        self.raise_epoch(name, chance.choice((32_760, 32_764, 32_765)))
        return name

    def raise_epoch(self, name: str, epoch: int) -> bool:
        """Raise the epoch of a transactional id; False if no coordinator has it now, or its epoch is not lower."""
        for node in self.cluster.nodes.values():
            for runtime in node.coordinators.transactions.values():
                known = runtime.machine.transactions.get(name)
                if known is not None and known.producer_epoch < epoch:
                    self._raised[known.producer_id, epoch] = known.producer_epoch
                    self._set_epoch(runtime, name, epoch)
                    return True
        return False

    def has_last_epoch(self, name: str, producer_id: int) -> bool:
        """Whether a producer id of a transactional id has its last epoch, or had it before the next id."""
        nodes = self.cluster.nodes.values()
        shards = (each for node in nodes for each in node.coordinators.transactions.values())
        known = (own for each in shards if (own := each.machine.transactions.get(name)) is not None)
        return any(
            own.producer_epoch >= LAST_EPOCH
            if own.producer_id == producer_id
            else own.previous_producer_id == producer_id
            for own in known
        )

    def epochs_before(self, producer_id: int, epoch: int) -> tuple[int, ...]:
        """Return the epochs from which faults have raised a producer's epoch to this one, the oldest first."""
        epochs: tuple[int, ...] = ()
        while (producer_id, epoch) in self._raised:
            epoch = self._raised[producer_id, epoch]
            epochs = (epoch, *epochs)
        return epochs

    @staticmethod
    def _set_epoch(runtime: TransactionCoordinator, name: str, epoch: int) -> None:
        runtime.submit(lambda now_ms: runtime.machine.set_epoch(name, epoch, now_ms, None))

    def hold(self, chance: Random) -> str | None:
        """Hold the markers of a transactional id, or the steps after them; return the id, None if there is none.

        This is like a leader that is slow to write them. It lasts until :meth:`release`, or a restart of the cluster.
        """
        shards = [each for node in self.cluster.nodes.values() for each in node.coordinators.transactions.values()]
        known = sorted(name for each in shards for name in each.machine.transactions)
        if not known:
            return None
        name = chance.choice(known)
        self.cluster.markers.holds.hold(name, chance.choice(tuple(Step)), chance.randrange(2))
        return name

    def is_held(self, name: str) -> bool:
        """Whether a transaction of an id has stopped where it is held."""
        held = self.cluster.markers.holds.held(name)
        return held is not None and held[1]

    def coordinated_at(self, name: str) -> tuple[int, int] | None:
        """Return the coordinator of a transactional id and its partition of ``__transaction_state``, if known."""
        for node in self.cluster.nodes.values():
            for index, runtime in node.coordinators.transactions.items():
                if node.up and name in runtime.machine.transactions:
                    return node.id, index
        return None

    def release(self, name: str) -> None:
        """Let the held markers of a transactional id be written."""
        self.cluster.markers.holds.release(name)

    async def stop(self, broker: int) -> None:
        """Stop a broker cleanly, unless another fault kills it meanwhile."""
        node, lifecycle = self.node(broker), self.cluster.lifecycle
        await lifecycle.hand_over(node)
        if node.up:
            self._remember(broker)
            lifecycle.end(node)

    async def start_one(self, broker: int) -> None:
        """Start a broker that is down, from its disk."""
        await self.cluster.lifecycle.start(self.node(broker))
        self._compare(broker)

    def pause(self, broker: int) -> None:
        """Make a broker hang."""
        self.cluster.lifecycle.pause(self.node(broker))

    def resume(self, broker: int) -> None:
        """Resume a broker that hangs."""
        self.cluster.lifecycle.resume(self.node(broker))

    def move_leader(self, topic: str, index: int, broker: int, loading_ms: int = 0) -> bool:
        """Move a partition to another leader; False if the controller refuses, or the broker is not in sync.

        The controller's own operation also allows unclean elections, which may lose acknowledged records.
        """
        machine, partition = self.cluster.metadata.machine, self.cluster.image.partition(topic, index)
        if partition is None or broker not in partition.isr:
            return False
        try:
            self.cluster.metadata.submit(
                lambda _now_ms: machine.move_leader(topic, index, broker, loading_ms=loading_ms)
            )
        except KafkaError:
            return False
        return True

    def take_leader(self, topic: str, index: int) -> bool:
        """Leave a partition without a leader, unless it has none, or a transaction is open or not replicated there."""
        partition = self.cluster.partitions.get((topic, index))
        leader = None if partition is None else partition.logs.get(partition.state.leader)
        if leader is None or leader.last_stable_offset < leader.log_end_offset:
            return False
        machine = self.cluster.metadata.machine
        return self.cluster.metadata.submit(lambda _now_ms: machine.move_leader(topic, index, None))

    def elect_leaders(self, places: Iterable[tuple[str, int]]) -> None:
        """Elect the preferred leaders of partitions, or others in sync, where they may lead."""
        machine, wanted = self.cluster.metadata.machine, list(places)
        self.cluster.metadata.submit(lambda _now_ms: machine.elect_leaders(wanted, Election.PREFERRED))

    def hold_follower(self, topic: str, index: int, broker: int) -> int:
        """Stop the fetches of an in-sync follower; return the leader, 0 if the broker is not such a follower."""
        partition = self.cluster.partitions[topic, index]
        state = partition.state
        if broker in partition.held or broker == state.leader or broker not in state.isr or state.leader not in self.up:
            return 0
        partition.held |= {broker}
        return state.leader

    def take_out_of_sync(self, topic: str, index: int, broker: int) -> bool:
        """Remove a held follower from the ISR, as its leader does after a while; return whether that was possible."""
        partition, machine = self.cluster.image.partition(topic, index), self.cluster.metadata.machine
        if partition is None or broker not in partition.isr or partition.leader in (NO_LEADER, broker):
            return False
        rest = tuple(each for each in partition.isr if each != broker)
        self.cluster.metadata.submit(lambda _now_ms: machine.change_isr(topic, index, rest))
        return True

    def let_go(self, topic: str, index: int, broker: int) -> None:
        """Let a held follower fetch again, and rejoin the ISR once it has caught up."""
        partition = self.cluster.partitions.get((topic, index))
        if partition is not None:  # it may have been deleted
            partition.held -= {broker}
            partition.replicate()
            expand(self.cluster, topic, index)

    async def push_clock(self, ms: int) -> None:
        """Let the brokers' clock jump ahead."""
        self.pushed_ms += ms
        await self.cluster.clock.push(ms)

    async def restart_all(self, *, clean: bool, release: str | None = None) -> None:
        """End the process of all brokers and start it again from the disks, perhaps as another release."""
        disks = self.end(clean=clean)
        self.play(release or self._options.as_version)
        await self.start(disks)

    async def take_snapshot(self) -> Snapshot | None:
        """Take a snapshot of the cluster; None if a broker is down, or its disk fails."""
        snapshots = self.cluster.snapshots
        if self.broken:
            return None
        try:
            return snapshots.kept[await take_snapshot(self.cluster)]
        except CannotKeep:
            return None

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore the cluster to a snapshot of this process."""
        self._leave_state()
        await restore(self.cluster, snapshot)

    async def reset(self) -> None:
        """Reset the cluster to its initial state, with empty disks."""
        self._leave_state()
        await reset(self.cluster)

    def _leave_state(self) -> None:
        self.leaves()
        self._left_out_before = dict.fromkeys(self.left_out_markers)
        self._before.clear()
        self.lives += 1

    def end(self, *, clean: bool) -> dict[int, MemoryFiles]:
        """End all brokers; return their disks."""
        cluster = self.cluster
        for node in cluster.nodes.values():
            if node.up:
                self._remember(node.id)
        if clean:
            cluster.stop()
        else:
            cluster.maintenance.stop()
            cluster.lifecycle.clear()
            for node in cluster.nodes.values():
                cluster.servers[node].close(reset=True)
            cluster.close_state(clean=False)
            cluster.clock.close()
        return {node.id: disk_of(node).snapshot() for node in cluster.nodes.values()}


def disk_of(node: Node) -> MemoryFiles:
    """Return the only log directory of a broker."""
    (disk,) = node.files
    assert isinstance(disk, MemoryFiles)
    return disk
