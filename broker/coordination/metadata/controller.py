"""Inputs of every metadata decision: the current image, the controller's settings, new ids and random numbers."""

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from uuid import UUID

from broker.coordination.metadata.elections import Election, PartitionChange, Rules
from broker.coordination.metadata.features import ELR_VERSION
from broker.coordination.metadata.image import UNASSIGNED_DIRECTORY, ClusterImage, Partition, Topic
from broker.coordination.metadata.placement import Placer
from broker.coordination.settings import Settings
from protocol.deferred import dataclass
from protocol.log_records.metadata import PartitionChangeRecord

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""Resource types of core C.1 that decisions depend on."""

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


@dataclass(slots=True)
class Controller:
    """The inputs of a decision. ``below(n)`` is a random number from 0 to n-1, ``next_offset()`` the log end offset."""

    image: ClusterImage
    settings: Settings
    new_uuid: Callable[[], UUID]
    below: Callable[[int], int]
    next_offset: Callable[[], int]
    without_directory: set[int] = field(default_factory=set)
    """Brokers whose only log directory has failed; they lead nothing until they register again. Soft state."""

    @property
    def elr(self) -> bool:
        """Whether eligible leader replicas are enabled (KIP-966)."""
        return self.image.features.get(ELR_VERSION, 0) > 0

    def placer(self) -> Placer:
        """Return a placer for the partitions of one topic."""
        return Placer(self.image.brokers.values(), self.below)

    def directory_of(self, broker_id: int) -> UUID:
        """Return the log directory of a broker's new replica, as far as the controller knows it."""
        broker = self.image.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def _online(self, broker_id: int, partition: Partition) -> bool:
        """Whether the directory of a broker's replica is online."""
        broker = self.image.brokers.get(broker_id)
        return broker_id not in self.without_directory and (
            broker is None or broker.has_online(partition.directory_of(broker_id))
        )

    def min_isr(self, topic: str) -> int:
        """Return ``min.insync.replicas`` of a topic: its own, else the cluster's.

        It is at most the number of replicas of partition 0, also for partitions that are reassigned
        (``ReplicationControlManager.getTopicEffectiveMinIsr``).
        """
        own = self.image.config(TOPIC_RESOURCE, topic).get(MIN_ISR)
        shared = self.image.config(BROKER_RESOURCE, "").get(MIN_ISR)
        configured = int(own or shared or self.settings.int(MIN_ISR))
        first = self.image.partition(topic, 0)
        return configured if first is None else min(configured, len(first.replicas))

    def unclean_allowed(self, topic: str) -> bool:
        """Return ``unclean.leader.election.enable`` of a topic."""
        own = self.image.config(TOPIC_RESOURCE, topic).get(UNCLEAN)
        return self.settings.boolean(UNCLEAN) if own is None else own.strip().lower() == "true"

    def change(
        self,
        topic: Topic,
        index: int,
        *,
        election: Election | None = None,
        may_lead: Callable[[int], bool] | None = None,
        directories: tuple[UUID, ...] | None = None,
    ) -> PartitionChange:
        """Return a change of one partition; by default with an unclean election if the topic allows it.

        ``directories`` are those of its replicas from now on, if they change.
        """
        if election is None:
            election = Election.UNCLEAN if self.unclean_allowed(topic.name) else Election.ONLINE
        partition, is_active = topic.partitions[index], may_lead or self.image.active
        located = partition if directories is None else replace(partition, directories=directories)
        rules = Rules(
            may_lead=lambda replica: is_active(replica) and self._online(replica, located),
            directory_of=self.directory_of,
            min_isr=self.min_isr(topic.name),
            elr=self.elr,
            election=election,
        )
        change = PartitionChange(topic.id, index, partition, rules)
        change.directories = located.directories
        return change

    def without_broker(
        self,
        broker_id: int,
        *,
        unclean: bool = False,
        eligible: bool = False,
        directory_id: UUID | None = None,
    ) -> list[PartitionChangeRecord]:
        """Return the changes of partitions whose ISR has the broker.

        ``unclean``: it leaves the ELR too, after an unclean shutdown. ``eligible``: partitions whose ELR has it may
        change as well, though it stays there. ``directory_id``: only partitions in that directory of the broker.
        """

        def affected(partition: Partition) -> bool:
            if directory_id is not None and partition.directory_of(broker_id) != directory_id:
                return False
            return broker_id in partition.isr or ((unclean or eligible) and broker_id in partition.elr)

        def may_lead(replica: int) -> bool:
            return replica != broker_id and self.image.active(replica)

        changes = []
        for topic, index, partition in self.image.all_partitions():
            if affected(partition):
                change = self.change(topic, index, may_lead=may_lead)
                change.isr = tuple(replica for replica in partition.isr if replica != broker_id)
                if unclean:
                    change.unclean_shutdowns = frozenset({broker_id})
                changes.append(change.record())
        return _some(changes)

    def elect_leaderless(self, *, may_lead: Callable[[int], bool] | None = None) -> list[PartitionChangeRecord]:
        """Return the elections of leaderless partitions for which a replica may lead."""
        return _some(
            self.change(topic, index, may_lead=may_lead).record()
            for topic, index, partition in self.image.all_partitions()
            if partition.leader < 0
        )


def _some(records: Iterable[PartitionChangeRecord | None]) -> list[PartitionChangeRecord]:
    return [record for record in records if record is not None]
