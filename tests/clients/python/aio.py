"""aiokafka through the script; its event loop runs in a thread of its own: heartbeats go on between two calls."""

# ruff: noqa: D102 -- `Client` in script.py documents each method

import asyncio
import functools
import threading
import warnings
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.clients.python.script import Record, UnsupportedError, expect, main

WAIT_S = 20.0
T = TypeVar("T")


class Loop:
    """An event loop in a thread; `run` waits for a coroutine's result."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, or its exception."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S * 2)


LOOP = Loop()


def waited(method: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Give a coroutine method to callers that wait."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> T:
        return LOOP.run(method(*args, **kwargs))

    return call


def to_record(message: Any) -> Record:
    """What came back, without the client's own types."""
    return Record(
        partition=message.partition,
        timestamp_ms=message.timestamp,
        key=message.key,
        value=message.value,
        headers=tuple((name, value) for name, value in message.headers),
        offset=message.offset,
    )


class AioMember:
    """A consumer that has subscribed."""

    @waited
    async def start(self, bootstrap: str, topic: str, group: str) -> "AioMember":
        """Connect and subscribe."""
        self.topic = topic
        self.consumer: Any = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
        )
        await self.consumer.start()
        return self

    @waited
    async def poll(self) -> list[Record]:
        """A tenth of a second of records."""
        polled = await self.consumer.getmany(timeout_ms=100)
        return [to_record(message) for messages in polled.values() for message in messages]

    def assigned(self) -> set[int]:
        """The partitions of the last assignment."""
        return {tp.partition for tp in self.consumer.assignment()}

    @waited
    async def commit(self, offsets: dict[int, int]) -> dict[int, int]:
        """Commit at once, then ask the coordinator."""
        partitions = {p: aiokafka.TopicPartition(self.topic, p) for p in offsets}
        await self.consumer.commit({partitions[p]: offset for p, offset in offsets.items()})
        return {p: await self.consumer.committed(tp) for p, tp in partitions.items()}

    @waited
    async def close(self) -> None:
        """Leave the group."""
        await self.consumer.stop()


class Aio:
    """The whole client: producers per call, one admin client, consumers as asked."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.partitions = [aiokafka.TopicPartition(topic, p) for p in range(3)]
        self.altered: dict[str, str] = {}
        self._start()

    @waited
    async def _start(self) -> None:
        self.admin: Any = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await self.admin.start()

    async def _consumer(self) -> Any:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        return consumer

    @waited
    async def list_topics(self) -> set[str]:
        return set(await self.admin.list_topics())

    @waited
    async def create_topic(self, partitions: int, replicas: int) -> None:
        response = await self.admin.create_topics([NewTopic(self.topic, partitions, replicas)])
        expect(all(error[1] == 0 for error in response.topic_errors), response)

    @waited
    async def produce(self, records: Sequence[Record], codec: str, *, idempotent: bool = False) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    self.topic,
                    key=r.key,
                    value=r.value,
                    partition=r.partition,
                    timestamp_ms=r.timestamp_ms,
                    headers=list(r.headers),
                )
                for r in records
            ]
            done = await asyncio.gather(*futures)
        finally:
            await producer.stop()
        expect(all(one.offset >= 0 for one in done), done)

    @waited
    async def consume(self, count: int) -> list[Record]:
        consumer = await self._consumer()
        records: list[Record] = []
        try:
            consumer.assign(self.partitions)
            await consumer.seek_to_beginning()
            async with asyncio.timeout(WAIT_S):
                while len(records) < count:
                    polled = await consumer.getmany(timeout_ms=1000)
                    records += [to_record(message) for messages in polled.values() for message in messages]
        finally:
            await consumer.stop()
        return records

    @waited
    async def offsets_for_time(self, timestamp_ms: int) -> dict[int, int]:
        consumer = await self._consumer()
        try:
            offsets = await consumer.offsets_for_times(dict.fromkeys(self.partitions, timestamp_ms))
            return {tp.partition: offset.offset for tp, offset in offsets.items()}
        finally:
            await consumer.stop()

    @waited
    async def read_at(self, offsets: dict[int, int]) -> list[Record]:
        consumer = await self._consumer()
        records = []
        try:
            for tp in self.partitions:
                consumer.assign([tp])
                consumer.seek(tp, offsets[tp.partition])
                records.append(to_record(await asyncio.wait_for(consumer.getone(), WAIT_S)))
        finally:
            await consumer.stop()
        return records

    def join(self, group: str) -> AioMember:
        return AioMember().start(self.bootstrap, self.topic, group)

    @waited
    async def list_groups(self) -> set[str]:
        return {group[0] for group in await self.admin.list_consumer_groups()}

    @waited
    async def describe_group(self, group: str) -> tuple[str, int]:
        (response,) = await self.admin.describe_consumer_groups([group])
        described = response.to_object()["groups"][0]
        expect(described["error_code"] == 0, described)
        return described["state"], len(described["members"])

    @waited
    async def describe_cluster(self) -> tuple[set[int], int]:
        cluster = await self.admin.describe_cluster()
        return {broker["node_id"] for broker in cluster["brokers"]}, cluster["controller_id"]

    @waited
    async def describe_topic(self) -> dict[int, tuple[int, list[int], list[int]]]:
        (topic,) = await self.admin.describe_topics([self.topic])
        return {p["partition"]: (p["leader"], p["replicas"], p["isr"]) for p in topic["partitions"]}

    async def _configs(self, kind: Any, name: str) -> dict[str, str]:
        (response,) = await self.admin.describe_configs([ConfigResource(kind, name)])
        described = response.to_object()["resources"][0]
        expect(described["error_code"] == 0, described)
        return {entry["config_names"]: entry["config_value"] for entry in described["config_entries"]}

    @waited
    async def describe_topic_configs(self) -> dict[str, str]:
        return await self._configs(ConfigResourceType.TOPIC, self.topic)

    @waited
    async def describe_broker_configs(self, broker: int) -> dict[str, str]:
        return await self._configs(ConfigResourceType.BROKER, str(broker))

    @waited
    async def alter_topic_config(self, name: str, value: str | None) -> None:
        """AlterConfigs, which replaces all: the client knows no IncrementalAlterConfigs."""
        self.altered.pop(name, None)
        if value is not None:
            self.altered[name] = value
        (response,) = await self.admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, self.topic, self.altered)]
        )
        expect(response.resources[0][0] == 0, response)

    @waited
    async def delete_records(self, partition: int, before: int) -> int:
        tp = self.partitions[partition]
        deleted = await self.admin.delete_records({tp: RecordsToDelete(before)})
        return int(deleted[tp])

    @waited
    async def earliest(self, partition: int) -> int:
        consumer = await self._consumer()
        try:
            offsets = await consumer.beginning_offsets([self.partitions[partition]])
            return int(offsets[self.partitions[partition]])
        finally:
            await consumer.stop()

    def delete_group(self, group: str) -> None:
        raise UnsupportedError(f"AIOKafkaAdminClient has no call for DeleteGroups; {group} stays")

    @waited
    async def delete_topic(self) -> None:
        response = await self.admin.delete_topics([self.topic])
        expect(all(error[1] == 0 for error in response.topic_error_codes), response)

    @waited
    async def close(self) -> None:
        """Close the admin client."""
        await self.admin.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Aio)
