"""What a coordinator may answer with: records to append, effects to perform.

A machine (metadata, transactions, groups) never waits, never reads a clock and does no input or output. Asked something
together with the time, it returns an :class:`Outcome`. The runtime appends the records to the machine's log, replays
them into the machine, and then performs the effects in order. After Kafka's ``CoordinatorResult``.

Replies, timers and operations for later are effects that every machine has; the runtime performs them. The other
effects are a machine's own, and a parameter of its outcomes: ``Outcome[WriteMarkers]``, ``Outcome[Never]``. So mypy
proves that each of them is performed.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.timers import Rhythm

X_co = TypeVar("X_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that waits under the token ``to``, parked or not; ``message`` may be an exception.

    A ``direct`` one goes out when it is decided: it waits for no record, and the log may refuse those of its outcome.
    """

    to: Hashable
    message: Any
    direct: bool = False


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Run ``then(now_ms)`` at ``at_ms`` (cluster clock), unless cancelled; a timer with the same key is replaced."""

    key: Hashable
    at_ms: int
    then: "Callable[[int], Outcome[Any]]" = field(compare=False)
    rhythm: Rhythm | None = field(default=None, compare=False)
    """Set for a round of periodic work. A round of which no records were appended found nothing."""


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel the timer of that key, if there is one."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class RunLater:
    """Run ``then(now_ms)`` in a later turn of the loop, as an operation of its own."""

    then: "Callable[[int], Outcome[Any]]" = field(compare=False)


@dataclass(frozen=True, slots=True)
class RunAtOnce:
    """Run ``then(now_ms)`` as soon as the records are replayed, before anything else is decided.

    For soft state that follows from the records: it does not wait for the replicas, and has no records itself.
    """

    then: "Callable[[int], Outcome[Any]]" = field(compare=False)


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write commit or abort markers to these partitions, then report to the machine (``markers_written``).

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
class TransactionalAppend:
    """Records that belong to a producer's transaction: the runtime appends them as one transactional batch.

    Used for TxnOffsetCommit; the log may refuse it as any producer's batch (fencing by epoch, verification). ``guard``
    comes from verification, ``None`` where the transaction is open there already.
    """

    producer_id: int
    producer_epoch: int
    transactional_id: str
    topic_id: UUID | None = None
    guard: object | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """A transaction marker in the machine's own log, where records that are not replicated are listed."""

    producer_id: int
    committed: bool


CommonEffect = Reply | SetTimer | CancelTimer | RunLater | RunAtOnce
"""What every machine may ask of its runtime."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[X_co]):
    """What follows from an operation: first the records (one atomic batch), then the effects, in order.

    ``transactional`` is set where the records belong to a producer's open transaction.
    ``on_append_error`` turns a refused append into another outcome (whose records, if any, are ignored), for the
    few operations that parked replies; without it the operation's caller gets the error.
    ``divisible``: the records need not be one batch, where they are too many for one (Kafka: not atomic).
    ``failed``: the operation has failed, although it has effects: they wait for no records that others have written.
    ``keeps_timers``: they are set and cancelled even if the append is refused, for soft state that is not taken back.

    For people: ``reason`` is why the records are written, ``changes`` are state changes with reasons of their own,
    ``refusal`` is what the reply refuses although the operation had an effect.
    """

    records: tuple[Any, ...] = ()
    effects: tuple[CommonEffect | X_co, ...] = ()
    transactional: TransactionalAppend | None = None
    on_append_error: "Callable[[Any, int], Outcome[X_co]] | None" = field(default=None, compare=False)
    divisible: bool = field(default=False, compare=False)
    failed: bool = field(default=False, compare=False)
    keeps_timers: bool = field(default=False, compare=False)
    reason: Reason | None = field(default=None, compare=False)
    changes: tuple[StateChange, ...] = field(default=(), compare=False)
    refusal: Refusal | None = field(default=None, compare=False)


TransactionOutcome = Outcome[WriteMarkers]


class RepliesInOrder:
    """A machine whose runtime does all that is needed: the replies wait for the replicas, in the order of the log."""

    def replicating(self, records: Sequence[Any], transaction: TransactionalAppend | None) -> None:
        """See :meth:`Machine.replicating`."""

    def replicated(self, records: Sequence[Any]) -> None:
        """See :meth:`Machine.replicated`."""


class Machine(Protocol[X_co]):
    """A coordinator's pure part. Its state changes in ``replay``; each machine's module lists what does not fit."""

    def replay(self, record: Any, offset: int, transaction: TransactionalAppend | None) -> Any:
        """Apply one record of the log, and return what it replaces, as far as observers need it.

        ``offset`` is its log offset; ``transaction`` is set for pending ones.
        """
        ...

    def replicating(self, records: Sequence[Any], transaction: TransactionalAppend | None) -> None:
        """Note that records, or the :class:`TransactionEnd` of a marker, are in the leader's log alone.

        Called before they are replayed.
        """
        ...

    def replicated(self, records: Sequence[Any]) -> None:
        """Note that all replicas in sync have these records now, which were :meth:`replicating`."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply a transaction marker found in the machine's own log, or written to it."""
        ...

    def loaded(self, now_ms: int) -> Outcome[X_co]:
        """Re-arm what a log cannot hold: timers, markers still to be written."""
        ...

    def unloaded(self) -> Outcome[X_co]:
        """Answer every parked request with NOT_COORDINATOR; called when this broker loses the partition."""
        ...
