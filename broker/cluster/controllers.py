"""Starts, stops, kills and pauses controllers that are nodes of their own, and elects the active one (KIP-595).

Their logs are the replicas of one partition, ``__cluster_metadata-0``, and the metadata machine continues over a change
of its leader. A controller that is killed or paused is missed after ``controller.quorum.fetch.timeout.ms``; one that
stops hands over at once. Without a majority the leader resigns, after one and a half times that timeout.
"""

from collections.abc import Container, Iterable
from dataclasses import replace

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import on_disk
from broker.cluster.lifecycle import Lifecycle, WrongState
from broker.cluster.maintenance import Maintenance
from broker.cluster.registration import register_controller
from broker.cluster.startup import new_node, open_directories, open_metadata_log
from broker.coordination.metadata.image import Partition
from broker.coordination.metadata.quorum import NO_LEADER, Fetched
from broker.logs import Logger
from broker.replication.metadata_log import copy_snapshot
from broker.request.node import Node
from broker.time.clock import turns
from broker.time.timers import Timer
from protocol.errors import KafkaError
from storage.files import DirectoryLockedError
from storage.log_dir import WrongDirectoryError

_log = Logger(__name__)
_CHECK_QUORUM_FACTOR = 1.5
"""LeaderState.CHECK_QUORUM_TIMEOUT_FACTOR."""


class ControllerLifecycle:
    """The lifecycle of one cluster's controllers; without controllers of their own it does nothing."""

    def __init__(self, cluster: ClusterBase, maintenance: Maintenance, brokers: Lifecycle) -> None:
        self._cluster, self._maintenance, self._brokers = cluster, maintenance, brokers
        cluster.voters_changed = self._voters_changed
        self._timer: Timer | None = None
        """Until the next election, or until the leader resigns."""
        self._paused_leader = NO_LEADER, NO_LEADER
        """The controller that was paused last while it led, and its leader epoch."""

    def pause(self, node: Node) -> None:
        """Stop reading and responding; the others miss it as one that was killed. Raises WrongState if it is down."""
        self._check_up(node)
        cluster, led = self._cluster, self._cluster.quorum.leader_id == node.id
        if cluster.servers[node].paused:
            return
        cluster.servers[node].pause()
        for broker in cluster.nodes.values() if led else ():
            if broker.channel.controller_id not in cluster.controllers:  # as in Kafka, each is connected from its start
                broker.channel.controller_id = node.id
        if led:
            self._paused_leader = node.id, cluster.metadata_partition.state.leader_epoch
        self._go_on_without(self._leave(node))

    def resume(self, node: Node) -> None:
        """Read and respond again. Raises WrongState if it is down.

        It follows the one that was elected meanwhile; if there is none, it is still the active one.
        """
        self._check_up(node)
        cluster, quorum, partition = self._cluster, self._cluster.quorum, self._cluster.metadata_partition
        if not cluster.servers[node].paused:
            return
        cluster.servers[node].paused = False
        quorum.controllers[node.id].last = None
        if (leader := cluster.controllers.get(quorum.leader_id)) is not None:
            copy_snapshot(leader.metadata_dir.context.files, node.metadata_dir.context.files)
        elif self._paused_leader == (node.id, partition.state.leader_epoch):
            quorum.leader_id = node.id
            partition.apply(replace(partition.state, leader=node.id))
        self._follow()
        cluster.servers[node].resume()

    def kill(self, node: Node) -> None:
        """Kill a controller, as SIGKILL does. Raises WrongState if it is down."""
        self._check_up(node)
        self._cluster.servers[node].close(reset=True)
        self._close(node, clean=False)

    async def stop(self, node: Node) -> None:
        """Stop a controller in order; if it leads, another one takes over at once. Raises WrongState if it is down."""
        self._check_up(node)
        led = self._cluster.quorum.leader_id == node.id
        await turns(1)
        self._cluster.servers[node].close()
        self._close(node, clean=True)
        if led:
            self.elect()

    async def start(self, node: Node) -> None:
        """Start a controller that is down, on the same port.

        Raises:
            WrongState: it is up, or its directory cannot be opened.
            PortTaken: its port is in use.
        """
        if node.up:
            raise WrongState(f"controller {node.id} is running")
        cluster = self._cluster
        await cluster.bind(node)
        try:
            self._open(node)
        except (DirectoryLockedError, WrongDirectoryError, KafkaError, OSError) as error:
            cluster.servers[node].close()
            raise WrongState(f"controller {node.id} cannot start: {error}") from error
        controller = cluster.quorum.controllers[node.id]
        controller.last, controller.incarnation_id = None, cluster.new_uuid()
        endpoint, port = next(iter(node.bound.values()))
        controller.address = endpoint.host_for_clients, endpoint.port_for_clients(port)
        register_controller(cluster, node.id)
        self._follow()
        await cluster.servers[node].accept()

    def clear(self) -> None:
        """Cancel the election (reset, stop)."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def elect(self) -> None:
        """Elect the voter with the longest log now, if there is no leader and a majority is up; a new epoch begins."""
        self.clear()
        cluster, quorum, partition = self._cluster, self._cluster.quorum, self._cluster.metadata_partition
        if quorum.leader_id != NO_LEADER or not quorum.has_majority:
            return
        up = quorum.following(quorum.voters)
        ends = {each: (log.epochs.latest, log.log_end_offset) for each, log in partition.logs.items() if each in up}
        best = max(ends.values())
        leader = cluster.random.choice([each for each, end in ends.items() if end == best])
        epoch = partition.state.leader_epoch + 1
        for controller in quorum.controllers.values():
            controller.last = None if controller.last is None else Fetched()
        quorum.leader_id = leader
        partition.apply(Partition(tuple(quorum.controllers), tuple(up), leader, leader_epoch=epoch))
        cluster.controller_log.begin(cluster.clock.now_ms())
        cluster.metadata.resume(epoch)
        self._brokers.begin_sessions()
        _log.info("a controller was elected", controller=leader, epoch=epoch)

    async def add(self, controller_id: int | None = None) -> Node:
        """Add a controller, which observes until AddRaftVoter makes it a voter; by default the id counts up.

        Raises:
            WrongState: the id is taken, the voters are configured (kraft.version 0), or the directory is read-only.
            EndpointError: its port would be out of range.
            PortTaken: its port is in use.
        """
        cluster = self._cluster
        if controller_id is None:
            controller_id = max((*cluster.controllers, *cluster.nodes)) + 1
        if controller_id in cluster.controllers or controller_id in cluster.nodes:
            raise WrongState(f"there is a node {controller_id} already")
        if not cluster.quorum.version:
            raise WrongState("the voters are configured: start with --feature kraft.version=1 to add controllers")
        if cluster.options.read_only:
            raise WrongState("a controller cannot be added to a read-only data directory")
        node = new_node(cluster, controller_id, controller=True)
        cluster.controllers[controller_id] = node
        try:
            await self.start(node)
        except (OSError, WrongState):
            self._forget(node)
            raise
        return node

    def remove(self, node: Node) -> None:
        """End a controller that is an observer, for good. Raises WrongState for a voter."""
        if node.id in self._cluster.quorum.voters:
            raise WrongState(f"controller {node.id} is a voter: remove it from the quorum first (RemoveRaftVoter)")
        if node.up:
            self._cluster.servers[node].close()
            self._close(node, clean=True)
        self._forget(node)

    async def add_missing(self, controller_ids: Iterable[int]) -> None:
        """Add those of these controllers that are missing, not up yet, before a reset or restore. Raises PortTaken."""
        cluster = self._cluster
        for controller_id in controller_ids:
            if controller_id not in cluster.controllers:
                node = cluster.controllers[controller_id] = new_node(cluster, controller_id, controller=True)
                await cluster.bind(node)
        ordered = sorted(cluster.controllers.items())
        cluster.controllers.clear()
        cluster.controllers.update(ordered)

    def retain_only(self, controller_ids: Container[int]) -> None:
        """Remove all other controllers, whose directories are closed, during a reset or restore."""
        for node in [each for each in self._cluster.controllers.values() if each.id not in controller_ids]:
            self._cluster.servers[node].close()
            self._forget(node)

    # --- parts -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_up(node: Node) -> None:
        if not node.up:
            raise WrongState(f"controller {node.id} is not running")

    def _open(self, node: Node) -> None:
        """Open its directory; its log gets what it has missed, with the snapshot that precedes the leader's log."""
        cluster, partition = self._cluster, self._cluster.metadata_partition
        open_directories(cluster, node, self._maintenance)
        if (leader := cluster.controllers.get(cluster.quorum.leader_id)) is not None:
            copy_snapshot(leader.metadata_dir.context.files, node.metadata_dir.context.files)
        log = open_metadata_log(cluster, node, cluster.metadata.machine)
        node.up = True
        partition.host(node.id, log)
        partition.replicate()

    def _forget(self, node: Node) -> None:
        cluster = self._cluster
        cluster.controllers.pop(node.id, None)
        cluster.servers.pop(node, None)
        cluster.dispatchers.pop((node.id, True), None)
        cluster.quorum.controllers.pop(node.id, None)

    def _voters_changed(self) -> None:
        """Apply new voters; a leader that is none of them hands over."""
        if self._cluster.quorum.leader_id not in self._cluster.quorum.voters:
            self._lose_leader()
            self.elect()
        self._follow()

    def _close(self, node: Node, *, clean: bool) -> None:
        """End the controller's process; the others notice."""
        cluster, led = self._cluster, self._leave(node)
        cluster.metadata_partition.drop(node.id)
        cluster.metadata_snapshots.pop(node.id).close()
        cluster.controller_log.files.pop(node.id)
        node.power_off(clean=clean)
        for _, files in on_disk((node,)):
            files.unlock()
        self._go_on_without(led)

    def _leave(self, node: Node) -> bool:
        """Note that a controller does not follow any more, and return whether it led."""
        cluster, quorum = self._cluster, self._cluster.quorum
        now_ms, led = cluster.clock.now_ms(), quorum.leader_id == node.id
        log = cluster.metadata_partition.logs[node.id]
        quorum.controllers[node.id].last = Fetched() if led else Fetched(log.log_end_offset, now_ms, now_ms)
        return led

    def _go_on_without(self, led: bool) -> None:
        """Go on without a controller, which may have ``led``."""
        if led:
            self._lose_leader()
        self._follow()

    def _follow(self) -> None:
        """Apply who is up: the high watermark waits for no other; elect, or let the leader resign, after a time."""
        cluster, quorum, partition = self._cluster, self._cluster.quorum, self._cluster.metadata_partition
        settings, now_ms = cluster.settings, cluster.clock.now_ms()
        self.clear()
        partition.apply(
            replace(partition.state, replicas=tuple(quorum.controllers), isr=tuple(quorum.following(quorum.voters)))
        )
        if quorum.leader_id == NO_LEADER:
            wait_ms = settings.int("controller.quorum.fetch.timeout.ms")
            self._timer = cluster.clock.call_at(now_ms + wait_ms, self.elect)
        elif quorum.has_majority:
            cluster.metadata.resume(partition.state.leader_epoch)
        else:
            cluster.metadata.suspend()
            wait_ms = int(settings.int("controller.quorum.fetch.timeout.ms") * _CHECK_QUORUM_FACTOR)
            self._timer = cluster.clock.call_at(now_ms + wait_ms, self._resign)

    def _resign(self) -> None:
        self._timer = None
        self._lose_leader()

    def _lose_leader(self) -> None:
        cluster, partition = self._cluster, self._cluster.metadata_partition
        _log.info("the quorum has no leader", epoch=partition.state.leader_epoch)
        cluster.quorum.leader_id = NO_LEADER
        cluster.metadata.suspend()
        partition.apply(replace(partition.state, leader=NO_LEADER))
