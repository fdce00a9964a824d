"""Starts, stops, kills, pauses, adds and removes brokers while the cluster runs.

A killed broker's connections are reset and its memory is lost; its logs are recovered when it starts again. It is
fenced after ``broker.session.timeout.ms``: leaders and coordinators move to other replicas, or there are none. A
stopped broker moves its leaders first. A paused one neither reads nor responds, like a process under SIGSTOP.
"""

import errno
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import replace

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import on_disk
from broker.cluster.isr import expand
from broker.cluster.maintenance import Maintenance
from broker.cluster.metadata_publisher import MetadataPublisher
from broker.cluster.registration import register, unfence
from broker.cluster.startup import load_logs, new_node, open_node
from broker.coordination.metadata.image import METADATA_TOPIC
from broker.logs import Logger
from broker.partitions.share_partition.partitions import led_by
from broker.request.node import Node
from broker.settings.model import ConfigResourceType
from broker.time.clock import turns
from broker.time.timers import Timer
from protocol.errors import KafkaError
from storage.files import DirectoryLockedError
from storage.log_dir import WrongDirectoryError

_log = Logger(__name__)
_LAST_TURNS = 8
"""Turns of the event loop in which a broker that stops answers the requests that its lost leadership ends: a request
that waited resumes in the first one, and its response is written one or two turns later."""


class WrongState(Exception):
    """The broker's state does not permit that; the message is for the user."""


class Lifecycle:
    """The lifecycle of one cluster's brokers."""

    def __init__(self, cluster: ClusterBase, maintenance: Maintenance, publisher: MetadataPublisher) -> None:
        self._cluster, self._maintenance, self._publisher = cluster, maintenance, publisher
        self._fencing_timers: dict[int, Timer] = {}
        self.starting: set[int] = set()
        """Brokers whose ports are being bound."""

    def kill(self, node: Node) -> None:
        """Kill the broker, as SIGKILL does. Raises WrongState if it is down."""
        self._check_up(node)
        self._cluster.servers[node].close(reset=True)
        self._close(node, clean=False)
        self._fence_later(node)

    async def stop(self, node: Node) -> None:
        """Shut down in order: :meth:`hand_over`, then :meth:`end`. Raises WrongState if it is down."""
        await self.hand_over(node)
        self.end(node)

    async def hand_over(self, node: Node) -> None:
        """Move the leaders of a broker that stops. Raises WrongState if it is down.

        Requests that wait at a leader or coordinator that moves are answered, before the connections are closed. What
        members of share groups have acquired is released before, so that the next leader knows (seen on 4.4.0).
        """
        self._check_up(node)
        led_by(node).end_sessions()
        await turns(_LAST_TURNS)
        machine = self._cluster.metadata.machine
        self._cluster.metadata.submit(lambda _now_ms: machine.broker_stopped(node.id))
        await turns(_LAST_TURNS)

    def end(self, node: Node) -> None:
        """Close the connections of a broker that has handed over, and write everything. Raises WrongState."""
        self._check_up(node)
        self._cluster.servers[node].close()
        self._close(node, clean=True)

    async def start(self, node: Node) -> None:
        """Start a broker that is down, on the same ports.

        Raises:
            WrongState: it is up or starting, its directory cannot be opened, or it was removed meanwhile.
            PortTaken: a port is in use.
        """
        if node.up:
            raise WrongState(f"broker {node.id} is running")
        if not self._cluster.metadata.active:
            raise WrongState(f"broker {node.id} cannot register: no controller is active")
        if node.id in self.starting:
            raise WrongState(f"broker {node.id} is starting")
        cluster = self._cluster
        self.starting.add(node.id)
        try:
            await cluster.bind(node)
        finally:
            self.starting.discard(node.id)
        if node.up:  # by a reset or a restore meanwhile
            return
        if cluster.nodes.get(node.id) is not node:
            self._cluster.servers[node].close()
            raise WrongState(f"broker {node.id} was removed meanwhile")
        self._cancel_fencing(node)
        self._open(node)
        # Register first, so that it leads nothing: its log may have lost records that other replicas have.
        register(cluster, node)
        for topic, index, state in list(cluster.image.all_partitions()):
            if node.id in state.replicas:
                self._publisher.sync_partition(topic.name, index)
        unfence(cluster, node)
        cluster.moves.resume(node)
        await self._cluster.servers[node].accept()

    def _open(self, node: Node) -> None:
        """Open its directory and the logs in it. Raises WrongState if they cannot be opened."""
        cluster = self._cluster
        try:
            open_node(cluster, node.id, self._maintenance)
            if cluster.has_metadata(node):
                node.metadata_dir.logs[METADATA_TOPIC, 0] = cluster.metadata_log
            load_logs(cluster, node, self._publisher)
        except (DirectoryLockedError, WrongDirectoryError, KafkaError, OSError) as error:
            self._cluster.servers[node].close()
            if node.log_dirs:
                self._close(node, clean=False)
            raise WrongState(f"broker {node.id} cannot start: {error}") from error

    async def add(self, broker_id: int | None = None, *, rack: str | None = None, port: int | None = None) -> Node:
        """Add a broker; one that was removed gets its ports and its logs back.

        By default its id is one above the highest. ``port`` is that of its first listener; by default fixed ports count
        up with the ids, as those of the first brokers do. As in Kafka, no partition moves to it automatically.

        Raises:
            WrongState: the id is taken, or there is no place for its data. EndpointError: the ports would be out of
                range.
            PortTaken: one of the ports is in use.
        """
        cluster = self._cluster
        if broker_id is None:
            broker_id = max(cluster.nodes) + 1
        if broker_id in cluster.nodes:
            raise WrongState(f"there is a broker {broker_id} already")
        if cluster.options.read_only:
            raise WrongState("a broker cannot be added to a read-only data directory")
        if cluster.options.data_dirs and not cluster.options.has_several_nodes:
            raise WrongState("the data directory is that of a single broker; start with --brokers 2, or without it")
        removed = cluster.removed.get(broker_id)
        node = removed or new_node(cluster, broker_id, rack)
        before = node.endpoints, node.rack, dict(node.bound)
        if rack is not None:
            node.rack = rack
        if port is not None:
            main, *others = node.endpoints
            node.endpoints = (replace(main, port=port, advertised_port=None), *others)
            node.bound.pop(main.name, None)
        self._insert(node)
        try:
            await self.start(node)
        except (OSError, WrongState):
            if cluster.nodes.get(node.id) is node:  # a reset may have removed it meanwhile
                self._remove_node(node)
                node.endpoints, node.rack, node.bound = before
                if removed is None:  # never added before: the next broker must not get the port that is taken
                    del cluster.removed[node.id], cluster.servers[node]
            raise
        self._publisher.reconfigure(ConfigResourceType.BROKER, "")
        return node

    async def remove(self, node: Node) -> None:
        """Remove a broker: controlled shutdown if it is up, then UnregisterBroker (core B.13).

        Its replicas stay in the metadata, as in Kafka. Raises WrongState for the broker that has the cluster's
        metadata.
        """
        if self._cluster.has_metadata(node):
            raise WrongState(f"broker {node.id} holds the cluster's metadata and cannot be removed; stop it or kill it")
        if node.id in self.starting:
            raise WrongState(f"broker {node.id} is starting")
        self._cancel_fencing(node)
        if node.up:
            await self.stop(node)
        machine = self._cluster.metadata.machine
        with suppress(KafkaError):  # a client has unregistered it already
            self._cluster.metadata.submit(lambda _now_ms: machine.unregister_broker(node.id))
        self._remove_node(node)

    async def add_missing(self, broker_ids: Iterable[int]) -> None:
        """Add those of these brokers that are missing, not up yet, before a reset or restore.

        Raises:
            PortTaken: a port of a broker that is added is in use.
        """
        for broker_id in broker_ids:
            if broker_id not in self._cluster.nodes:
                node = self._cluster.removed.get(broker_id) or new_node(self._cluster, broker_id)
                self._insert(node)
                if not node.bound:
                    await self._cluster.bind(node)

    def retain_only(self, broker_ids: Container[int]) -> None:
        """Remove all other brokers, during a reset or restore."""
        for node in [node for node in self._cluster.nodes.values() if node.id not in broker_ids]:
            self._remove_node(node)

    def _insert(self, node: Node) -> None:
        nodes = self._cluster.nodes
        self._cluster.removed.pop(node.id, None)
        ordered = sorted([*nodes.items(), (node.id, node)])
        nodes.clear()
        nodes.update(ordered)

    def _remove_node(self, node: Node) -> None:
        self._cluster.servers[node].close()
        if not node.log_dirs:
            for _, files in on_disk((node,)):
                files.unlock()
        self._cluster.removed[node.id] = self._cluster.nodes.pop(node.id)

    def pause(self, node: Node) -> None:
        """Stop reading and responding; its replicas follow no leader. Raises WrongState if it is down."""
        self._check_up(node)
        self._cluster.servers[node].pause()
        self._fence_later(node)

    def resume(self, node: Node) -> None:
        """Read and respond again; a broker that was fenced meanwhile is unfenced. Raises WrongState if it is down.

        Replicas that could not catch up meanwhile rejoin the ISR, its own ones and those of its followers.
        """
        self._check_up(node)
        self._cancel_fencing(node)
        self._cluster.servers[node].paused = False
        for (topic, index), partition in list(self._cluster.partitions.items()):
            if node.id in partition.logs:
                partition.replicate()
                expand(self._cluster, topic, index)
        if not self._cluster.image.alive(node.id):
            machine = self._cluster.metadata.machine
            self._cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
        self._cluster.servers[node].resume()
        self._cluster.metadata_partition.wake()  # requests that it had to forward
        self._cluster.moves.resume(node)

    def fail_log_dir(self, node: Node, path: str | None = None) -> None:
        """Fail a log directory, as a disk error does (KIP-112): its partitions get KAFKA_STORAGE_ERROR.

        ``path`` is one of the broker's ``log.dirs``; by default the last one.

        Raises:
            WrongState: the broker is down, or has no such directory; it has failed already, or has the cluster's
                metadata.
        """
        self._check_up(node)
        if path is not None and path not in node.log_dir_paths:
            raise WrongState(f"broker {node.id} has no log directory {path}: it has {', '.join(node.log_dir_paths)}")
        log_dir = node.log_dirs[-1 if path is None else node.log_dir_paths.index(path)]
        if self._cluster.has_metadata(node) and log_dir is node.metadata_dir:
            raise WrongState(
                f"the log directory of broker {node.id} has the cluster's metadata: Kafka halts such a broker. Fail "
                "that of another broker, or kill this one; a fault with KAFKA_STORAGE_ERROR refuses single requests"
            )
        if log_dir.is_offline:
            raise WrongState(f"the log directory of broker {node.id} has failed already")
        log_dir.context.storage_error(OSError(errno.EIO, "failed by the control plane"))
        for partition in self._cluster.partitions.values():
            if node.id in partition.logs:
                partition.wake()  # fetches that wait there are answered

    async def repair_log_dir(self, node: Node) -> None:
        """Repair the failed log directories by a restart of the broker, as in Kafka. Raises WrongState."""
        self._check_up(node)
        if not any(log_dir.is_offline for log_dir in node.log_dirs):
            raise WrongState(f"the log directory of broker {node.id} has not failed")
        await self.stop(node)
        await self.start(node)

    def clear(self) -> None:
        """Cancel all fencing timers (reset, stop)."""
        for timer in self._fencing_timers.values():
            timer.cancel()
        self._fencing_timers.clear()

    # --- parts -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_up(node: Node) -> None:
        if not node.up:
            raise WrongState(f"broker {node.id} is not running")

    def _close(self, node: Node, *, clean: bool) -> None:
        """End the broker's process: close coordinators, sessions and logs."""
        node.coordinators.close()
        for partition in self._cluster.partitions.values():
            if partition.drop(node.id):
                partition.replicate()
        goes_on = self._cluster.has_metadata(node)  # the controller writes its log in the first directory
        trees = [files for _, files in on_disk((node,))]
        for files in trees:
            if goes_on:
                files.hold()
        if goes_on:
            node.metadata_dir.logs.pop((METADATA_TOPIC, 0), None)  # the controller continues without this broker
        for log_dir in node.log_dirs:
            if log_dir.context.files.lazy:  # on disk this is done every few seconds (in Kafka once a minute)
                log_dir.checkpoint_log_starts()
        node.power_off(clean=clean)
        for files in () if goes_on else trees:
            files.unlock()  # a reset that failed may have locked it

    def _fence_later(self, node: Node) -> None:
        if node.id in self._fencing_timers:  # it was paused already, or killed while paused: silent since then
            return
        clock, timeout_ms = self._cluster.clock, node.settings.int("broker.session.timeout.ms")
        self._fencing_timers[node.id] = clock.call_at(clock.now_ms() + timeout_ms, lambda: self._fence(node))

    def begin_sessions(self) -> None:
        """Begin the sessions of all brokers with a new active controller, which knows of no earlier heartbeat."""
        for broker_id in list(self._fencing_timers):
            node = self._cluster.nodes[broker_id]
            self._cancel_fencing(node)
            self._fence_later(node)

    def _fence(self, node: Node) -> None:
        if not self._cluster.metadata.active:
            return  # the next active controller begins a new session
        self._fencing_timers.pop(node.id, None)
        if self._cluster.image.alive(node.id):
            machine = self._cluster.metadata.machine
            self._cluster.metadata.submit(lambda _now_ms: machine.fence_broker(node.id))

    def _cancel_fencing(self, node: Node) -> None:
        if timer := self._fencing_timers.pop(node.id, None):
            timer.cancel()
