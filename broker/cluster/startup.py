"""How the parts of a cluster come to be: data directories, the metadata log, brokers that register, first topics."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from broker import read_only
from broker.cluster.data_directories import files_of, note_owner, report_cut, report_left
from broker.cluster.emulation import (
    apply_producer_rules,
    apply_release_defaults,
    feature_levels,
    producer_rules_of,
    supported_features,
)
from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import MetadataOutcome
from broker.coordination.metadata.features import DIRECTORIES_LEVEL, KRAFT_VERSION, METADATA_VERSION
from broker.coordination.metadata.image import INTERNAL_TOPICS, METADATA_TOPIC, BrokerListener, Partition
from broker.coordination.metadata.machine import MetadataMachine, bootstrap_records
from broker.coordination.metadata.quorum import Quorum
from broker.coordination.metadata.topics import NewTopic
from broker.coordination.runtime import Runtime
from broker.fetch.sessions import SessionCache
from broker.log_dirs import path_of
from broker.network.endpoints import Endpoint, protocol_map
from broker.node import Node
from broker.options import ServeOptions, TopicOption
from broker.quotas.quotas import BrokerQuotas
from broker.replication.fsync import SyncThread
from broker.replication.metadata_log import MetadataCodec, MetadataLog, formatted, next_epoch
from broker.replication.metadata_snapshots import MetadataSnapshots
from broker.replication.partition import ReplicatedPartition
from broker.rng import seeded, uuid_from
from broker.settings import BrokerSettings
from broker.share.partitions import SharePartitions
from protocol.log_records.metadata import LATEST_METADATA_VERSION
from storage.checkpoints import META_PROPERTIES
from storage.files import DiskFiles, MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir, WrongDirectoryError, partition_of
from storage.ownership import is_log

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_log = structlog.get_logger(__name__)
METADATA_TOPIC_ID = UUID(int=1)  # Kafka's Uuid.METADATA_TOPIC_ID


def new_node(cluster: "Cluster", broker_id: int, rack: str | None = None) -> Node:
    """A broker that is not registered yet: no directory is open, no listener is bound.

    Raises:
        EndpointError: there are no ports for it.
    """
    settings = {**cluster.options.settings, **(read_only.SETTINGS if cluster.options.read_only else {})}
    rack = rack_of(cluster.options, broker_id) if rack is None else rack
    if rack is not None:
        settings["broker.rack"] = rack
    known = BrokerSettings(broker_id, settings)
    apply_release_defaults(cluster.release, known)

    def new_sessions() -> SessionCache:
        return SessionCache(known.int("max.incremental.fetch.session.cache.slots"), cluster.random)

    node = Node(broker_id, known, cluster.partitions, new_sessions, partial(SharePartitions, cluster))
    node.endpoints = endpoints_of(cluster.options, broker_id)
    node.server = cluster.new_server(node)
    node.settings.on_change(partial(_follow_settings, cluster, node))
    return node


def open_node(cluster: "Cluster", broker_id: int) -> Node:
    """A broker with its data directory open and locked; no log is loaded yet.

    Raises:
        DirectoryLockedError, WrongDirectoryError: the directory belongs to another process or cluster.
    """
    node = cluster.nodes.get(broker_id)
    if node is None:
        node = cluster.nodes[broker_id] = new_node(cluster, broker_id)
    if node.files is None:
        node.files = files_of(cluster.options, broker_id, cluster.descriptors)
    if isinstance(node.files, MemoryFiles):
        node.files.on_freed = cluster.heap.freed
    context = LogContext(
        node.files,
        sync=node.settings.string("understudy.sync"),
        jitter=cluster.random.randrange,
        new_uuid=cluster.new_uuid,
        producer_id_expiration_ms=node.settings.int("producer.id.expiration.ms"),
        decompressed_limit=node.settings.long("understudy.max.decompressed.batch.bytes"),
        producer_rules=producer_rules_of(cluster.release, node.settings),
        on_failure=partial(cluster.lifecycle.directory_failed, node),
        on_left=partial(report_left, node),
        on_cut=partial(report_cut, node),
        flush_at=cluster.maintenance.flush_at,
        sync_later=SyncThread(node.files) if isinstance(node.files, DiskFiles) else None,
    )
    known = node.files.exists(META_PROPERTIES)
    node.logs = LogDir.open(
        context,
        node_id=broker_id,
        cluster_id="" if known and broker_id == cluster.controller_id else cluster.cluster_id,
        now_ms=cluster.clock.now_ms(),
    )
    if broker_id == cluster.controller_id:
        cluster.cluster_id = node.logs.cluster_id
    return node


def endpoints_of(options: ServeOptions, broker_id: int) -> tuple[Endpoint, ...]:
    """The listeners of a broker; of one beyond those of the command line, the first one's with ports counted up.

    Raises:
        EndpointError: there are no such ports.
    """
    if broker_id in options.broker_ids:
        return options.listeners[options.broker_ids.index(broker_id)]
    index = max(broker_id - options.broker_ids[0], options.brokers)  # the ports of the first ones are taken
    return tuple(endpoint.of_broker(index) for endpoint in options.listeners[0])


def rack_of(options: ServeOptions, broker_id: int) -> str | None:
    """The rack that the options give to a broker. Those that are added later have none unless they are given one."""
    if not options.racks or broker_id not in options.broker_ids:
        return None
    return options.racks[options.broker_ids.index(broker_id) % len(options.racks)]


def _follow_settings(cluster: "Cluster", node: Node, _changed: frozenset[str]) -> None:
    """Apply the broker's current settings for producer expiration and verification (transactions B.10)."""
    if node.logs is None:
        return
    node.logs.context.producer_id_expiration_ms = node.settings.int("producer.id.expiration.ms")
    apply_producer_rules(cluster, node)


def open_metadata(cluster: "Cluster") -> MetadataController:
    """The cluster's metadata, replayed from its log in the controller's directory, or begun.

    Raises:
        WrongDirectoryError: there are partitions, but no metadata to identify their topics.
    """
    controller_id = cluster.controller_id
    logs = cluster.nodes[controller_id].open_logs
    now_ms = cluster.clock.now_ms()
    config = _metadata_config(cluster.settings)
    log = logs.load_log(METADATA_TOPIC, 0, config=config, now_ms=now_ms)
    if log is None:
        _check_no_partitions(logs)
        log = logs.create_log(METADATA_TOPIC, 0, topic_id=METADATA_TOPIC_ID, config=config, now_ms=now_ms)
    files = logs.context.files
    bootstrap = formatted(files, bootstrap_records(feature_levels(cluster.release, cluster.options.features)), now_ms)
    epoch = next_epoch(files, log.epochs.latest)
    if log.log_end_offset:
        cluster.random.seed(f"{cluster.seed} {epoch}")  # another life: what the first one drew is on the disk
    state = Partition((controller_id,), (controller_id,), controller_id, leader_epoch=epoch)
    partition = ReplicatedPartition(METADATA_TOPIC, 0, METADATA_TOPIC_ID, state, cluster.clock)
    partition.logs[controller_id] = cluster.metadata_log = log
    machine = MetadataMachine(
        cluster.settings,
        new_uuid=cluster.new_uuid,
        below=cluster.random.randrange,
        next_offset=lambda: log.log_end_offset,
        bootstrap=bootstrap,
    )
    cluster.metadata_snapshots = MetadataSnapshots(log, cluster.settings, cluster.clock, lambda: machine.image)
    life = uuid_from(seeded(f"{cluster.seed} controller {epoch}"))
    cluster.quorum = Quorum(controller_id, logs.directory_id or UUID(int=0), life)
    if not log.log_end_offset:
        cluster.quorum.version = cluster.options.features.get(KRAFT_VERSION, 0)
    own = MetadataLog(partition, controller_id, files, cluster.metadata_snapshots.written, cluster.quorum)
    own.begin(now_ms)
    cluster.controller_log = own
    return Runtime(
        machine,
        MetadataCodec(lambda: machine.image.features.get(METADATA_VERSION, LATEST_METADATA_VERSION)),
        own,
        cluster.clock,
        lambda _runtime, effect: cluster.metadata_publisher.apply(effect),
        epoch=state.leader_epoch,
    )


def _metadata_config(settings: BrokerSettings) -> LogConfig:
    """The metadata log's own settings; what may go of it, its snapshots decide (KafkaMetadataLog.createInternalLog)."""
    return LogConfig(
        cleanup_policy=(),
        retention_ms=-1,
        max_message_bytes=2**31 - 1,
        segment_bytes=settings.int("metadata.log.segment.bytes"),
        segment_ms=settings.long("metadata.log.segment.ms"),
        internal_segment_bytes=settings.optional_int("internal.metadata.log.segment.bytes") or 0,
    )


def _check_no_partitions(logs: LogDir) -> None:
    """A directory without the cluster's metadata holds no partitions: else they would all be taken for strays."""
    logs.context.check()
    files = logs.context.files
    orphan = next((name for name in files.list() if partition_of(name) and is_log(files, name)), None)
    if orphan is not None:
        raise WrongDirectoryError(
            f"the data directory has partitions ({orphan}) but not {METADATA_TOPIC}-0, which knows what they are; "
            f"take the directory of a node that was broker and controller, or copy {METADATA_TOPIC}-0 into it"
        )


def listener_settings(cluster: "Cluster", node: Node) -> dict[str, str]:
    """A broker's listener settings as its server.properties would have them, for DescribeConfigs."""
    bound = node.bound.values()
    protocols = node.settings.string("listener.security.protocol.map")
    known = protocol_map(protocols)
    unknown = [f"{endpoint.name}:{endpoint.protocol}" for endpoint, _ in bound if endpoint.name not in known]
    found = {
        "broker.id": str(node.id),
        "listeners": ",".join(endpoint.as_listener(port) for endpoint, port in bound),
        "advertised.listeners": ",".join(endpoint.as_advertised(port) for endpoint, port in bound),
    }
    if unknown:
        found["listener.security.protocol.map"] = ",".join([protocols, *unknown])
    if cluster.controller is not None and node.id == cluster.controller_id and cluster.controller.bound:
        found["controller.listener.names"] = cluster.controller.opened.name
        found["listeners"] += f",{cluster.controller.as_listener}"
    if cluster.options.data_dir is not None:
        found["log.dirs"] = path_of(node)
    return found


def load_logs(cluster: "Cluster", node: Node) -> None:
    """Open the logs that a broker's directory has, each with its topic's settings; strays are put aside (core F.1)."""
    now_ms, logs = cluster.clock.now_ms(), node.open_logs
    logs.load_all(cluster.metadata_publisher.config_of, now_ms=now_ms)
    for log in logs:
        if log.topic != METADATA_TOPIC and _is_stray(cluster, node, log):
            _log.warning("log put aside: the metadata does not know it", broker=node.id, partition=log.directory)
            logs.make_stray(log.topic, log.partition)
    node.up = True


def _is_stray(cluster: "Cluster", node: Node, log: PartitionLog) -> bool:
    """Whether the topic was deleted, recreated or moved while the broker was away (LogManager.isStrayReplica)."""
    topic = cluster.image.topics.get(log.topic)
    state = None if topic is None else topic.partitions.get(log.partition)
    return topic is None or state is None or topic.id != log.topic_id or node.id not in state.replicas


def join(cluster: "Cluster", node: Node, *, same_life: bool = False) -> None:
    """A broker that is up joins the cluster: :func:`register`, then :func:`unfence`."""
    register(cluster, node, same_life=same_life)
    unfence(cluster, node)


def register(cluster: "Cluster", node: Node, *, same_life: bool = False) -> None:
    """A broker that is up is known to the cluster, fenced: it leads nothing yet.

    ``same_life``: it was never away, as far as the cluster knows, and leads what it led.
    """
    machine, logs = cluster.metadata.machine, node.open_logs
    topics = cluster.image.topics
    node.internal_counts = {name: len(topics[name].partitions) for name in INTERNAL_TOPICS if name in topics}
    known = cluster.image.brokers.get(node.id)
    node.incarnation_id = known.incarnation_id if same_life and known is not None else cluster.new_uuid()
    note_owner(cluster, node)
    who = Registration(
        node.id,
        node.incarnation_id,
        {
            name: BrokerListener(endpoint.host_for_clients, endpoint.port_for_clients(port), endpoint.protocol)
            for name, (endpoint, port) in node.bound.items()
        },
        directories=() if logs.directory_id is None else (logs.directory_id,),
        rack=node.rack,
        features=supported_features(cluster.release),
        clean=logs.was_clean,
    )
    cluster.metadata.submit(lambda _now_ms: machine.register_broker(who))
    node.epoch = cluster.image.brokers[node.id].epoch
    cluster.metadata.submit(lambda _now_ms: machine.broker_reported(node.id))


def unfence(cluster: "Cluster", node: Node) -> None:
    """A registered broker is ready to lead."""
    machine = cluster.metadata.machine
    cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
    node.meters = BrokerQuotas(node.settings)  # a restarted broker has measured no usage yet
    cluster.metadata_publisher.update_quotas(node)


def register_controller(cluster: "Cluster", *, same_life: bool = False) -> None:
    """The controller's process begins; metadata before 3.7 do not record that (``ControllerRegistrationManager``).

    ``same_life``: it has never ended, as far as the cluster knows.
    """
    quorum = cluster.quorum
    known = cluster.image.controllers.get(quorum.voter_id)
    if same_life and known is not None:
        quorum.incarnation_id = known.incarnation_id
    protocol = "PLAINTEXT" if cluster.controller is None else cluster.controller.opened.protocol
    who = Registration(
        quorum.voter_id,
        quorum.incarnation_id,
        {quorum.listener: BrokerListener(*quorum.address, protocol)},
        features=supported_features(cluster.release),
    )
    cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.register_controller(who))


def _amended(machine: MetadataMachine, broker_id: int, directory_id: UUID, _now_ms: int) -> MetadataOutcome:
    return machine.amend_broker(broker_id, (directory_id,))


def upgraded(cluster: "Cluster", before: int) -> None:
    """Nodes register what the metadata can keep now; ``before`` is the last level of ``metadata.version``."""
    register_controller(cluster)
    machine = cluster.metadata.machine
    if before < DIRECTORIES_LEVEL <= cluster.image.features.get(METADATA_VERSION, 0):
        for node in cluster.nodes.values():
            if node.up and node.id in cluster.image.brokers and node.open_logs.directory_id is not None:
                cluster.metadata.submit(partial(_amended, machine, node.id, node.open_logs.directory_id))


def create_topics(cluster: "Cluster", topics: Sequence[TopicOption]) -> None:
    """The topics of the command line, as far as they are not there yet."""
    wanted = [
        NewTopic(topic.name, -1 if topic.partitions is None else topic.partitions, configs=dict(topic.configs))
        for topic in topics
        if topic.name not in cluster.image.topics
    ]
    if wanted:
        cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.create_topics(wanted))


def create_users(cluster: "Cluster") -> None:
    """The SCRAM users of the command line, as far as they are not there yet."""
    wanted = [user for user in cluster.options.users if (user.name, user.mechanism) not in cluster.image.scram]
    if wanted:
        cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.remember(wanted))


def fence_the_absent(cluster: "Cluster") -> None:
    """Brokers that the metadata knows and that do not come are given up: theirs is an older cluster's directory."""
    machine = cluster.metadata.machine
    for broker_id in [each for each in cluster.image.brokers if each not in cluster.nodes]:
        cluster.metadata.submit(lambda _now_ms, absent=broker_id: machine.fence_broker(absent))  # type: ignore[misc]
