"""Who may add partitions to a transaction (transactions C.1.1 P8 to P12), in the order that a release asks it in."""

from broker.coordination.transaction.ending import check_epoch, check_producer_id
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.coordination.transaction.refusal import concurrent
from broker.coordination.transaction.states import COMPLETED_BY
from protocol.log_records.transaction import TransactionRecord


def check_may_add(
    stored: TransactionRecord, completing: bool, producer: ProducerIdAndEpoch, *, pending_first: bool
) -> None:
    """Refuse a stranger, and whoever comes before the last transaction's markers are written.

    ``completing``: they are being written. With ``pending_first`` anybody hears of that, strangers too, as since 4.0;
    before, the producer is looked at first.

    Raises:
        Refusal: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED.
    """
    if completing and pending_first:
        raise concurrent("P8")
    check_producer_id(stored, producer.producer_id, "P9")
    check_epoch(stored, producer.producer_epoch, "P10")
    if completing:
        raise concurrent("P11")
    if stored.state in COMPLETED_BY:
        raise concurrent("P12")
