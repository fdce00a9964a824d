"""Expands the ISR by replicas that have caught up, which also completes reassignments.

In Kafka the leader sees its followers' fetches and sends AlterPartition to the controller. Here replication happens
within the append, so it is enough to check when a partition or a broker has changed.
"""

from typing import TYPE_CHECKING

from broker.cluster.base import ClusterBase
from broker.coordination.metadata.image import Partition

if TYPE_CHECKING:
    from broker.replication.partition import ReplicatedPartition


def expand(cluster: ClusterBase, topic: str, index: int) -> None:
    """Add to one partition's ISR the replicas that are unfenced and have caught up with the leader."""
    hosted, state = cluster.partitions.get((topic, index)), cluster.image.partition(topic, index)
    if hosted is None or state is None or len(state.isr) == len(state.replicas) or hosted.state is not state:
        return
    ready = tuple(b for b in state.replicas if b not in state.isr and _has_caught_up(cluster, hosted, state, b))
    if ready:
        machine = cluster.metadata.machine
        cluster.metadata.submit(lambda _now_ms: machine.change_isr(topic, index, (*state.isr, *ready)))


def expand_all(cluster: ClusterBase, broker_id: int) -> None:
    """Expand the ISR of every partition that a broker has, once the broker is unfenced."""
    if cluster.image.active(broker_id):
        for topic, index, state in list(cluster.image.all_partitions()):
            if broker_id in state.replicas and broker_id not in state.isr:
                expand(cluster, topic.name, index)


def _has_caught_up(cluster: ClusterBase, hosted: "ReplicatedPartition", state: Partition, broker_id: int) -> bool:
    leader, follower = hosted.logs.get(state.leader), hosted.logs.get(broker_id)
    if leader is None or follower is None or leader.offline or follower.offline or not hosted.follows(broker_id):
        return False
    return cluster.image.active(broker_id) and follower.log_end_offset >= leader.log_end_offset
