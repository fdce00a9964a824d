"""DeleteRecords: how long its answer waits for replicas that do not copy (core E.10)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.replication.partition import ReplicatedPartition
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.scenarios.transactions.harness import SETTINGS, Stage, running
from tests.storage.logs import records_batch

TIMEOUT_MS, SESSION_MS = 5_000, 9_000
"""Of the request, and broker.session.timeout.ms."""


@asynccontextmanager
async def on_two_brokers() -> AsyncIterator[Stage]:
    """A cluster, with three records on both."""
    settings = {**SETTINGS, "default.replication.factor": "2"}
    async with running(brokers=2, topics={"t": 1}, settings=settings) as stage:
        wire = await stage.connect(hosted(stage).state.leader)
        data = [TopicProduceData("t", [PartitionProduceData(0, records_batch(b"a", b"b", b"c"))])]
        await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, data))
        yield stage


def hosted(stage: Stage) -> ReplicatedPartition:
    """The partition."""
    return stage.cluster.partitions["t", 0]


def hold(stage: Stage, *, follower: bool) -> None:
    """Let the follower copy nothing, or go on."""
    partition = hosted(stage)
    partition.held = frozenset({3 - partition.state.leader} if follower else ())
    partition.replicate()


async def deletion(stage: Stage, offset: int) -> asyncio.Task[DeleteRecordsPartitionResult]:
    """A request under way."""
    wire = await stage.connect(hosted(stage).state.leader)

    async def ask() -> DeleteRecordsPartitionResult:
        request = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)])], TIMEOUT_MS)
        answer = await wire.call(ApiKey.DELETE_RECORDS, 2, request)
        result: DeleteRecordsPartitionResult = answer.topics[0].partitions[0]
        return result

    task = asyncio.ensure_future(ask())
    while all(log.log_start_offset < offset for log in hosted(stage).logs.values()):
        await stage.pass_time(0)
    await stage.pass_time(0)
    return task


async def test_the_answer_waits_for_a_follower_that_is_held() -> None:
    """And has the low watermark of all when it goes on."""
    async with on_two_brokers() as stage:
        hold(stage, follower=True)
        task = await deletion(stage, 2)
        await stage.pass_time(TIMEOUT_MS - 1)
        assert not task.done()
        hold(stage, follower=False)
        assert await task == DeleteRecordsPartitionResult(0, 2)
        assert {log.log_start_offset for log in hosted(stage).logs.values()} == {2}


async def test_a_follower_that_goes_on_too_late_is_a_timeout() -> None:
    """REQUEST_TIMED_OUT with the low watermark as it is (DelayedDeleteRecords)."""
    async with on_two_brokers() as stage:
        hold(stage, follower=True)
        task = await deletion(stage, 2)
        await stage.pass_time(TIMEOUT_MS)
        assert await task == DeleteRecordsPartitionResult(0, 0, ErrorCode.REQUEST_TIMED_OUT)


async def test_a_broker_that_is_down_is_waited_for_until_it_is_fenced() -> None:
    """Of the replica of a fenced broker nothing counts (Partition.lowWatermarkIfLeader)."""
    async with on_two_brokers() as stage:
        stage.cluster.lifecycle.kill(stage.cluster.nodes[3 - hosted(stage).state.leader])
        task = await deletion(stage, 2)
        await stage.pass_time(TIMEOUT_MS)
        assert await task == DeleteRecordsPartitionResult(0, 0, ErrorCode.REQUEST_TIMED_OUT)
        await stage.pass_time(SESSION_MS)
        assert await (await deletion(stage, 3)) == DeleteRecordsPartitionResult(0, 3)


@pytest.mark.parametrize("then", ["the follower is fenced", "it leads", "the topic is deleted"])
async def test_what_the_leader_does_not_look_at_ends_no_wait(then: str) -> None:
    """The wait lasts to its timeout, as that of 4.4.0 (core E.10.1)."""
    async with on_two_brokers() as stage:
        hold(stage, follower=True)
        task = await deletion(stage, 2)
        leader = hosted(stage).state.leader
        if then == "the follower is fenced":
            metadata = stage.cluster.metadata
            metadata.submit(lambda _now_ms: metadata.machine.fence_broker(3 - leader))
        elif then == "it leads":
            stage.cluster.lifecycle.pause(stage.cluster.nodes[leader])
            metadata = stage.cluster.metadata
            metadata.submit(lambda _now_ms: metadata.machine.fence_broker(leader))
            stage.cluster.lifecycle.resume(stage.cluster.nodes[leader])
            assert hosted(stage).state.leader == 3 - leader
        else:
            wire = await stage.connect(3 - leader)
            deleted = DeleteTopicsRequest(timeout_ms=1000, topics=[DeleteTopicState("t")])
            await wire.call(ApiKey.DELETE_TOPICS, 6, deleted)
        await stage.pass_time(TIMEOUT_MS - 1)
        assert not task.done()
        await stage.pass_time(1)
        assert await task == DeleteRecordsPartitionResult(0, 0, ErrorCode.REQUEST_TIMED_OUT)


async def test_the_high_watermark_makes_the_leader_look_again() -> None:
    """A follower that was fenced is not waited for any more, as soon as others' records are replicated."""
    async with on_two_brokers() as stage:
        hold(stage, follower=True)
        task = await deletion(stage, 2)
        leader = hosted(stage).state.leader
        stage.cluster.lifecycle.pause(stage.cluster.nodes[3 - leader])
        metadata = stage.cluster.metadata
        metadata.submit(lambda _now_ms: metadata.machine.fence_broker(3 - leader))
        await stage.pass_time(0)
        assert not task.done()
        data = [TopicProduceData("t", [PartitionProduceData(0, records_batch(b"d"))])]
        wire = await stage.connect(leader)
        await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, data))
        assert await task == DeleteRecordsPartitionResult(0, 2)
