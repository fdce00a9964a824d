"""Which share partitions are in the memory of their leaders, and for how long the same ones are."""

from uuid import UUID

from broker.coordination.share_state.persister import SharePartitionKey
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.share_partition.partitions import led_by
from broker.request.share_state import ATTEMPTS, BACKOFF_MS
from simulator.cluster import Servers

WRITE_TIMEOUT_MS = 500
"""``share.coordinator.write.timeout.ms`` of runs in which coordinators wait for their followers.

Ours, a tenth of the default, so that it ends within a fault.
"""
SHARE_WRITES_LAST_MS = ATTEMPTS * WRITE_TIMEOUT_MS + BACKOFF_MS * (2 ** (ATTEMPTS - 1) - 1)
"""Time after which a leader gives up a write to a share coordinator that has too few replicas."""


class ShareLives:
    """Numbers the share partitions in the leaders' memory: a number that stays is a leader that has lived on."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._known: dict[tuple[str, str, int], tuple[SharePartition, int]] = {}
        self._count = 0

    def number(self, group: str, place: tuple[str, int]) -> int:
        """Return the number of a partition of a share group at its leader; 0: it is not in memory."""
        share_partition = self._find(group, *place)
        if share_partition is None:
            return 0
        known = self._known.get((group, *place))
        if known is None or known[0] is not share_partition:
            self._count += 1
            known = self._known[group, *place] = share_partition, self._count
        return known[1]

    def _find(self, group: str, topic: str, index: int) -> SharePartition | None:
        cluster = self._servers.cluster
        state = cluster.image.partition(topic, index)
        node = None if state is None else cluster.nodes.get(state.leader)
        if node is None or not node.up:
            return None
        topic_id: UUID = cluster.image.topics[topic].id
        share_partition = led_by(node).get(SharePartitionKey(group, topic_id, index))
        return share_partition if share_partition is not None and share_partition.active else None
