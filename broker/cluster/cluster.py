"""The composition root: creates the parts of a cluster, and starts, stops and resets them."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from anyio.abc import TaskGroup

from broker.cluster.base import ClusterBase
from broker.cluster.beside import Beside, Function
from broker.cluster.controller_listener import ControllerListener
from broker.cluster.controllers import ControllerLifecycle
from broker.cluster.coordinators import LOADERS
from broker.cluster.data_directories import check_data_directories, with_ids_of_directory
from broker.cluster.emulation import apply_producer_rules, apply_release_defaults, feature_levels, versions_of
from broker.cluster.lifecycle import Lifecycle
from broker.cluster.maintenance import Maintenance
from broker.cluster.metadata_publisher import MetadataPublisher
from broker.cluster.rebuilding import Rebuilding
from broker.cluster.registration import fence_the_absent, join, register, register_controller, unfence
from broker.cluster.snapshots import Snapshots
from broker.cluster.startup import create_topics, create_users, load_logs, open_controllers, open_metadata, open_node
from broker.logs import Logger
from broker.options import ServeOptions
from broker.replication.partition import ReplicatedPartition
from broker.request.node import Node
from broker.settings.endpoints import OpenListener
from broker.settings.model import ConfigResourceType
from broker.settings.releases import Release
from broker.time.clock import PushedClock
from protocol.log_records.metadata import FeatureLevelRecord
from protocol.pauses import pause
from protocol.types import uuid_text

_log = Logger(__name__)


class Cluster(ClusterBase):
    """N brokers in one process."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> None:
        super().__init__(with_ids_of_directory(options), clock, tasks)
        self.maintenance = Maintenance(self)
        self.metadata_publisher = MetadataPublisher(self, LOADERS, self.maintenance)
        combined = self.options.controllers if not self.options.controller_ids else ()
        self.controller = ControllerListener(self, combined[0]) if combined else None
        self.lifecycle = Lifecycle(self, self.maintenance, self.metadata_publisher)
        self.controller_lifecycle = ControllerLifecycle(self, self.maintenance, self.lifecycle)
        self.rebuilding = Rebuilding(self)
        self.snapshots = Snapshots(self)
        self.beside = Beside()

    # --- what the control plane sees (Watched) -----------------------------------------------------------------------

    @property
    def own(self) -> "Cluster":
        """Return this cluster; a proxy returns none."""
        return self

    def function_of(self, verb: str) -> Function | None:
        """Return the function of a server beside the cluster for this verb; ``None``: `broker.control` has it."""
        return self.beside.verbs.get(verb)

    @property
    def description(self) -> str:
        """A short description of what this process is."""
        return "a cluster of Understudy"

    @property
    def known_brokers(self) -> Sequence[int]:
        """The ids of the brokers."""
        return list(self.nodes)

    @property
    def listener_names(self) -> Iterable[str]:
        """The names of all listeners."""
        return dict.fromkeys(listener.name for node in self.nodes.values() for listener in self.listeners_of(node))

    @property
    def topics_state(self) -> object:
        """A value that changes whenever topics may have been created or deleted."""
        return self.metadata, self.image.offset

    def topic_names(self) -> Iterable[tuple[UUID, str]]:
        """Return ids and names of all topics."""
        return ((topic.id, topic.name) for topic in self.image.topics.values())

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the logs, bind the listeners, register the brokers, create the configured topics, accept connections.

        Raises:
            OSError: a port is taken. DirectoryLockedError, WrongDirectoryError: the data directory cannot be served.
        """
        check_data_directories(self.options)
        self.open_state()
        self.snapshots.discard_left()
        for node in self.all_nodes:
            await self.bind(node)
        if self.controller is not None:
            await self.controller.bind()
        self.begin()
        create_topics(self, self.options.topics)
        create_users(self)
        for node in self.all_nodes:
            await self.servers[node].accept()
        if self.controller is not None:
            await self.controller.accept()

    def open_state(self) -> None:
        """Open data directories and metadata, existing or new."""
        self.random.seed(self.seed)
        if self.options.seed is not None or not self.cluster_id:
            self.cluster_id = uuid_text(self.new_uuid())
        open_controllers(self, self.maintenance)
        for broker_id in list(self.nodes) or self.options.broker_ids:
            open_node(self, broker_id, self.maintenance)
        self.metadata = open_metadata(self, self.metadata_publisher)

    def begin(self, *, restored: bool = False) -> None:
        """Load the metadata and logs, register the brokers, start periodic work. ``restored``: keep incarnations."""
        self.metadata.load()
        if self.quorum.leader_id not in self.quorum.voters:
            self.voters_changed()
        self._record_voters()
        for controller_id in self.quorum.controllers:
            register_controller(self, controller_id, same_life=restored)
        self.metadata_publisher.reconfigure(ConfigResourceType.BROKER, "")
        for node in self.nodes.values():
            load_logs(self, node, self.metadata_publisher)
        first = [] if restored else self._possibly_short()
        self.metadata_publisher.loading = True
        for node in first:
            register(self, node)
        self.metadata_publisher.loading = False
        for topic, index, _ in list(self.image.all_partitions()):
            pause()
            self.metadata_publisher.sync_partition(topic.name, index)
        for node in self.nodes.values():
            if node in first:
                unfence(self, node)
            else:
                join(self, node, same_life=restored)
            self.moves.resume(node)
        fence_the_absent(self)
        self.maintenance.start()

    def _possibly_short(self) -> list[Node]:
        """Return the brokers that may have lost records (no clean shutdown, or an empty disk) unless all brokers may.

        They register before any log is compared with its leader's. Since an unclean shutdown removes them from the ISR
        (KIP-966), no replica is truncated to the remains of such a leader's log.
        """
        unclean = [node for node in self.nodes.values() if not all(each.was_clean for each in node.log_dirs)]
        return unclean if len(unclean) < len(self.nodes) else []

    def _record_voters(self) -> None:
        """Set the controllers' addresses: their listeners, or else the first listener of the controller's broker."""
        quorum = self.quorum
        quorum.listens = self.controller is not None or bool(self.controllers)
        if quorum.listens:
            quorum.listener = self.options.controllers[0].name
        for controller in quorum.controllers.values():
            if self.controller_listener is not None:
                controller.address = self.controller_listener.host, self.controller_listener.port
            else:
                node = self.controllers.get(controller.id) or self.nodes[controller.id]
                endpoint, port = next(iter(node.bound.values()))
                controller.address = endpoint.host_for_clients, endpoint.port_for_clients(port)
        self.controller_log.record_voters(self.clock.now_ms())

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Advertised host and port of each broker's first listener."""
        first = [next(iter(node.bound.values())) for node in self.nodes.values() if node.bound]
        return [(endpoint.host_for_clients, endpoint.port_for_clients(port)) for endpoint, port in first]

    def listeners_of(self, node: Node) -> list[OpenListener]:
        """Return a broker's listeners, followed by the controller's if the controller is on this broker."""
        listeners = [endpoint.opened(port) for endpoint, port in node.bound.values()]
        controllers = self.controller_listener
        return listeners if controllers is None or node.id != self.controller_id else [*listeners, controllers]

    def emulate(self, release: Release) -> None:
        """Emulate another release from now on, for new connections and in the cluster's own behaviour."""
        if release.name == self.release.name:
            return
        self.release, self.versions = release, versions_of(release)
        for node in self.nodes.values():
            apply_release_defaults(release, node.settings)
            apply_producer_rules(self.release, node)
        self.metadata_publisher.reconfigure(ConfigResourceType.BROKER, "")
        machine, levels = self.metadata.machine, self.image.features
        changed = [
            FeatureLevelRecord(name, level)
            for name, level in feature_levels(release, self.options.features).items()
            if levels.get(name, 0) != level
        ]
        if changed:
            self.metadata.submit(lambda _now_ms: machine.remember(changed))

    def stop(self) -> None:
        """Close connections and logs in order."""
        self.rebuilding.finish()
        self.maintenance.stop()
        self.lifecycle.clear()
        self.controller_lifecycle.clear()
        for node in self.all_nodes:
            self.servers[node].close()
        if self.controller is not None:
            self.controller.close()
        self.close_state(clean=True)
        self.snapshots.discard()
        self.descriptors.close()
        self.clock.close()

    def close_state(self, *, clean: bool) -> None:
        """Close coordinators, logs and partitions; listeners and connections stay open."""
        for node in self.nodes.values():
            node.coordinators.close()
        self.metadata.close()
        for snapshots in self.metadata_snapshots.values():
            snapshots.close()
        self.metadata_snapshots.clear()
        self.partitions.clear()
        for node in self.all_nodes:
            node.power_off(clean=clean)

    def forget(self) -> list[ReplicatedPartition]:
        """Close everything that has state, for a reset or restore. Returns the partitions on which requests may wait.

        These have no logs any more: a waiting request must not write to paths that the new state has too.
        """
        self.maintenance.stop()
        self.lifecycle.clear()
        self.controller_lifecycle.clear()
        waiting = list(self.partitions.values())
        self.close_state(clean=False)
        for partition in waiting:
            partition.logs.clear()
        self.metadata_publisher.clear()
        self.markers.clear()
        self.moves.clear()
        return waiting

    def remaining_nodes(self) -> Iterator[Node]:
        """Iterate over the current brokers, skipping those removed while the caller awaits in its loop."""
        return (node for node in list(self.nodes.values()) if self.nodes.get(node.id) is node)

    async def resume_serving(self) -> None:
        """Let brokers that were killed listen again, and those that were paused read again."""
        for node in (*self.controllers.values(), *self.remaining_nodes()):
            if not self.servers[node].listening:
                await self.bind(node)
            elif self.servers[node].paused:
                self.servers[node].resume()
            await self.servers[node].accept()
        if self.controller is not None:
            await self.controller.accept()
