"""When a periodic scan has something to find.

Kafka looks over its transactions every ten seconds, and for expired ids every hour. A timer at each of those instants
would wake fifty coordinators for nothing, and make a test that pushes time by a week wait for all of them. So the timer
is set to the first of those instants at which something is due; what a client can see is the same.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from broker.coordination.outcome import Outcome, SetTimer
from protocol.log_records.transaction import TransactionRecord, TransactionState

NEVER_TIMES_OUT_MS = 2**31 - 1
"""The timeout of a transaction with two-phase commit (KIP-939)."""


class Settings(Protocol):
    """What the coordinator asks of the broker's settings."""

    def int(self, name: str) -> int:
        """A setting by Kafka's own name."""
        ...


def may_time_out(record: TransactionRecord) -> bool:
    """Whether the coordinator will abort it one day, unasked."""
    return record.state is TransactionState.ONGOING and record.timeout_ms != NEVER_TIMES_OUT_MS


def timed_out(record: TransactionRecord, now_ms: int) -> bool:
    """Whether it is open for longer than its timeout, counted from its first partition."""
    return may_time_out(record) and record.start_ms + record.timeout_ms < now_ms


class Scan:
    """A scan at ``started_ms + n * interval_ms``. Soft state: what is armed is forgotten with the machine."""

    def __init__(self, key: str, interval_ms: Callable[[], int], then: Callable[[int], Outcome]) -> None:
        self._key, self._interval_ms, self._then = key, interval_ms, then
        self._started_ms = 0
        self._armed_ms: int | None = None

    def start(self, now_ms: int) -> None:
        """Count the instants from now."""
        self._started_ms, self._armed_ms = now_ms, None

    def forget(self) -> None:
        """The timer has fired, or was never set because the records before it were refused."""
        self._armed_ms = None

    def watch(self, due_after_ms: int, now_ms: int) -> tuple[SetTimer, ...]:
        """The timer for something that is due once ``due_after_ms`` has passed; none if an earlier one is set."""
        at_ms = self._first_after(max(due_after_ms, now_ms))
        if self._armed_ms is not None and self._armed_ms <= at_ms:
            return ()
        self._armed_ms = at_ms
        return (SetTimer(self._key, at_ms, self._then),)

    def watch_all(self, due_after_ms: Iterable[int], now_ms: int) -> tuple[SetTimer, ...]:
        """The timer for the earliest of them; none where there is nothing to wait for."""
        earliest_ms = min(due_after_ms, default=None)
        return () if earliest_ms is None else self.watch(earliest_ms, now_ms)

    def _first_after(self, instant_ms: int) -> int:
        interval_ms = self._interval_ms()
        return self._started_ms + (max(instant_ms - self._started_ms, 0) // interval_ms + 1) * interval_ms
