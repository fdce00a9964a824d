"""Starts, stops and kills controllers that are nodes of their own, and elects the active one (KIP-595).

Their logs are the replicas of one partition, ``__cluster_metadata-0``, and the metadata machine continues over a change
of its leader. A controller that is killed is missed after ``controller.quorum.fetch.timeout.ms``; one that stops hands
over at once. Without a majority the leader resigns, after one and a half times that timeout.
"""

from dataclasses import replace

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import on_disk
from broker.cluster.lifecycle import Lifecycle, WrongState
from broker.cluster.maintenance import Maintenance
from broker.cluster.registration import register_controller
from broker.cluster.startup import open_directories, open_metadata_log
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
        self._timer: Timer | None = None
        """Until the next election, or until the leader resigns."""

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
        quorum = cluster.quorum
        quorum.controllers[node.id].last = None
        quorum.controllers[node.id].incarnation_id = cluster.new_uuid()
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

    def _close(self, node: Node, *, clean: bool) -> None:
        """End the controller's process; the others notice."""
        cluster, quorum, partition = self._cluster, self._cluster.quorum, self._cluster.metadata_partition
        now_ms, led = cluster.clock.now_ms(), quorum.leader_id == node.id
        log = partition.logs[node.id]
        quorum.controllers[node.id].last = Fetched() if led else Fetched(log.log_end_offset, now_ms, now_ms)
        partition.drop(node.id)
        cluster.metadata_snapshots.pop(node.id).close()
        cluster.controller_log.files.pop(node.id)
        node.power_off(clean=clean)
        for _, files in on_disk((node,)):
            files.unlock()
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
