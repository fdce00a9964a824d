"""Changes of one partition when brokers, in-sync replicas or assignments change.

After Kafka's ``PartitionChangeBuilder`` (KIP-455 reassignments, KIP-966 eligible leader replicas). The leader stays if
it may lead; else the first replica in assignment order that may lead is elected. LeaderEpoch is incremented by every
record that sets a leader (core B.2).
"""

from collections.abc import Callable, Iterable
from enum import Enum
from uuid import UUID

from broker.coordination.metadata.image import NO_LEADER, Partition
from protocol.deferred import dataclass
from protocol.java import copied_capacity, integer_hash, table_order
from protocol.log_records.metadata import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord

Replicas = tuple[int, ...]


class Election(Enum):
    """Kind of election."""

    ONLINE = "online"  # the current leader, else an in-sync replica
    PREFERRED = "preferred"  # the first replica if it is in sync, else as ONLINE
    UNCLEAN = "unclean"  # an in-sync replica, else any live one: records may be lost


@dataclass(frozen=True, slots=True)
class Rules:
    """The inputs of an election besides the partition."""

    may_lead: Callable[[int], bool]
    directory_of: Callable[[int], UUID]
    min_isr: int = 1
    elr: bool = True
    """Whether ``eligible.leader.replicas.version`` is at least 1."""
    election: Election = Election.ONLINE


class PartitionChange:
    """Builder of a partition's next registration: set the targets, then call :meth:`record`."""

    def __init__(self, topic_id: UUID, index: int, partition: Partition, rules: Rules) -> None:
        self._topic_id, self._index, self._now, self._rules = topic_id, index, partition, rules
        self.isr: Replicas = partition.isr
        self.replicas: Replicas = partition.replicas
        self.adding: Replicas = partition.adding_replicas
        self.removing: Replicas = partition.removing_replicas
        self.directories: tuple[UUID, ...] = partition.directories
        """Of the replicas before the change, in their order."""
        self.unclean_shutdowns: frozenset[int] = frozenset()
        """Brokers after an unclean shutdown, which are removed from the ELR."""
        self.recovering = partition.recovering
        self._elr: Replicas = partition.elr

    def record(self) -> PartitionChangeRecord | None:
        """Return the record, or ``None`` if nothing changes."""
        now = self._now
        self._complete_reassignment()
        self._update_elr()
        leader, unclean = self._elect()
        recovery = NO_RECOVERY_CHANGE
        new_leader = NO_LEADER_CHANGE if leader == now.leader else leader
        if new_leader >= 0 and leader in self._elr:
            self.isr, self._elr = (leader,), _without(self._elr, {leader})
        if unclean and new_leader != NO_LEADER_CHANGE:
            # Records that only other replicas have are lost.
            self.isr, self._elr = (leader,), ()
            self.recovering = True
        if new_leader == NO_LEADER_CHANGE and not set(now.replicas) <= set(self.replicas):
            new_leader = now.leader  # a replica was removed: the leader epoch must be incremented
        if not self.isr and not self._rules.elr:
            self.isr = now.isr  # without ELR the last in-sync replicas stay in the ISR
        if self.recovering != now.recovering:
            recovery = int(self.recovering)
        change = PartitionChangeRecord(
            partition_id=self._index,
            topic_id=self._topic_id,
            isr=_if_new(self.isr, now.isr),
            leader=new_leader,
            replicas=_if_new(self.replicas, now.replicas),
            removing_replicas=_if_new(self.removing, now.removing_replicas),
            adding_replicas=_if_new(self.adding, now.adding_replicas),
            leader_recovery_state=recovery,
            directories=self._directories(),
            eligible_leader_replicas=_if_new(self._elr, now.elr),
            last_known_elr=self._last_known(new_leader),
        )
        nothing = PartitionChangeRecord(partition_id=self._index, topic_id=self._topic_id)
        return None if change == nothing else change

    # --- steps -------------------------------------------------------------------------------------------------------

    def _complete_reassignment(self) -> None:
        """Complete the reassignment if all target replicas are in sync."""
        if not self.adding and not self.removing:
            return
        isr, replicas = _without(self.isr, self.removing), _without(self.replicas, self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()

    def _update_elr(self) -> None:
        """Below min.insync.replicas, keep replicas that leave the ISR in the ELR (KIP-966)."""
        if not self._rules.elr or len(self.isr) >= self._rules.min_isr:
            self._elr = ()
            return
        known = list(dict.fromkeys((*self._elr, *self._now.isr)))
        in_table = table_order(known, integer_hash, copied_capacity(len(self._elr)))  # a HashSet in Kafka
        self._elr = _without(in_table, {*self.isr, *self.unclean_shutdowns})

    def _valid(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self._elr)
        return in_sync and self._rules.may_lead(replica)

    def _elect(self) -> tuple[int, bool]:
        """Return the leader, and whether the election is unclean."""
        now, election = self._now, self._rules.election
        first = (self.replicas[0],) if election is Election.PREFERRED and self.replicas else ()
        for candidate in (*first, now.leader, *self.replicas):
            if self._valid(candidate):
                return candidate, False
        if self._rules.elr and not self.isr and not self._elr and len(now.last_known_elr) == 1:
            last = now.last_known_elr[0]
            if self._rules.may_lead(last):
                return last, True
        if election is Election.UNCLEAN:
            for candidate in self.replicas:
                if self._rules.may_lead(candidate):
                    return candidate, True
        return NO_LEADER, False

    def _last_known(self, new_leader: int) -> Replicas | None:
        """Return the last leader while there is none (KIP-966, balanced recovery); ``None`` for no change."""
        now = self._now
        if not self._rules.elr:
            return () if now.last_known_elr else None
        if not self.isr and now.isr and now.last_known_elr != (now.leader,):
            return (now.leader,)
        led = new_leader >= 0 or NO_LEADER not in (now.leader, new_leader)
        return () if led and now.last_known_elr else None

    def _directories(self) -> tuple[UUID, ...] | None:
        now = self._now
        known = dict(zip(now.replicas, self.directories, strict=False))
        directories = tuple(known[r] if r in known else self._rules.directory_of(r) for r in self.replicas)
        return None if directories == now.directories else directories


def _if_new(new: Replicas, old: Replicas) -> Replicas | None:
    return None if new == old else new


def _without(replicas: Iterable[int], gone: Iterable[int]) -> Replicas:
    left = set(gone)
    return tuple(replica for replica in replicas if replica not in left)
