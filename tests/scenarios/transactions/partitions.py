"""The partition side of the scenarios' client: produce, fetch, offsets, producers, markers; and the way to a broker."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.cluster.cluster import Cluster
from broker.request.node import partition_for
from protocol.apis import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from protocol.records.batch import RecordBatch, batches
from protocol.records.records import Record, build_batch, parse_marker, read_records
from tests.scenarios.transactions.harness import SETTINGS, AsyncWire, Stage

FOO, BAR, OFFSETS, LOG = "foo", "bar", "__consumer_offsets", "__transaction_state"
COMMITTED, UNCOMMITTED = 1, 0
MOST_QUESTIONS = 500
"""Until a coordinator is there: a real Kafka takes its time to make its topic."""


def logged_in(name: str) -> int:
    """The partition of the transaction log that an id has here."""
    return partition_for(name, int(SETTINGS["transaction.state.log.num.partitions"]))


def values_of(batch: RecordBatch) -> list[bytes | None]:
    """Of a batch's records; none of a control batch's."""
    return [] if batch.is_control else [record.value for record in read_records(batch)]


@dataclass(frozen=True, slots=True)
class Fetched:
    """One partition of a fetch: bounds, aborted transactions as (producer id, first offset), and the batches."""

    code: int
    high_watermark: int
    stable_offset: int
    aborted: list[tuple[int, int]] | None
    batches: list[RecordBatch]

    @property
    def values(self) -> list[bytes | None]:
        """Of the data records."""
        return [value for batch in self.batches for value in values_of(batch)]

    @property
    def consumed(self) -> list[bytes | None]:
        """What a read_committed consumer delivers: it skips aborted producers, from first offset to marker."""
        ahead = sorted(self.aborted or (), key=lambda aborted: aborted[1])
        skipped: set[int] = set()
        delivered: list[bytes | None] = []
        for batch in self.batches:
            while ahead and ahead[0][1] <= batch.last_offset:
                skipped.add(ahead.pop(0)[0])
            if batch.is_control:
                skipped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in skipped):
                delivered += values_of(batch)
        return delivered

    @property
    def markers(self) -> list[tuple[int, int, str]]:
        """Producer id, epoch, COMMIT or ABORT."""
        ended = [(batch, parse_marker(batch)) for batch in self.batches if batch.is_control]
        return [
            (batch.producer_id, batch.producer_epoch, "COMMIT" if marker.committed else "ABORT")
            for batch, marker in ended
            if marker is not None
        ]


class Partitions:
    """Asks brokers, found by what the cluster knows."""

    def __init__(self, stage: Stage, client_id: str = "client") -> None:
        self.stage, self.client_id = stage, client_id
        self._wires: dict[int, AsyncWire] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster's own objects; a real Kafka does not expose them, and the row is skipped."""
        return self.stage.cluster

    # --- the way to a broker -----------------------------------------------------------------------------------------

    async def at(self, broker: int = 1) -> AsyncWire:
        """The connection to a broker."""
        if broker not in self._wires:
            self._wires[broker] = await self.stage.connect(broker, self.client_id)
        return self._wires[broker]

    def hang_up(self) -> None:
        """Forget all connections, as when a broker has died."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    async def coordinator(self, key: str, kind: int = 1) -> int:
        """The broker that coordinates a transactional id (1) or a group (0)."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        for _ in range(MOST_QUESTIONS):
            (coordinator,) = (await (await self.at()).call(ApiKey.FIND_COORDINATOR, 4, request)).coordinators
            if not coordinator.error_code:
                return int(coordinator.node_id)
            await self.stage.pass_time(0)
        raise AssertionError(f"no coordinator of {key}: {coordinator.error_code}")

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition."""
        return self.stage.leader(topic, partition)

    async def reassign(self, topic: str, partition: int, brokers: list[int]) -> int:
        """AlterPartitionReassignments; the leader epoch after it."""
        wanted = ReassignableTopic(topic, [ReassignablePartition(partition, brokers)])
        request = AlterPartitionReassignmentsRequest(5_000, topics=[wanted])
        answer = await self.ask(1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        assert not answer.error_code, answer
        assert not answer.responses[0].partitions[0].error_code, answer
        return await self.stage.moved(topic, partition, brokers)

    async def ask(self, broker: int, key: ApiKey, version: int, request: Any) -> Any:
        """One request to one broker."""
        return await (await self.at(broker)).call(key, version, request)

    # --- partitions --------------------------------------------------------------------------------------------------

    def batch(
        self,
        values: Iterable[Any],
        producer: tuple[int, int] = (-1, -1),
        sequence: int = -1,
        *,
        transactional: bool = False,
        at_ms: int | None = None,
        **more: Any,
    ) -> bytearray:
        """A batch of values, or keys and values, written now."""
        now_ms = self.stage.clock.now_ms() if at_ms is None else at_ms
        pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
        records = [Record(offset, now_ms, key, value) for offset, (key, value) in enumerate(pairs)]
        return build_batch(
            records,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=transactional,
            **more,
        )

    async def produce(
        self,
        topic: str = FOO,
        values: Sequence[Any] = (b"a", b"b", b"c"),
        producer: tuple[int, int] = (-1, -1),
        sequence: int = -1,
        *,
        name: str | None = None,
        v: int | None = None,
        partition: int = 0,
        acks: int = -1,
        records: Any = None,
        broker: int | None = None,
        **more: Any,
    ) -> PartitionProduceResponse:
        """Produce one batch; transactional where ``name`` gives the transactional id (v12 then, else v9)."""
        if records is None:
            records = self.batch(values, producer, sequence, transactional=name is not None, **more)
        response = await self.produce_many({(topic, partition): records}, name=name, v=v, acks=acks, broker=broker)
        partition_response: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return partition_response

    async def produce_many(
        self, records: Mapping[tuple[str, int], Any], *, name: str | None = None, v: int | None = None, acks: int = -1,
        broker: int | None = None,
    ) -> ProduceResponse:  # fmt: skip
        """Produce to many partitions of one leader."""
        topics: dict[str, list[PartitionProduceData]] = {}
        for (topic, index), data in records.items():
            topics.setdefault(topic, []).append(PartitionProduceData(index, data))
        broker = broker or self.leader(*next(iter(records)))
        request = ProduceRequest(name, acks, 5_000, [TopicProduceData(t, data) for t, data in topics.items()])
        response: ProduceResponse = await self.ask(broker, ApiKey.PRODUCE, v or (12 if name else 9), request)
        return response

    async def sent(self, *arguments: Any, **more: Any) -> int:
        """Produce that succeeds: the base offset."""
        answer = await self.produce(*arguments, **more)
        assert not answer.error_code, answer
        return answer.base_offset

    async def fetch(
        self,
        topic: str = FOO,
        offset: int = 0,
        isolation: int = UNCOMMITTED,
        *,
        partition: int = 0,
        v: int = 12,
        broker: int | None = None,
    ) -> Fetched:
        """Fetch one partition, without waiting."""
        wanted = FetchTopic(topic, [FetchPartition(partition, offset, 1 << 24)])
        request = FetchRequest(-1, 0, 0, 1 << 24, isolation, [wanted])
        answer = await self.ask(broker or self.leader(topic, partition), ApiKey.FETCH, v, request)
        partition_data: PartitionData = answer.responses[0].partitions[0]
        aborted = partition_data.aborted_transactions
        records: Any = partition_data.records or b""
        data = b"".join(records) if isinstance(records, list | tuple) else records
        return Fetched(
            int(partition_data.error_code),
            partition_data.high_watermark,
            partition_data.last_stable_offset,
            None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted],
            list(batches(bytearray(data))),
        )

    async def read(self, topic: str = FOO, isolation: int = UNCOMMITTED, *, partition: int = 0) -> Fetched:
        """The whole partition."""
        return await self.fetch(topic, 0, isolation, partition=partition)

    async def markers(self, topic: str = FOO, *, partition: int = 0) -> list[tuple[int, int, str]]:
        """All markers of a partition."""
        return (await self.read(topic, partition=partition)).markers

    async def offset(
        self, topic: str = FOO, timestamp: int = -1, isolation: int = UNCOMMITTED, *, partition: int = 0, v: int = 7
    ) -> ListOffsetsPartitionResponse:
        """ListOffsets of one partition."""
        wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp)])
        request = ListOffsetsRequest(-1, [wanted], isolation)
        answer = await self.ask(self.leader(topic, partition), ApiKey.LIST_OFFSETS, v, request)
        response: ListOffsetsPartitionResponse = answer.topics[0].partitions[0]
        return response

    async def end_of(self, topic: str = FOO, *, partition: int = 0) -> int:
        """The high watermark."""
        return (await self.offset(topic, partition=partition)).offset

    async def stable(self, topic: str = FOO, *, partition: int = 0) -> int:
        """The last stable offset."""
        return (await self.offset(topic, isolation=COMMITTED, partition=partition)).offset

    async def producers(
        self, topic: str = FOO, *, partition: int = 0, broker: int | None = None
    ) -> dict[int, ProducerState]:
        """DescribeProducers of one partition, by producer id."""
        request = DescribeProducersRequest([TopicRequest(topic, [partition])])
        answer = await self.ask(broker or self.leader(topic, partition), ApiKey.DESCRIBE_PRODUCERS, 0, request)
        (partition_producers,) = answer.topics[0].partitions
        assert not partition_producers.error_code, partition_producers
        return {state.producer_id: state for state in partition_producers.active_producers}

    async def mark(
        self, producer: tuple[int, int], commit: bool = True, topic: str = FOO, *, partition: int = 0,
        coordinator_epoch: int = 0, v: int = 1, version: int = 0, broker: int | None = None,
    ) -> int:  # fmt: skip
        """WriteTxnMarkers for one partition."""
        places = [WritableTxnMarkerTopic(topic, [partition])]
        marker = WritableTxnMarker(*producer, commit, places, coordinator_epoch, version)
        request = WriteTxnMarkersRequest([marker])
        answer = await self.ask(broker or self.leader(topic, partition), ApiKey.WRITE_TXN_MARKERS, v, request)
        (result,) = answer.markers
        assert result.producer_id == producer[0]
        return int(result.topics[0].partitions[0].error_code)


def code(answer: PartitionProduceResponse) -> int:
    """Of a produce response's partition."""
    return int(answer.error_code)
