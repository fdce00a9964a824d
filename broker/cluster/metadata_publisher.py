"""Applies metadata changes to the brokers: creates and deletes logs, changes leaders, loads and unloads coordinators.

The effects of the metadata machine become logs on disk and coordinators in memory here.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never
from uuid import UUID

from broker.cluster import isr
from broker.cluster.base import ClusterBase
from broker.cluster.maintenance import Maintenance
from broker.cluster.placement import place_new_logs
from broker.cluster.registration import follow_quotas, report, upgraded
from broker.coordination.metadata.effects import (
    BrokerChanged,
    ConfigChanged,
    KraftVersionChanged,
    MetadataChange,
    MetadataUpgraded,
    PartitionChanged,
    QuotasChanged,
    ShareGroupsDisabled,
    TopicDeleted,
)
from broker.coordination.metadata.image import NO_LEADER
from broker.coordination.runtime import Runtime
from broker.logs import Logger
from broker.partitions.share_partition.partitions import led_by
from broker.replication.partition import ReplicatedPartition
from broker.request.node import Node
from broker.settings import topics
from broker.settings.model import ConfigResourceType
from broker.settings.values import shown
from protocol.errors import KafkaError
from protocol.pauses import pause
from storage.log import tiering
from storage.log.config import LogConfig
from storage.log_dir import LogDir

_log = Logger(__name__)
Loader = Callable[[ClusterBase, Node, ReplicatedPartition], Runtime[Any, Any]]


class MetadataPublisher:
    """Keeps the brokers' partitions, configs and coordinators in step with the metadata image.

    ``loaders`` create the coordinator of a partition: internal topic -> function.
    """

    def __init__(self, cluster: ClusterBase, loaders: dict[str, Loader], maintenance: Maintenance) -> None:
        self._cluster, self._loaders, self._maintenance = cluster, loaders, maintenance
        self.loading = False
        """Set while brokers that start together register: none leads or follows before the metadata has all of them."""
        self._configs: dict[str, LogConfig] = {}
        self._default: LogConfig | None = None
        """The config of all topics without values of their own; ``None`` until one is needed."""
        self._assignments: dict[int, dict[tuple[UUID, int], UUID]] = {}
        """Broker id -> where it has placed replicas, which the controller does not know yet."""

    def clear(self) -> None:
        """Drop cached topic configs, for a reset of the cluster."""
        self._assignments.clear()
        self._configs.clear()
        self._default = None

    def apply(self, change: MetadataChange) -> None:
        """Apply a change of the metadata to the brokers."""
        if self.loading and isinstance(change, PartitionChanged | BrokerChanged):
            return
        match change:
            case PartitionChanged():
                self.sync_partition(change.topic, change.index, loading_ms=change.loading_ms)
                isr.expand(self._cluster, change.topic, change.index)
            case BrokerChanged():
                isr.expand_all(self._cluster, change.broker_id)
            case TopicDeleted():
                self.remove_topic(change)
            case ConfigChanged():
                self.reconfigure(change.resource_type, change.name)
            case QuotasChanged():
                for node in self._cluster.nodes.values():
                    follow_quotas(self._cluster, node)
            case KraftVersionChanged() | MetadataUpgraded() | ShareGroupsDisabled():
                self._follow_feature(change)
            case _:
                assert_never(change)

    def _follow_feature(self, change: KraftVersionChanged | MetadataUpgraded | ShareGroupsDisabled) -> None:
        match change:
            case KraftVersionChanged():
                self._cluster.quorum.version = change.level
                self._cluster.controller_log.record_voters(self._cluster.clock.now_ms())
            case MetadataUpgraded():
                upgraded(self._cluster, change.before)
            case ShareGroupsDisabled():
                for node in self._cluster.nodes.values():
                    led_by(node).clear()
            case _:
                assert_never(change)

    # --- partitions --------------------------------------------------------------------------------------------------

    def sync_partition(self, topic: str, index: int, *, loading_ms: int = 0) -> None:
        """Apply one partition's registration. ``loading_ms``: see :meth:`load_coordinator`."""
        cluster = self._cluster
        topic_image = cluster.image.topic(topic)
        state = None if topic_image is None else topic_image.partitions.get(index)
        if topic_image is None or state is None:
            return
        partition = cluster.partitions.get((topic, index))
        if partition is None:
            partition = ReplicatedPartition(topic, index, topic_image.id, state, cluster.clock, cluster.hangs)
            cluster.partitions[topic, index] = partition
            cluster.journal.add_topic(topic_image.id, topic)
        config = self.config_of(topic)
        partition.min_isr = config.min_insync_replicas
        partition.apply(state)  # before logs are added, so that none is truncated to an earlier leader's
        for broker_id in state.replicas:
            if broker_id not in partition.logs:
                self._open(partition, cluster.nodes.get(broker_id), config)
        for broker_id in [each for each in partition.logs if each not in state.replicas]:
            self._drop(partition, broker_id)
        partition.replicate()
        if topic in self._loaders:
            self.load_coordinator(partition, loading_ms)

    def _open(self, partition: ReplicatedPartition, node: Node | None, config: LogConfig) -> None:
        if node is None or not node.up or not node.log_dirs:
            return
        try:
            log_dir = self._log_dir_for(partition, node)
            log = log_dir.create_log(
                partition.topic,
                partition.index,
                topic_id=partition.topic_id,
                config=config,
                now_ms=self._cluster.clock.now_ms(),
            )
        except KafkaError as error:
            _log.error("log cannot be created", broker=node.id, partition=partition.name, error=str(error))
            return
        partition.host(node.id, log)
        if log_dir.directory_id not in (None, partition.state.directory_of(node.id)):
            self._assign_later(node, partition.topic_id, partition.index, log_dir.directory_id)

    def _log_dir_for(self, partition: ReplicatedPartition, node: Node) -> LogDir:
        """Return the log directory that has a partition's log, or else the one in which to create it (core F.1).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: all are offline.
        """
        key = (partition.topic, partition.index)
        if (log_dir := node.log_dir_of(*key)) is not None:
            return log_dir
        if key not in node.preferred_log_dirs:
            place_new_logs(self._cluster.image, node)
        return node.preferred_log_dirs.pop(key)

    def _assign_later(self, node: Node, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """Report a replica's directory to the controller in a later turn of the loop, all together (KIP-858)."""
        waiting = self._assignments.setdefault(node.id, {})
        if not waiting:
            clock = self._cluster.clock
            clock.call_at(clock.now_ms(), partial(self._assign, node))
        waiting[topic_id, index] = directory_id

    def _assign(self, node: Node) -> None:
        assignments = self._assignments.pop(node.id, {})
        if node.up and assignments:
            try:
                self._cluster.moves.assign(node, assignments)
            except KafkaError as error:
                _log.error("log directories cannot be assigned", broker=node.id, error=str(error))

    def _drop(self, partition: ReplicatedPartition, broker_id: int) -> None:
        partition.drop(broker_id)
        node = self._cluster.nodes[broker_id]
        delay_ms, now_ms = node.settings.int("log.segment.delete.delay.ms"), self._cluster.clock.now_ms()
        for log_dir in node.log_dirs:
            log_dir.delete_future(partition.topic, partition.index, now_ms=now_ms, delay_ms=delay_ms)
            if log_dir.delete_log(partition.topic, partition.index, now_ms=now_ms, delay_ms=delay_ms):
                self._maintenance.forget(log_dir, partition.topic, partition.index)

    def remove_topic(self, topic: TopicDeleted) -> None:
        """Delete a topic's logs, fail the fetches that wait on it, and let groups delete its offsets."""
        self._configs.pop(topic.name, None)
        for index in topic.partitions:
            pause()
            partition = self._cluster.partitions.pop((topic.name, index), None)
            if partition is None:
                continue
            log = partition.logs.get(partition.state.leader)
            self._cluster.deleted_partitions.note(partition, 0 if log is None else log.high_watermark)
            for broker_id in list(partition.logs):
                self._drop(partition, broker_id)
            if topic.name in self._loaders:
                self._resign(topic.name, index, keep=NO_LEADER)
            partition.deleted()
        for node in self._cluster.nodes.values():
            for group in node.coordinators.groups.values():
                group.submit(lambda now_ms, m=group.machine: m.topic_deleted(topic.name, topic.topic_id, now_ms))  # type: ignore[misc]
            for share in node.coordinators.share_states.values():
                share.submit(lambda now_ms, m=share.machine: m.topics_deleted([topic.topic_id], now_ms))  # type: ignore[misc]

    # --- settings ----------------------------------------------------------------------------------------------------

    def config_of(self, topic: str) -> LogConfig:
        """Return a topic's effective config: its own values over the broker's defaults (core C.4.6)."""
        config = self._configs.get(topic)
        if config is None:
            overrides = self._cluster.image.config(ConfigResourceType.TOPIC, topic)
            config = self._configs[topic] = self._effective(overrides) if overrides else self._default_config()
        return config

    def _default_config(self) -> LogConfig:
        """Return the config that all topics without values of their own share."""
        if self._default is None:
            self._default = self._effective({})
        return self._default

    @property
    def _has_tiers(self) -> bool:
        """Whether topics may have a remote tier; without that, one that is in the directory is left as it is."""
        return self._cluster.settings.boolean("remote.log.storage.system.enable")

    def _effective(self, overrides: Mapping[str, str]) -> LogConfig:
        effective = topics.effective(overrides, self._cluster.settings)
        if not self._has_tiers:
            effective["remote.storage.enable"] = False
        return LogConfig.from_settings({key: shown(value) for key, value in effective.items()})

    def reconfigure(self, resource_type: int, name: str) -> None:
        """Apply changed configs of a resource to logs and brokers immediately (core C.4.5)."""
        image = self._cluster.image
        if resource_type == ConfigResourceType.TOPIC:
            names = [name] if name in image.topics else []
        elif resource_type == ConfigResourceType.BROKER:
            shared = image.config(ConfigResourceType.BROKER, "")
            for node in self._cluster.nodes.values():
                node.settings.set_dynamic(shared, image.config(ConfigResourceType.BROKER, str(node.id)))
                self._cluster.servers[node].reload_tls()
                if node.id in image.brokers and node.up:
                    report(self._cluster, node)
                    self._cluster.moves.resume(node)
            self._default = None
            names = list(image.topics)
        else:
            return
        for topic in names:
            self._configs.pop(topic, None)
            config = self.config_of(topic)
            for index in image.topics[topic].partitions:
                partition = self._cluster.partitions.get((topic, index))
                if partition is not None:
                    partition.min_isr = config.min_insync_replicas
                    for log in partition.logs.values():
                        log.config = config
                        if self._has_tiers and not config.tiered:
                            tiering.drop(log)
                    partition.replicate()

    # --- coordinators ------------------------------------------------------------------------------------------------

    def load_coordinator(self, partition: ReplicatedPartition, loading_ms: int = 0) -> None:
        """Load the partition's coordinator at its leader, and unload it at every other broker (groups F.4).

        ``loading_ms``: for this long the new coordinator answers COORDINATOR_LOAD_IN_PROGRESS (set by the control
        plane).
        """
        leader, epoch = partition.state.leader, partition.state.leader_epoch
        self._resign(partition.topic, partition.index, keep=leader)
        node = self._cluster.nodes.get(leader)
        if node is None or not node.up or leader not in partition.logs:
            return
        coordinators = node.coordinators.by_topic[partition.topic]
        running = coordinators.get(partition.index)
        if running is not None:
            running.epoch = max(running.epoch, epoch)  # the same leader continues
            return
        coordinators[partition.index] = coordinator = self._loaders[partition.topic](self._cluster, node, partition)
        if loading_ms:
            self._cluster.clock.call_at(self._cluster.clock.now_ms() + loading_ms, coordinator.load)
        else:
            coordinator.load()

    def reload_coordinator(self, partition: ReplicatedPartition, loading_ms: int) -> None:
        """Unload a partition's coordinator and load it again from its log, for the control plane."""
        self._resign(partition.topic, partition.index, keep=NO_LEADER)
        self.load_coordinator(partition, loading_ms)

    def _resign(self, topic: str, index: int, *, keep: int) -> None:
        for node in self._cluster.nodes.values():
            if node.id != keep and (coordinator := node.coordinators.by_topic[topic].pop(index, None)):
                coordinator.close()
