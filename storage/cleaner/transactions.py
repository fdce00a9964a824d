"""Transactional batches and markers that the cleaner may drop (core F.6.4, transactions D.14).

Reads the batches of a log in order. Data of an aborted transaction may be dropped; a marker may be dropped once its
transaction has no data left. Kafka: CleanedTransactionMetadata.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from protocol.records.batch import RecordBatch
from protocol.records.records import parse_marker
from storage.indexes.txn_index import AbortedTransaction, TransactionIndex


class CleanedTransactions:
    """Transactions read so far. `index` is that of the segment being written, if there is one."""

    def __init__(self) -> None:
        self.index: TransactionIndex | None = None
        self._waiting: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, AbortedTransaction] = {}
        self._aborted_with_data: set[int] = set()
        self._committed: set[int] = set()

    def expect(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add the aborted transactions of the next range; known ones are ignored."""
        for transaction in transactions:
            heappush(self._waiting, (transaction.first_offset, transaction))

    def read(self, batch: RecordBatch) -> bool:
        """Read the next batch; return whether its records may be dropped."""
        self._begin_up_to(batch.last_offset)
        if batch.is_control:
            return self._read_marker(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_with_data.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            _, transaction = heappop(self._waiting)
            self._aborted.setdefault(transaction.producer_id, transaction)

    def _read_marker(self, batch: RecordBatch) -> bool:
        producer_id = batch.producer_id
        marker = parse_marker(batch)
        if marker is None:
            return not batch.record_count  # emptied before; other control records stay
        if marker.committed:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._aborted_with_data:
            return True
        self._aborted_with_data.discard(producer_id)
        if self.index is not None:
            self.index.append(transaction)
        return False
