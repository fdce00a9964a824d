"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152; transactions C.6, C.7)."""

from collections.abc import Iterator

from broker.coordination.reasons import Refusal
from broker.coordination.transaction.machine import TransactionMachine
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import concurrent_order
from protocol.log_records.transaction import TopicPartition, TransactionRecord, TransactionState
from protocol.regular_expressions import InvalidPattern, Pattern, compiled


def describe(machine: TransactionMachine, name: str) -> tuple[TransactionRecord, frozenset[TopicPartition]]:
    """Return the state of a transactional id, and its partitions, or those whose markers are not written yet.

    Raises:
        Refusal: TRANSACTIONAL_ID_NOT_FOUND.
    """
    record = machine.transactions.get(name)
    if record is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "transactions C.6", "KIP-664", f"unknown id {name}")
    completion = machine.completions.get(name)
    return record, frozenset(completion.outstanding) if completion else record.partitions or frozenset()


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Filters of ListTransactions; a filter at its default matches all transactions.

    As in Kafka, the duration of an id without an open transaction counts from the start of its last one, and an id that
    never had a transaction matches every ``longer_than_ms`` (transactions C.7).
    """

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    pattern: Pattern | None = None

    def accepts(self, record: TransactionRecord, now_ms: int) -> bool:
        """Return whether the transaction matches all filters."""
        return (
            (self.states is None or record.state in self.states)
            and (not self.producer_ids or record.producer_id in self.producer_ids)
            and (self.longer_than_ms < 0 or now_ms - record.start_ms > self.longer_than_ms)
            and (self.pattern is None or self.pattern.fullmatch(record.transactional_id) is not None)
        )

    def of(self, machine: TransactionMachine, now_ms: int) -> Iterator[TransactionRecord]:
        """Iterate over the machine's matching transactions, in the order of Kafka's table."""
        records = map(machine.transactions.__getitem__, concurrent_order(list(machine.transactions)))
        return (record for record in records if self.accepts(record, now_ms))


def compile_pattern(pattern: str | None) -> Pattern | None:
    """Compile a filter on transactional ids in re2j's syntax; null and the empty pattern match all.

    Raises:
        Refusal: INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return None
    try:
        return compiled(pattern)
    except InvalidPattern as error:
        raise Refusal(
            ErrorCode.INVALID_REGULAR_EXPRESSION, "transactions C.7", "KIP-1152", f"{pattern}: {error}"
        ) from error
