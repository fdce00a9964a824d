"""Partitions that stay without a leader in Kafka, too, because a replica that they no longer have is eligible to lead.

When a reassignment is complete, ``PartitionChangeBuilder`` of Kafka 4.4 compares the eligible leader replicas with the
ISR and with min.insync.replicas, but not with the new replicas: a broker that was eligible, or left the ISR with the
reassignment, stays among them. If then the last in-sync replica ends uncleanly, the list is not empty, so the last
known leader is not elected when it returns (KIP-966, ``electAnyLeader``); and who is on the list is no replica, so
no other broker may lead either. Clients get LEADER_NOT_AVAILABLE until an operator elects a leader uncleanly, with
``kafka-leader-election.sh``. The last known leader has to be the first replica then, or another one is elected.

:func:`elect_last_known` does so when the faults are over, and returns what it did, which is excused. Each other
partition without a leader is a broken promise.
"""

from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.image import NO_LEADER, Partition
from simulator.cluster import Servers

REMOVED = "a replica that a reassignment removed is eligible to lead, and so the last known leader is not elected"


def is_stranded(partition: Partition) -> bool:
    """Whether only replicas that the partition no longer has keep its last known leader from being elected."""
    removed = set(partition.elr) - set(partition.replicas)
    return (
        partition.leader == NO_LEADER
        and not partition.isr
        and bool(removed)
        and removed == set(partition.elr)
        and len(partition.last_known_elr) == 1
        and partition.last_known_elr[0] in partition.replicas
    )


def elect_last_known(servers: Servers) -> list[str]:
    """Elect the last known leaders of stranded partitions, as an operator does; return what was done, and why."""
    done = []
    for topic, index, partition in list(servers.cluster.image.all_partitions()):
        if is_stranded(partition):
            last = partition.last_known_elr[0]
            rest = (each for each in partition.replicas if each != last)
            _elect_first(servers, (topic.name, index), [last, *rest])
            done.append(f"{topic.name}-{index} has no leader until an operator elects broker {last}, since {REMOVED}")
    return done


def _elect_first(servers: Servers, place: tuple[str, int], replicas: list[int]) -> None:
    """Order a partition's replicas so, and elect the first one that runs."""
    metadata = servers.cluster.metadata
    metadata.submit(lambda _now_ms: metadata.machine.alter_partition_reassignments([(*place, replicas)]))
    metadata.submit(lambda _now_ms: metadata.machine.elect_leaders([place], Election.UNCLEAN))
