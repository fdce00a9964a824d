"""The composition root: brokers, metadata, coordinators, clock and chance, put together, started, stopped and reset."""

from functools import partial
from uuid import UUID

import structlog
from anyio.abc import TaskGroup

from broker import descriptors
from broker.birth import create_topics, fence_the_absent, load_logs, open_metadata, open_node, places, register
from broker.chain import Middleware
from broker.chance import new_seed, seeded, uuid_from
from broker.clock import PushedClock
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.runtime import Runtime
from broker.coordinators import LOADERS
from broker.dispatch import Dispatcher, answer_errors
from broker.endpoints import PortTaken
from broker.handlers import APIS
from broker.hosting import Hosting
from broker.lifecycle import Lifecycle
from broker.markers import Markers
from broker.metadata_snapshots import MetadataSnapshots
from broker.middleware.group_timeline import GroupTimelines
from broker.middleware.journal import journal_of
from broker.middleware.producer_timeline import ProducerTimelines
from broker.middleware.read_only import refuse_changes
from broker.middleware.script import Script
from broker.middleware.timeline import Timelines
from broker.node import Node
from broker.options import ServeOptions
from broker.partition import ReplicatedPartition
from broker.playing import versions_of
from broker.producer_ids import ProducerIds
from broker.releases import NEWEST
from broker.releases import release as release_named
from broker.server import BrokerServer
from broker.settings import BrokerSettings
from broker.settings.model import ResourceType
from broker.snapshots import Snapshots
from broker.throttling import throttle_connection
from broker.upkeep import Upkeep
from protocol.types import uuid_text
from storage.partition_log import PartitionLog

_log = structlog.get_logger(__name__)


class Cluster:
    """N brokers in one process."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> None:
        self.options, self.clock, self._tasks = options, clock, tasks
        self.seed = new_seed() if options.seed is None else options.seed
        self.nodes: dict[int, Node] = {}
        self.removed: dict[int, Node] = {}
        """Brokers that steering took out; added again, they have their ports and their directories."""
        self.partitions: dict[tuple[str, int], ReplicatedPartition] = {}
        self.random = seeded(self.seed)
        self.cluster_id = ""
        self.hosting = Hosting(self, LOADERS)
        self.markers = Markers(self)
        self.upkeep = Upkeep(self)
        self.lifecycle = Lifecycle(self)
        self.journal = journal_of(options.settings, written_down=options.journal_dir is not None)
        self.release = release_named(options.as_version or NEWEST)
        self.versions = versions_of(self.release)
        self.snapshots = Snapshots(self)
        self.timelines = Timelines(clock)
        self.group_timelines = GroupTimelines(clock)
        self.producer_timelines = ProducerTimelines(clock)
        self.faults = Script(self.random)
        guard = (refuse_changes,) if options.read_only else ()
        self.middleware: tuple[Middleware, ...] = (self.faults.meet, answer_errors, *guard)
        """Every request passes these, outermost first, before it reaches its handler."""
        self.metadata: Runtime[MetadataMachine]
        self.metadata_log: PartitionLog
        self.metadata_snapshots: MetadataSnapshots

    # --- what handlers see (ClusterView) -----------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The metadata as of now."""
        return self.metadata.machine.image

    @property
    def settings(self) -> BrokerSettings:
        """The settings of the controller's broker, which is the first one."""
        return self.nodes[1].settings

    def new_uuid(self) -> UUID:
        """A random UUID (version 4) from the seeded chance."""
        return uuid_from(self.random)

    def allocate_producer_ids(self) -> range:
        """A block of producer ids (KIP-730)."""
        machine, start = self.metadata.machine, self.image.next_producer_id
        self.metadata.submit(machine.allocate_producer_ids)
        return range(start, self.image.next_producer_id)

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the logs, bind the listeners, register the brokers, create the topics asked for; then accept.

        Raises:
            OSError: a port is taken. DirectoryLockedError, WrongDirectoryError: the data directory is not ours.
        """
        self.open_state()
        for node in self.nodes.values():
            await self.bind(node)
        self.begin()
        create_topics(self, self.options.topics)
        for node in self.nodes.values():
            assert node.server is not None
            await node.server.accept()

    def open_state(self) -> None:
        """Logs and metadata, as they were left or as new."""
        self.random.seed(self.seed)
        if self.options.seed is not None or not self.cluster_id:
            self.cluster_id = uuid_text(self.new_uuid())
        for broker_id in list(self.nodes) or range(1, self.options.brokers + 1):
            open_node(self, broker_id)
        self.metadata = open_metadata(self)

    def begin(self, *, restored: bool = False) -> None:
        """Brokers register and lead what they hold; the rounds start. ``restored``: as if nothing had happened."""
        self.metadata.load()
        self.hosting.reconfigure(ResourceType.BROKER, "")
        for node in self.nodes.values():
            load_logs(self, node)
        for topic, index, _ in list(self.image.all_partitions()):
            self.hosting.follow(topic.name, index)
        for node in self.nodes.values():
            register(self, node, same_life=restored)
        fence_the_absent(self)
        self.upkeep.start()

    async def bind(self, node: Node) -> None:
        """Bind a broker's listeners: on the ports it had before, if it had any.

        Raises:
            PortTaken: somebody listens there.
        """
        watches = [each.middleware for each in (self.timelines, self.group_timelines, self.producer_timelines)]
        dispatcher = Dispatcher(node, self, APIS, self.middleware, self.journal, watches)
        most = descriptors.for_connections(len(self.nodes))
        node.server = BrokerServer(dispatcher, node.settings, self.clock, self._tasks, most=most)
        node.server.connections.throttle_ms = partial(throttle_connection, node)
        for endpoint in node.endpoints:
            _, known = node.bound.get(endpoint.name, (endpoint, None))
            try:
                node.bound[endpoint.name] = (endpoint, await node.server.listen(endpoint, known))
            except PortTaken:
                node.server.close()
                raise
        node.settings.locate(places(self, node))

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Host and port of each broker's first listener, as clients are told."""
        first = [next(iter(node.bound.values())) for node in self.nodes.values()]
        return [(endpoint.told_host, endpoint.told_port(port)) for endpoint, port in first]

    def stop(self) -> None:
        """Close connections and logs, cleanly."""
        self.upkeep.stop()
        self.lifecycle.clear()
        for node in self.nodes.values():
            if node.server is not None:
                node.server.close()
        self.close_state(clean=True)
        self.snapshots.discard()
        self.clock.close()

    def close_state(self, *, clean: bool) -> None:
        """Coordinators, logs and partitions go; listeners and connections stay."""
        for node in self.nodes.values():
            node.resign()
        self.metadata.close()
        self.metadata_snapshots.close()
        self.partitions.clear()
        for node in self.nodes.values():
            if node.logs is not None:
                node.logs.close(now_ms=self.clock.now_ms(), clean=clean, broker_epoch=node.epoch)
                node.logs = None
            node.up, node.sessions, node.producer_ids = False, None, ProducerIds()
