"""What a transactional id does without a request: its timeouts, and the completion of prepared transactions.

Scans find transactions that time out and ids that expire (transactions B.7, B.8). Completions send markers, take their
results, and write the Complete record (transactions B.6).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from broker.coordination.outcome import Outcome, SetTimer, TransactionOutcome, WriteMarkers
from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.coordination.settings import Settings
from broker.coordination.transaction.states import IDLE, KIP_98, MarkerFate, append_error, marker_fate
from broker.coordination.transaction.transitions import ProducerIdAndEpoch, Transitions
from broker.time.timers import Rhythm
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition, TransactionRecord, TransactionState

# --- scans -----------------------------------------------------------------------------------------------------------
#
# Kafka scans for timeouts every ten seconds, and for expired ids every hour. A timer for each scan would wake fifty
# coordinators for nothing, and slow down a test that advances the clock by a week. So the timer is set to the first
# scan that will find something; clients see no difference.

NEVER_TIMES_OUT_MS: Final = 2**31 - 1
"""The timeout of a transaction with two-phase commit (KIP-939)."""
_TIMEOUT_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
_EXPIRY_INTERVAL: Final = "transaction.remove.expired.transaction.cleanup.interval.ms"


def may_time_out(record: TransactionRecord) -> bool:
    """Return whether the coordinator will abort this transaction once its timeout has passed."""
    return record.state is TransactionState.ONGOING and record.timeout_ms != NEVER_TIMES_OUT_MS


def timed_out(record: TransactionRecord, now_ms: int) -> bool:
    """Return whether the transaction has been open for longer than its timeout, from its first partition on."""
    # At its very deadline a transaction may still commit.
    return may_time_out(record) and record.start_ms + record.timeout_ms < now_ms


class Scan:
    """A scan at ``started_ms + n * interval_ms``. Soft state: its timer is lost with the machine."""

    def __init__(self, key: str, interval_ms: Callable[[], int], then: Callable[[int], TransactionOutcome]) -> None:
        self._key, self._interval_ms, self._then = key, interval_ms, then
        self._started_ms = 0
        self._armed_ms: int | None = None

    def start(self, now_ms: int) -> None:
        """Count the intervals from now."""
        self._started_ms, self._armed_ms = now_ms, None

    def disarmed(self) -> None:
        """Note that the timer has fired, or was never set because its outcome's records were refused."""
        self._armed_ms = None

    def watch(self, due_after_ms: int, now_ms: int, next_ms: int | None = None) -> tuple[SetTimer, ...]:
        """Return the timer of the first scan after ``due_after_ms``; none if an earlier one is armed.

        If ``due_after_ms`` has passed already, an earlier scan could not do its work; then time alone gives the scan
        something new only after ``next_ms``.
        """
        at_ms = self._first_after(max(due_after_ms, now_ms))
        if self._armed_ms is not None and self._armed_ms <= at_ms:
            return ()
        self._armed_ms = at_ms
        rhythm = Rhythm(self._interval_ms(), lambda: None if next_ms is None else next_ms + 1)
        return (SetTimer(self._key, at_ms, self._then, rhythm if due_after_ms < now_ms else None),)

    def watch_all(self, due_after_ms: Iterable[int], now_ms: int) -> tuple[SetTimer, ...]:
        """Return the timer for the earliest of these times; none if there are none."""
        known_ms = list(due_after_ms)
        next_ms = min((each for each in known_ms if each >= now_ms), default=None)
        return self.watch(min(known_ms), now_ms, next_ms) if known_ms else ()

    def _first_after(self, instant_ms: int) -> int:
        interval_ms = self._interval_ms()
        return self._started_ms + (max(instant_ms - self._started_ms, 0) // interval_ms + 1) * interval_ms


class Scans:
    """The two scans of a machine: for open transactions that time out, and for ids that expire."""

    def __init__(
        self,
        settings: Settings,
        transactions: Mapping[str, TransactionRecord],
        stuck: Collection[str],
        scan_timeouts: Callable[[int], TransactionOutcome],
        scan_expired: Callable[[int], TransactionOutcome],
    ) -> None:
        self._settings, self._transactions, self._stuck = settings, transactions, stuck
        self._timeouts = Scan("timeouts", lambda: settings.int(_TIMEOUT_INTERVAL), scan_timeouts)
        self._expiries = Scan("expiries", lambda: settings.int(_EXPIRY_INTERVAL), scan_expired)

    def start(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Count the intervals from now, and arm both scans."""
        self._timeouts.start(now_ms)
        self._expiries.start(now_ms)
        return (*self._arm_timeouts(now_ms), *self._arm_expiries(now_ms))

    def rearming(
        self, refused: Callable[[KafkaError, int], TransactionOutcome]
    ) -> Callable[[KafkaError, int], TransactionOutcome]:
        """Return ``refused`` with both scans armed again, as timers of an outcome that is not appended are not set."""

        def call(error: KafkaError, now_ms: int) -> TransactionOutcome:
            outcome = refused(error, now_ms)
            self._timeouts.disarmed()
            self._expiries.disarmed()
            timers = (*self._arm_timeouts(now_ms), *self._arm_expiries(now_ms))
            return replace(outcome, effects=(*outcome.effects, *timers))

        return call

    # --- timeouts ----------------------------------------------------------------------------------------------------

    def late(self, now_ms: int) -> list[str]:
        """Return the ids whose transaction has been open for longer than its timeout."""
        return [name for name, record in self._movable() if timed_out(record, now_ms)]

    def after_timeouts(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the next scan for timeouts after one has run."""
        self._timeouts.disarmed()
        return self._arm_timeouts(now_ms)

    def watch_timeout(self, record: TransactionRecord, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the scan for timeouts for a transaction that begins."""
        return self._timeouts.watch(record.start_ms + record.timeout_ms, now_ms) if may_time_out(record) else ()

    def _arm_timeouts(self, now_ms: int) -> tuple[SetTimer, ...]:
        deadlines = (r.start_ms + r.timeout_ms for _, r in self._movable() if may_time_out(r))
        return self._timeouts.watch_all(deadlines, now_ms)

    # --- expiry ------------------------------------------------------------------------------------------------------

    def expired(self, now_ms: int) -> set[str]:
        """Return the ids unused for ``transactional.id.expiration.ms``."""
        unused_since_ms = now_ms - self._settings.int("transactional.id.expiration.ms")
        return {name for name, record in self._idle() if record.last_update_ms <= unused_since_ms}

    def after_expired(self, now_ms: int, expired: set[str]) -> tuple[SetTimer, ...]:
        """Arm the next scan for expired ids after one has found these."""
        self._expiries.disarmed()
        return self._arm_expiries(now_ms, without=expired)

    def watch_expiry(self, record: TransactionRecord, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the scan for expired ids for an id that becomes idle."""
        return self._expiries.watch(self._expires_after(record), now_ms)

    def _arm_expiries(self, now_ms: int, without: Iterable[str] = ()) -> tuple[SetTimer, ...]:
        left = (record for name, record in self._idle() if name not in without)
        return self._expiries.watch_all((self._expires_after(record) for record in left), now_ms)

    def _idle(self) -> Iterator[tuple[str, TransactionRecord]]:
        return ((name, record) for name, record in self._movable() if record.state in IDLE)

    def _movable(self) -> Iterator[tuple[str, TransactionRecord]]:
        """Iterate over all ids except stuck ones, which Kafka's scans skip."""
        return ((name, record) for name, record in self._transactions.items() if name not in self._stuck)

    def _expires_after(self, record: TransactionRecord) -> int:
        # Expiry compares with "<=", a timeout with "<": hence one millisecond less.
        return record.last_update_ms + self._settings.int("transactional.id.expiration.ms") - 1


# --- one transaction --------------------------------------------------------------------------------------------------

# Kafka sends again in the next round of its sender, without a backoff (transactions B.6). Here a leader that stays away
# would keep the event loop busy. Both are ours, and the time doubles: a client waits for the markers with its next
# transaction, and does not notice 20 ms; after 500 it has its own backoff.
FIRST_RETRY_MS: Final = 20
LAST_RETRY_MS: Final = 500


class Progress(Enum):
    """Progress of a transaction's markers after some results."""

    WAITING = "waiting"
    RETRY = "retry"
    """Some must be sent again, and no retry is scheduled yet."""
    DONE = "done"


class Completion:
    """Soft state between the Prepare and the Complete record; after a load it restarts with all partitions.

    Once ``fenced``, no more markers are sent: another coordinator has the transaction (transactions B.6).
    """

    __slots__ = ("_retry_ms", "fenced", "outstanding", "to_retry")

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.outstanding = set(partitions)
        self.to_retry: set[TopicPartition] = set()
        self.fenced = False
        self._retry_ms = FIRST_RETRY_MS

    def note(self, results: Mapping[TopicPartition, ErrorCode]) -> Progress:
        """Note the results of some partitions' markers.

        A fencing error stops the sending; written markers still count, so that DescribeTransactions lists only
        the others (TransactionMarkerRequestCompletionHandler).
        """
        retry_is_scheduled = bool(self.to_retry)
        for partition, result in results.items():
            match marker_fate(result):
                case MarkerFate.WRITTEN:
                    self.outstanding.discard(partition)
                case MarkerFate.RETRY:
                    self.to_retry.add(partition)
                case MarkerFate.FENCED:
                    self.fenced = True
                case MarkerFate.STUCK:
                    pass  # the partition stays outstanding, and so the transaction never completes
        if self.fenced:
            return Progress.WAITING
        if not self.outstanding:
            return Progress.DONE
        return Progress.RETRY if self.to_retry and not retry_is_scheduled else Progress.WAITING

    def take_retries(self) -> frozenset[TopicPartition]:
        """Return the partitions whose markers are to be sent again, and clear them."""
        partitions, self.to_retry = frozenset(self.to_retry), set()
        return partitions

    def back_off(self) -> int:
        """Return the delay before the next attempt (ms), which doubles each time, up to half a second."""
        wait_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, LAST_RETRY_MS)
        return wait_ms


# --- all of them ------------------------------------------------------------------------------------------------------

_COMMITTED: Final = Reason("committed", "transactions B.6", KIP_98)
_ABORTED: Final = Reason("aborted", "transactions B.6", KIP_98)
CANNOT_BE_COMPLETED: Final = "cannot be completed"
"""Event name of a transaction whose Complete record cannot be written."""

_RETRY_RHYTHM: Final = Rhythm(LAST_RETRY_MS, lambda: None)
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
        stored = self._find(name, producer)
        if stored is None:
            return Outcome()
        record, completion = stored
        progress = completion.note(results)
        if progress is Progress.DONE:
            return self._complete(record, completion, now_ms) if completes else Outcome()
        if progress is Progress.RETRY:
            return self._later(name, completion, now_ms, lambda _: self._send_again(name, producer))
        return Outcome()

    def _find(self, name: str, producer: ProducerIdAndEpoch) -> tuple[TransactionRecord, Completion] | None:
        """Return the prepared transaction of these markers, unless it has ended or has another producer by now."""
        record, completion = self._transactions.get(name), self.under_way.get(name)
        if record is None or completion is None or producer != producer_of(record):
            return None
        return record, completion

    def _send_again(self, name: str, producer: ProducerIdAndEpoch) -> TransactionOutcome:
        stored = self._find(name, producer)
        if stored is None or stored[1].fenced:
            return Outcome()
        return Outcome(effects=(markers_of(stored[0], stored[1].take_retries()),))

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
        return Outcome(effects=(SetTimer(("markers", name), now_ms + completion.back_off(), then, _RETRY_RHYTHM),))
