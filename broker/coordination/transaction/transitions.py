"""The next record of a transactional id: its producer id and epoch, and its state, built from the record before.

InitProducerId assigns producer ids and epochs (transactions A.2, A.3; KIP-98, KIP-360). Epochs never wrap. 32766 is the
highest epoch that a client gets; 32767 is reserved for fencing and for the last transaction's markers. After that the
transactional id gets a new producer id, starting at epoch 0.

Every record has the previous producer id, so that a producer that missed its rotation can be recognised (transactions
B.3).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from broker.coordination.reasons import Reason, Refusal
from broker.coordination.transaction.states import COMPLETED_BY, IDLE, KIP_98, KIP_360, KIP_890, VALID_PREVIOUS
from protocol.errors import ErrorCode
from protocol.log_records.transaction import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP_MS,
    TopicPartition,
    TransactionRecord,
    TransactionState,
)

# --- producer ids and epochs ------------------------------------------------------------------------------------------

LAST_GIVEN_EPOCH: Final = 32766  # one below the largest int16, which is kept for fencing (transactions A.3)
MAX_EPOCH: Final = 32767
"""No client gets the last epoch: it is for fencing, and for the markers of a last transaction (transactions A.3)."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id with its epoch; (-1, -1) is none."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class Assignment(NamedTuple):
    """The result of InitProducerId. ``producer_id`` is ``None`` if a new one has to be allocated."""

    producer_id: int | None
    producer_epoch: int
    last_epoch: int
    reason: Reason


def _row(rule: str, source: str) -> Reason:
    return Reason("initialised", rule, source)


_E1, _E2, _E4 = (
    _row("transactions A.3 E1", KIP_98),
    _row("transactions A.3 E2", KIP_360),
    _row("transactions A.3 E4", KIP_98),
)
_E5, _E6, _E7 = (
    _row("transactions A.3 E5", KIP_360),
    _row("transactions A.3 E6", KIP_360),
    _row("transactions A.3 E7", KIP_360),
)


def is_exhausted(epoch: int) -> bool:
    """Return whether the next bump needs a new producer id."""
    return epoch >= LAST_GIVEN_EPOCH


def check_expected(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> None:
    """Check that the expected producer, if any, is the current one or the one before a rotation (transactions A.2 I2).

    Raises:
        Refusal: PRODUCER_FENCED.
    """
    if expected == NO_PRODUCER or stored.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if expected.producer_id == stored.producer_id:
        return
    # A producer that has exhausted its epochs may not know its new id yet.
    if expected.producer_id == stored.previous_producer_id and is_exhausted(expected.producer_epoch):
        return
    raise _fenced("transactions A.2 I2", f"the current producer id is {stored.producer_id}, not {expected.producer_id}")


def assign(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> Assignment:
    """Assign the epoch to an id without an open transaction; the first match wins (transactions A.3 E1 to E8).

    Raises:
        Refusal: PRODUCER_FENCED for a stale epoch; UNKNOWN_SERVER_ERROR where Kafka reports an illegal state
                (transactions A.3 E3).
    """
    epoch = stored.producer_epoch
    if is_exhausted(epoch):
        if expected == NO_PRODUCER:
            return Assignment(None, 0, NO_PRODUCER_EPOCH, _E1)
        if expected.producer_epoch == epoch:
            return Assignment(None, 0, epoch, _E2)
        # Kafka reports an illegal state here, although the producer is only stale.
        raise Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "transactions A.3 E3",
            "TransactionMetadata.prepareProducerIdRotation",
            f"epoch {epoch} is exhausted and the producer is at {expected.producer_epoch}",
        )
    if expected == NO_PRODUCER:
        return Assignment(stored.producer_id, epoch + 1, NO_PRODUCER_EPOCH, _E4)
    # Without an epoch the id is new to the coordinator: no other producer can have been initialised in between.
    if epoch == NO_PRODUCER_EPOCH:
        return Assignment(stored.producer_id, 0, NO_PRODUCER_EPOCH, _E5)
    if expected.producer_epoch == epoch:
        return Assignment(stored.producer_id, epoch + 1, epoch, _E6)
    if expected.producer_epoch == stored.last_epoch:
        # A retry after the response to the last bump was lost: the epoch stays (KIP-360).
        return Assignment(stored.producer_id, epoch, stored.last_epoch, _E7)
    raise _fenced(
        "transactions A.3 E8", f"epoch {expected.producer_epoch} is neither {epoch} nor the one before the last bump"
    )


def _fenced(rule: str, message: str) -> Refusal:
    return Refusal(ErrorCode.PRODUCER_FENCED, rule, KIP_360, message)


# --- records ----------------------------------------------------------------------------------------------------------

_S = TransactionState

UNWRITABLE: Final = "transactions F.2"
"""Rule that refuses a record with fields that ``transaction.version`` 0 does not have."""
TV0, TV2 = 0, 2
"""Transaction versions of clients: without and with an epoch bump per transaction (KIP-890). 1 acts as 0."""


class Transitions:
    """Builds the records. ``transaction_version`` returns the finalized level of that feature.

    ``next_producer_id`` allocates an id, or raises KafkaError if none is available.
    """

    def __init__(self, transaction_version: Callable[[], int], next_producer_id: Callable[[], int]) -> None:
        self._transaction_version, self._next_producer_id = transaction_version, next_producer_id
        self.stuck: set[str] = set()
        """Ids whose next record ``transaction.version`` 0 cannot encode: they stay in transition (transactions B.3)."""

    def unknown(self, transactional_id: str, timeout_ms: int, now_ms: int) -> TransactionRecord:
        """Return the initial record of an unknown id, without an epoch; it is never written (transactions A.1 A12)."""
        producer_id = self._next_producer_id()
        return TransactionRecord(transactional_id, producer_id, NO_PRODUCER_EPOCH, timeout_ms, _S.EMPTY, None, now_ms)

    def initialised(
        self, old: TransactionRecord, assignment: Assignment, timeout_ms: int, now_ms: int
    ) -> TransactionRecord:
        """Return the record after InitProducerId: Empty, with the producer's own timeout."""
        producer_id = self._next_producer_id() if assignment.producer_id is None else assignment.producer_id
        return self._record(
            old,
            _S.EMPTY,
            now_ms,
            producer_id=producer_id,
            epoch=assignment.producer_epoch,
            last_epoch=assignment.last_epoch,
            timeout_ms=timeout_ms,
            partitions=None,
            start_ms=NO_TIMESTAMP_MS,
            client_transaction_version=old.client_transaction_version,
        )

    def added(
        self,
        old: TransactionRecord,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
        now_ms: int,
    ) -> TransactionRecord:
        """Return the record with more partitions; the first ones begin the transaction and its timeout."""
        begins = old.state in IDLE
        return self._record(
            old,
            _S.ONGOING,
            now_ms,
            partitions=partitions if begins or old.partitions is None else old.partitions | partitions,
            start_ms=now_ms if begins else old.start_ms,
            client_transaction_version=client_transaction_version,
        )

    def prepared(
        self, old: TransactionRecord, committed: bool, client_transaction_version: int, now_ms: int
    ) -> TransactionRecord:
        """Return the Prepare record. KIP-890 bumps the epoch, or allocates a producer id if epochs are exhausted."""
        state = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT
        begins = old.state in IDLE  # an abort without a transaction is prepared and completed like any other
        partitions = frozenset() if begins else old.partitions
        start_ms = now_ms if begins else old.start_ms
        if client_transaction_version < TV2:
            return self._record(
                old,
                state,
                now_ms,
                partitions=partitions,
                start_ms=start_ms,
                client_transaction_version=client_transaction_version,
            )
        return self._bumped(old, state, now_ms, partitions, start_ms)

    def fenced(self, old: TransactionRecord, now_ms: int, *, keep_epoch: bool) -> TransactionRecord:
        """Return the Prepare record of an abort by the coordinator, which fences the producer (transactions A.5).

        ``keep_epoch``: an earlier attempt bumped the epoch, but its record could not be appended.
        """
        if self._transaction_version() >= TV2:
            return self._bumped(old, _S.PREPARE_ABORT, now_ms, old.partitions, old.start_ms)
        epoch = old.producer_epoch if keep_epoch else min(old.producer_epoch + 1, MAX_EPOCH)
        return self._record(
            old,
            _S.PREPARE_ABORT,
            now_ms,
            epoch=epoch,
            # With a last epoch, the fenced producer could return by an InitProducerId that looks like a retry
            # (transactions A.3 E7).
            last_epoch=NO_PRODUCER_EPOCH,
            partitions=old.partitions,
            start_ms=old.start_ms,
            client_transaction_version=TV0,
        )

    def completed(self, old: TransactionRecord, now_ms: int) -> TransactionRecord:
        """Return the Complete record; it switches to the producer id allocated when the epochs were exhausted."""
        rotates = old.client_transaction_version >= TV2 and old.next_producer_id != NO_PRODUCER_ID
        return self._record(
            old,
            COMPLETED_BY[old.state],
            now_ms,
            producer_id=old.next_producer_id if rotates else old.producer_id,
            epoch=0 if rotates else old.producer_epoch,
            partitions=frozenset(),
            start_ms=old.start_ms,
            client_transaction_version=old.client_transaction_version,
        )

    def _bumped(
        self,
        old: TransactionRecord,
        state: TransactionState,
        now_ms: int,
        partitions: frozenset[TopicPartition] | None,
        start_ms: int,
    ) -> TransactionRecord:
        # An abort stays at the last epoch; for a commit Kafka bumps beyond it, which is refused.
        most = MAX_EPOCH + 1 if state is _S.PREPARE_COMMIT else MAX_EPOCH
        return self._record(
            old,
            state,
            now_ms,
            epoch=min(old.producer_epoch + 1, most),
            last_epoch=old.producer_epoch,
            next_producer_id=self._next_producer_id() if is_exhausted(old.producer_epoch) else NO_PRODUCER_ID,
            partitions=partitions,
            start_ms=start_ms,
            client_transaction_version=TV2,
        )

    def _record(
        self,
        old: TransactionRecord,
        state: TransactionState,
        now_ms: int,
        *,
        partitions: frozenset[TopicPartition] | None,
        start_ms: int,
        client_transaction_version: int,
        producer_id: int | None = None,
        epoch: int | None = None,
        last_epoch: int | None = None,
        next_producer_id: int = NO_PRODUCER_ID,
        timeout_ms: int | None = None,
    ) -> TransactionRecord:
        epoch = old.producer_epoch if epoch is None else epoch
        if not 0 <= epoch <= MAX_EPOCH:
            raise Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "transactions B.3",
                "TransactionMetadata.prepareTransitionTo",
                f"epoch {epoch} is out of range",
            )
        if old.state not in VALID_PREVIOUS[state]:
            raise Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "transactions B.2",
                "TransactionState",
                f"{state.text} cannot follow {old.state.text}",
            )
        value_version = min(self._transaction_version(), 1)
        if client_transaction_version and not value_version:
            # Kafka fails to encode fields that version 0 of the record does not have, and the transition stays pending.
            self.stuck.add(old.transactional_id)
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                UNWRITABLE,
                KIP_890,
                "transaction.version 0 has no KIP-890 transactions, and the id stays in transition: "
                "raise transaction.version again, then move or restart the coordinator",
            )
        return TransactionRecord(
            old.transactional_id,
            old.producer_id if producer_id is None else producer_id,
            epoch,
            old.timeout_ms if timeout_ms is None else timeout_ms,
            state,
            partitions,
            now_ms,
            start_ms,
            old.producer_id,
            next_producer_id,
            client_transaction_version,
            value_version,
            old.last_epoch if last_epoch is None else last_epoch,
        )
