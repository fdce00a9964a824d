"""Rules of the operations on an open transaction: which producer may add partitions, and which may end it.

The order of the checks is Kafka's, and differs between releases and between clients before and since KIP-890. It is
seen from outside: of two things that are wrong, the first one that is checked names the error.
"""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from broker.coordination.outcome import Outcome, Reply, TransactionOutcome
from broker.coordination.reasons import Reason, Refusal
from broker.coordination.transaction.states import COMPLETED_BY, KIP_98, KIP_890, append_error
from broker.coordination.transaction.transitions import LAST_GIVEN_EPOCH, ProducerIdAndEpoch
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition, TransactionRecord, TransactionState

_S = TransactionState

# --- shared by several operations -------------------------------------------------------------------------------------


def concurrent(rule: str, source: str) -> Refusal:
    """Return CONCURRENT_TRANSACTIONS: the previous transaction is not complete, and the producer has to retry."""
    message = "the previous transaction is not complete: markers are still to be written"
    return Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, rule, source, message)


def check_not_prepared(stored: TransactionRecord, rule: str, source: str) -> None:
    """Raise CONCURRENT_TRANSACTIONS if the transaction is decided and not complete."""
    if stored.state in COMPLETED_BY:
        raise concurrent(rule, source)


def check_producer_id(stored: TransactionRecord, producer_id: int, rule: str, source: str) -> None:
    """Raise INVALID_PRODUCER_ID_MAPPING unless this is the stored producer id."""
    if producer_id != stored.producer_id:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            rule,
            source,
            f"{stored.transactional_id} has producer id {stored.producer_id}, not {producer_id}",
        )


def check_epoch(stored: TransactionRecord, producer_epoch: int, rule: str, source: str) -> None:
    """Raise PRODUCER_FENCED unless this is the stored epoch; higher ones are fenced too."""
    # Not only lower ones: the coordinator assigned every epoch, so a higher one belongs to no producer.
    if producer_epoch != stored.producer_epoch:
        raise Refusal(
            ErrorCode.PRODUCER_FENCED,
            rule,
            source,
            f"{stored.transactional_id} is at epoch {stored.producer_epoch}, not {producer_epoch}",
        )


def not_appended(error: KafkaError, to: Hashable) -> TransactionOutcome:
    """Return the outcome if the log refused the record: the error that clients receive (transactions B.4)."""
    if to is None:
        return Outcome()
    source, sentence = "TransactionStateManager.appendTransactionToLog", f"the log refused the record: {error}"
    refusal = Refusal(append_error(error.code), "transactions B.4", source, error.message, sentence=sentence)
    return Outcome(effects=(Reply(to, refusal),), refusal=refusal)


# --- AddPartitionsToTxn -----------------------------------------------------------------------------------------------

BEGUN: Final = Reason("begun", "transactions C.1.1 P14", KIP_98)
ADDED: Final = Reason("partitions added", "transactions C.1.1 P14", KIP_98)


def check_may_add(
    stored: TransactionRecord, producer: ProducerIdAndEpoch, *, transition_pending: bool, pending_first: bool
) -> None:
    """Refuse a producer other than the current one, and all producers while the previous transaction is completed.

    ``transition_pending``: its markers, or a record of this id, are still being written. ``pending_first``: check this
    before the producer, as since 4.0; older releases check the producer first.

    Raises:
        Refusal: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED.
    """
    if transition_pending and pending_first:
        raise concurrent("transactions C.1.1 P8", KIP_98)
    # The id before the epoch: epochs of two producer ids cannot be compared.
    check_producer_id(stored, producer.producer_id, "transactions C.1.1 P9", KIP_98)
    check_epoch(stored, producer.producer_epoch, "transactions C.1.1 P10", KIP_98)
    if transition_pending:
        raise concurrent("transactions C.1.1 P11", KIP_98)
    check_not_prepared(stored, "transactions C.1.1 P12", KIP_98)


def not_added(codes: Mapping[TopicPartition, ErrorCode]) -> Refusal | None:
    """Return the refusal of partitions that are not in the transaction (transactions C.1.3 V8); ``None`` if all are."""
    missing = sorted(f"{topic}-{index}" for (topic, index), code in codes.items() if code is not ErrorCode.NONE)
    if not missing:
        return None
    message = f"{', '.join(missing)} is not in the transaction"
    return Refusal(ErrorCode.TRANSACTION_ABORTABLE, "transactions C.1.3 V8", KIP_890, message)


# --- EndTxn -----------------------------------------------------------------------------------------------------------


class Ending(Enum):
    """The effect of an accepted EndTxn."""

    PREPARE = "prepare"
    """Write the decision, then the markers."""
    REPEAT = "repeat"
    """A retry of a completed EndTxn: repeat the reply and write nothing."""


class EndRequest(NamedTuple):
    """The producer that ends its transaction, and whether it commits."""

    producer_id: int
    producer_epoch: int
    committed: bool


_OLDER_ROWS: Mapping[TransactionState, str] = {
    _S.COMPLETE_COMMIT: "transactions C.3.1 T8",
    _S.COMPLETE_ABORT: "transactions C.3.1 T9",
    _S.PREPARE_COMMIT: "transactions C.3.1 T10",
    _S.PREPARE_ABORT: "transactions C.3.1 T11",
    _S.EMPTY: "transactions C.3.1 T12",
}
_OLDER: Final = "transactions C.3.1 T7", KIP_98
_NEWER: Final = "transactions C.3.2 U6", KIP_890
_REASONS: Final = {
    (committed, newer): Reason("commit decided" if committed else "abort decided", *(_NEWER if newer else _OLDER))
    for committed in (False, True)
    for newer in (False, True)
}


def reason_of_end(request: EndRequest, *, newer: bool) -> Reason:
    """Return the reason of a Prepare record."""
    return _REASONS[request.committed, newer]


def end_by_older_client(stored: TransactionRecord, request: EndRequest, *, transition_pending: bool) -> Ending:
    """Decide EndTxn 0 to 4 (transactions C.3.1 T4 to T12).

    ``transition_pending``: markers of the previous transaction, or a record of this id, are still being written.

    Raises:
        Refusal: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS or INVALID_TXN_STATE.
    """
    # The producer first: a zombie is fenced even while markers are written, and does not retry.
    check_producer_id(stored, request.producer_id, "transactions C.3.1 T4", KIP_98)
    check_epoch(stored, request.producer_epoch, "transactions C.3.1 T5", KIP_98)
    if transition_pending:
        raise concurrent("transactions C.3.1 T6", KIP_98)
    done = _S.COMPLETE_COMMIT if request.committed else _S.COMPLETE_ABORT
    under_way = _S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT
    if stored.state is _S.ONGOING:
        return Ending.PREPARE
    if stored.state is done:
        return Ending.REPEAT
    if stored.state is under_way:
        raise concurrent(_OLDER_ROWS[stored.state], KIP_98)
    raise _wrong_state(stored, _OLDER_ROWS[stored.state], KIP_98)


def end_by_newer_client(stored: TransactionRecord, request: EndRequest, *, transition_pending: bool) -> Ending:
    """Decide EndTxn 5 (transactions C.3.2 U3 to U6).

    An epoch is used by one transaction only, so it distinguishes a retry from a new request.

    Raises:
        Refusal: as :func:`end_by_older_client`.
    """
    # Before the producer, unlike for older clients: the transition may change the epoch and the producer id, so that
    # only afterwards a retry and a fenced producer can be distinguished.
    if transition_pending:
        raise concurrent("transactions C.3.2 U3", KIP_890)
    # Once epochs are exhausted, the Complete record has a new producer id at epoch 0: a retry of the EndTxn before it
    # still comes with the old id at its last epoch.
    overflow_retry = (
        stored.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_GIVEN_EPOCH
        and stored.producer_epoch == 0
    )
    if not overflow_retry:
        check_producer_id(stored, request.producer_id, "transactions C.3.2 U4", KIP_890)
    retry = overflow_retry or stored.producer_epoch == request.producer_epoch + 1
    current = request.producer_epoch == stored.producer_epoch
    _check_newer_epoch(stored, request, current=current, retry=retry)
    if retry and not current:
        return _retried(stored, request)
    # An abort needs no open transaction: since partitions are added by Produce, a client whose Produce failed cannot
    # know whether there is one (KIP-890).
    if stored.state is _S.ONGOING or not request.committed:
        return Ending.PREPARE
    raise _wrong_state(stored, "transactions C.3.2 U6", KIP_890)


def _check_newer_epoch(stored: TransactionRecord, request: EndRequest, *, current: bool, retry: bool) -> None:
    """Raise PRODUCER_FENCED unless the state accepts the epoch (transactions C.3.2 U5)."""
    match stored.state:
        case _S.ONGOING | _S.EMPTY:
            accepted = current
        case _S.PREPARE_COMMIT | _S.PREPARE_ABORT:
            # The Prepare record has bumped the epoch, so the EndTxn that decided it is one behind when it is repeated.
            accepted = retry and not current
        case _:
            accepted = current or retry
    if not accepted:
        raise Refusal(
            ErrorCode.PRODUCER_FENCED,
            "transactions C.3.2 U5",
            KIP_890,
            f"epoch {request.producer_epoch} in {stored.state.text} at epoch {stored.producer_epoch}",
        )


def _retried(stored: TransactionRecord, request: EndRequest) -> Ending:
    """Decide a retry: repeat the same decision, refuse the other one (transactions C.3.2 U6)."""
    if stored.state is (_S.COMPLETE_COMMIT if request.committed else _S.COMPLETE_ABORT):
        return Ending.REPEAT
    if stored.state is (_S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT):
        raise concurrent("transactions C.3.2 U6", KIP_890)
    raise _wrong_state(stored, "transactions C.3.2 U6", KIP_890)


def _wrong_state(stored: TransactionRecord, rule: str, source: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_TXN_STATE, rule, source, f"not in {stored.state.text}")
