"""One broker: its identity, its logs, the coordinators it leads, its connections."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from broker.authorizer import authorizer_of
from broker.coordination.outcome import Machine
from broker.coordination.runtime import Runtime
from broker.endpoints import Endpoint
from broker.partition import ReplicatedPartition
from broker.producer_ids import ProducerIds
from broker.quotas import BrokerQuotas
from broker.settings import BrokerSettings
from broker.telemetry import Telemetry
from protocol.errors import ErrorCode, KafkaError
from storage.files import Files
from storage.log_dir import LogDir

if TYPE_CHECKING:
    from broker.coordination.group.machine import GroupMachine
    from broker.coordination.transaction.machine import TransactionMachine
    from broker.fetching.sessions import SessionCache
    from broker.server import BrokerServer

M = TypeVar("M", bound=Machine)
GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
_COUNTS = {
    GROUP_TOPIC: "offsets.topic.num.partitions",
    TRANSACTION_TOPIC: "transaction.state.log.num.partitions",
    SHARE_TOPIC: "share.coordinator.state.topic.num.partitions",
}
"""The setting that says how many partitions an internal topic will have."""


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: signed, over UTF-16 code units (transactions F.9)."""
    value = 0
    raw = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(raw), 2):
        value = (31 * value + (raw[at] << 8) + raw[at + 1]) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=4096)
def partition_for(key: str, partitions: int) -> int:
    """The partition of an internal topic that coordinates a group or transactional id (transactions F.9)."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


class Node:
    """One broker of the cluster.

    ``partitions`` is the cluster's table of all partitions, shared by the nodes; a partition refuses what its leader
    alone may do. ``group_shards`` and ``transaction_shards`` hold the coordinators that this broker leads, by
    partition.
    """

    def __init__(
        self, broker_id: int, settings: BrokerSettings, partitions: Mapping[tuple[str, int], ReplicatedPartition]
    ) -> None:
        self.id, self.settings, self.partitions = broker_id, settings, partitions
        self.rack: str | None = settings.optional_string("broker.rack")
        self.authorizer = authorizer_of(settings)
        self.meters = BrokerQuotas(settings)
        self.quotas: BrokerQuotas | None = None
        """:attr:`meters`, where the metadata has any quota."""
        self.epoch = -1
        self.up = False
        self.incarnation_id: UUID | None = None
        self.logs: LogDir | None = None
        self.server: BrokerServer | None = None
        self.sessions: SessionCache | None = None
        self.group_shards: dict[int, Runtime[GroupMachine]] = {}
        self.transaction_shards: dict[int, Runtime[TransactionMachine]] = {}
        self.producer_ids = ProducerIds()
        self.telemetry = Telemetry()
        self.internal_counts: dict[str, int] = {}
        """Internal topic -> its partitions when the broker started; a later change is not followed, as in Kafka."""
        self.endpoints: tuple[Endpoint, ...] = ()
        """The listeners that it is to open."""
        self.bound: dict[str, tuple[Endpoint, int]] = {}
        """Listener name -> the listener and the port that it got."""
        self.files: Files | None = None
        self.producer_ids = ProducerIds()

    @property
    def silent(self) -> bool:
        """Whether other brokers hear nothing from it: it is down, or paused."""
        return not self.up or (self.server is not None and self.server.paused)

    def partition(self, topic: str, index: int) -> ReplicatedPartition:
        """A partition that the cluster knows.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = self.partitions.get((topic, index))
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def groups_for(self, group_id: str) -> "Runtime[GroupMachine]":
        """The coordinator of a group, if this broker has it.

        Raises:
            KafkaError: NOT_COORDINATOR; while loading, the runtime itself refuses.
        """
        return _shard(self.group_shards, self.coordinating_partition(GROUP_TOPIC, group_id))

    def transactions_for(self, transactional_id: str) -> "Runtime[TransactionMachine]":
        """The coordinator of a transactional id, if this broker has it; see :meth:`groups_for`."""
        return _shard(self.transaction_shards, self.coordinating_partition(TRANSACTION_TOPIC, transactional_id))

    def coordinating_partition(self, topic: str, key: str) -> int:
        """The partition of an internal topic whose leader coordinates the key (transactions F.9, groups F.1).

        How many there are is what the topic had when the broker started, else what the settings would give it.
        """
        return partition_for(key, self.internal_counts.get(topic) or self.settings.int(_COUNTS[topic]))

    def resign(self) -> None:
        """Give up every coordinator; parked requests hear NOT_COORDINATOR."""
        for group in list(self.group_shards.values()):
            group.close()
        for transactions in list(self.transaction_shards.values()):
            transactions.close()
        self.group_shards.clear()
        self.transaction_shards.clear()


def _shard(shards: "dict[int, Runtime[M]]", partition: int) -> "Runtime[M]":
    shard = shards.get(partition)
    if shard is None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    return shard
