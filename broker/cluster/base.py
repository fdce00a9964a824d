"""The state that all parts of a cluster share: brokers, metadata, clock, random numbers, journal; and its listeners.

``broker.cluster.cluster`` puts the parts that work on this state together.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from anyio.abc import TaskGroup

from broker.cluster.emulation import versions_of
from broker.cluster.heap import Heap
from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.quorum import Quorum
from broker.handlers import APIS
from broker.options import ServeOptions
from broker.partitions.log_dir_moves import LogDirMoves
from broker.partitions.transactions.markers import Markers
from broker.replication.metadata_log import MetadataLog
from broker.replication.metadata_snapshots import MetadataSnapshots
from broker.replication.partition import ReplicatedPartition
from broker.request.api import ServedVersions
from broker.request.forwarding import FORWARDING
from broker.request.node import Node
from broker.request.old_refusals import OLD_REFUSALS
from broker.request.read_only import refuse_changes
from broker.request.throttling import charge_quotas, throttle_connection
from broker.server import file_limits
from broker.server.dispatcher import Chain, Dispatcher, answer_errors
from broker.server.recent_ports import RecentPorts
from broker.server.server import BrokerServer
from broker.settings import BrokerSettings
from broker.settings.endpoints import OpenListener, PortTaken, protocol_map
from broker.settings.releases import DEFAULT, Behaviour
from broker.settings.releases import release as release_named
from broker.steering.faults.rules import Faults
from broker.steering.journal.ring import journal_of
from broker.steering.timelines.deleted import DeletedPartitions
from broker.steering.timelines.groups import GroupTimelines
from broker.steering.timelines.producers import ProducerTimelines
from broker.steering.timelines.transactions import TransactionTimelines
from broker.time.clock import PushedClock
from broker.time.rng import new_seed, seeded, uuid_from
from storage.files.descriptors import DEFAULT_MOST, Descriptors
from storage.log.partition_log import PartitionLog


class ClusterBase:
    """The state of a cluster, without start, stop and reset."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> None:
        self.options, self.clock, self._tasks = options, clock, tasks
        self.seed = new_seed() if options.seed is None else options.seed
        self.controller_id = options.broker_ids[0]
        """The broker whose settings and quotas are the controller's; unless there are controllers of their own, its
        directory holds the metadata log.
        """
        self.controllers: dict[int, Node] = {}
        """Controllers that are nodes of their own."""
        self.controller_listener: OpenListener | None = None
        """The controller's own listener, if it has one and it is bound."""
        self.nodes: dict[int, Node] = {}
        self.servers: dict[Node, BrokerServer] = {}
        """The listeners and connections of each broker, and of the controller."""
        self.removed: dict[int, Node] = {}
        """Brokers that were removed; if added again, they get their ports and their directories back."""
        self.partitions: dict[tuple[str, int], ReplicatedPartition] = {}
        self.random = seeded(self.seed)
        self.cluster_id = ""
        is_observed = options.journal_dir is not None or options.otlp_endpoint is not None
        self.journal = journal_of(options.settings, observed=is_observed, notes_errors=True)
        self.markers = Markers(self, lambda: self.journal.newest_id)
        self.moves = LogDirMoves(self, read_only=options.read_only)
        self.heap = Heap()
        self.recent_ports = RecentPorts()
        """Ports that listeners do not get from the system: those of other clusters of the process, until lately."""
        self.shares = file_limits.shares(
            options.brokers,
            on_disk=bool(options.data_dirs),
            listeners=2 + len(options.controller_ids) + sum(map(len, options.listeners)),
        )
        self.descriptors = Descriptors(
            self.shares.files or DEFAULT_MOST, spare=file_limits.SPARE, on_shortage=file_limits.ShortageLog(clock).warn
        )
        self.release = release_named(options.as_version or DEFAULT)
        self.lazy_coordinators = options.lazy_coordinators or options.as_version is not None or bool(options.data_dirs)
        """Whether clients see topics still being created, as in Kafka; after a reset only the option counts."""
        self.versions = versions_of(self.release)
        self.transaction_timelines = TransactionTimelines(clock)
        self.group_timelines = GroupTimelines(clock)
        self.producer_timelines = ProducerTimelines(clock)
        self.deleted_partitions = DeletedPartitions(clock)
        self.moved_leaders: dict[tuple[UUID, int], int] = {}
        """Partitions whose leader a command has moved -> the leader epoch in which it stays, though not preferred."""
        self.faults = Faults(self.random, self.build_handlers)
        self.dispatchers: dict[tuple[int, bool], Dispatcher] = {}
        """The dispatchers, by broker id and whether it is that of the controller's listener."""
        self.voters_changed: Callable[[], None] = lambda: None
        """Called when requests have changed the voters of the quorum."""
        self.between_brokers: Callable[[], Awaitable[None]] | None = None
        self.metadata: MetadataController
        self.quorum: Quorum
        self.metadata_partition: ReplicatedPartition
        self.controller_log: MetadataLog
        self.metadata_snapshots: dict[int, MetadataSnapshots] = {}
        """Of each controller that is up."""

    @property
    def image(self) -> ClusterImage:
        """The current metadata image."""
        return self.metadata.machine.image

    @property
    def all_nodes(self) -> list[Node]:
        """The nodes that have directories and listeners: controllers of their own, and brokers."""
        return [*self.controllers.values(), *self.nodes.values()]

    def has_metadata(self, node: Node) -> bool:
        """Whether a broker is the controller too, and has the metadata log in its first directory."""
        return not self.options.controller_ids and node.id == self.controller_id

    @property
    def metadata_log(self) -> PartitionLog:
        """The active controller's log. Raises KafkaError if there is none."""
        return self.metadata_partition.led_by(self.quorum.leader_id)

    @property
    def settings(self) -> BrokerSettings:
        """The settings of the controller's broker; before the start, those of the command line."""
        node = self.nodes.get(self.controller_id)
        return BrokerSettings(self.controller_id, self.options.settings) if node is None else node.settings

    def hangs(self, node_id: int) -> bool:
        """Whether a broker or a controller is paused."""
        node = self.nodes.get(node_id) or self.controllers.get(node_id)
        return node is not None and node.up and node.server.paused

    def new_uuid(self) -> UUID:
        """Return a random UUID (version 4) from the cluster's seeded random numbers."""
        return uuid_from(self.random)

    def behaves(self, behaviour: Behaviour) -> bool:
        """Whether the release that is emulated now has this behaviour."""
        return self.release.has(behaviour)

    def start_task(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, in a later turn of the event loop, that waits for other brokers."""
        self._tasks.start_soon(work)

    def change_voters(self, voters: list[int]) -> None:
        """Replace the voters of the quorum, and record them in the metadata log (KIP-853)."""
        self.quorum.voters = voters
        self.controller_log.record_voters(self.clock.now_ms())
        self.voters_changed()

    def allocate_producer_ids(self) -> range:
        """Allocate a block of producer ids (KIP-730)."""
        if not self.metadata.active:
            return range(0)
        machine, start = self.metadata.machine, self.image.next_producer_id
        self.metadata.submit(machine.allocate_producer_ids)
        return range(start, self.image.next_producer_id)

    # --- the way of a request ----------------------------------------------------------------------------------------

    def chain(self, node: Node) -> Chain:
        """Return the stages that a broker's requests pass before their handlers: only those that can act now."""
        return Chain(
            frames=(self.journal.record,),
            messages=(
                self.transaction_timelines.middleware,
                self.group_timelines.middleware,
                self.producer_timelines.middleware,
                *((self.faults.apply,) if self.faults.faults else ()),
                answer_errors,
                *((FORWARDING,) if self.options.controller_ids else ()),
                *((refuse_changes,) if self.options.read_only else ()),
                OLD_REFUSALS,
            ),
            responses=() if node.quotas is None else (charge_quotas,),
        )

    def build_handlers(self, node: Node | None = None) -> None:
        """Build a broker's handlers again, or those of all: the first fault or quota was added, or the last removed."""
        for dispatcher in self.dispatchers.values():
            if node is None or dispatcher.node is node:
                dispatcher.build_handlers(self.chain(dispatcher.node))

    # --- listeners ---------------------------------------------------------------------------------------------------

    def new_server(self, node: Node, apis: Sequence[ServedVersions] = APIS) -> BrokerServer:
        """Give a broker, or the controller, its server, without listeners yet."""
        dispatcher = Dispatcher(node, self, apis, self.chain(node))
        self.dispatchers[node.id, node.is_controller] = dispatcher
        server = BrokerServer(dispatcher, node.settings, self.clock, self._tasks)
        server.connections.throttle_ms = partial(throttle_connection, node)
        server.connections.on_freed = self.heap.freed
        node.server = self.servers[node] = server
        return server

    async def bind(self, node: Node) -> None:
        """Bind a broker's listeners, on the same ports as before if it had any.

        Raises:
            PortTaken: a port is in use.
        """
        self.servers[node].paused = False
        for other in self.nodes.values():
            most = self.shares.connections * self.options.brokers // len(self.nodes)
            self.servers[other].connections.most = max(most, 1)
        for endpoint in node.endpoints:
            _, previous_port = node.bound.get(endpoint.name, (endpoint, None))
            try:
                port = await self.servers[node].listen(endpoint, previous_port, self.recent_ports)
                node.bound[endpoint.name] = (endpoint, port)
            except PortTaken:
                self.servers[node].close()
                raise
        node.settings.set_listener_settings(self.listener_settings(node))

    def listener_settings(self, node: Node) -> dict[str, str]:
        """Return a broker's listener settings as its server.properties would have them, for DescribeConfigs."""
        bound = node.bound.values()
        protocols = node.settings.string("listener.security.protocol.map")
        protocol_of_name = protocol_map(protocols)
        unknown = [
            f"{endpoint.name}:{endpoint.protocol}" for endpoint, _ in bound if endpoint.name not in protocol_of_name
        ]
        settings = {
            "broker.id": str(node.id),
            "listeners": ",".join(endpoint.as_listener(port) for endpoint, port in bound),
            "advertised.listeners": ",".join(endpoint.as_advertised(port) for endpoint, port in bound),
        }
        if unknown:
            settings["listener.security.protocol.map"] = ",".join([protocols, *unknown])
        if node.is_controller:
            return {**settings, "controller.listener.names": node.endpoints[0].name}
        if self.controller_listener is not None and node.id == self.controller_id:
            settings["controller.listener.names"] = self.controller_listener.name
            settings["listeners"] += f",{self.controller_listener.as_listener}"
        if self.options.data_dirs:
            settings["log.dirs"] = ",".join(node.log_dir_paths)
        return settings
