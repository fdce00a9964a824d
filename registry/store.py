"""The topic `_schemas`: its records are replayed into a `State`, new records are appended to it.

The state is nothing but the replay of the log, so a reset, a restored snapshot, a restart on a data directory and
another registry that writes to the topic are all the same: records to read. It is updated at each request, which costs
nothing if the log's end has not moved.
"""

from typing import TYPE_CHECKING

from broker.coordination.metadata import topics as metadata_topics
from broker.logs import Logger
from broker.replication.partition import ReplicatedPartition
from broker.time.clock import Waiter
from protocol.errors import KafkaError
from protocol.records.errors import RecordsError
from protocol.records.records import Record, frame_batch, read_records, write_record
from registry.errors import RegistryError, not_permitted, store_failed
from registry.options import TOPIC
from registry.records import Rows
from registry.state import State
from storage.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

TIMEOUT_MS = 500
"""Time that a write waits for the in-sync replicas: the default of Confluent's `kafkastore.timeout.ms`."""
_log = Logger(__name__)


class Store:
    """The registry's view of its topic."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._state = State()
        self._log: PartitionLog | None = None
        self._position = 0

    def state(self) -> State:
        """Return the state up to the high watermark; without a leader, the last known state."""
        partition = self._partition
        if partition is None:
            self._state, self._log, self._position = State(), None, 0
            return self._state
        log = partition.logs.get(partition.state.leader)
        if log is None or log.offline:
            return self._state
        if log is not self._log or log.high_watermark < self._position:
            self._state, self._log, self._position = State(), log, 0
        if log.high_watermark > self._position:
            self._replay(log)
        return self._state

    def _replay(self, log: PartitionLog) -> None:
        start, bound = max(self._position, log.log_start_offset), log.high_watermark
        for batch in log.reader.replay_from(start):
            if batch.base_offset >= bound:
                break
            if batch.is_control:
                continue
            try:
                for record in read_records(batch):
                    if record.offset >= start and not self._state.replay(record.key, record.value):
                        _log.warning("a record of the schema registry cannot be read", offset=record.offset)
            except RecordsError as error:
                _log.warning("a batch of the schema registry cannot be read", error=str(error))
        self._position = bound

    async def append(self, rows: Rows) -> None:
        """Append records in one batch, and wait until the in-sync replicas have them.

        Raises:
            RegistryError: 42205 if the data directory is read-only; 50001 if the topic cannot be written; 50002 if the
                replicas take longer than half a second of the cluster's clock.
        """
        cluster, now_ms = self._cluster, self._cluster.clock.now_ms()
        if cluster.options.read_only:
            raise not_permitted("The registry only reads: understudy was started with --read-only")
        try:
            partition = self._partition or await self._create()
            info = partition.append(partition.state.leader, framed(rows, now_ms), now_ms, all_in_sync=True)
            await self._settled(partition, info.last_offset)
            self.state()
        except KafkaError as error:
            reason = error.message or error.code.name
            raise store_failed(
                f"Register schema operation failed while writing to the Kafka store: {reason}"
            ) from error

    @property
    def _partition(self) -> ReplicatedPartition | None:
        return self._cluster.partitions.get((TOPIC, 0))

    async def _create(self) -> ReplicatedPartition:
        """Create the topic again after it was deleted. Raises KafkaError if the controller refuses."""
        wanted = metadata_topics.NewTopic(TOPIC, 1, configs={"cleanup.policy": "compact"})
        created: list[metadata_topics.CreatedTopic] = await self._cluster.metadata.ask(
            lambda machine, _now_ms, to: machine.create_topics([wanted], to)
        )
        if created[0].error is not None:
            raise created[0].error
        return self._cluster.partitions[TOPIC, 0]

    async def _settled(self, partition: ReplicatedPartition, offset: int) -> None:
        """Wait until the high watermark is above an offset. Raises RegistryError 50002 after the timeout."""
        clock, waiter = self._cluster.clock, Waiter()
        deadline_ms = clock.now_ms() + TIMEOUT_MS
        partition.watch(waiter.wake)
        try:
            while True:
                log = partition.logs.get(partition.state.leader)
                if log is not None and log.high_watermark > offset:
                    return
                if not await waiter.wait(clock, deadline_ms):
                    raise RegistryError(50002, "Write to the Kafka store timed out")
                waiter.again()
        finally:
            partition.unwatch(waiter.wake)


def framed(rows: Rows, now_ms: int) -> bytearray:
    """Build a batch of these records."""
    data = bytearray()
    for place, (key, value) in enumerate(rows):
        write_record(data, Record(place, now_ms, key, value), 0, now_ms)
    return frame_batch(
        data,
        len(rows),
        base_offset=0,
        last_offset_delta=len(rows) - 1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms,
    )
