"""Records of a transaction's transitions, built from the record before (transactions B.3).

Every record has the previous producer id, so that a producer that missed its rotation can be recognised.
"""

from collections.abc import Callable

from broker.coordination.reasons import Refusal
from broker.coordination.transaction.epochs import MAX_EPOCH, Assignment, is_exhausted
from broker.coordination.transaction.refusals import KIP_890
from broker.coordination.transaction.states import COMPLETED_BY, IDLE, VALID_PREVIOUS
from protocol.errors import ErrorCode
from protocol.log_records.transaction import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP_MS,
    TopicPartition,
    TransactionRecord,
    TransactionState,
)

_S = TransactionState

UNWRITABLE = "transactions F.2"
"""Rule that refuses a record with fields that ``transaction.version`` 0 does not have."""
TV0, TV2 = 0, 2
"""Transaction protocol of a client: without and with an epoch bump per transaction (KIP-890). 1 acts as 0."""


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

    def initialised(self, old: TransactionRecord, given: Assignment, timeout_ms: int, now_ms: int) -> TransactionRecord:
        """Return the record after InitProducerId: Empty, with the producer's own timeout."""
        producer_id = self._next_producer_id() if given.producer_id is None else given.producer_id
        return self._record(
            old,
            _S.EMPTY,
            now_ms,
            producer_id=producer_id,
            epoch=given.producer_epoch,
            last_epoch=given.last_epoch,
            timeout_ms=timeout_ms,
            partitions=None,
            start_ms=NO_TIMESTAMP_MS,
            client=old.client_transaction_version,
        )

    def added(
        self, old: TransactionRecord, partitions: frozenset[TopicPartition], client: int, now_ms: int
    ) -> TransactionRecord:
        """Return the record with more partitions; the first ones begin the transaction and its timeout."""
        begins = old.state in IDLE
        return self._record(
            old,
            _S.ONGOING,
            now_ms,
            partitions=partitions if begins or old.partitions is None else old.partitions | partitions,
            start_ms=now_ms if begins else old.start_ms,
            client=client,
        )

    def prepared(self, old: TransactionRecord, committed: bool, client: int, now_ms: int) -> TransactionRecord:
        """Return the Prepare record. KIP-890 bumps the epoch, or allocates a producer id if epochs are exhausted."""
        state = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT
        begins = old.state in IDLE  # an abort without a transaction is prepared and completed like any other
        partitions = frozenset() if begins else old.partitions
        start_ms = now_ms if begins else old.start_ms
        if client < TV2:
            return self._record(old, state, now_ms, partitions=partitions, start_ms=start_ms, client=client)
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
            last_epoch=NO_PRODUCER_EPOCH,
            partitions=old.partitions,
            start_ms=old.start_ms,
            client=TV0,
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
            client=old.client_transaction_version,
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
            client=TV2,
        )

    def _record(
        self,
        old: TransactionRecord,
        state: TransactionState,
        now_ms: int,
        *,
        partitions: frozenset[TopicPartition] | None,
        start_ms: int,
        client: int,
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
        if client and not value_version:
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
            client,
            value_version,
            old.last_epoch if last_epoch is None else last_epoch,
        )
