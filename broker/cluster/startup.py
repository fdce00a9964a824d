"""Builds the parts of a cluster at its start: data directories, metadata log, brokers, first topics and users."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import files_of, log_dir_paths, report_cut, report_left
from broker.cluster.directory_checks import check_metadata
from broker.cluster.emulation import (
    apply_producer_rules,
    apply_release_defaults,
    feature_levels,
    producer_rules_of,
)
from broker.cluster.maintenance import Maintenance
from broker.cluster.metadata_publisher import MetadataPublisher
from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.features import KRAFT_VERSION, METADATA_VERSION
from broker.coordination.metadata.image import METADATA_TOPIC, MIGRATING_DIRECTORY, NO_LEADER, Partition
from broker.coordination.metadata.machine import MetadataMachine, bootstrap_records
from broker.coordination.metadata.quorum import Quorum, QuorumController
from broker.coordination.metadata.topics import NewTopic
from broker.coordination.runtime import Runtime
from broker.handlers import APIS, CONTROLLER_APIS
from broker.logs import Logger
from broker.options import ServeOptions, TopicOption
from broker.partitions.share_partition.partitions import SharePartitions
from broker.replication.fsync import SyncThread
from broker.replication.metadata_log import (
    MetadataCodec,
    MetadataLog,
    begin_at_snapshot,
    check_beginning,
    copy_snapshot,
    formatted,
    next_epoch,
)
from broker.replication.metadata_snapshots import MetadataSnapshots
from broker.replication.partition import ReplicatedPartition
from broker.request import read_only
from broker.request.fetch_sessions import SessionCache
from broker.request.node import Node
from broker.request.share_state import SharePersister
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from broker.time.rng import seeded, uuid_from
from protocol.errors import KafkaError
from protocol.log_records.metadata import LATEST_METADATA_VERSION
from storage.checkpoints import META_PROPERTIES
from storage.files import DiskFiles, Files, MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir, WrongDirectoryError

_log = Logger(__name__)
METADATA_TOPIC_ID = UUID(int=1)  # Kafka's Uuid.METADATA_TOPIC_ID


def new_node(cluster: ClusterBase, broker_id: int, rack: str | None = None, *, controller: bool = False) -> Node:
    """Create a broker that is not registered yet: no directory is open, no listener is bound.

    ``controller``: create a controller that is a node of its own.

    Raises:
        EndpointError: its ports would be out of range.
    """
    settings = {**cluster.options.settings, **(read_only.SETTINGS if cluster.options.read_only else {})}
    rack = rack_of(cluster.options, broker_id) if rack is None and not controller else rack
    if rack is not None:
        settings["broker.rack"] = rack
    broker_settings = BrokerSettings(broker_id, settings)
    apply_release_defaults(cluster.release, broker_settings)

    def new_sessions() -> SessionCache:
        return SessionCache(broker_settings.int("max.incremental.fetch.session.cache.slots"), cluster.random)

    def new_shares() -> SharePartitions:
        return SharePartitions(cluster, broker_id, broker_settings, SharePersister(cluster))

    node = Node(broker_id, broker_settings, cluster.partitions, new_sessions, new_shares)
    node.is_controller = controller
    node.log_dir_paths = log_dir_paths(cluster.options, broker_id, broker_settings, controller=controller)
    node.endpoints = endpoints_of(cluster.options, broker_id, controller=controller)
    cluster.new_server(node, CONTROLLER_APIS if controller else APIS)
    node.settings.on_change(partial(_follow_settings, cluster, node))
    return node


def open_node(cluster: ClusterBase, broker_id: int, maintenance: Maintenance) -> Node:
    """Open and lock a broker's log directories, creating the broker if needed; no log is loaded yet.

    Raises:
        DirectoryLockedError, WrongDirectoryError: a directory belongs to another process or cluster.
    """
    node = cluster.nodes.get(broker_id)
    if node is None:
        node = cluster.nodes[broker_id] = new_node(cluster, broker_id)
    open_directories(cluster, node, maintenance, begins=cluster.has_metadata(node))
    return node


def open_controllers(cluster: ClusterBase, maintenance: Maintenance) -> None:
    """Open and lock the directories of controllers that are nodes of their own; the first formatted one has the id.

    Raises: as :func:`open_node`.
    """
    for controller_id in list(cluster.controllers) or cluster.options.controller_ids:
        if controller_id not in cluster.controllers:
            cluster.controllers[controller_id] = new_node(cluster, controller_id, controller=True)
    nodes = list(cluster.controllers.values())
    for node in nodes:
        node.files = node.files or files_of(cluster.options, node, cluster.descriptors)
    nodes.sort(key=lambda node: not node.files[0].exists(META_PROPERTIES))
    for index, node in enumerate(nodes):
        open_directories(cluster, node, maintenance, begins=index == 0)
        node.up = True


def open_directories(cluster: ClusterBase, node: Node, maintenance: Maintenance, *, begins: bool = False) -> None:
    """Open and lock a node's log directories. ``begins``: its first one decides the cluster's id.

    Raises: as :func:`open_node`.
    """
    if not node.files:
        node.files = files_of(cluster.options, node, cluster.descriptors)
    for files in node.files:
        first = begins and not node.log_dirs
        node.log_dirs += (_open_log_dir(cluster, node, files, maintenance, begins=first),)
        if first:
            cluster.cluster_id = node.metadata_dir.cluster_id


def _open_log_dir(cluster: ClusterBase, node: Node, files: Files, maintenance: Maintenance, *, begins: bool) -> LogDir:
    if isinstance(files, MemoryFiles):
        files.on_freed = cluster.heap.freed
    context = LogContext(
        files,
        sync=node.settings.string("understudy.sync"),
        jitter=cluster.random.randrange,
        new_uuid=cluster.new_uuid,
        producer_id_expiration_ms=node.settings.int("producer.id.expiration.ms"),
        decompressed_limit=node.settings.long("understudy.max.decompressed.batch.bytes"),
        producer_rules=producer_rules_of(cluster.release, node.settings),
        on_left=partial(report_left, files),
        on_cut=partial(report_cut, node),
        flush_at=maintenance.flush_at,
        sync_later=SyncThread(files) if isinstance(files, DiskFiles) else None,
    )
    has_identity = files.exists(META_PROPERTIES)
    log_dir = LogDir.open(
        context,
        node_id=node.id,
        cluster_id="" if has_identity and begins else cluster.cluster_id,
        now_ms=cluster.clock.now_ms(),
    )
    context.on_failure = partial(directory_failed, cluster, node, log_dir)
    return log_dir


def directory_failed(cluster: ClusterBase, node: Node, log_dir: LogDir) -> None:
    """Handle a log directory that went offline: its partitions get KAFKA_STORAGE_ERROR, other replicas take over.

    Leaders move in a later turn of the event loop, since the caller is in the middle of an operation. Kafka itself
    halts a broker whose only directory failed. Nothing moves if the metadata log is in the same directory.
    """
    clock = cluster.clock
    clock.call_at(clock.now_ms(), partial(_move_leaders, cluster, node, log_dir))


def _move_leaders(cluster: ClusterBase, node: Node, log_dir: LogDir) -> None:
    if not node.up or log_dir not in node.log_dirs:
        return
    path = node.log_dir_paths[node.log_dirs.index(log_dir)]
    _log.error("log directory is offline", broker=node.id, directory=path, error=str(log_dir.context.offline))
    if node.is_controller:
        return
    machine, failed = cluster.metadata.machine, log_dir.directory_id or MIGRATING_DIRECTORY
    try:
        cluster.metadata.submit(lambda _now_ms: machine.directory_failed(node.id, failed))
    except KafkaError as error:
        _log.error("leaders cannot move", broker=node.id, error=str(error))


def endpoints_of(options: ServeOptions, broker_id: int, *, controller: bool = False) -> tuple[Endpoint, ...]:
    """Return a node's listeners; for an added broker, the first broker's with ports counted up.

    Raises:
        EndpointError: the ports would be out of range.
    """
    if controller:
        ids = options.controller_ids
        index = ids.index(broker_id) if broker_id in ids else max(len(ids), broker_id - ids[0])
        return (options.controllers[0].of_broker(index),)
    if broker_id in options.broker_ids:
        return options.listeners[options.broker_ids.index(broker_id)]
    index = max(broker_id - options.broker_ids[0], options.brokers)  # skips the ports of the first brokers
    return tuple(endpoint.of_broker(index) for endpoint in options.listeners[0])


def rack_of(options: ServeOptions, broker_id: int) -> str | None:
    """Return the rack of a broker in the options; a broker that is added has none unless it is given one."""
    if not options.racks or broker_id not in options.broker_ids:
        return None
    return options.racks[options.broker_ids.index(broker_id) % len(options.racks)]


def _follow_settings(cluster: ClusterBase, node: Node, _changed: frozenset[str]) -> None:
    """Apply the broker's current settings for producer expiration and verification (transactions B.10)."""
    for log_dir in node.log_dirs:
        log_dir.context.producer_id_expiration_ms = node.settings.int("producer.id.expiration.ms")
    apply_producer_rules(cluster.release, node)


def open_metadata(cluster: ClusterBase, publisher: MetadataPublisher) -> MetadataController:
    """Open the cluster's metadata, replayed from the log in a controller's directory or newly begun.

    The controller whose log is the longest leads; of equal ones the first.

    Raises:
        WrongDirectoryError: there are partitions, but no metadata to identify their topics, or only the end of it.
    """
    now_ms = cluster.clock.now_ms()
    nodes = cluster.controllers or {cluster.controller_id: cluster.nodes[cluster.controller_id]}
    cluster.quorum = Quorum({}, list(nodes))
    state = Partition(tuple(nodes), tuple(nodes), NO_LEADER)
    cluster.metadata_partition = partition = ReplicatedPartition(
        METADATA_TOPIC, 0, METADATA_TOPIC_ID, state, cluster.clock, cluster.quorum.misses
    )
    machine = MetadataMachine(
        cluster.settings,
        new_uuid=cluster.new_uuid,
        below=cluster.random.randrange,
        next_offset=lambda: cluster.metadata_log.log_end_offset,
        bootstrap=bootstrap_records(feature_levels(cluster.release, cluster.options.features)),
    )
    cluster.controller_log = MetadataLog(partition, cluster.quorum, {}, partial(_metadata_written, cluster))
    logs = {node.id: open_metadata_log(cluster, node, machine) for node in nodes.values()}
    trees = cluster.controller_log.files
    epoch = max(next_epoch(trees[each], log.epochs.latest) for each, log in logs.items())
    leader_id = max(logs, key=lambda each: (logs[each].epochs.latest, logs[each].log_end_offset))
    if logs[leader_id].log_end_offset:
        cluster.random.seed(f"{cluster.seed} {epoch}")  # the ids drawn before the restart are on disk
    else:
        cluster.quorum.version = cluster.options.features.get(KRAFT_VERSION, 0)
    for node_id in (leader_id, *trees):
        machine.bootstrap = formatted(trees[node_id], machine.bootstrap, now_ms)
        copy_snapshot(trees[leader_id], trees[node_id])
    for controller in cluster.quorum.controllers.values():
        name = "controller" if controller.id == leader_id else f"controller {controller.id}"
        controller.incarnation_id = uuid_from(seeded(f"{cluster.seed} {name} {epoch}"))
    cluster.quorum.leader_id = leader_id
    partition.logs.update(logs)
    partition.apply(replace(partition.state, leader=leader_id, leader_epoch=epoch))
    cluster.controller_log.begin(now_ms)
    return Runtime(
        machine,
        MetadataCodec(lambda: machine.image.features.get(METADATA_VERSION, LATEST_METADATA_VERSION)),
        cluster.controller_log,
        cluster.clock,
        lambda _runtime, effect: publisher.apply(effect),
        epoch=epoch,
    )


def open_metadata_log(cluster: ClusterBase, node: Node, machine: MetadataMachine) -> PartitionLog:
    """Open the metadata log in the directory of a controller, and add the controller to the quorum.

    Raises: as :func:`open_metadata`.
    """
    logs, config, now_ms = node.metadata_dir, _metadata_config(cluster.settings), cluster.clock.now_ms()
    log = logs.load_log(METADATA_TOPIC, 0, config=config, now_ms=now_ms)
    if log is None:
        logs.context.check()
        check_metadata(node.files)
        log = logs.create_log(METADATA_TOPIC, 0, topic_id=METADATA_TOPIC_ID, config=config, now_ms=now_ms)
    files = logs.context.files
    if begin_at_snapshot(log, files, now_ms):
        text = "the metadata log ends before its newest snapshot, and restarts there"
        _log.warning(text, offset=log.log_end_offset)
    check_beginning(log, files)
    cluster.controller_log.files[node.id] = files
    cluster.metadata_snapshots[node.id] = MetadataSnapshots(log, cluster.settings, cluster.clock, lambda: machine.image)
    controller = cluster.quorum.controllers.setdefault(node.id, QuorumController(node.id))
    controller.directory_id = logs.directory_id or UUID(int=0)
    return log


def _metadata_written(cluster: ClusterBase, size_bytes: int) -> None:
    for snapshots in cluster.metadata_snapshots.values():
        snapshots.written(size_bytes)


def _metadata_config(settings: BrokerSettings) -> LogConfig:
    """Return the metadata log's config: snapshots decide what is deleted (KafkaRaftLog.createLog)."""
    return LogConfig(
        cleanup_policy=(),
        retention_ms=-1,
        max_message_bytes=2**31 - 1,  # no limit: a batch of the controller is never refused (KafkaRaftLog)
        segment_bytes=settings.int("metadata.log.segment.bytes"),
        segment_ms=settings.long("metadata.log.segment.ms"),
        internal_segment_bytes=settings.optional_int("internal.metadata.log.segment.bytes") or 0,
    )


def load_logs(cluster: ClusterBase, node: Node, publisher: MetadataPublisher) -> None:
    """Load the logs in a broker's directories, each with its topic's config; rename strays (core F.1).

    Raises:
        WrongDirectoryError: two directories have a log of the same partition, or one has records only for Kafka.
    """
    _check_all_named(cluster, node)
    now_ms = cluster.clock.now_ms()
    for log_dir in node.log_dirs:
        log_dir.load_all(publisher.config_of, now_ms=now_ms)
        for log in (*log_dir, *log_dir.futures.values()):
            if log.topic != METADATA_TOPIC and _is_stray(cluster, node, log):
                _log.warning("stray log renamed: it is not in the metadata", broker=node.id, partition=log.directory)
                log_dir.make_stray(log)
    keys = Counter(key for log_dir in node.log_dirs for key in log_dir.logs)
    if twice := next((key for key, count in keys.items() if count > 1), None):
        raise WrongDirectoryError(f"two log directories of broker {node.id} have a log of {twice[0]}-{twice[1]}")
    node.up = True


def _check_all_named(cluster: ClusterBase, node: Node) -> None:
    """Refuse fewer log directories than the broker had if a missing one has replicas: they would begin empty."""
    registration = cluster.image.brokers.get(node.id)
    if registration is None or len(registration.directories) <= len(node.log_dirs):
        return
    missing = set(registration.directories) - {log_dir.directory_id for log_dir in node.log_dirs}
    for topic, index, state in cluster.image.all_partitions():
        if state.directory_of(node.id) in missing:
            raise WrongDirectoryError(
                f"broker {node.id} has replicas, such as {topic.name}-{index}, in a log directory that is not named; "
                "name all of them in --data-dir, or move the replicas before one is left out"
            )


def _is_stray(cluster: ClusterBase, node: Node, log: PartitionLog) -> bool:
    """Whether the topic was deleted, recreated or moved while the broker was down (LogManager.isStrayReplica)."""
    topic = cluster.image.topics.get(log.topic)
    state = None if topic is None else topic.partitions.get(log.partition)
    return topic is None or state is None or topic.id != log.topic_id or node.id not in state.replicas


def create_topics(cluster: ClusterBase, topics: Sequence[TopicOption]) -> None:
    """Create the topics of the command line that do not exist yet."""
    wanted = [
        NewTopic(topic.name, -1 if topic.partitions is None else topic.partitions, configs=dict(topic.configs))
        for topic in topics
        if topic.name not in cluster.image.topics
    ]
    if wanted:
        cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.create_topics(wanted))


def create_users(cluster: ClusterBase) -> None:
    """Create the SCRAM users of the command line that do not exist yet."""
    wanted = [user for user in cluster.options.users if (user.name, user.mechanism) not in cluster.image.scram]
    if wanted:
        cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.remember(wanted))
