"""Creates the coordinator of each kind for a partition that a broker has begun to lead."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.cluster.base import ClusterBase
from broker.cluster.group_topics import GroupTopics, own_rack_tags, own_setting
from broker.coordination.coordinators import (
    GROUP_TOPIC,
    SHARE_TOPIC,
    TRANSACTION_TOPIC,
    ShareCoordinator,
    TransactionCoordinator,
)
from broker.coordination.runtime import Runtime
from broker.coordination.share_state.machine import PruneLog, ShareMachine
from broker.coordination.transaction.machine import TransactionMachine
from broker.replication.coordinator_log import CoordinatorLog
from broker.replication.partition import ReplicatedPartition
from broker.request.node import Node
from broker.request.share_state import initialize_state
from broker.settings.releases import Behaviour
from protocol.log_records import share_state as share_codec
from protocol.log_records import transaction as transaction_codec

if TYPE_CHECKING:
    from broker.cluster.metadata_publisher import Loader
    from broker.coordination.coordinators import GroupCoordinator
    from broker.coordination.group.outcome_builder import InitializeShareState


def group_coordinator(cluster: ClusterBase, node: Node, partition: ReplicatedPartition) -> "GroupCoordinator":
    """Create the group coordinator for one partition of ``__consumer_offsets``."""
    from broker.coordination.group.machine import GroupMachine  # noqa: PLC0415 - with its records a tenth of the start
    from protocol.log_records import group as group_codec  # noqa: PLC0415

    machine = GroupMachine(
        node.settings,
        cluster.new_uuid,
        topics=GroupTopics(lambda: cluster.image),
        group_setting=own_setting(lambda: cluster.image, node.settings),
        behaves=cluster.behaves,
        rack_tags=own_rack_tags(lambda: cluster.image, node.settings),
    )

    def perform(runtime: "GroupCoordinator", effect: "InitializeShareState") -> None:
        cluster.start_task(partial(initialize_state, node.persister, runtime, effect))

    return Runtime(
        machine,
        group_codec,
        CoordinatorLog(partition, node.id, all_in_sync=lambda: not cluster.behaves(Behaviour.WRITES_OF_GROUPS_WAIT)),
        cluster.clock,
        perform,
        partition=partition.index,
        epoch=partition.state.leader_epoch,
        observer=cluster.group_timelines,
        write_timeout_ms=lambda _records: node.settings.int("offsets.commit.timeout.ms"),
    )


def transaction_coordinator(cluster: ClusterBase, node: Node, partition: ReplicatedPartition) -> TransactionCoordinator:
    """Create the transaction coordinator for one partition of ``__transaction_state``."""
    machine = TransactionMachine(
        node.settings,
        lambda: node.producer_ids.next(cluster.allocate_producer_ids),
        lambda: cluster.image.features.get("transaction.version", 0),
    )
    return Runtime(
        machine,
        transaction_codec,
        CoordinatorLog(partition, node.id, base_sequence=-1),
        cluster.clock,
        cluster.markers.perform,
        partition=partition.index,
        epoch=partition.state.leader_epoch,
        observer=cluster.transaction_timelines,
        write_timeout_ms=_longest_wait_ms,
        answers_in_order=False,
    )


def _longest_wait_ms(records: Sequence[Any]) -> int:
    """Return how long a transition's answer waits for replicas: the transaction's timeout (transactions B.2.2)."""
    return max(
        (record.timeout_ms for record in records if isinstance(record, transaction_codec.TransactionRecord)), default=0
    )


def share_coordinator(cluster: ClusterBase, node: Node, partition: ReplicatedPartition) -> ShareCoordinator:
    """Create the share coordinator for one partition of ``__share_group_state``."""

    def partition_count(topic_id: UUID) -> int:
        topic = cluster.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def prune(_runtime: ShareCoordinator, effect: PruneLog) -> None:
        partition.delete_records_before(node.id, effect.offset)

    return Runtime(
        ShareMachine(node.settings, partition_count, cluster.behaves),
        share_codec,
        CoordinatorLog(partition, node.id, all_in_sync=lambda: False),
        cluster.clock,
        prune,
        partition=partition.index,
        epoch=partition.state.leader_epoch,
        write_timeout_ms=lambda _records: node.settings.int("share.coordinator.write.timeout.ms"),
    )


LOADERS: "dict[str, Loader]" = {
    GROUP_TOPIC: group_coordinator,
    TRANSACTION_TOPIC: transaction_coordinator,
    SHARE_TOPIC: share_coordinator,
}
"""Internal topic -> the function that creates the coordinator of one of its partitions."""
