"""Who gets which producer id and epoch from InitProducerId (transactions A.2, A.3; KIP-98, KIP-360).

Epochs never wrap. 32766 is the highest one that a client is ever given; 32767 is kept for fencing and for the last
transaction's markers. Beyond it the transactional id gets a new producer id, starting at 0.
"""

from typing import NamedTuple

from broker.coordination.transaction.refusal import Refusal
from protocol.errors import ErrorCode
from protocol.log_records.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionRecord

LAST_GIVEN_EPOCH = 32766
MAX_EPOCH = 32767


class ProducerIdAndEpoch(NamedTuple):
    """Who a producer is to the brokers; (-1, -1) is nobody."""

    producer_id: int
    producer_epoch: int


NOBODY = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class Assignment(NamedTuple):
    """What InitProducerId gives. ``producer_id`` is ``None`` where a new one has to be allocated."""

    producer_id: int | None
    producer_epoch: int
    last_epoch: int


def is_exhausted(epoch: int) -> bool:
    """Whether the next bump needs a new producer id."""
    return epoch >= LAST_GIVEN_EPOCH


def check_expected(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> None:
    """Rule I2: a producer that says who it thinks it is has to be the one that is known, or the one before it.

    Raises:
        Refusal: PRODUCER_FENCED.
    """
    if expected == NOBODY or stored.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if expected.producer_id == stored.producer_id:
        return
    # The producer that has exhausted its epochs may not have heard of its new id yet.
    if expected.producer_id == stored.previous_producer_id and is_exhausted(expected.producer_epoch):
        return
    raise _fenced("I2", f"producer id {expected.producer_id} is not {stored.producer_id}, the one that is known")


def assign(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> Assignment:
    """Rules E1 to E8, for an id without an open transaction; first match wins.

    Raises:
        Refusal: PRODUCER_FENCED for a stale epoch; UNKNOWN_SERVER_ERROR where Kafka stumbles over itself (E3).
    """
    epoch = stored.producer_epoch
    if is_exhausted(epoch):
        if expected == NOBODY:
            return Assignment(None, 0, NO_PRODUCER_EPOCH)
        if expected.producer_epoch == epoch:
            return Assignment(None, 0, epoch)
        # Kafka reaches an illegal state here and says so, though the producer is merely stale.
        raise Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "transactions E3",
            f"epoch {epoch} is exhausted and the producer is at {expected.producer_epoch}",
        )
    if expected == NOBODY:
        return Assignment(stored.producer_id, epoch + 1, NO_PRODUCER_EPOCH)
    if epoch == NO_PRODUCER_EPOCH:
        return Assignment(stored.producer_id, 0, NO_PRODUCER_EPOCH)
    if expected.producer_epoch == epoch:
        return Assignment(stored.producer_id, epoch + 1, epoch)
    if expected.producer_epoch == stored.last_epoch:
        # The reply to the last bump was lost and the producer asks again: nothing moves (KIP-360).
        return Assignment(stored.producer_id, epoch, stored.last_epoch)
    raise _fenced("E8", f"epoch {expected.producer_epoch} is neither {epoch} nor the one before the last bump")


def _fenced(rule: str, message: str) -> Refusal:
    return Refusal(ErrorCode.PRODUCER_FENCED, f"transactions {rule}", message)
