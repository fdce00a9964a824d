"""aiokafka through the transactional script."""

# ruff: noqa: D102 -- the protocols in script.py document each method

import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from tests.clients.python.aio import waited
from tests.clients.python.script import expect
from tests.clients.transactions.script import Source, Transactor, main

WAIT_S = 20.0


class AioSource:
    """A subscribed consumer."""

    @waited
    async def start(self, bootstrap: str, topic: str, group: str) -> "AioSource":
        """Connect and subscribe."""
        self.group = group
        self.consumer: Any = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=300,
            fetch_max_wait_ms=50,
        )
        await self.consumer.start()
        return self

    @waited
    async def poll(self) -> list[tuple[int, int, bytes]]:
        polled = await self.consumer.getmany(timeout_ms=200, max_records=25)
        return [(m.partition, m.offset, m.value) for messages in polled.values() for m in messages]

    def metadata(self) -> str:
        return self.group

    @waited
    async def rewind(self) -> None:
        for tp in self.consumer.assignment():
            self.consumer.seek(tp, await self.consumer.committed(tp) or 0)

    @waited
    async def close(self) -> None:
        await self.consumer.stop()


class AioTransactor:
    """A transactional producer."""

    @waited
    async def start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> "AioTransactor":
        """Connect and initialize."""
        self.producer: Any = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        await self.producer.start()
        return self

    @waited
    async def begin(self) -> None:
        await self.producer.begin_transaction()

    @waited
    async def send(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        for future in [await self.producer.send(topic, value, partition=partition) for partition, value in values]:
            await future

    @waited
    async def send_offsets(self, topic: str, offsets: Mapping[int, int], metadata: Any) -> None:
        offsets_by_partition = {aiokafka.TopicPartition(topic, p): offset for p, offset in offsets.items()}
        await self.producer.send_offsets_to_transaction(offsets_by_partition, metadata)

    @waited
    async def commit(self) -> None:
        await self.producer.commit_transaction()

    @waited
    async def abort(self) -> None:
        await self.producer.abort_transaction()

    @waited
    async def close(self) -> None:
        await self.producer.stop()


class Aio:
    """The whole client."""

    zombies_fenced = "send_offsets_to_transaction takes the group's id only, neither member nor generation"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @waited
    async def create(self, topics: Sequence[str], replicas: int) -> None:
        admin: Any = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        response = await admin.create_topics([NewTopic(topic, 3, replicas) for topic in topics])
        await admin.close()
        expect(all(error[1] == 0 for error in response.topic_errors), response)

    @waited
    async def produce(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap) as producer:
            for future in [await producer.send(topic, value, partition=partition) for partition, value in values]:
                await future

    def transactor(self, transactional_id: str, timeout_ms: int) -> Transactor:
        return AioTransactor().start(self.bootstrap, transactional_id, timeout_ms)

    @waited
    async def read(self, topic: str, count: int, *, committed: bool) -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            isolation_level="read_committed" if committed else "read_uncommitted",
            fetch_max_wait_ms=50,
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(topic, p) for p in range(3)])
        await consumer.seek_to_beginning()
        read: list[bytes] = []
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            whole = len(read) >= count
            polled = await consumer.getmany(timeout_ms=400)
            read += [m.value for messages in polled.values() for m in messages]
            if whole:
                break
        await consumer.stop()
        return read

    def source(self, topic: str, group: str) -> Source:
        return AioSource().start(self.bootstrap, topic, group)

    @waited
    async def committed_offsets(self, topic: str, group: str) -> dict[int, int]:
        consumer: Any = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(topic, p) for p in range(3)])
        committed = {tp.partition: await consumer.committed(tp) or -1 for tp in consumer.assignment()}
        await consumer.stop()
        return committed

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, ProducerFenced | InvalidProducerEpoch)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Aio, sys.argv[1:5])
