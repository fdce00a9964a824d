"""How the parts of a cluster come to be: data directories, the metadata log, brokers that register, first topics."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.image import INTERNAL_TOPICS, METADATA_TOPIC, BrokerListener, Partition
from broker.coordination.metadata.machine import MetadataMachine, bootstrap_records
from broker.coordination.metadata.topics import NewTopic
from broker.coordination.outcome import Notify
from broker.coordination.runtime import Runtime
from broker.endpoints import Endpoint, protocol_map
from broker.log_dirs import path_of
from broker.metadata_log import MetadataLog, formatted, next_epoch
from broker.metadata_snapshots import MetadataSnapshots
from broker.middleware import read_only
from broker.node import Node
from broker.options import ServeOptions, TopicOption
from broker.partition import ReplicatedPartition
from broker.playing import keep_rules, keep_settings, levels_of, rules_of
from broker.quotas import BrokerQuotas
from broker.settings import BrokerSettings
from broker.syncing import Syncing
from protocol.log_records import metadata as metadata_codec
from storage.checkpoints import META_PROPERTIES
from storage.config import LogConfig
from storage.environment import LogEnvironment
from storage.files import DiskFiles, Files, MemoryFiles
from storage.log_dir import LogDir, WrongDirectoryError, partition_of
from storage.overlay_files import OverlayFiles
from storage.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.cluster import Cluster

_log = structlog.get_logger(__name__)
CONTROLLER = 1
"""The broker whose directory holds the metadata log."""
METADATA_TOPIC_ID = UUID(int=1)  # Kafka's Uuid.METADATA_TOPIC_ID


def new_node(cluster: "Cluster", broker_id: int, rack: str | None = None) -> Node:
    """A broker that nobody has heard of: no directory is open, no listener is bound.

    Raises:
        EndpointError: there are no ports for it.
    """
    settings = {**cluster.options.settings, **(read_only.SETTINGS if cluster.options.read_only else {})}
    if rack is not None:
        settings["broker.rack"] = rack
    node = Node(broker_id, BrokerSettings(broker_id, settings), cluster.partitions)
    node.endpoints = endpoints_of(cluster.options, broker_id)
    keep_settings(cluster.release, node.settings)
    node.settings.on_change(partial(_follow_settings, cluster, node))
    return node


def open_node(cluster: "Cluster", broker_id: int) -> Node:
    """A broker with its data directory open and locked; no log is loaded yet.

    Raises:
        DirectoryLockedError, WrongDirectoryError: the directory is somebody else's.
    """
    node = cluster.nodes.get(broker_id)
    if node is None:
        node = cluster.nodes[broker_id] = new_node(cluster, broker_id)
    if node.files is None:
        node.files = _files(cluster, broker_id)
    environment = LogEnvironment(
        node.files,
        sync=node.settings.string("understudy.sync"),
        jitter=cluster.random.randrange,
        new_uuid=cluster.new_uuid,
        producer_id_expiration_ms=node.settings.int("producer.id.expiration.ms"),
        producer_rules=rules_of(cluster.release, node.settings),
        on_failure=partial(cluster.lifecycle.directory_failed, node),
        flush_at=cluster.upkeep.flush_at,
        sync_later=Syncing(node.files) if isinstance(node.files, DiskFiles) else None,
    )
    known = node.files.exists(META_PROPERTIES)
    node.logs = LogDir.open(
        environment,
        node_id=broker_id,
        cluster_id="" if known and broker_id == 1 else cluster.cluster_id,
        now_ms=cluster.clock.now_ms(),
    )
    if broker_id == 1:
        cluster.cluster_id = node.logs.cluster_id
    return node


def endpoints_of(options: ServeOptions, broker_id: int) -> tuple[Endpoint, ...]:
    """The listeners of a broker; of one beyond those of the command line, the first one's with ports counted up.

    Raises:
        EndpointError: there are no such ports.
    """
    if broker_id <= len(options.listeners):
        return options.listeners[broker_id - 1]
    return tuple(endpoint.of_broker(broker_id - 1) for endpoint in options.listeners[0])


def _follow_settings(cluster: "Cluster", node: Node, _changed: frozenset[str]) -> None:
    """Producers are remembered and verified as the broker's settings say now (transactions B.10)."""
    if node.logs is None:
        return
    node.logs.environment.producer_id_expiration_ms = node.settings.int("producer.id.expiration.ms")
    keep_rules(cluster, node)


def _files(cluster: "Cluster", broker_id: int) -> Files:
    directory = cluster.options.data_dir
    if directory is None:
        return MemoryFiles()
    own = data_root(cluster.options, broker_id)
    _check_shape(directory, cluster.options.brokers)
    if cluster.options.read_only:
        if not (own / META_PROPERTIES).exists():
            raise WrongDirectoryError(f"{own} is no data directory to be read: it has no {META_PROPERTIES}")
        return OverlayFiles(DiskFiles(own, read_only=True))
    own.mkdir(parents=True, exist_ok=True)
    return DiskFiles(own)


def data_root(options: ServeOptions, broker_id: int) -> Path:
    """A broker's directory: that of the command line, or one in it where there are several (contract 2)."""
    assert options.data_dir is not None
    return options.data_dir if options.brokers == 1 else options.data_dir / f"broker-{broker_id}"


def _check_shape(directory: Path, brokers: int) -> None:
    """The directory of one broker is not opened as that of several, and the other way round: it would look empty."""
    of_one, of_many = (directory / META_PROPERTIES).exists(), (directory / "broker-1" / META_PROPERTIES).exists()
    if of_one and brokers > 1:
        raise WrongDirectoryError(f"{directory} is the data directory of one broker, not of {brokers}")
    if of_many and not of_one and brokers == 1:
        raise WrongDirectoryError(f"{directory} is the data directory of several brokers; say --brokers as before")


def open_metadata(cluster: "Cluster") -> "Runtime[MetadataMachine]":
    """The cluster's metadata, replayed from its log on broker 1, or begun.

    Raises:
        WrongDirectoryError: there are partitions, and nothing that says whose they are.
    """
    logs = cluster.nodes[1].logs
    assert logs is not None
    now_ms = cluster.clock.now_ms()
    config = _metadata_config(cluster.settings)
    log = logs.load_log(METADATA_TOPIC, 0, config=config, now_ms=now_ms)
    if log is None:
        _check_no_partitions(logs)
        log = logs.create_log(METADATA_TOPIC, 0, topic_id=METADATA_TOPIC_ID, config=config, now_ms=now_ms)
    files = logs.environment.files
    bootstrap = formatted(files, bootstrap_records(levels_of(cluster.release, cluster.options.features)), now_ms)
    epoch = next_epoch(files, log.latest_epoch)
    if log.log_end_offset:
        cluster.random.seed(f"{cluster.seed} {epoch}")  # another life: what the first one drew is on the disk
    state = Partition((1,), (1,), 1, leader_epoch=epoch)
    partition = ReplicatedPartition(METADATA_TOPIC, 0, METADATA_TOPIC_ID, state, cluster.clock)
    partition.logs[1] = cluster.metadata_log = log
    codec = metadata_codec.MetadataCodec()

    def noticed(_runtime: object, effect: object) -> None:
        if isinstance(effect, Notify):
            cluster.hosting.notice(effect)

    machine = MetadataMachine(
        cluster.settings,
        new_uuid=cluster.new_uuid,
        below=cluster.random.randrange,
        next_offset=lambda: log.log_end_offset,
        bootstrap=bootstrap,
    )
    cluster.metadata_snapshots = MetadataSnapshots(log, cluster.settings, cluster.clock, lambda: machine.image)
    own = MetadataLog(partition, 1, files, cluster.metadata_snapshots.written)
    own.begin(now_ms)
    return Runtime(machine, codec, own, cluster.clock, noticed, epoch=state.leader_epoch)


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
    logs.environment.check()
    orphan = next((name for name in logs.environment.files.list() if partition_of(name)), None)
    if orphan is not None:
        raise WrongDirectoryError(
            f"the data directory has partitions ({orphan}) but not {METADATA_TOPIC}-0, which knows what they are; "
            f"take the directory of a node that was broker and controller, or copy {METADATA_TOPIC}-0 into it"
        )


def places(cluster: "Cluster", node: Node) -> dict[str, str]:
    """Where a broker is, as its own server.properties would say: what DescribeConfigs tells of a real one."""
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
    if cluster.options.data_dir is not None:
        found["log.dirs"] = path_of(node)
    return found


def load_logs(cluster: "Cluster", node: Node) -> None:
    """Open the logs that a broker's directory has, each with its topic's settings; strays are put aside (core F.1)."""
    assert node.logs is not None
    now_ms = cluster.clock.now_ms()
    node.logs.load_all(cluster.hosting.config_of, now_ms=now_ms)
    for log in node.logs:
        if log.topic != METADATA_TOPIC and _is_stray(cluster, node, log):
            _log.warning("log put aside: the metadata does not know it", broker=node.id, partition=log.directory)
            node.logs.make_stray(log.topic, log.partition, now_ms=now_ms)
    node.up = True


def _is_stray(cluster: "Cluster", node: Node, log: PartitionLog) -> bool:
    """Whether the topic was deleted, or made anew, or moved, while the broker was away (LogManager.isStrayReplica)."""
    topic = cluster.image.topics.get(log.topic)
    state = None if topic is None else topic.partitions.get(log.partition)
    return topic is None or state is None or topic.id != log.topic_id or node.id not in state.replicas


def register(cluster: "Cluster", node: Node, *, same_life: bool = False) -> None:
    """A broker that is up joins the cluster: fenced, then ready to lead.

    ``same_life``: it was never away, as far as the cluster knows, and leads what it led.
    """
    assert node.logs is not None
    machine, directory = cluster.metadata.machine, node.logs.directory_id
    topics = cluster.image.topics
    node.internal_counts = {name: len(topics[name].partitions) for name in INTERNAL_TOPICS if name in topics}
    known = cluster.image.brokers.get(node.id)
    node.incarnation_id = known.incarnation_id if same_life and known is not None else cluster.new_uuid()
    who = Registration(
        node.id,
        node.incarnation_id,
        {
            name: BrokerListener(endpoint.told_host, endpoint.told_port(port), endpoint.protocol)
            for name, (endpoint, port) in node.bound.items()
        },
        directories=() if directory is None else (directory,),
        rack=node.rack,
        clean=node.logs.was_clean,
    )
    cluster.metadata.submit(lambda _now_ms: machine.register_broker(who))
    node.epoch = cluster.image.brokers[node.id].epoch
    cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
    node.meters = BrokerQuotas(node.settings)  # another life: nobody has used up anything
    cluster.hosting.limit(node)


def create_topics(cluster: "Cluster", topics: Sequence[TopicOption]) -> None:
    """The topics of the command line, as far as they are not there yet."""
    wanted = [
        NewTopic(topic.name, -1 if topic.partitions is None else topic.partitions, configs=dict(topic.configs))
        for topic in topics
        if topic.name not in cluster.image.topics
    ]
    if wanted:
        cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.create_topics(wanted))


def fence_the_absent(cluster: "Cluster") -> None:
    """Brokers that the metadata knows and that do not come are given up: theirs is an older cluster's directory."""
    machine = cluster.metadata.machine
    for broker_id in [each for each in cluster.image.brokers if each not in cluster.nodes]:
        cluster.metadata.submit(lambda _now_ms, absent=broker_id: machine.fence_broker(absent))  # type: ignore[misc]


def wipe(node: Node) -> None:
    """Take everything out of a broker's data directory; a directory that is only read is as it was."""
    if node.files is None or isinstance(node.files, (MemoryFiles, OverlayFiles)):
        node.files = None  # what is below an overlay is what the cluster was started on
        return
    for name in node.files.list():
        if node.files.is_directory(name):
            node.files.remove_tree(name)
        else:
            node.files.remove(name)
