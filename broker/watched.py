"""The transaction machine as it runs in a cluster: what moves it and what it refuses is told to the timelines."""

from collections.abc import Hashable, Iterable
from typing import Any

from broker.coordination.outcome import Outcome, Reply, TransactionalAppend
from broker.coordination.transaction.ending import EndRequest
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.coordination.transaction.machine import Record, TransactionMachine
from broker.coordination.transaction.refusal import Refusal
from broker.coordination.transaction.transitions import TV0
from broker.middleware.timeline import Timelines
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TopicPartition


class WatchedTransactions(TransactionMachine):
    """A transaction machine with timelines. What it replays out of an old log is no event."""

    def __init__(self, timelines: Timelines, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._timelines = timelines
        self._live = False

    def replay(self, record: Record, _offset: int, _transaction: TransactionalAppend | None = None) -> None:
        """See the machine."""
        before = self.transactions.get(record.transactional_id)
        super().replay(record, _offset, _transaction)
        if self._live:
            self._timelines.moved(before, record)

    def loaded(self, now_ms: int) -> Outcome:
        """See the machine."""
        self._live = True
        return super().loaded(now_ms)

    def init_producer_id(
        self, name: str, timeout_ms: int, expected: ProducerIdAndEpoch, now_ms: int, to: Hashable
    ) -> Outcome:
        """See the machine; the refusal of I5 is a reply, as something is done before it."""
        try:
            outcome = super().init_producer_id(name, timeout_ms, expected, now_ms, to)
        except Refusal as refusal:
            self._timelines.refused(refusal)
            raise
        for effect in outcome.effects:
            if isinstance(effect, Reply) and isinstance(effect.message, Refusal):
                self._timelines.refused(effect.message)
        return outcome

    def add_partitions(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        now_ms: int,
        to: Hashable,
        *,
        client: int = TV0,
        pending_first: bool = True,
    ) -> Outcome:
        """See the machine."""
        try:
            return super().add_partitions(
                name, producer, partitions, now_ms, to, client=client, pending_first=pending_first
            )
        except Refusal as refusal:
            self._timelines.refused(refusal)
            raise

    def verify_partitions(
        self, name: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """See the machine."""
        try:
            codes = super().verify_partitions(name, producer, partitions)
        except Refusal as refusal:
            self._timelines.refused(refusal)
            raise
        missing = [f"{topic}-{index}" for (topic, index), code in codes.items() if code is not ErrorCode.NONE]
        if missing:
            words = f"{', '.join(sorted(missing))} is not in the transaction"
            self._timelines.refused(Refusal(ErrorCode.TRANSACTION_ABORTABLE, "transactions V8, KIP-890", words))
        return codes

    def end(self, name: str, request: EndRequest, now_ms: int, to: Hashable, *, client: int = TV0) -> Outcome:
        """See the machine."""
        try:
            return super().end(name, request, now_ms, to, client=client)
        except Refusal as refusal:
            self._timelines.refused(refusal)
            raise
