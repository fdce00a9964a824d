"""A program on aiokafka that copies a topic exactly once, and a copy of it with a mistake."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener

from understudy.simulation import Simulation

log = logging.getLogger(__name__)
TOPICS = {"in": 2, "out": 2}


class FinishTransaction(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Lets a rebalance wait until the transaction is over, and marks what was read before it as stale."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.generation = 0

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:  # noqa: ARG002
        """Wait for the transaction."""
        async with self.lock:
            self.generation += 1

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        """Do nothing."""


async def copy(servers: list[str], copied: Callable[[Any, Any, Any], Awaitable[None]] | None = None) -> None:
    """Copy `in` to `out` until it is cancelled; ``copied`` copies one batch, by default in a transaction."""
    listener, copy_some = FinishTransaction(), copied or in_a_transaction
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="copier", request_timeout_ms=5_000)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, group_id="copiers", enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level="read_committed", session_timeout_ms=6_000,
    )  # fmt: skip
    consumer.subscribe(["in"], listener=listener)
    await producer.start()
    try:
        await consumer.start()
        try:
            while True:
                batches = await consumer.getmany(timeout_ms=300)
                generation = listener.generation
                async with listener.lock:
                    if batches and generation == listener.generation:
                        await copy_some(producer, consumer, batches)
        finally:
            await consumer.stop()
    finally:
        await producer.stop()


async def in_a_transaction(producer: Any, _consumer: Any, batches: dict[Any, list[Any]]) -> None:
    """Copy records and commit their offsets in one transaction."""
    async with producer.transaction():
        copied = [await producer.send("out", each.value) for records in batches.values() for each in records]
        await asyncio.gather(*copied)  # aiokafka commits even if a record could not be sent
        offsets = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        await producer.send_offsets_to_transaction(offsets, "copiers")
    log.info("copied %d", sum(map(len, batches.values())))


async def right(sim: Simulation) -> None:
    """The program without a mistake: each record is copied once, or its absence is known."""
    sim.process("copier", lambda: copy(sim.bootstrap_servers))
    await sim.feed("in", range(100))
    await sim.calm()
    await sim.check_one_outcome_each("in", "out")


async def commits_first(producer: Any, consumer: Any, batches: dict[Any, list[Any]]) -> None:
    """The mistake: offsets are committed before the records are copied."""
    await consumer.commit()
    async with producer.transaction():
        for each in (record for records in batches.values() for record in records):
            await producer.send_and_wait("out", each.value)


async def hasty(sim: Simulation) -> None:
    """Check the copier with the mistake."""
    sim.process("copier", lambda: copy(sim.bootstrap_servers, commits_first))
    await sim.feed("in", range(100))
    await sim.calm()
    await sim.check_one_outcome_each("in", "out")
