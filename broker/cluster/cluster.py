"""The composition root: brokers, metadata, coordinators, clock and chance, put together, started, stopped and reset."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from anyio.abc import TaskGroup

from broker.api import AnyApi
from broker.chain import Chain
from broker.clock import PushedClock
from broker.cluster.beside import Beside, Function
from broker.cluster.controller_listener import ControllerListener
from broker.cluster.coordinators import LOADERS
from broker.cluster.data_directories import check_data_directories, with_found_ids
from broker.cluster.emulation import versions_of
from broker.cluster.heap import Heap
from broker.cluster.lifecycle import Lifecycle
from broker.cluster.maintenance import Maintenance
from broker.cluster.metadata_publisher import MetadataPublisher
from broker.cluster.rebuilding import Rebuilding
from broker.cluster.snapshots import Snapshots
from broker.cluster.startup import (
    create_topics,
    create_users,
    fence_the_absent,
    join,
    listener_settings,
    load_logs,
    open_metadata,
    open_node,
    register_controller,
)
from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.quorum import Quorum
from broker.coordination.share.persister import Persister
from broker.dispatcher import Dispatcher, answer_errors
from broker.faults.rules import Script
from broker.handlers import APIS
from broker.journal.ring import journal_of
from broker.network import file_limits
from broker.network.endpoints import OpenListener, PortTaken
from broker.network.server import BrokerServer
from broker.node import Node
from broker.options import ServeOptions
from broker.read_only import refuse_changes
from broker.releases import DEFAULT, Behaviour
from broker.releases import release as release_named
from broker.replication.metadata_log import MetadataLog
from broker.replication.metadata_snapshots import MetadataSnapshots
from broker.replication.partition import ReplicatedPartition
from broker.requests.authentication import authenticate
from broker.requests.old_refusals import OLD_REFUSALS
from broker.requests.share_state import SharePersister
from broker.requests.throttling import charge_quotas, throttle_connection
from broker.rng import new_seed, seeded, uuid_from
from broker.settings import BrokerSettings
from broker.settings.model import ConfigResourceType
from broker.timelines.groups import GroupTimelines
from broker.timelines.producers import ProducerTimelines
from broker.timelines.transactions import TransactionTimelines
from broker.transactions.markers import Markers
from protocol.codec import prepare
from protocol.pauses import pause
from protocol.types import uuid_text
from storage.files.descriptors import DEFAULT_MOST, Descriptors
from storage.log.partition_log import PartitionLog

_log = structlog.get_logger(__name__)


class Cluster:
    """N brokers in one process."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> None:
        options = with_found_ids(options)
        self.options, self.clock, self._tasks = options, clock, tasks
        self.seed = new_seed() if options.seed is None else options.seed
        self.controller_id = options.broker_ids[0]
        """The broker whose directory holds the metadata log, and which counts what concerns the controller."""
        self.nodes: dict[int, Node] = {}
        self.removed: dict[int, Node] = {}
        """Brokers that steering took out; added again, they have their ports and their directories."""
        self.partitions: dict[tuple[str, int], ReplicatedPartition] = {}
        self.random = seeded(self.seed)
        self.cluster_id = ""
        self.metadata_publisher = MetadataPublisher(self, LOADERS)
        self.controller = None if options.controller is None else ControllerListener(self, options.controller)
        self.markers = Markers(self)
        self.persister: Persister = SharePersister(self)
        self.maintenance = Maintenance(self)
        self.lifecycle = Lifecycle(self)
        self.heap = Heap()
        is_observed = options.journal_dir is not None or options.otlp_endpoint is not None
        self.journal = journal_of(options.settings, observed=is_observed, notes_errors=True)
        self.shares = file_limits.shares(
            options.brokers, on_disk=options.data_dir is not None, listeners=2 + sum(map(len, options.listeners))
        )
        self.descriptors = Descriptors(
            self.shares.files or DEFAULT_MOST, spare=file_limits.SPARE, on_shortage=file_limits.ShortageLog(clock).warn
        )
        self.release = release_named(options.as_version or DEFAULT)
        self.lazy_coordinators = (
            options.lazy_coordinators or options.as_version is not None or options.data_dir is not None
        )
        """Whether clients see a topic being created, as on Kafka; from the first reset on the option alone decides."""
        self.versions = versions_of(self.release)
        self.rebuilding = Rebuilding(self)
        self.snapshots = Snapshots(self)
        self.transaction_timelines = TransactionTimelines(clock)
        self.group_timelines = GroupTimelines(clock)
        self.producer_timelines = ProducerTimelines(clock)
        self.faults = Script(self.random)
        self.chain = Chain(
            frames=(self.journal.record,),
            messages=(
                authenticate,
                self.transaction_timelines.middleware,
                self.group_timelines.middleware,
                self.producer_timelines.middleware,
                self.faults.meet,
                answer_errors,
                *((refuse_changes,) if options.read_only else ()),
                OLD_REFUSALS,
            ),
            responses=(charge_quotas,),
        )
        """Every request passes these, outermost first, before it reaches its handler."""
        self.beside = Beside()
        self.metadata: MetadataController
        self.quorum: Quorum
        self.controller_log: MetadataLog
        self.metadata_log: PartitionLog
        self.metadata_snapshots: MetadataSnapshots

    # --- what handlers see (ClusterView) -----------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        """The metadata as of now."""
        return self.metadata.machine.image

    @property
    def settings(self) -> BrokerSettings:
        """The settings of the controller's broker; before the start, as they were given."""
        node = self.nodes.get(self.controller_id)
        return BrokerSettings(self.controller_id, self.options.settings) if node is None else node.settings

    @property
    def own(self) -> "Cluster":
        """Itself: this process is a cluster, and no proxy."""
        return self

    def function_of(self, verb: str) -> Function | None:
        """The function of a server beside the cluster that answers a verb; else `broker.control` does."""
        return self.beside.verbs.get(verb)

    @property
    def description(self) -> str:
        """A short description of this process."""
        return "a cluster of Understudy"

    @property
    def known_brokers(self) -> Sequence[int]:
        """The ids of the brokers."""
        return list(self.nodes)

    @property
    def listener_names(self) -> Iterable[str]:
        """The names of all listeners."""
        return dict.fromkeys(each.name for node in self.nodes.values() for each in self.listeners_of(node))

    @property
    def topics_state(self) -> object:
        """Another value whenever topics may have come or gone."""
        return self.metadata_log, self.metadata_log.log_end_offset

    def topic_names(self) -> Iterable[tuple[UUID, str]]:
        """Ids and names of all topics."""
        return ((each.id, each.name) for each in self.image.topics.values())

    def new_uuid(self) -> UUID:
        """A random UUID (version 4) from the seeded chance."""
        return uuid_from(self.random)

    def behaves(self, behaviour: Behaviour) -> bool:
        """Whether brokers of the release that is emulated now behave so."""
        return self.release.has(behaviour)

    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin work that waits for other brokers, in a later turn of the loop."""
        self._tasks.start_soon(work)

    def allocate_producer_ids(self) -> range:
        """A block of producer ids (KIP-730)."""
        machine, start = self.metadata.machine, self.image.next_producer_id
        self.metadata.submit(machine.allocate_producer_ids)
        return range(start, self.image.next_producer_id)

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the logs, bind the listeners, register the brokers, create the topics asked for; then accept.

        Raises:
            OSError: a port is taken. DirectoryLockedError, WrongDirectoryError: the data directory cannot be served.
        """
        check_data_directories(self.options)
        self.open_state()
        for node in self.nodes.values():
            await self.bind(node)
        if self.controller is not None:
            await self.controller.bind()
        self.begin()
        create_topics(self, self.options.topics)
        create_users(self)
        if self.shares.few:
            prepare(api.key for api in APIS)
        for node in self.nodes.values():
            await node.server.accept()
        if self.controller is not None:
            await self.controller.accept()

    def open_state(self) -> None:
        """Logs and metadata, as they were left or as new."""
        self.random.seed(self.seed)
        if self.options.seed is not None or not self.cluster_id:
            self.cluster_id = uuid_text(self.new_uuid())
        for broker_id in list(self.nodes) or self.options.broker_ids:
            open_node(self, broker_id)
        self.metadata = open_metadata(self)

    def begin(self, *, restored: bool = False) -> None:
        """Brokers register and lead what they hold; the rounds start. ``restored``: as if nothing had happened."""
        self.metadata.load()
        self._record_voters()
        register_controller(self, same_life=restored)
        self.metadata_publisher.reconfigure(ConfigResourceType.BROKER, "")
        for node in self.nodes.values():
            load_logs(self, node)
        first = [] if restored else self._less_than_others()
        for node in first:
            join(self, node)
        for topic, index, _ in list(self.image.all_partitions()):
            pause()
            self.metadata_publisher.sync_partition(topic.name, index)
        for node in self.nodes.values():
            if node not in first:
                join(self, node, same_life=restored)
        fence_the_absent(self)
        self.maintenance.start()

    def _less_than_others(self) -> list[Node]:
        """Brokers that may have lost records while others stopped in order: they lost power, or have an empty disk.

        They register before any log is compared with its leader's. As an unclean shutdown takes them out of the in-sync
        replicas (KIP-966), no replica is cut to what is left at such a leader.
        """
        unclean = [node for node in self.nodes.values() if not node.open_logs.was_clean]
        return unclean if len(unclean) < len(self.nodes) else []

    def _record_voters(self) -> None:
        """The quorum learns where the controller listens; without a listener of its own, its broker's first one."""
        quorum = self.quorum
        if self.controller is not None:
            at = self.controller.opened
            quorum.listener, quorum.address, quorum.listens = at.name, (at.host, at.port), True
        else:
            endpoint, port = next(iter(self.nodes[self.controller_id].bound.values()))
            quorum.address = endpoint.host_for_clients, endpoint.port_for_clients(port)
        self.controller_log.record_voters(self.clock.now_ms())

    def new_server(self, node: Node, apis: Sequence[AnyApi] = APIS) -> BrokerServer:
        """A server of a broker or of the controller, which has no listeners yet."""
        dispatcher = Dispatcher(node, self, apis, self.chain)
        server = BrokerServer(dispatcher, node.settings, self.clock, self._tasks)
        server.connections.throttle_ms = partial(throttle_connection, node)
        server.connections.on_freed = self.heap.freed
        return server

    async def bind(self, node: Node) -> None:
        """Bind a broker's listeners: on the ports it had before, if it had any.

        Raises:
            PortTaken: another process listens there.
        """
        node.server.paused = False
        for each in self.nodes.values():
            each.server.connections.most = max(self.shares.connections * self.options.brokers // len(self.nodes), 1)
        for endpoint in node.endpoints:
            _, known = node.bound.get(endpoint.name, (endpoint, None))
            try:
                node.bound[endpoint.name] = (endpoint, await node.server.listen(endpoint, known))
            except PortTaken:
                node.server.close()
                raise
        node.settings.set_listener_settings(listener_settings(self, node))

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Advertised host and port of each broker's first listener."""
        first = [next(iter(node.bound.values())) for node in self.nodes.values()]
        return [(endpoint.host_for_clients, endpoint.port_for_clients(port)) for endpoint, port in first]

    def listeners_of(self, node: Node) -> list[OpenListener]:
        """A broker's listeners, and behind them the controller's where it is that broker's."""
        own = [endpoint.opened(port) for endpoint, port in node.bound.values()]
        beside = self.controller is not None and node.id == self.controller_id
        return [*own, self.controller.opened] if self.controller is not None and beside else own

    def stop(self) -> None:
        """Close connections and logs, cleanly."""
        self.rebuilding.finish()
        self.maintenance.stop()
        self.lifecycle.clear()
        for node in self.nodes.values():
            node.server.close()
        if self.controller is not None:
            self.controller.close()
        self.close_state(clean=True)
        self.snapshots.discard()
        self.descriptors.close()
        self.clock.close()

    def close_state(self, *, clean: bool) -> None:
        """Coordinators, logs and partitions go; listeners and connections stay."""
        for node in self.nodes.values():
            node.resign()
        self.metadata.close()
        self.metadata_snapshots.close()
        self.partitions.clear()
        for node in self.nodes.values():
            node.power_off(clean=clean)
