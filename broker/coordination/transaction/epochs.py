"""Assignment of producer ids and epochs by InitProducerId (transactions A.2, A.3; KIP-98, KIP-360).

Epochs never wrap. 32766 is the highest epoch that a client gets; 32767 is reserved for fencing and for the last
transaction's markers. After that the transactional id gets a new producer id, starting at epoch 0.
"""

from typing import NamedTuple

from broker.coordination.reasons import Reason, Refusal
from broker.coordination.transaction.refusals import KIP_98, KIP_360
from protocol.errors import ErrorCode
from protocol.log_records.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TransactionRecord

LAST_GIVEN_EPOCH = 32766
MAX_EPOCH = 32767


class ProducerIdAndEpoch(NamedTuple):
    """A producer id with its epoch; (-1, -1) is none."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


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
