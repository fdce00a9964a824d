"""A coordinator's log: one partition of an internal topic, as its runtime uses it."""

from collections.abc import Callable, Iterator

from broker.coordination.outcome import TransactionalAppend
from broker.replication.partition import ReplicatedPartition
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch, parse_marker, read_records
from storage.append_info import AppendOrigin


class LoggedBatch:
    """A batch of a coordinator's log, as its runtime replays it.

    ``marker`` is true for a commit, false for an abort, ``None`` for a batch of records.
    """

    __slots__ = ("_batch", "is_transactional", "marker", "producer_epoch", "producer_id")

    def __init__(self, batch: RecordBatch) -> None:
        self._batch = batch
        self.producer_id, self.producer_epoch = batch.producer_id, batch.producer_epoch
        self.is_transactional = batch.is_transactional
        self.marker: bool | None = None
        if batch.is_control:
            marker = parse_marker(batch)
            self.marker = None if marker is None else marker.committed

    def records(self) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """Yield offset, key and value of each record; nothing for a control batch."""
        if not self._batch.is_control:
            for record in read_records(self._batch):
                yield record.offset, record.key, record.value


class CoordinatorLog:
    """The log of a coordinator on broker ``broker_id``: a :class:`~broker.coordination.runtime.MachineLog`.

    ``base_sequence`` is that of batches without a producer: 0 where Kafka's CoordinatorRuntime writes them (groups,
    share state), -1 in ``__transaction_state``, which its TransactionStateManager writes. ``all_in_sync`` returns
    whether batches without a producer require min.insync.replicas (acks=-1), as those of ``__transaction_state`` do.
    """

    def __init__(
        self,
        partition: ReplicatedPartition,
        broker_id: int,
        *,
        base_sequence: int = 0,
        all_in_sync: Callable[[], bool] = lambda: True,
    ) -> None:
        self._partition, self._broker_id = partition, broker_id
        self._base_sequence, self._all_in_sync = base_sequence, all_in_sync

    _between: Callable[[], None] | None = None
    """Called after each record while a batch is built."""

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """Append one uncompressed batch and return its base offset.

        Raises:
            KafkaError: as :meth:`ReplicatedPartition.append`.
        """
        batch = build_batch(
            [Record(index, now_ms, key, value, ()) for index, (key, value) in enumerate(records)],
            producer_id=-1 if transaction is None else transaction.producer_id,
            producer_epoch=-1 if transaction is None else transaction.producer_epoch,
            base_sequence=self._base_sequence if transaction is None else 0,
            transactional=transaction is not None,
            between=self._between,
        )
        info = self._partition.append(
            self._broker_id,
            batch,
            now_ms,
            origin=AppendOrigin.COORDINATOR,
            guard=None if transaction is None else transaction.guard,
            all_in_sync=self._all_in_sync(),  # transactions C.4 O13
        )
        return info.base_offset

    @property
    def high_watermark(self) -> int:
        """The partition's high watermark. Raises KafkaError if the broker does not lead it."""
        return self._partition.led_by(self._broker_id).bounds.high_watermark

    def watch(self, call: Callable[[], None]) -> None:
        """See :meth:`ReplicatedPartition.watch`."""
        self._partition.watch(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        """See :meth:`ReplicatedPartition.unwatch`."""
        self._partition.unwatch(call)

    def replay(self) -> Iterator[LoggedBatch]:
        """Yield all batches from the log start offset."""
        log = self._partition.led_by(self._broker_id)
        for batch in log.reader.replay_from(log.log_start_offset):
            yield LoggedBatch(batch)
