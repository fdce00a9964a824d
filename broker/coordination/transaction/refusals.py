"""Refusals that several operations share, and the sources of the rules."""

from collections.abc import Hashable

from broker.coordination.outcome import Outcome, Reply, TransactionOutcome
from broker.coordination.reasons import Refusal
from broker.coordination.transaction.states import COMPLETED_BY, append_error
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord

KIP_98, KIP_360, KIP_890 = "KIP-98", "KIP-360", "KIP-890"


def concurrent(rule: str, source: str) -> Refusal:
    """CONCURRENT_TRANSACTIONS: the last transaction is not complete, so the producer has to ask again."""
    message = "the markers of the last transaction are not written"
    return Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, rule, source, message)


def check_not_prepared(stored: TransactionRecord, rule: str, source: str) -> None:
    """Raise CONCURRENT_TRANSACTIONS where the transaction is decided and not complete."""
    if stored.state in COMPLETED_BY:
        raise concurrent(rule, source)


def check_producer_id(stored: TransactionRecord, producer_id: int, rule: str, source: str) -> None:
    """Raise INVALID_PRODUCER_ID_MAPPING for another producer id than the stored one."""
    if producer_id != stored.producer_id:
        raise Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            rule,
            source,
            f"producer id {producer_id} is not {stored.producer_id}, which {stored.transactional_id} has",
        )


def check_epoch(stored: TransactionRecord, producer_epoch: int, rule: str, source: str) -> None:
    """Raise PRODUCER_FENCED for any epoch but the stored one, lower or higher."""
    if producer_epoch != stored.producer_epoch:
        raise Refusal(
            ErrorCode.PRODUCER_FENCED,
            rule,
            source,
            f"epoch {producer_epoch} is not {stored.producer_epoch}, which {stored.transactional_id} is at",
        )


def not_appended(error: KafkaError, to: Hashable) -> TransactionOutcome:
    """The outcome instead, where the log has refused the record: the error as clients know it (transactions B.4)."""
    if to is None:
        return Outcome()
    source, sentence = "TransactionStateManager.appendTransactionToLog", f"the log refused the record: {error}"
    refusal = Refusal(append_error(error.code), "transactions B.4", source, error.message, sentence=sentence)
    return Outcome(effects=(Reply(to, refusal),), refusal=refusal)
