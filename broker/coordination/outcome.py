"""Results of a coordinator's operation: records to append and effects to perform.

A machine (metadata, transactions, groups) never waits, never reads a clock and does no I/O. Each operation receives
the current time and returns an :class:`Outcome`. The runtime appends the records to the machine's log, replays them
into the machine, and then performs the effects in order. After Kafka's ``CoordinatorResult``.

Replies, timers and postponed operations are effects of every machine; the runtime performs them. All other effects
belong to one machine and are the type parameter of its outcomes: ``Outcome[WriteMarkers]``, ``Outcome[Never]``. So
mypy proves that each of them is performed.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.time.timers import Rhythm
from protocol.deferred import dataclass

X_co = TypeVar("X_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that waits under the token ``to``, parked or not; ``message`` may be an exception.

    A ``direct`` reply is sent immediately: it does not wait for replication, and is sent even if the log refuses the
    records of its outcome.
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
    """Set for a round of periodic work. A round that appends no records found nothing to do."""


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel the timer with that key, if there is one."""

    key: Hashable


@dataclass(frozen=True, slots=True)
class RunLater:
    """Run ``then(now_ms)`` as a separate operation in a later iteration of the event loop."""

    then: "Callable[[int], Outcome[Any]]" = field(compare=False)


@dataclass(frozen=True, slots=True)
class RunAtOnce:
    """Run ``then(now_ms)`` as soon as the records are replayed, before any other operation.

    For soft state derived from the records: it does not wait for replication, and writes no records itself.
    """

    then: "Callable[[int], Outcome[Any]]" = field(compare=False)


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Write commit or abort markers to these partitions, then report to the machine (``markers_written``).

    ``producer_epoch`` goes into the marker. ``transaction_version`` is the client's (0, 1, 2) and decides how partition
    leaders check the epoch (KIP-890). The runtime adds the coordinator epoch.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[tuple[str, int]]
    transaction_version: int


@dataclass(frozen=True, slots=True)
class TransactionalAppend:
    """The transaction that the records belong to: the runtime appends them as one transactional batch.

    Used for TxnOffsetCommit. The log may refuse it like any producer's batch (epoch fencing, verification). ``guard``
    comes from verification; ``None`` if the transaction is already open in that partition.
    """

    producer_id: int
    producer_epoch: int
    transactional_id: str
    topic_id: UUID | None = None
    guard: object | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """A transaction marker in the machine's own log, listed among the records that are not replicated yet."""

    producer_id: int
    committed: bool


CommonEffect = Reply | SetTimer | CancelTimer | RunLater | RunAtOnce
"""Effects of every machine, which the runtime performs itself."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[X_co]):
    """Result of an operation: records, appended first as one atomic batch, then effects, performed in order.

    ``transactional`` is set if the records belong to a producer's open transaction.
    ``on_append_error`` turns a refused append into another outcome, whose records are ignored; it is for the few
    operations that park replies. Without it, the operation's caller gets the error.
    ``divisible``: the records may be split into several batches if they do not fit into one (Kafka: not atomic).
    ``failed``: the operation failed, but has effects; they do not wait for the records of earlier operations.
    ``keeps_timers``: timers are set and cancelled even if the append is refused, as soft state is not rolled back.

    For observers: ``reason`` explains the records, ``changes`` are state changes with their own reasons, and
    ``refusal`` is the error in the reply of an operation that nevertheless has effects.
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
    """A machine that does not track replication: its runtime alone delays replies, in log order."""

    def replicating(self, records: Sequence[Any], transaction: TransactionalAppend | None) -> None:
        """See :meth:`Machine.replicating`."""

    def replicated(self, records: Sequence[Any]) -> None:
        """See :meth:`Machine.replicated`."""


class Machine(Protocol[X_co]):
    """The deterministic part of a coordinator. Only ``replay`` changes its state; each module lists exceptions."""

    def replay(self, record: Any, offset: int, transaction: TransactionalAppend | None) -> Any:
        """Apply one record of the log, and return the state that it replaces, as far as observers need it.

        ``offset`` is the record's log offset; ``transaction`` is set for records of an open transaction.
        """
        ...

    def replicating(self, records: Sequence[Any], transaction: TransactionalAppend | None) -> None:
        """Note that only the leader's log has these records, or the :class:`TransactionEnd` of a marker.

        Called before they are replayed.
        """
        ...

    def replicated(self, records: Sequence[Any]) -> None:
        """Note that all in-sync replicas now have these records, which were passed to :meth:`replicating`."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply a transaction marker that was read from the machine's own log or written to it."""
        ...

    def loaded(self, now_ms: int) -> Outcome[X_co]:
        """Restore the soft state that the log does not hold: timers, and markers that are still to be written."""
        ...

    def unloaded(self) -> Outcome[X_co]:
        """Answer every parked request with NOT_COORDINATOR. Called when this broker stops leading the partition."""
        ...
