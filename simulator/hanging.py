"""Transactions that Kafka, too, leaves open or ends in two ways, because their coordinator does not know all of them.

There are two causes, and each excuses one transaction and the partitions in which it may stay open, nothing else:

* A new coordinator loads its log to the end, so also records that are not replicated yet, and acts on them at once:
  ``TransactionStateManager.loadTransactionMetadata`` reads to the log end offset, ``TransactionCoordinator`` answers
  AddPartitionsToTxn without a write for a partition that is in the transaction already, and a loaded decision is sent
  as markers. If the next leader does not have those records, its coordinator does not know the partition or the
  decision. The producer gets no error: its transaction is committed without the records in that partition, or
  committed in some partitions and aborted in others.
* ``TransactionMarkerChannelManager`` skips the marker of a partition without a leader (KAFKA-20734). The producer gets
  no error here either.

In such a partition the transaction hangs (KIP-664): consumers that read committed records stop before it, until the
same producer id gets another marker there, or an operator aborts it with ``kafka-transactions.sh``, as :mod:`simulator`
does when all faults are over. Each other hanging transaction is a broken promise.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from broker.cluster.metadata_publisher import MetadataPublisher
from broker.coordination.coordinators import TRANSACTION_TOPIC
from broker.coordination.transaction.states import COMPLETED_BY
from broker.replication.partition import ReplicatedPartition
from protocol.log_records.transaction import TransactionRecord, TransactionState, decode
from protocol.records.records import read_records
from simulator.cluster import Servers
from simulator.history import History, Place, Transaction
from simulator.process import replaced
from storage.log.partition_log import PartitionLog

UNREPLICATED = "its coordinator had loaded a record that was not replicated, and that was lost"
SKIPPED = "a partition had no leader for its marker (KAFKA-20734)"


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A transaction that its coordinator may not know in ``places``.

    ``epochs``: the epochs that its producer may have had; the epoch of a marker is that of the data, or the next one.
    ``at_ms``: when that was seen, on the brokers' clock. ``logged``: partition of ``__transaction_state``, offset and
    leader epoch of the record that was not replicated; None if a marker was skipped. ``raised_from``: its epochs before
    faults raised them while it was open.
    """

    transactional_id: str
    producer_id: int
    epochs: tuple[int, ...]
    places: frozenset[Place]
    at_ms: int
    logged: tuple[int, int, int] | None = None
    raised_from: tuple[int, ...] = ()

    @property
    def data_epochs(self) -> tuple[int, ...]:
        """The epochs that its records may have."""
        return *self.raised_from, *self.epochs

    def transactions(self, history: History) -> list[Transaction]:
        """Return the transaction; if its end was decided, also the one that its client has begun since, if any."""
        own = [
            each
            for each in history.transactions
            if each.name == self.transactional_id
            and each.producer_id == self.producer_id
            and each.epoch in self.data_epochs
            and each.begun_ms <= self.at_ms
        ]
        return own[-len(self.epochs) :]


@dataclass(frozen=True, slots=True)
class Hanging:
    """A transaction that is open from ``offset`` of a partition on, and that its coordinator does not know there."""

    place: Place
    offset: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    why: str

    def __str__(self) -> str:
        return f"{self.place[0]}-{self.place[1]}: the transaction of producer {self.producer_id} from {self.offset} on"


class HangingTransactions:
    """The transactions of a run that hang in Kafka, too."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._loaded: dict[Uncertain, None] = {}
        self.aborted: list[Hanging] = []
        """What an operator has aborted."""
        self.excused: dict[str, str] = {}
        """Transaction -> why Kafka breaks promises about it, too."""

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Note the records that coordinators load within the block."""
        original = MetadataPublisher.load_coordinator

        def load(publisher: MetadataPublisher, partition: ReplicatedPartition, loading_ms: int = 0) -> None:
            if partition.topic == TRANSACTION_TOPIC:
                self._note_loaded(partition)
            original(publisher, partition, loading_ms)

        with replaced(MetadataPublisher, "load_coordinator", load):
            yield

    def _note_loaded(self, partition: ReplicatedPartition) -> None:
        cluster, leader = self._servers.cluster, partition.state.leader
        node, log = cluster.nodes.get(leader), partition.logs.get(leader)
        if node is not None and log is not None and partition.index not in node.coordinators.transactions:
            self.note(unreplicated(log, partition.index, cluster.clock.now_ms()))

    def note(self, loaded: Iterable[Uncertain]) -> None:
        """Note transactions that a coordinator has loaded from records that are not replicated."""
        self._loaded.update(dict.fromkeys(loaded))

    def settle(self, history: History) -> None:
        """Excuse the transactions of a history whose records are lost, or whose markers were skipped."""
        for each, why in self._lost():
            self.excused.update(dict.fromkeys(map(str, each.transactions(history)), why))

    def _lost(self) -> Iterator[tuple[Uncertain, str]]:
        for each in self._loaded:
            assert each.logged is not None
            if self._is_lost(*each.logged):
                yield self._with_raised(each), UNREPLICATED
        for note in self._servers.left_out_markers:
            places = frozenset[Place]() if note.place is None else frozenset({note.place})
            epochs = note.producer_epoch - 1, note.producer_epoch
            skipped = Uncertain(note.transactional_id, note.producer_id, epochs, places, note.at_ms)
            yield self._with_raised(skipped), SKIPPED

    def _with_raised(self, uncertain: Uncertain) -> Uncertain:
        raised_from = self._servers.epochs_before(uncertain.producer_id, uncertain.epochs[0])
        return replace(uncertain, raised_from=raised_from) if raised_from else uncertain

    def _is_lost(self, index: int, offset: int, leader_epoch: int) -> bool:
        """Whether a record is not in the log of the leader, if there is one: its leader epoch ends before it there."""
        partition = self._servers.cluster.partitions.get((TRANSACTION_TOPIC, index))
        leader = None if partition is None else partition.logs.get(partition.state.leader)
        if leader is None:
            return False
        epoch, end = leader.epochs.end_offset_for(leader_epoch, leader.log_end_offset)
        return epoch != leader_epoch or end <= offset

    def hanging(self) -> list[Hanging]:
        """List the transactions that hang now."""
        transactions: dict[Hanging, None] = {}
        for each, why in self._lost():
            for place in sorted(each.places):
                partition = self._servers.cluster.partitions.get(place)
                leader = None if partition is None else partition.logs.get(partition.state.leader)
                own = None if leader is None else leader.producers.producers.get(each.producer_id)
                if own is None or own.transaction_first_offset is None or own.producer_epoch not in each.data_epochs:
                    continue
                if not self._is_known(each.transactional_id, each.producer_id, place):
                    first, epoch = own.transaction_first_offset, own.producer_epoch
                    transactions[Hanging(place, first, each.producer_id, epoch, own.coordinator_epoch, why)] = None
        return list(transactions)

    def judged(self, history: History) -> tuple[list[str], list[str]]:
        """Return the broken promises that count; and what Kafka breaks, too, and why."""
        broken, excused = [], [f"{each} hangs, since {each.why}" for each in self.aborted]
        excused += history.deliveries.excused
        for promise in dict.fromkeys(history.violations):
            why = [self.excused[each] for each in sorted(history.concerned[promise]) if each in self.excused]
            if why:
                excused.append(f"{promise}, since {why[0]}")
            else:
                broken.append(promise)
        return broken, excused

    def _is_known(self, name: str, producer_id: int, place: Place) -> bool:
        """Whether a coordinator has the partition in the id's transaction, whose marker then ends the hanging one.

        A marker of another producer id, which the transactional id has after its last epoch, does not end it.
        """
        nodes = self._servers.cluster.nodes.values()
        known = (
            own.machine.transactions.get(name) for node in nodes for own in node.coordinators.transactions.values()
        )
        own = (record for record in known if record is not None and record.producer_id == producer_id)
        return any(place in (record.partitions or ()) for record in own)


def unreplicated(log: PartitionLog, index: int, now_ms: int) -> list[Uncertain]:
    """List the open and ended transactions in a log of ``__transaction_state`` beyond its high watermark.

    ``places`` are the partitions that only those records have.
    """
    replicated: dict[str, TransactionRecord] = {}
    problems = []
    for batch in log.reader.replay_from(log.log_start_offset) if log.high_watermark < log.log_end_offset else ():
        for each in () if batch.is_control else read_records(batch):
            record = decode(each.key, each.value)
            if not isinstance(record, TransactionRecord):
                continue
            if each.offset < log.high_watermark:
                replicated[record.transactional_id] = record
            elif record.state is TransactionState.ONGOING or record.state in COMPLETED_BY:
                ended = record.state is not TransactionState.ONGOING
                epoch, known = record.producer_epoch, replicated.get(record.transactional_id)
                before = None if known is None else known.partitions
                if known is None or (known.producer_id, known.state) != (record.producer_id, TransactionState.ONGOING):
                    before = None
                problems.append(
                    Uncertain(
                        record.transactional_id,
                        record.producer_id,
                        (epoch - 1, epoch) if ended else (epoch,),
                        (record.partitions or frozenset()) - (before or frozenset()),
                        now_ms,
                        (index, each.offset, batch.partition_leader_epoch),
                    )
                )
    return problems
