"""Completion of prepared transactions: markers, their results, and the Complete record (transactions B.6)."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from broker.coordination.outcome import Outcome, SetTimer, TransactionOutcome, WriteMarkers
from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.coordination.transaction.scans import Scans
from broker.coordination.transaction.states import KIP_98, MarkerFate, append_error, marker_fate
from broker.coordination.transaction.transitions import ProducerIdAndEpoch, Transitions
from broker.time.timers import Rhythm
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition, TransactionRecord, TransactionState

# --- one transaction --------------------------------------------------------------------------------------------------

FIRST_RETRY_MS = 20
LAST_RETRY_MS = 500


class Progress(Enum):
    """Progress of a transaction's markers after some results."""

    WAITING = "waiting"
    AGAIN = "again"
    """Some must be sent again, and no retry is scheduled yet."""
    DONE = "done"


class Completion:
    """Soft state between the Prepare and the Complete record; after a load it restarts with all partitions.

    Once ``fenced``, no more markers are sent: another coordinator has the transaction (transactions B.6).
    """

    __slots__ = ("_retry_ms", "again", "fenced", "outstanding")

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.outstanding = set(partitions)
        self.again: set[TopicPartition] = set()
        self.fenced = False
        self._retry_ms = FIRST_RETRY_MS

    def note(self, results: Mapping[TopicPartition, ErrorCode]) -> Progress:
        """Note the results of some partitions' markers.

        A fencing error stops the sending; written markers still count, so that DescribeTransactions lists only
        the others (TransactionMarkerRequestCompletionHandler).
        """
        arranged = bool(self.again)
        for partition, result in results.items():
            match marker_fate(result):
                case MarkerFate.WRITTEN:
                    self.outstanding.discard(partition)
                case MarkerFate.AGAIN:
                    self.again.add(partition)
                case MarkerFate.FENCED:
                    self.fenced = True
        if self.fenced:
            return Progress.WAITING
        if not self.outstanding:
            return Progress.DONE
        return Progress.AGAIN if self.again and not arranged else Progress.WAITING

    def take_again(self) -> frozenset[TopicPartition]:
        """Return the partitions whose markers are to be sent again, and clear them."""
        partitions, self.again = frozenset(self.again), set()
        return partitions

    def back_off(self) -> int:
        """Return the delay before the next attempt (ms), which doubles each time, up to half a second."""
        wait_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, LAST_RETRY_MS)
        return wait_ms


# --- all of them ------------------------------------------------------------------------------------------------------

_COMMITTED = Reason("committed", "transactions B.6", KIP_98)
_ABORTED = Reason("aborted", "transactions B.6", KIP_98)
CANNOT_BE_COMPLETED = "cannot be completed"
"""Event name of a transaction whose Complete record cannot be written."""

_AGAIN = Rhythm(LAST_RETRY_MS, lambda: None)
"""Rhythm of retries after a leader's silence or a refused append: a push of the clock skips them, as useless."""


def markers_of(record: TransactionRecord, partitions: frozenset[TopicPartition] | None = None) -> WriteMarkers:
    """Return the markers of a prepared transaction, by default for all its partitions.

    They carry the producer id before a rotation, and the epoch of the Prepare record.
    """
    return WriteMarkers(
        record.transactional_id,
        record.producer_id,
        record.producer_epoch,
        record.state is TransactionState.PREPARE_COMMIT,
        (record.partitions or frozenset()) if partitions is None else partitions,
        record.client_transaction_version,
    )


def _stuck(record: TransactionRecord, refusal: Refusal) -> TransactionOutcome:
    """Return the outcome if the Complete record cannot be written; only a reload of the coordinator retries it.

    In Kafka, NetworkClient catches the error and logs "Uncaught error in request completion". It happens if
    transaction.version was lowered below 2 while the markers of a transaction of that version were written.
    """
    reason = Reason(CANNOT_BE_COMPLETED, refusal.rule, refusal.source, refusal.sentence)
    state, epoch = record.state.text, record.producer_epoch
    change = StateChange(record.transactional_id, reason, state, state, epoch, epoch)
    return Outcome(changes=(change,), refusal=refusal)


def producer_of(record: TransactionRecord) -> ProducerIdAndEpoch:
    """Return the current producer of a transactional id."""
    return ProducerIdAndEpoch(record.producer_id, record.producer_epoch)


class Completions:
    """The transactions whose markers are being written; ``under_way`` has their progress by transactional id."""

    def __init__(self, transactions: Mapping[str, TransactionRecord], steps: Transitions, scans: Scans) -> None:
        self.under_way: dict[str, Completion] = {}
        self._transactions, self._steps, self._scans = transactions, steps, scans

    def markers_written(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        results: Mapping[TopicPartition, ErrorCode],
        now_ms: int,
        *,
        completes: bool = True,
    ) -> TransactionOutcome:
        """See :meth:`~broker.coordination.transaction.machine.TransactionMachine.markers_written`."""
        found = self._find(name, producer)
        if found is None:
            return Outcome()
        record, completion = found
        progress = completion.note(results)
        if progress is Progress.DONE:
            return self._complete(record, completion, now_ms) if completes else Outcome()
        if progress is Progress.AGAIN:
            return self._later(name, completion, now_ms, lambda _: self._send_again(name, producer))
        return Outcome()

    def _find(self, name: str, producer: ProducerIdAndEpoch) -> tuple[TransactionRecord, Completion] | None:
        """Return the prepared transaction of these markers, unless it has ended or has another producer by now."""
        record, completion = self._transactions.get(name), self.under_way.get(name)
        if record is None or completion is None or producer != producer_of(record):
            return None
        return record, completion

    def _send_again(self, name: str, producer: ProducerIdAndEpoch) -> TransactionOutcome:
        found = self._find(name, producer)
        if found is None or found[1].fenced:
            return Outcome()
        return Outcome(effects=(markers_of(found[0], found[1].take_again()),))

    def _complete(self, record: TransactionRecord, completion: Completion, now_ms: int) -> TransactionOutcome:
        name, producer = record.transactional_id, producer_of(record)

        def refused(error: KafkaError, at_ms: int) -> TransactionOutcome:
            # Retry if the log may be writable later; a coordinator that no longer leads its log stops.
            if append_error(error.code) is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                return Outcome()
            return self._later(
                name, completion, at_ms, lambda then_ms: self.markers_written(name, producer, {}, then_ms)
            )

        try:
            done = self._steps.completed(record, now_ms)
        except Refusal as refusal:
            return _stuck(record, refusal)
        reason = _COMMITTED if done.state is TransactionState.COMPLETE_COMMIT else _ABORTED
        effects = self._scans.watch_expiry(done, now_ms)
        return Outcome((done,), effects, on_append_error=self._scans.rearming(refused), reason=reason)

    @staticmethod
    def _later(
        name: str, completion: Completion, now_ms: int, then: Callable[[int], TransactionOutcome]
    ) -> TransactionOutcome:
        return Outcome(effects=(SetTimer(("markers", name), now_ms + completion.back_off(), then, _AGAIN),))
