"""Checks of AddPartitionsToTxn (transactions C.1.1 P8 to P12), in the order of the emulated release."""

from collections.abc import Mapping

from broker.coordination.reasons import Reason, Refusal
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.coordination.transaction.refusals import (
    KIP_98,
    KIP_890,
    check_epoch,
    check_not_prepared,
    check_producer_id,
    concurrent,
)
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TopicPartition, TransactionRecord

BEGUN = Reason("begun", "transactions C.1.1 P14", KIP_98)
ADDED = Reason("partitions added", "transactions C.1.1 P14", KIP_98)


def check_may_add(
    stored: TransactionRecord, completing: bool, producer: ProducerIdAndEpoch, *, pending_first: bool
) -> None:
    """Refuse a producer other than the current one, and all producers while the previous transaction is completed.

    ``completing``: its markers are being written. ``pending_first``: check this before the producer, as since 4.0;
    older releases check the producer first.

    Raises:
        Refusal: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED.
    """
    if completing and pending_first:
        raise concurrent("transactions C.1.1 P8", KIP_98)
    check_producer_id(stored, producer.producer_id, "transactions C.1.1 P9", KIP_98)
    check_epoch(stored, producer.producer_epoch, "transactions C.1.1 P10", KIP_98)
    if completing:
        raise concurrent("transactions C.1.1 P11", KIP_98)
    check_not_prepared(stored, "transactions C.1.1 P12", KIP_98)


def not_added(codes: Mapping[TopicPartition, ErrorCode]) -> Refusal | None:
    """Return the refusal of partitions that are not in the transaction (transactions C.1.3 V8); ``None`` if all are."""
    missing = sorted(f"{topic}-{index}" for (topic, index), code in codes.items() if code is not ErrorCode.NONE)
    if not missing:
        return None
    message = f"{', '.join(missing)} is not in the transaction"
    return Refusal(ErrorCode.TRANSACTION_ABORTABLE, "transactions C.1.3 V8", KIP_890, message)
