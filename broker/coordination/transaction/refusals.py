"""Refusals shared by several operations, and the sources of the rules."""

from collections.abc import Hashable

from broker.coordination.outcome import Outcome, Reply, TransactionOutcome
from broker.coordination.reasons import Refusal
from broker.coordination.transaction.states import COMPLETED_BY, append_error
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord

KIP_98, KIP_360, KIP_890 = "KIP-98", "KIP-360", "KIP-890"


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
