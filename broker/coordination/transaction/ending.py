"""What EndTxn does in which state (transactions C.3), for clients before and since KIP-890.

The order of the checks is Kafka's, and differs between the two: the older one looks at the producer first, the newer
one at whether a transition is under way.
"""

from enum import Enum
from typing import NamedTuple

from broker.coordination.transaction.epochs import LAST_GIVEN_EPOCH
from broker.coordination.transaction.refusal import Refusal, concurrent
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionRecord, TransactionState

_S = TransactionState


class Ending(Enum):
    """What an accepted EndTxn leads to."""

    PREPARE = "prepare"
    """The decision is written, and markers follow."""
    REPEAT = "repeat"
    """It was done before: the reply is given again and nothing is written."""


class EndRequest(NamedTuple):
    """Who ends what, and how."""

    producer_id: int
    producer_epoch: int
    committed: bool


def end_by_older_client(stored: TransactionRecord, completing: bool, request: EndRequest) -> Ending:
    """Rules T4 to T12 (EndTxn 0 to 4). ``completing``: the markers of the last transaction are still being written.

    Raises:
        Refusal: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS or INVALID_TXN_STATE.
    """
    check_producer_id(stored, request.producer_id, "T4")
    check_epoch(stored, request.producer_epoch, "T5")
    if completing:
        raise concurrent("T6")
    done = _S.COMPLETE_COMMIT if request.committed else _S.COMPLETE_ABORT
    under_way = _S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT
    if stored.state is _S.ONGOING:
        return Ending.PREPARE
    if stored.state is done:
        return Ending.REPEAT
    if stored.state is under_way:
        raise concurrent("T10, T11")
    raise _wrong_state(stored, "T8 to T12")


def end_by_newer_client(stored: TransactionRecord, completing: bool, request: EndRequest) -> Ending:
    """Rules U3 to U6 (EndTxn 5): an epoch serves one transaction, so the epoch tells a retry from a new request.

    Raises:
        Refusal: as :func:`end_by_older_client`.
    """
    if completing:
        raise concurrent("U3")
    overflow_retry = (
        stored.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_GIVEN_EPOCH
        and stored.producer_epoch == 0
    )
    if not overflow_retry:
        check_producer_id(stored, request.producer_id, "U4")
    retry = overflow_retry or stored.producer_epoch == request.producer_epoch + 1
    current = request.producer_epoch == stored.producer_epoch
    _check_newer_epoch(stored, request, current=current, retry=retry)
    if retry and not current:
        return _retried(stored, request)
    if stored.state is _S.ONGOING or not request.committed:
        return Ending.PREPARE
    raise _wrong_state(stored, "U6")


def _check_newer_epoch(stored: TransactionRecord, request: EndRequest, *, current: bool, retry: bool) -> None:
    """Rule U5: which epochs make sense in a state."""
    match stored.state:
        case _S.ONGOING | _S.EMPTY:
            accepted = current
        case _S.PREPARE_COMMIT | _S.PREPARE_ABORT:
            accepted = retry and not current
        case _:
            accepted = current or retry
    if not accepted:
        raise Refusal(
            ErrorCode.PRODUCER_FENCED,
            "transactions U5",
            f"epoch {request.producer_epoch} in {stored.state.text} at epoch {stored.producer_epoch}",
        )


def _retried(stored: TransactionRecord, request: EndRequest) -> Ending:
    """Rule U6, the columns of a retry: the same decision is repeated, the other one refused."""
    if stored.state is (_S.COMPLETE_COMMIT if request.committed else _S.COMPLETE_ABORT):
        return Ending.REPEAT
    if stored.state is (_S.PREPARE_COMMIT if request.committed else _S.PREPARE_ABORT):
        raise concurrent("U6")
    raise _wrong_state(stored, "U6")


def check_producer_id(stored: TransactionRecord, producer_id: int, rule: str) -> None:
    """Refuse with INVALID_PRODUCER_ID_MAPPING whoever is not the id's producer."""
    if producer_id != stored.producer_id:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"transactions {rule}",
            f"producer id {producer_id} is not {stored.producer_id}, which {stored.transactional_id} has",
        )


def check_epoch(stored: TransactionRecord, producer_epoch: int, rule: str) -> None:
    """Refuse with PRODUCER_FENCED any epoch but the stored one, lower or higher."""
    if producer_epoch != stored.producer_epoch:
        raise Refusal(
            ErrorCode.PRODUCER_FENCED,
            f"transactions {rule}",
            f"epoch {producer_epoch} is not {stored.producer_epoch}, which {stored.transactional_id} is at",
        )


def _wrong_state(stored: TransactionRecord, rule: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_TXN_STATE, f"transactions {rule}", f"not in {stored.state.text}")
