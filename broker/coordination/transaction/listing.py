"""What DescribeTransactions and ListTransactions tell (KIP-664, KIP-994, KIP-1152; transactions C.6, C.7)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from broker.coordination.transaction.machine import TransactionMachine
from broker.coordination.transaction.refusal import Refusal
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TopicPartition, TransactionRecord, TransactionState


def describe(machine: TransactionMachine, name: str) -> tuple[TransactionRecord, frozenset[TopicPartition]]:
    """What an id is now, and the partitions that still take part: markers that are written take them out.

    Raises:
        Refusal: TRANSACTIONAL_ID_NOT_FOUND.
    """
    record = machine.transactions.get(name)
    if record is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "transactions C.6", f"{name} is not known")
    completion = machine.completions.get(name)
    return record, frozenset(completion.outstanding) if completion else record.partitions or frozenset()


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactions are asked for; what is left at its default asks for all.

    An id without an open transaction counts from the start of its last one, and one that never had any has run since
    long ago: so it is with Kafka (transactions C.7).
    """

    states: frozenset[TransactionState] | None = None
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    pattern: re.Pattern[str] | None = None

    def accepts(self, record: TransactionRecord, now_ms: int) -> bool:
        """Whether the transaction passes all filters."""
        return (
            (self.states is None or record.state in self.states)
            and (not self.producer_ids or record.producer_id in self.producer_ids)
            and (self.longer_than_ms < 0 or now_ms - record.start_ms > self.longer_than_ms)
            and (self.pattern is None or self.pattern.fullmatch(record.transactional_id) is not None)
        )

    def of(self, machine: TransactionMachine, now_ms: int) -> Iterator[TransactionRecord]:
        """The machine's transactions that pass."""
        return (record for record in machine.transactions.values() if self.accepts(record, now_ms))


# Tokens of a pattern. Python reads the first kind, RE2 refuses it: back references, looking around, conditions,
# comments and atomic groups. An escape or a character class is one token, so that nothing inside it counts.
_TOKEN = re.compile(r"(?P<foreign>\\[1-9]|\(\?(?:[=!>#(]|<[=!]|P[=>]))|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def compile_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """A filter on transactional ids in RE2's syntax; null and the empty one filter nothing.

    Raises:
        Refusal: INVALID_REGULAR_EXPRESSION.
    """
    if not pattern:
        return None
    try:
        if any(token["foreign"] for token in _TOKEN.finditer(pattern)):
            raise re.error("not in RE2")
        return re.compile(pattern)
    except re.error as error:
        raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, "transactions C.7", f"{pattern}: {error}") from error
