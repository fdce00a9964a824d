"""What a coordinator may answer with: records to remember, effects to perform.

A machine (metadata, transactions, groups) never waits, never reads a clock and does no input or output. Asked something
together with the time, it returns an :class:`Outcome`. The runtime appends the records to the machine's log, replays
them into the machine, and then performs the effects in order. After Kafka's ``CoordinatorResult``.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that was parked, or is waiting, under the token ``to``; ``message`` may be an exception."""

    to: Hashable
    message: Any


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Run ``then(now_ms)`` at ``at_ms`` (cluster clock), unless cancelled; a timer with the same key is replaced."""

    key: Hashable
    at_ms: int
    then: "Callable[[int], Outcome]" = field(compare=False)


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget the timer of that key, if there is one."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write commit or abort markers to these partitions, then tell the machine (``markers_written``).

    ``producer_epoch`` is that of the marker; ``transaction_version`` the client's (0, 1, 2), which decides how
    partition leaders check the epoch (KIP-890). ``coordinator_epoch`` is filled in by the runtime.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[tuple[str, int]]
    transaction_version: int


@dataclass(frozen=True, slots=True)
class Notify:
    """Something outside the machine has to follow a change, e.g. ``("leader", topic, partition)``."""

    what: str
    about: Any = None


@dataclass(frozen=True, slots=True)
class TransactionalAppend:
    """Records that belong to a producer's transaction: the runtime appends them as one transactional batch.

    Used for TxnOffsetCommit; refused by the log as any producer's batch is (fencing by epoch, verification). ``guard``
    is what verification has given for it, ``None`` where the transaction is open there already.
    """

    producer_id: int
    producer_epoch: int
    transactional_id: str
    topic_id: UUID | None = None
    guard: object | None = field(default=None, compare=False)


Effect = Reply | SetTimer | CancelTimer | WriteMarkers | Notify


@dataclass(frozen=True, slots=True)
class Outcome:
    """What follows from an operation: first the records (one atomic batch), then the effects, in order.

    ``transactional`` is set where the records belong to a producer's open transaction.
    ``on_append_error`` turns a refused append into another outcome (whose records, if any, are ignored), for the
    few operations that parked replies; without it the operation's caller gets the error.
    """

    records: tuple[Any, ...] = ()
    effects: tuple[Effect, ...] = ()
    transactional: TransactionalAppend | None = None
    on_append_error: "Callable[[Any, int], Outcome] | None" = field(default=None, compare=False)


class Machine(Protocol):
    """A coordinator's pure part. State changes in ``replay`` and nowhere else, save soft state such as timers."""

    def replay(self, record: Any, offset: int, transaction: TransactionalAppend | None) -> None:
        """Apply one remembered record. ``offset`` is its log offset; ``transaction`` is set for pending ones."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply a transaction marker found in (or written to) the machine's own log."""
        ...

    def loaded(self, now_ms: int) -> Outcome:
        """Re-arm what a log cannot hold: timers, markers still to be written."""
        ...

    def unloaded(self) -> Outcome:
        """Answer everything that is parked with NOT_COORDINATOR; called when this broker loses the partition."""
        ...
