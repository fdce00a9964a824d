"""The transaction scenarios' stage over a real Apache Kafka (``TARGET=kafka``): the same calls, real time.

What a row needs from inside (held markers, the machines, the cleaner) is steered: such a row is skipped here.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from broker.request.node import partition_for
from comparison.histories.quiescence import deadline_for
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.log_records.transaction import TransactionRecord, TransactionState, encode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataResponsePartition, MetadataResponseTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.differential.cluster import KafkaCluster
from tests.scenarios import ready
from tests.scenarios.on_kafka import FOLLOWED, About, OnKafka, kafkas, pause, steered, waited
from tests.scenarios.transactions.harness import SETTINGS, AsyncWire

LOG = "__transaction_state"
QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
MOST_STEPS = 8
"""Epochs up to here are reached by asking for them; later ones by a record in the log, as restore tools do it."""


class KafkaClock:
    """Real time; who writes records sees a clock that moves only when the row lets time pass."""

    def __init__(self) -> None:
        self._now_ms = int(time.time() * 1000)

    def now_ms(self) -> About:
        """As a client sees it."""
        return About(self._now_ms)

    def passed(self, ms: int) -> None:
        """So much, and what passed by itself."""
        self._now_ms += ms

    def freeze(self) -> None:
        """Kafka's clock does not stop."""

    def thaw(self) -> None:
        """Nor did it."""


class KafkaAsyncWire(AsyncWire):
    """A connection that comes back from an administrator's request when the brokers have done it."""

    def __init__(self, stage: "KafkaStage", *more: Any) -> None:
        super().__init__(*more)
        self._stage = stage

    async def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """As any, and then some."""
        answer = await super().call(key, version, request)
        if key in FOLLOWED:
            await asyncio.to_thread(ready.followed, self._stage.alive)
        elif key is ApiKey.FIND_COORDINATOR and request.key_type < 2:
            for each in answer.coordinators:
                if not each.error_code and each.key:
                    address = self._stage.server.addresses[each.node_id - 1]
                    await asyncio.to_thread(ready.coordinator_loaded, address, each.key, request.key_type)
        return answer


class KafkaStage:
    """As :class:`~tests.scenarios.transactions.harness.Stage`."""

    def __init__(self, server: OnKafka) -> None:
        self.server, self.clock = server, KafkaClock()
        self._open: list[AsyncWire] = []

    @property
    def alive(self) -> tuple[str, ...]:
        """Addresses of the brokers that run."""
        return self.server.cluster.running

    @property
    def cluster(self) -> Any:
        """Skip the row: it needs the inside of the cluster."""
        steered("looks or reaches into the cluster")

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Host and port of each broker."""
        split = (address.split(":") for address in self.server.addresses)
        return [(host, int(port)) for host, port in split]

    async def connect(self, broker: int = 1, client_id: str = "client") -> AsyncWire:
        """A connection to one broker."""
        host, port = self.bootstrap[broker - 1]
        wire = KafkaAsyncWire(self, *await asyncio.open_connection(host, port), client_id)
        self._open.append(wire)
        return wire

    async def pass_time(self, ms: int) -> None:
        """Wait for it; without a time, for what is on its way by itself."""
        if ms:
            await asyncio.to_thread(waited, ms)
            self.clock.passed(ms)
        else:
            await asyncio.to_thread(pause, 5)
        if len(self.alive) == len(self.server.addresses):  # else markers may be waiting for a broker that is down
            await asyncio.to_thread(ready.transactions_settled, self.alive)

    # --- brokers -----------------------------------------------------------------------------------------------------

    async def restart(self, broker: int = 1, *, clean: bool = False) -> None:
        """Stop or kill a broker and start it again."""
        self.server.cluster.stop(broker, clean=clean)
        await self.start(broker)

    def kill(self, broker: int) -> None:
        """Kill a broker; the cluster has not noticed yet."""
        self.server.cluster.stop(broker, clean=False)

    async def stop(self, broker: int) -> None:
        """Stop a broker cleanly: it hands over first."""
        await asyncio.to_thread(self.server.cluster.stop, broker)
        await asyncio.to_thread(self.server.cluster.missed, broker)

    async def start(self, broker: int) -> None:
        """Start a broker that is down; returns when it has caught up."""
        await asyncio.to_thread(self.server.cluster.start, broker)
        await asyncio.to_thread(ready.all_led, self.alive)
        await asyncio.to_thread(ready.followed, self.alive)

    def pause(self, broker: int) -> None:
        """Pause a broker; give it a session that lasts longer."""
        self.server.cluster.pause(broker)

    async def resume(self, broker: int) -> None:
        """Resume it; requests that waited for it have a second to arrive."""
        self.server.cluster.resume(broker)
        await asyncio.to_thread(pause, 1_000)
        await asyncio.to_thread(ready.transactions_settled, self.alive)

    # --- looking -----------------------------------------------------------------------------------------------------

    def topics(self) -> dict[str, MetadataResponseTopic]:
        """Metadata of all topics, by name."""
        side = Target(self.alive[0])
        response_topics = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
        side.close()
        return {topic.name: topic for topic in response_topics}

    def partition(self, topic: str, index: int) -> MetadataResponsePartition:
        """Metadata of one partition."""
        (partition,) = (each for each in self.topics()[topic].partitions if each.partition_index == index)
        assert isinstance(partition, MetadataResponsePartition)
        return partition

    def topic_names(self) -> set[str]:
        """The names of all topics."""
        return set(self.topics())

    def topic_id(self, topic: str) -> UUID:
        """Its id."""
        topic_id = self.topics()[topic].topic_id
        assert topic_id is not None
        return topic_id

    def leader(self, topic: str, index: int) -> int:
        """The broker that leads a partition."""
        return int(self.partition(topic, index).leader_id)

    async def moved(self, topic: str, index: int, brokers: list[int]) -> int:
        """Return when these brokers have a partition and the first one leads it; the leader epoch."""
        deadline = deadline_for(f"{topic}-{index} moves to {brokers}")
        while list((partition := self.partition(topic, index)).replica_nodes) != brokers or len(
            partition.isr_nodes
        ) < len(brokers):
            deadline.check(partition)
        if partition.leader_id != brokers[0]:
            side = Target(self.alive[0])
            request = ElectLeadersRequest([TopicPartitions(topic, [index])], 5_000, 0)
            side.call(ApiKey.ELECT_LEADERS, 2, request)
            side.close()
        await asyncio.to_thread(ready.followed, self.alive)
        partition = self.partition(topic, index)
        assert partition.leader_id == brokers[0]
        return int(partition.leader_epoch)

    # --- steering, as far as it goes ---------------------------------------------------------------------------------

    async def set_epoch(self, name: str, epoch: int, broker: int) -> tuple[int, int]:
        """An initialised producer at that epoch."""
        side = Target(self.server.addresses[broker - 1])
        request = DescribeTransactionsRequest([name])
        (state,) = side.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
        if epoch > MOST_STEPS:
            self._plant(side, TransactionRecord(
                name, state.producer_id, epoch, 60_000, TransactionState.EMPTY, frozenset(), int(time.time() * 1000), -1
            ))  # fmt: skip
        for _ in range(epoch - state.producer_epoch if epoch <= MOST_STEPS else 0):
            side.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
        side.close()
        if epoch > MOST_STEPS:
            await self.restart(broker, clean=True)
            for wire in self._open:
                wire.close()
            await asyncio.to_thread(ready.coordinator_loaded, self.server.addresses[broker - 1], name, 1)
        return int(state.producer_id), epoch

    def _plant(self, side: Target, record: TransactionRecord) -> None:
        key, value = encode(record)
        index = partition_for(record.transactional_id, int(SETTINGS["transaction.state.log.num.partitions"]))
        batch = build_batch([Record(0, int(time.time() * 1000), key, value)])
        data = TopicProduceData(LOG, [PartitionProduceData(index, batch)])
        admin = Target(side.address, client_id="__admin_client")
        answer = admin.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 5_000, [data]))
        admin.close()
        assert not answer.responses[0].partition_responses[0].error_code, answer

    async def clean(self) -> None:
        """Compaction comes round by itself, each third of a second."""
        await asyncio.to_thread(pause, 3_000)

    def close(self) -> None:
        """Close all connections; resume all brokers."""
        for wire in self._open:
            wire.close()
        for broker in range(1, len(self.server.addresses) + 1):
            self.server.cluster.resume(broker)


@asynccontextmanager
async def running(
    settings: Mapping[str, object] | None = None,
    *,
    brokers: int = 1,
    topics: Mapping[str, int] | None = None,
    features: Mapping[str, int] | None = None,
    data_dir: Path | None = None,
) -> AsyncIterator[KafkaStage]:
    """A cluster with these topics (name -> partitions) and nothing else; with a directory, a broker of its own."""
    broker_settings = {**SETTINGS, **QUICK, **{name: str(value) for name, value in (settings or {}).items()}}
    if data_dir is None:
        server = kafkas().fresh(settings=broker_settings, brokers=brokers, features=features)
    else:
        folder = Path(tempfile.mkdtemp(prefix="rows-"))
        cluster = KafkaCluster(folder, settings=broker_settings, features=features, data_dir=data_dir)
        cluster.start()
        server = OnKafka(cluster)
    stage = KafkaStage(server)
    try:
        if topics:
            side = Target(server.addresses[0])
            new_topics = [CreatableTopic(name, count, 1) for name, count in topics.items()]
            side.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(new_topics, 10_000))
            side.close()
        await asyncio.to_thread(ready.all_led, stage.alive)
        await asyncio.to_thread(ready.followed, stage.alive)
        yield stage
    finally:
        stage.close()
        if data_dir is not None:
            server.cluster.stop(clean=True)
