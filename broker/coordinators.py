"""How a coordinator of each kind is made for a partition that a broker has come to lead."""

import asyncio
from typing import TYPE_CHECKING, Any

from broker.coordination.group.draft import SOON
from broker.coordination.group.machine import GroupMachine
from broker.coordination.outcome import Notify
from broker.coordination.runtime import Runtime
from broker.group_topics import GroupTopics, own_setting
from broker.markers import perform as write_markers
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC, Node
from broker.partition import ReplicatedPartition
from broker.shards import ShardLog
from broker.watched import WatchedTransactions
from protocol.log_records import group as group_codec
from protocol.log_records import transaction as transaction_codec

if TYPE_CHECKING:
    from broker.cluster import Cluster
    from broker.hosting import Loader


def group_coordinator(cluster: "Cluster", node: Node, partition: ReplicatedPartition) -> Runtime[Any]:
    """The groups of one partition of ``__consumer_offsets``."""
    machine = GroupMachine(
        node.settings,
        cluster.new_uuid,
        topics=GroupTopics(lambda: cluster.image),
        own=own_setting(lambda: cluster.image, node.settings),
    )
    return Runtime(
        machine,
        group_codec,
        ShardLog(partition, node.id),
        cluster.clock,
        _soon,
        partition=partition.index,
        epoch=partition.state.leader_epoch,
    )


def _soon(runtime: Runtime[Any], effect: Any) -> None:
    """What groups put off until a later turn."""
    match effect:
        case Notify(what, then) if what == SOON:
            asyncio.get_running_loop().call_soon(runtime.submit, then)


def transaction_coordinator(cluster: "Cluster", node: Node, partition: ReplicatedPartition) -> Runtime[Any]:
    """The transactional ids of one partition of ``__transaction_state``."""
    machine = WatchedTransactions(
        cluster.timelines,
        node.settings,
        lambda: node.producer_ids.next(cluster.allocate_producer_ids),
        lambda: cluster.image.features.get("transaction.version", 0),
    )
    return Runtime(
        machine,
        transaction_codec,
        ShardLog(partition, node.id),
        cluster.clock,
        lambda runtime, effect: write_markers(cluster, runtime, effect),
        partition=partition.index,
        epoch=partition.state.leader_epoch,
    )


LOADERS: "dict[str, Loader]" = {GROUP_TOPIC: group_coordinator, TRANSACTION_TOPIC: transaction_coordinator}
"""Internal topic -> what coordinates there."""
