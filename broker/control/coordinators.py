"""Lookup of the coordinators of groups and transactional ids, and the verb that moves one."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from broker.control.problems import conflict
from broker.control.request import ControlRequest
from broker.control.topics import have_internal, lead
from broker.control.verbs import answers
from broker.coordination.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC, TransactionCoordinator
from broker.replication.partition import ReplicatedPartition
from broker.request.node import Node, partition_for
from control_api.brokers import CoordinatorMove, CoordinatorMoved

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.coordination.coordinators import GroupCoordinator

C = TypeVar("C", "GroupCoordinator", TransactionCoordinator)
_TOPICS = {"group": GROUP_TOPIC, "transaction": TRANSACTION_TOPIC}


def group_coordinators(cluster: "Cluster") -> "list[tuple[Node, GroupCoordinator]]":
    """Return all group coordinators, with their brokers."""
    return [(node, coordinator) for node in cluster.nodes.values() for coordinator in node.coordinators.groups.values()]


def transaction_coordinators(cluster: "Cluster") -> list[tuple[Node, TransactionCoordinator]]:
    """Return all transaction coordinators, with their brokers."""
    return [
        (node, coordinator)
        for node in cluster.nodes.values()
        for coordinator in node.coordinators.transactions.values()
    ]


def group_coordinator(cluster: "Cluster", group_id: str) -> "tuple[Node, GroupCoordinator] | None":
    """Return the current coordinator of a group, if there is one."""
    return _coordinator(cluster, GROUP_TOPIC, group_id, lambda node: node.coordinators.groups)


def transaction_coordinator(cluster: "Cluster", transactional_id: str) -> tuple[Node, TransactionCoordinator] | None:
    """Return the current coordinator of a transactional id, if there is one."""
    return _coordinator(cluster, TRANSACTION_TOPIC, transactional_id, lambda node: node.coordinators.transactions)


def _coordinator(
    cluster: "Cluster", topic: str, key: str, coordinators_of: Callable[[Node], Mapping[int, C]]
) -> tuple[Node, C] | None:
    partition = partition_of_key(cluster, topic, key)
    node = None if partition is None else cluster.nodes.get(partition.state.leader)
    coordinator = None if node is None or partition is None else coordinators_of(node).get(partition.index)
    return None if node is None or coordinator is None else (node, coordinator)


def partition_of_key(cluster: "Cluster", topic: str, key: str) -> ReplicatedPartition | None:
    """Return the partition of an internal topic for a key, if the topic exists."""
    image = cluster.image.topics.get(topic)
    return None if image is None else cluster.partitions.get((topic, partition_for(key, len(image.partitions))))


@answers("coordinators move")
async def move(request: ControlRequest, body: CoordinatorMove) -> CoordinatorMoved:
    """Move a group or transactional id to another coordinator, which takes ``loading_ms`` to load."""
    kind, key, broker, loading_ms = body["type"], body["key"], body["broker"], body["loading_ms"]
    cluster, topic = request.cluster, _TOPICS[kind]
    if topic not in cluster.image.topics:
        await have_internal(request, topic)
    partition = partition_of_key(cluster, topic, key)
    if partition is None:
        raise conflict(f"{topic} was just deleted; try again")
    if partition.state.leader == broker:
        cluster.metadata_publisher.reload_coordinator(partition, loading_ms)
    else:
        await lead(request, partition, broker, loading_ms=loading_ms)
    return {
        "type": kind,
        "key": key,
        "broker": partition.state.leader,
        "partition": partition.index,
        "loading_ms": loading_ms,
    }
