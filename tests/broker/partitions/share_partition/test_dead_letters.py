"""The timers of dead-letter queues: the wait for the queue's replicas, and the pauses between attempts (KIP-1191)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.coordination.share_state.persister import SharePartitionKey
from broker.partitions.share_partition.dead_letters import DeadLetters
from broker.partitions.share_partition.machine.acknowledge import REJECTED, DeadRecords
from broker.replication.partition import ReplicatedPartition
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.scenarios.transactions.harness import AsyncWire, Stage, running
from tests.storage.logs import records_batch

QUEUE, GROUP = "dlq.orders", "queue"
GROUP_RESOURCE = 32
WITHIN_MS = 30_000
"""The wait for the queue's replicas."""
PAUSES_MS = [2000, 4000, 8000, 16_000]
"""Between five attempts; each is a fifth longer or shorter at most."""
SESSION_MS = 9_000


@asynccontextmanager
async def queue_of(brokers: int, *, factor: int) -> AsyncIterator[tuple[Stage, ReplicatedPartition]]:
    """A cluster whose group ``queue`` names a dead-letter queue of one partition, led by the last broker."""
    async with running({"default.replication.factor": 1}, brokers=brokers, topics={"foo": 1}) as stage:
        wire = await stage.connect()
        replicas = list(range(brokers, brokers - factor, -1))
        configs = [CreatableTopicConfig("errors.deadletterqueue.group.enable", "true")]
        topic = CreatableTopic(QUEUE, -1, -1, [CreatableReplicaAssignment(0, replicas)], configs)
        created = await wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 10_000))
        assert created.topics[0].error_code is ErrorCode.NONE, created.topics[0].error_message
        await configure(wire, "errors.deadletterqueue.topic.name", QUEUE)
        partition = stage.cluster.partitions[QUEUE, 0]
        assert partition.state.leader == brokers
        yield stage, partition


async def configure(wire: AsyncWire, name: str, value: str) -> None:
    """One setting of the group."""
    resource = AlterConfigsResource(GROUP_RESOURCE, GROUP, [AlterableConfig(name, 0, value)])
    answer = await wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))
    assert answer.responses[0].error_code is ErrorCode.NONE


async def write(stage: Stage) -> "asyncio.Task[None]":
    """One record of ``foo`` on its way to the queue; the first attempt has begun."""
    source = stage.cluster.partitions["foo", 0]
    leader = stage.cluster.nodes[source.state.leader]
    letters = DeadLetters(stage.cluster, leader.id, leader.settings)
    key = SharePartitionKey(GROUP, source.topic_id, 0)
    writing = asyncio.create_task(letters.write(key, source, DeadRecords(0, 0, 1, REJECTED)))
    await stage.pass_time(0)
    return writing


def written(queue: ReplicatedPartition) -> int:
    """How many records the queue's leader has."""
    return queue.led_by(queue.state.leader).log_end_offset


async def test_a_dead_record_waits_for_the_queues_replicas() -> None:
    """To the last moment before the time is up; written once."""
    async with queue_of(2, factor=2) as (stage, queue):
        queue.held = frozenset({1})
        writing = await write(stage)
        await stage.pass_time(WITHIN_MS - 1)
        assert (written(queue), writing.done()) == (1, False)
        queue.held = frozenset()
        queue.replicate()
        await stage.pass_time(0)
        assert (written(queue), writing.done()) == (1, True)


async def test_a_dead_record_that_is_not_replicated_is_written_again_after_a_pause() -> None:
    """Five attempts of 30 seconds each, with longer and longer pauses; then it is given up."""
    async with queue_of(2, factor=2) as (stage, queue):
        queue.held = frozenset({1})
        writing = await write(stage)
        for attempt, pause_ms in enumerate(PAUSES_MS, 1):
            await stage.pass_time(WITHIN_MS)
            await stage.pass_time(pause_ms * 4 // 5 - 1)
            assert written(queue) == attempt
            for _ in range(pause_ms * 2 // 5 + 1):  # the next wait begins when the pause ends
                if written(queue) == attempt:
                    await stage.pass_time(1)
            assert written(queue) == attempt + 1
        assert written(queue) == 5
        await stage.pass_time(WITHIN_MS - 1)
        assert not writing.done()
        await stage.pass_time(1)
        assert writing.done()
        await stage.pass_time(60_000)
        assert written(queue) == 5


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_queue_without_a_leader_is_asked_for_again_after_a_pause(comes_back: bool) -> None:
    """A leader that is there by the second attempt gets the record; without one it is given up after five attempts."""
    async with queue_of(2, factor=1) as (stage, queue):
        stage.kill(2)
        await stage.pass_time(SESSION_MS)
        assert queue.state.leader == -1
        writing = await write(stage)
        await stage.pass_time(PAUSES_MS[0] * 4 // 5 - 1)
        assert not writing.done()
        if comes_back:
            await stage.start(2)
            await stage.pass_time(0)
            assert (queue.state.leader, written(queue)) == (2, 0)
            await stage.pass_time(PAUSES_MS[0] * 2 // 5 + 1)
            assert (written(queue), writing.done()) == (1, True)
            return
        await stage.pass_time(sum(PAUSES_MS) * 4 // 5 - PAUSES_MS[0] * 4 // 5)
        assert not writing.done()
        await stage.pass_time(sum(PAUSES_MS) * 2 // 5 + 1)
        assert writing.done()


async def test_a_queue_is_created_once_a_controller_is_active() -> None:
    """An attempt without one is followed by a pause and another attempt, as after other errors that pass."""
    settings = {"default.replication.factor": 1, "errors.deadletterqueue.auto.create.topics.enable": "true"}
    async with running(settings, brokers=1, topics={"foo": 1}) as stage:
        await configure(await stage.connect(), "errors.deadletterqueue.topic.name", QUEUE)
        metadata = stage.cluster.metadata
        metadata.suspend()
        writing = await write(stage)
        await stage.pass_time(PAUSES_MS[0] * 4 // 5 - 1)
        assert not writing.done()
        metadata.resume(metadata.epoch)
        await stage.pass_time(PAUSES_MS[0] * 2 // 5 + 1)
        assert (written(stage.cluster.partitions[QUEUE, 0]), writing.done()) == (1, True)


async def test_copies_are_read_while_earlier_ones_are_written() -> None:
    """The records of a range are not all held at once: here a batch of the queue has one of them."""
    async with queue_of(1, factor=1) as (stage, queue):
        wire = await stage.connect()
        await configure(wire, "errors.deadletterqueue.copy.record.enable", "true")
        batch = records_batch(bytes(600_000))
        for _ in range(4):
            sent = [TopicProduceData("foo", [PartitionProduceData(0, bytearray(batch))])]
            await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, 1, 1000, sent))
        source = stage.cluster.partitions["foo", 0]
        log, written_at_reads = source.led_by(1), list[int]()

        def read(*args: Any, **fields: Any) -> Any:
            written_at_reads.append(written(queue))
            return log.reader.read(*args, **fields)

        bounds = {"log_start_offset": log.log_start_offset, "high_watermark": log.high_watermark}
        leader = SimpleNamespace(**bounds, reader=SimpleNamespace(read=read))
        observed = cast("Any", SimpleNamespace(topic="foo", name=source.name, led_by=lambda _: leader))
        node = stage.cluster.nodes[1]
        key = SharePartitionKey(GROUP, source.topic_id, 0)
        await DeadLetters(stage.cluster, 1, node.settings).write(key, observed, DeadRecords(0, 3, 1, REJECTED))
        assert written(queue) == 4
        assert written_at_reads == [0, 0, 1, 2]
