"""Who gets which producer id and epoch from InitProducerId (transactions A.2, A.3; KIP-98, KIP-360).

Epochs never wrap. 32766 is the highest one that a client is ever given; 32767 is kept for fencing and for the last
transaction's markers. Beyond it the transactional id gets a new producer id, starting at 0.
"""

from typing import NamedTuple

from broker.coordination.reasons import Reason, Refusal
from broker.coordination.transaction.refusals import KIP_98, KIP_360
from protocol.errors import ErrorCode
from protocol.log_records.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionRecord

LAST_GIVEN_EPOCH = 32766
MAX_EPOCH = 32767


class ProducerIdAndEpoch(NamedTuple):
    """A producer's identity at the brokers; (-1, -1) is none."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class Assignment(NamedTuple):
    """What InitProducerId gives. ``producer_id`` is ``None`` where a new one has to be allocated."""

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
    """Whether the next bump needs a new producer id."""
    return epoch >= LAST_GIVEN_EPOCH


def check_expected(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> None:
    """Check that a producer which names its id and epoch is the known one or the one before it (transactions A.2 I2).

    Raises:
        Refusal: PRODUCER_FENCED.
    """
    if expected == NO_PRODUCER or stored.producer_epoch == NO_PRODUCER_EPOCH:
        return
    if expected.producer_id == stored.producer_id:
        return
    # The producer that has exhausted its epochs may not have heard of its new id yet.
    if expected.producer_id == stored.previous_producer_id and is_exhausted(expected.producer_epoch):
        return
    raise _fenced(
        "transactions A.2 I2", f"producer id {expected.producer_id} is not {stored.producer_id}, the one that is known"
    )


def assign(stored: TransactionRecord, expected: ProducerIdAndEpoch) -> Assignment:
    """Assign the epoch of an id without an open transaction; the first match wins (transactions A.3 E1 to E8).

    Raises:
        Refusal: PRODUCER_FENCED for a stale epoch; UNKNOWN_SERVER_ERROR where Kafka runs into an illegal state
                (transactions A.3 E3).
    """
    epoch = stored.producer_epoch
    if is_exhausted(epoch):
        if expected == NO_PRODUCER:
            return Assignment(None, 0, NO_PRODUCER_EPOCH, _E1)
        if expected.producer_epoch == epoch:
            return Assignment(None, 0, epoch, _E2)
        # Kafka reports an illegal state here, although the producer is merely stale.
        raise Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "transactions A.3 E3",
            "TransactionMetadata.prepareProducerIdRotation",
            f"epoch {epoch} is exhausted and the producer is at {expected.producer_epoch}",
        )
    if expected == NO_PRODUCER:
        return Assignment(stored.producer_id, epoch + 1, NO_PRODUCER_EPOCH, _E4)
    if epoch == NO_PRODUCER_EPOCH:
        return Assignment(stored.producer_id, 0, NO_PRODUCER_EPOCH, _E5)
    if expected.producer_epoch == epoch:
        return Assignment(stored.producer_id, epoch + 1, epoch, _E6)
    if expected.producer_epoch == stored.last_epoch:
        # The reply to the last bump was lost and the producer asks again: nothing moves (KIP-360).
        return Assignment(stored.producer_id, epoch, stored.last_epoch, _E7)
    raise _fenced(
        "transactions A.3 E8", f"epoch {expected.producer_epoch} is neither {epoch} nor the one before the last bump"
    )


def _fenced(rule: str, message: str) -> Refusal:
    return Refusal(ErrorCode.PRODUCER_FENCED, rule, KIP_360, message)
