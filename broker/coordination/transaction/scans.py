"""Scans for transactions that time out and for ids that expire (transactions B.7, B.8).

Kafka scans for timeouts every ten seconds, and for expired ids every hour. A timer for each scan would wake fifty
coordinators for nothing, and slow down a test that advances the clock by a week. So the timer is set to the first scan
that will find something; clients see no difference.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from broker.coordination.outcome import SetTimer, TransactionOutcome
from broker.coordination.settings import Settings
from broker.coordination.transaction.states import IDLE
from broker.time.timers import Rhythm
from protocol.errors import KafkaError
from protocol.log_records.transaction import TransactionRecord, TransactionState

NEVER_TIMES_OUT_MS = 2**31 - 1
"""The timeout of a transaction with two-phase commit (KIP-939)."""
_TIMEOUT_INTERVAL = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
_EXPIRY_INTERVAL = "transaction.remove.expired.transaction.cleanup.interval.ms"


def may_time_out(record: TransactionRecord) -> bool:
    """Return whether the coordinator will abort this transaction once its timeout has passed."""
    return record.state is TransactionState.ONGOING and record.timeout_ms != NEVER_TIMES_OUT_MS


def timed_out(record: TransactionRecord, now_ms: int) -> bool:
    """Return whether the transaction has been open for longer than its timeout, from its first partition on."""
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
