"""The timers of dead-letter queues: the wait for the queue's replicas, and the pauses between attempts (KIP-1191)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.coordination.share.persister import SharePartitionKey
from broker.replication.partition import ReplicatedPartition
from broker.share.dead_letters import DeadLetters
from broker.share.machine.acknowledge import REJECTED, DeadRecords
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
from tests.scenarios.transactions.harness import Stage, running

QUEUE, GROUP = "dlq.orders", "queue"
GROUP_RESOURCE = 32
WITHIN_MS = 30_000
"""The wait for the queue's replicas."""
PAUSES_MS = [1000, 2000, 4000, 8000]
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
        names = [AlterableConfig("errors.deadletterqueue.topic.name", 0, QUEUE)]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, GROUP, names)])
        answer = await wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code is ErrorCode.NONE
        partition = stage.cluster.partitions[QUEUE, 0]
        assert partition.state.leader == brokers
        yield stage, partition


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
