"""The brokers of a run: the code that is served, on the virtual loop, with disks in memory."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import cast

from anyio.abc import TaskGroup

from broker.clock import PushedClock
from broker.cluster.cluster import Cluster
from broker.cluster.isr import expand
from broker.cluster.reset import reset, restore, take_snapshot
from broker.cluster.snapshots import CannotKeep, Snapshot
from broker.cluster.startup import new_node
from broker.coordination.coordinators import TransactionCoordinator
from broker.coordination.metadata.image import NO_LEADER
from broker.network.endpoints import Endpoint
from broker.node import Node
from broker.options import ServeOptions, TopicOption
from broker.releases import release as played
from broker.transactions.markers import Step
from protocol.errors import KafkaError
from simulator.log_states import LogState, log_states
from simulator.loop import VirtualLoop
from simulator.network import HOST
from simulator.process import SETTINGS, Tasks
from storage.checkpoints import PARTITION_METADATA
from storage.files import MemoryFiles

FIRST_PORT = 9092
RELEASES = ("4.2", "4.3", "4.4")
"""The releases that serve all that the clients of a run ask for."""


class Servers:
    """The brokers, and what is done to them."""

    def __init__(
        self, loop: VirtualLoop, seed: int, brokers: int, topics: Mapping[str, int], settings: Mapping[str, str]
    ) -> None:
        self._loop, self._seed = loop, seed
        self.tasks = Tasks()
        self.lives = 0
        self.pushed_ms = 0
        """What the brokers' clocks were pushed in all, restarts or not."""
        self._left_out_before = False
        self._before: dict[int, dict[str, LogState]] = {}
        """Broker -> what its logs held when it ended."""
        self.violate: Callable[[str], None] = lambda _: None
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
    def left_out_markers(self) -> bool:
        """Whether a transaction has completed without the marker of a partition that had no leader (KAFKA-20734)."""
        return self._left_out_before or (self.lives > 0 and any(self.cluster.markers.notes.left_out()))

    @property
    def stuck_coordinators(self) -> list[int]:
        """Brokers with a transactional id that cannot leave its transition: transaction.version had been lowered.

        As in Kafka, they try again only when they load their transactions again.
        """
        nodes = (node for node in self.cluster.nodes.values() if node.up)
        return sorted(each.id for each in nodes if any(own.machine.stuck for own in each.transaction_shards.values()))

    @property
    def ports(self) -> dict[int, int]:
        """Port -> broker."""
        return {own[0].port: 1 + index for index, own in enumerate(self._options.listeners)}

    async def start(self, disks: Mapping[int, MemoryFiles] | None = None) -> None:
        """Start all of them, on empty disks or on those of an earlier life."""
        self._left_out_before = self.left_out_markers
        clock = PushedClock(self._loop, self._loop.time_ns)
        self.cluster = Cluster(self._options, clock, cast("TaskGroup", self.tasks))
        self.lives += 1
        for broker_id, disk in (disks or {}).items():
            node = self.cluster.nodes[broker_id] = new_node(self.cluster, broker_id)
            node.files = disk
        await self.cluster.start()
        for broker_id in sorted(disks or {}):
            self._compare(broker_id)

    def _compare(self, broker: int) -> None:
        """A broker has started from its disk: where its logs hold the same records, all else is the same too."""
        before = self._before.pop(broker, {})
        for name, state in log_states(self.cluster, broker).items():
            changed = before[name].changed_by(state) if name in before else ""
            if changed:
                self.violate(f"broker {broker} has {name} to {state.end} after its start, and {changed}")
            if state.shows_open_transactions:
                self.violate(f"broker {broker} shows {name} beyond {state.open_from}, where a transaction is open")

    def _remember(self, broker: int) -> None:
        self._before[broker] = log_states(self.cluster, broker)

    def node(self, broker: int) -> Node:
        """One broker."""
        return self.cluster.nodes[broker]

    @property
    def up(self) -> list[int]:
        """Those that run, paused or not."""
        return [node.id for node in self.cluster.nodes.values() if node.up]

    @property
    def paused(self) -> list[int]:
        """Those that run and do nothing."""
        return [node.id for node in self.cluster.nodes.values() if node.up and node.server.paused]

    @property
    def fences_give_ids(self) -> bool:
        """Whether a fence at the last epoch allocates another id: in Kafka since 4.3, with ``transaction.version`` 2.

        Otherwise the epoch becomes 32767, and an EndTxn of before, which comes late, is answered with it.
        """
        return self.cluster.release.name != "4.2" and self.cluster.image.features.get("transaction.version", 0) == 2

    # --- faults ------------------------------------------------------------------------------------------------------

    def play(self, release: str | None) -> None:
        """Be that release of Kafka from the next start on; None: the newest one."""
        self._options = replace(self._options, as_version=release)

    def another_release(self, chance: Random) -> str | None:
        """One of :data:`RELEASES` that knows the levels of all features, and is not played now, if there is one."""
        levels = self.cluster.image.features
        fitting = [
            each
            for each in RELEASES
            if each != self.cluster.release.name
            and all(level <= played(each).supported.get(name, (0, 0))[1] for name, level in levels.items())
        ]
        return chance.choice(fitting) if fitting else None

    def has_partition_without_replica_in_sync(self) -> bool:
        """Whether a partition of any topic has no replica in sync."""
        return any(not state.isr for _, _, state in self.cluster.image.all_partitions())

    def kill(self, broker: int) -> None:
        """End one as SIGKILL does: the system still has what it wrote."""
        self._remember(broker)
        self.cluster.lifecycle.kill(self.node(broker))

    def cut_power(self, broker: int, chance: Random) -> None:
        """End one as a power cut does: of what was not synced, any first part is left of each file."""
        node = self.node(broker)
        self._remember(broker)
        self.cluster.lifecycle.kill(node)
        assert isinstance(node.files, MemoryFiles)
        before, node.files = node.files, node.files.crash(lambda unsynced: chance.randint(0, unsynced))
        for directory in before.list():
            if before.exists(path := f"{directory}/{PARTITION_METADATA}"):  # written once, long ago
                node.files.replace(path, before.read_file(path))

    def may_lose_power(self, broker: int) -> bool:
        """Whether each partition of a broker has another replica in sync that runs.

        Never the one whose disk holds the metadata: the controller lives on when its broker is killed.
        """
        others = [each for each in self.up if each != broker and each not in (*self.broken, *self.paused)]
        states = [each.state for each in self.cluster.partitions.values()]
        alone = any(broker in state.isr and not set(state.isr) & set(others) for state in states)
        return broker != self.cluster.controller_id and not alone

    def may_be_killed(self, broker: int, powerless: Collection[int]) -> bool:
        """Whether no partition is left to replicas that lost power.

        The controller takes those that lost power for alive until their sessions end, and what leaves in the meantime
        leaves the partition to them: more unclean ends than min.insync.replicas 2 can bear (KIP-966). Those that are
        down leave it when they come back.
        """
        rest = ({*each.state.isr} - {broker} for each in self.cluster.partitions.values() if broker in each.state.isr)
        return all(isr.isdisjoint(powerless) or not isr.isdisjoint({*self.up} - {*powerless}) for isr in rest)

    def fail_write(self, broker: int, keep: int | None) -> None:
        """Let the next write of a broker fail after so many bytes; None: before the first."""
        files = self.node(broker).files
        assert isinstance(files, MemoryFiles)
        files.fail_next_write(keep=keep)

    def mend(self, broker: int) -> None:
        """Let a broker's disk work again; what it has stays."""
        node = self.node(broker)
        assert isinstance(node.files, MemoryFiles)
        node.files = node.files.snapshot()

    def fails_next(self, broker: int) -> bool:
        """Whether the next write of a broker is to fail."""
        files = self.node(broker).files
        assert isinstance(files, MemoryFiles)
        return files.faults_planned > 0

    @property
    def broken(self) -> list[int]:
        """Brokers that run and have a disk that failed, or is about to."""
        found = []
        for node in self.cluster.nodes.values():
            assert isinstance(node.files, MemoryFiles)
            offline = node.logs is not None and node.logs.context.offline is not None
            if node.up and (offline or node.files.faults_planned):
                found.append(node.id)
        return found

    def near_last_epoch(self, chance: Random, spared: str) -> str | None:
        """Raise the epoch of a transactional id to one of the last; which, if there is one. Not where it begins so."""
        runtimes = [each for node in self.cluster.nodes.values() for each in node.transaction_shards.values()]
        known = sorted((name, index) for index, each in enumerate(runtimes) for name in each.machine.transactions)
        if not known:
            return None
        name, _ = chance.choice(known)
        if name.startswith(spared):
            return None
        self.raise_epoch(name, chance.choice((32_760, 32_764, 32_765)))
        return name

    def raise_epoch(self, name: str, epoch: int) -> bool:
        """Raise the epoch of a transactional id; false where no coordinator knows it now, or it is beyond that."""
        for node in self.cluster.nodes.values():
            for runtime in node.transaction_shards.values():
                known = runtime.machine.transactions.get(name)
                if known is not None and known.producer_epoch < epoch:
                    self._set_epoch(runtime, name, epoch)
                    return True
        return False

    @staticmethod
    def _set_epoch(runtime: TransactionCoordinator, name: str, epoch: int) -> None:
        runtime.submit(lambda now_ms: runtime.machine.set_epoch(name, epoch, now_ms, None))

    def hold(self, chance: Random) -> str | None:
        """Hold the markers of a transactional id, or what follows them; which, if there is one.

        As leaders do that are slow to write them. It lasts until it is released, or the cluster is restarted.
        """
        shards = [each for node in self.cluster.nodes.values() for each in node.transaction_shards.values()]
        known = sorted(name for each in shards for name in each.machine.transactions)
        if not known:
            return None
        name = chance.choice(known)
        self.cluster.markers.holds.hold(name, chance.choice(tuple(Step)), chance.randrange(2))
        return name

    def coordinated_at(self, name: str) -> tuple[int, int] | None:
        """The broker that coordinates a transactional id, and the partition of its coordinators' topic."""
        for node in self.cluster.nodes.values():
            for index, runtime in node.transaction_shards.items():
                if node.up and name in runtime.machine.transactions:
                    return node.id, index
        return None

    def release(self, name: str) -> None:
        """Let the markers of a transactional id be written again."""
        self.cluster.markers.holds.release(name)

    def stop(self, broker: int) -> None:
        """Stop one in good order."""
        self._remember(broker)
        self.cluster.lifecycle.stop(self.node(broker))

    async def start_one(self, broker: int) -> None:
        """Start one that is down, from its disk."""
        await self.cluster.lifecycle.start(self.node(broker))
        self._compare(broker)

    def pause(self, broker: int) -> None:
        """Let one hang."""
        self.cluster.lifecycle.pause(self.node(broker))

    def resume(self, broker: int) -> None:
        """Let it go on."""
        self.cluster.lifecycle.resume(self.node(broker))

    def move_leader(self, topic: str, index: int, broker: int, loading_ms: int = 0) -> bool:
        """Give a partition another leader; false where the controller refuses, or the broker is not in sync.

        The controller's verb is an election at will, an unclean one too, which may lose what was acknowledged.
        """
        machine, found = self.cluster.metadata.machine, self.cluster.image.partition(topic, index)
        if found is None or broker not in found.isr:
            return False
        try:
            self.cluster.metadata.submit(
                lambda _now_ms: machine.move_leader(topic, index, broker, loading_ms=loading_ms)
            )
        except KafkaError:
            return False
        return True

    def hold_follower(self, topic: str, index: int, broker: int) -> int:
        """Let a follower of a partition copy nothing; the leader, 0 where the broker is none that follows."""
        found = self.cluster.partitions[topic, index]
        state = found.state
        if broker in found.held or broker == state.leader or broker not in state.isr or state.leader not in self.up:
            return 0
        found.held |= {broker}
        return state.leader

    def take_out_of_sync(self, topic: str, index: int, broker: int) -> bool:
        """Take a follower that is held out of the in-sync replicas, as its leader does after a while."""
        found, machine = self.cluster.image.partition(topic, index), self.cluster.metadata.machine
        if found is None or broker not in found.isr or found.leader in (NO_LEADER, broker):
            return False
        rest = tuple(each for each in found.isr if each != broker)
        self.cluster.metadata.submit(lambda _now_ms: machine.change_isr(topic, index, rest))
        return True

    def let_go(self, topic: str, index: int, broker: int) -> None:
        """Let a follower copy again, and be in sync once it has."""
        found = self.cluster.partitions[topic, index]
        found.held -= {broker}
        found.replicate()
        expand(self.cluster, topic, index)

    async def push_clock(self, ms: int) -> None:
        """Let the brokers' clock jump."""
        self.pushed_ms += ms
        await self.cluster.clock.push(ms)

    async def restart_all(self, *, clean: bool, release: str | None = None) -> None:
        """End the process with all brokers in it, and start it again from the disks, maybe as another release."""
        disks = self.end(clean=clean)
        self.play(release or self._options.as_version)
        await self.start(disks)

    async def take_snapshot(self) -> Snapshot | None:
        """Keep the state as it is; None where a broker is down, or its disk fails."""
        snapshots = self.cluster.snapshots
        if self.broken:
            return None
        try:
            return snapshots.kept[await take_snapshot(self.cluster)]
        except CannotKeep:
            return None

    async def restore(self, snapshot: Snapshot) -> None:
        """Go back to a state of this process."""
        self._leave_state()
        await restore(self.cluster, snapshot)

    async def reset(self) -> None:
        """Go back to the state of the start, with empty disks."""
        self._leave_state()
        await reset(self.cluster)

    def _leave_state(self) -> None:
        self._left_out_before = self.left_out_markers
        self._before.clear()
        self.lives += 1

    def end(self, *, clean: bool) -> dict[int, MemoryFiles]:
        """End all brokers; their disks."""
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
                node.server.close(reset=True)
            cluster.close_state(clean=False)
            cluster.clock.close()
        disks = {}
        for node in cluster.nodes.values():
            assert isinstance(node.files, MemoryFiles)
            disks[node.id] = node.files.snapshot()
        return disks
