"""The change of one partition when brokers, in-sync replicas or assignments change, as a record.

After Kafka's ``PartitionChangeBuilder`` (KIP-455 reassignments, KIP-966 eligible leader replicas). A leader stays while
it may; else the first replica in assignment order that may lead does. LeaderEpoch grows with every record that names a
leader (core B.2).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from broker.coordination.metadata.image import NO_LEADER, Partition
from protocol.java import copied_capacity, integer_hash, table_order
from protocol.log_records.metadata import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, PartitionChangeRecord

Replicas = tuple[int, ...]


class Election(Enum):
    """How hard to try for a leader."""

    ONLINE = "online"  # keep the leader, else one in sync
    PREFERRED = "preferred"  # the first replica if it is in sync, else as ONLINE
    UNCLEAN = "unclean"  # one in sync, else any that lives: records may be lost


@dataclass(frozen=True, slots=True)
class Rules:
    """What an election depends on besides the partition."""

    may_lead: Callable[[int], bool]
    directory_of: Callable[[int], UUID]
    min_isr: int = 1
    elr: bool = True
    """Whether ``eligible.leader.replicas.version`` is at least 1."""
    election: Election = Election.ONLINE


class PartitionChange:
    """The next registration of a partition in the making: set targets, then :meth:`record`."""

    def __init__(self, topic_id: UUID, index: int, partition: Partition, rules: Rules) -> None:
        self._topic_id, self._index, self._now, self._rules = topic_id, index, partition, rules
        self.isr: Replicas = partition.isr
        self.replicas: Replicas = partition.replicas
        self.adding: Replicas = partition.adding_replicas
        self.removing: Replicas = partition.removing_replicas
        self.unclean_shutdowns: frozenset[int] = frozenset()
        """Brokers that lost what they had not flushed: not eligible to lead by ELR any more."""
        self.recovering = partition.recovering
        self._elr: Replicas = partition.elr

    def record(self) -> PartitionChangeRecord | None:
        """The record, or ``None`` if nothing changes."""
        now = self._now
        self._complete_reassignment()
        self._update_elr()
        leader, unclean = self._elect()
        recovery = NO_RECOVERY_CHANGE
        new_leader = NO_LEADER_CHANGE if leader == now.leader else leader
        if new_leader >= 0 and leader in self._elr:
            self.isr, self._elr = (leader,), _without(self._elr, {leader})
        if unclean and new_leader != NO_LEADER_CHANGE:
            # Records that only the other replicas have are lost.
            self.isr, self._elr = (leader,), ()
            self.recovering = True
        if new_leader == NO_LEADER_CHANGE and not set(now.replicas) <= set(self.replicas):
            new_leader = now.leader  # a replica has left: the epoch must grow
        if not self.isr and not self._rules.elr:
            self.isr = now.isr  # without ELR the last in-sync replicas stay on the record
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
        """All of the target are in sync: those that leave leave."""
        if not self.adding and not self.removing:
            return
        isr, replicas = _without(self.isr, self.removing), _without(self.replicas, self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()

    def _update_elr(self) -> None:
        """Below min.insync.replicas, who was in sync until now stays eligible (KIP-966)."""
        if not self._rules.elr or len(self.isr) >= min(self._rules.min_isr, len(self.replicas)):
            self._elr = ()
            return
        known = list(dict.fromkeys((*self._elr, *self._now.isr)))
        in_table = table_order(known, integer_hash, copied_capacity(len(self._elr)))  # a HashSet in Kafka
        self._elr = _without(in_table, {*self.isr, *self.unclean_shutdowns})

    def _valid(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self._elr)
        return in_sync and self._rules.may_lead(replica)

    def _elect(self) -> tuple[int, bool]:
        """The leader, and whether it came by giving up records."""
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
        """The last leader, remembered while the partition has no leader (KIP-966, balanced recovery)."""
        now = self._now
        if not self._rules.elr:
            return () if now.last_known_elr else None
        if not self.isr and now.isr and now.last_known_elr != (now.leader,):
            return (now.leader,)
        led = new_leader >= 0 or NO_LEADER not in (now.leader, new_leader)
        return () if led and now.last_known_elr else None

    def _directories(self) -> tuple[UUID, ...] | None:
        now = self._now
        known = dict(zip(now.replicas, now.directories, strict=False))
        found = tuple(known[r] if r in known else self._rules.directory_of(r) for r in self.replicas)
        return None if found == now.directories else found


def _if_new(new: Replicas, old: Replicas) -> Replicas | None:
    return None if new == old else new


def _without(replicas: Iterable[int], gone: Iterable[int]) -> Replicas:
    left = set(gone)
    return tuple(replica for replica in replicas if replica not in left)
