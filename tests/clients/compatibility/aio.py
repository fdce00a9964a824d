"""As `Compatibility.java`, for aiokafka."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.clients.compatibility import played
from tests.clients.compatibility.played import PATIENCE_S


def consumer_of(bootstrap: str, group: str, *topics: str) -> Any:
    """Reads from the start, commits by itself never."""
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )


async def produce(bootstrap: str, name: str, *, idempotent: bool = False) -> None:
    """Ten records, compressed."""
    settings = {"compression_type": "gzip", "linger_ms": 50, "enable_idempotence": idempotent}
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        for sent in [await producer.send(name, b"value" * 20, partition=0) for _ in range(10)]:
            await sent


async def read(consumer: Any, wanted: int) -> list[bytes]:
    """So many records, or fewer."""
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < wanted and time.monotonic() < deadline:
        values += [each.value for several in (await consumer.getmany(timeout_ms=200)).values() for each in several]
    return values


async def consume(bootstrap: str, name: str) -> None:
    """All ten, in a group."""
    async with consumer_of(bootstrap, f"{name}-group", name) as consumer:
        if len(await read(consumer, 10)) < 10:
            raise TimeoutError
        await consumer.commit()


async def transaction(bootstrap: str, name: str) -> None:
    """One aborted, one committed, with offsets."""
    out, group, source = f"{name}-out", f"{name}-other", TopicPartition(name, 0)
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name) as producer:
        for commit in (False, True):
            await producer.begin_transaction()
            await producer.send_and_wait(out, b"committed" if commit else b"aborted", partition=0)
            await producer.send_offsets_to_transaction({source: 7 if commit else 3}, group)
            if commit:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
    async with consumer_of(bootstrap, group) as consumer:
        consumer.assign([TopicPartition(out, 0)])
        await consumer.seek_to_beginning()
        outcome = await read(consumer, 1), await consumer.committed(source)
        if outcome != ([b"committed"], 7):
            raise AssertionError(outcome)


async def configs(bootstrap: str, name: str) -> None:
    """DescribeConfigs of the topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    finally:
        await admin.close()


def waited(step: Callable[..., Coroutine[Any, Any, None]], **further: Any) -> Callable[..., None]:
    """A step in an event loop of its own; aiokafka waits for a coordinator without an end."""
    return lambda *arguments: asyncio.run(asyncio.wait_for(step(*arguments, **further), 3 * PATIENCE_S))


STEPS: dict[str, Callable[..., None]] = {
    "produce": waited(produce),
    "idempotent": waited(produce, idempotent=True),
    "consume": waited(consume),
    "transaction": waited(transaction),
    "configs": waited(configs),
}

if __name__ == "__main__":
    played.answer(STEPS)
