"""Share partitions whose coordinators are on several brokers: while one is away, the others do not wait for it.

Kafka's ``DefaultStatePersister`` sends what is about several partitions at the same time.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from broker.coordination.share_state.persister import Persister, SharePartitionKey
from broker.partitions.share_partition.machine.states import RecordState
from broker.request.share_state import ATTEMPTS, BACKOFF_MS, delete_partitions, initialize_partitions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import AcknowledgementBatch as FetchAcknowledgementBatch
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from tests.broker.cluster.test_resets_under_way import outcome
from tests.scenarios.transactions.harness import AsyncWire, Hung, Stage, running
from tests.storage.logs import records_batch

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}
ACCEPT = 1


class Group:
    """A group that reads a topic of two partitions on broker 1; the coordinator of the first one is on broker 2."""

    def __init__(self, stage: Stage, group_id: str, wire: AsyncWire) -> None:
        self.stage, self.group_id, self.wire = stage, group_id, wire
        self.topic_id = stage.topic_id("t")

    @property
    def persister(self) -> Persister:
        """That of a broker which is up."""
        return next(node.persister for node in self.stage.cluster.nodes.values() if node.up)

    @property
    def keys(self) -> list[SharePartitionKey]:
        """Of both partitions; the coordinator of the first one is the far one."""
        return [SharePartitionKey(self.group_id, self.topic_id, index) for index in (0, 1)]

    async def start_offset(self, index: int) -> int:
        """As the share coordinator has it."""
        return (await self.persister.read_summary(self.keys[index], 0)).start_offset

    async def done(self, index: int) -> int:
        """How many records are acknowledged, as the share coordinator has it."""
        return (await self.persister.read_summary(self.keys[index], 0)).delivery_complete_count

    async def create(self) -> None:
        """Create the state of both, beginning at 0."""
        results = await initialize_partitions(self.persister, self.group_id, 1, {self.topic_id: {0: 0, 1: 0}})
        assert not any(each.failed for each in results[self.topic_id].values())

    async def hold(self) -> int:
        """Member m acquires a record of each partition; the next epoch of its session."""
        sent = [PartitionProduceData(index, records_batch(b"v")) for index in (0, 1)]
        await self.wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, 1, 1000, [TopicProduceData("t", sent)]))
        topics = [FetchTopic(self.topic_id, [FetchPartition(index) for index in (0, 1)])]
        limits: dict[str, Any] = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        acquired: set[int] = set()
        epoch = 0
        while acquired != {0, 1}:  # both are loading at first
            request = ShareFetchRequest(self.group_id, "m", epoch, topics=topics if epoch == 0 else (), **limits)
            fetched = await self.wire.call(ApiKey.SHARE_FETCH, 2, request)
            assert fetched.error_code is ErrorCode.NONE
            parts = [each for topic in fetched.responses for each in topic.partitions]
            acquired |= {each.partition_index for each in parts if each.acquired_records}
            epoch += 1
        return epoch

    def accepting(self, epoch: int) -> ShareAcknowledgeRequest:
        """What member m has acquired is accepted."""
        batches = [AcknowledgementBatch(0, 0, [ACCEPT])]
        acks = [AcknowledgeTopic(self.topic_id, [AcknowledgePartition(index, batches) for index in (0, 1)])]
        return ShareAcknowledgeRequest(self.group_id, "m", epoch, topics=acks)

    async def begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Let work begin while broker 2 hangs."""
        self.stage.pause(2)
        begun = asyncio.create_task(work)
        await self.turns()
        assert not begun.done()
        return begun

    async def turns(self, ms: int = 0) -> None:
        """Let time pass, and requests and answers arrive."""
        await self.stage.pass_time(ms)
        for _ in range(20):
            await self.stage.pass_time(0)

    async def end(self, work: "asyncio.Task[Any]") -> Any:
        """Let broker 2 go on, and the work end."""
        await self.stage.resume(2)
        await self.stage.pass_time(BACKOFF_MS)
        return await work


@asynccontextmanager
async def grouped() -> AsyncIterator[Group]:
    """Two brokers, and a group whose name gives its partitions the coordinators."""
    async with running(SETTINGS, brokers=2) as stage:
        wire = await stage.connect()
        assignments = [CreatableReplicaAssignment(index, [1]) for index in (0, 1)]
        await wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", -1, -1, assignments)], 1000))
        await outcome(stage, stage.cluster.nodes[1].persister.read_summary(SharePartitionKey("g", UUID(int=5), 0), 0))
        for number in range(1000):
            group = Group(stage, f"g{number}", wire)
            if [leader_of(stage, key) for key in group.keys] == [2, 1]:
                break
        else:
            raise AssertionError("no name leads to both brokers")
        yield group


def leader_of(stage: Stage, key: SharePartitionKey) -> int:
    """The broker of a share partition's coordinator."""
    topic = "__share_group_state"
    return stage.leader(topic, stage.cluster.nodes[1].coordinating_partition(topic, key.coordinator_key))


async def test_the_first_states_are_created_at_the_same_time() -> None:
    """The near one is there while the far coordinator hangs; results are in the order of the partitions."""
    async with grouped() as group:
        offsets = {group.topic_id: {0: 5, 1: 6}}
        creating = await group.begin(initialize_partitions(group.persister, group.group_id, 1, offsets))
        assert await group.start_offset(1) == 6
        results = await group.end(creating)
        assert [(index, each.failed) for index, each in results[group.topic_id].items()] == [(0, False), (1, False)]
        assert await group.start_offset(0) == 5


async def test_states_are_deleted_at_the_same_time() -> None:
    """States of share partitions on several coordinators are deleted at the same time."""
    async with grouped() as group:
        await group.create()
        assert await group.start_offset(1) == 0
        deleting = await group.begin(delete_partitions(group.persister, group.group_id, {group.topic_id: [0, 1]}))
        assert await group.start_offset(1) == -1
        assert [each.failed for each in (await group.end(deleting))[group.topic_id]] == [False, False]
        assert await group.start_offset(0) == -1


async def test_acknowledgements_are_written_at_the_same_time() -> None:
    """The answer waits for all of them, and lists the partitions as they were asked."""
    async with grouped() as group:
        await group.create()
        request = group.accepting(await group.hold())
        assert await group.done(1) == 0
        answering = await group.begin(group.wire.call(ApiKey.SHARE_ACKNOWLEDGE, 2, request))
        assert await group.done(1) == 1
        (topic,) = (await group.end(answering)).responses
        assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
            (0, ErrorCode.NONE),
            (1, ErrorCode.NONE),
        ]
        assert await group.done(0) == 1


@pytest.mark.parametrize("with_fetch", [False, True])
async def test_a_session_may_end_before_its_last_acknowledgements_are_written(with_fetch: bool) -> None:
    """By another request of the member: the first one succeeds all the same."""
    async with grouped() as group:
        await group.create()
        await group.hold()
        key = ApiKey.SHARE_ACKNOWLEDGE
        request: Any = group.accepting(-1)
        if with_fetch:
            batches = [FetchAcknowledgementBatch(0, 0, [ACCEPT])]
            acks = [FetchTopic(group.topic_id, [FetchPartition(index, batches) for index in (0, 1)])]
            key, request = ApiKey.SHARE_FETCH, ShareFetchRequest(group.group_id, "m", -1, topics=acks)
        answering = await group.begin(group.wire.call(key, 2, request))
        other = await group.stage.connect()
        closed = await other.call(ApiKey.SHARE_FETCH, 2, ShareFetchRequest(group.group_id, "m", -1))
        assert closed.error_code is ErrorCode.NONE
        answer = await group.end(answering)
        assert (answer.error_code, len(answer.responses)) == (ErrorCode.NONE, 1)
        assert await group.done(0) == 1


async def test_what_members_hold_of_a_broker_that_stops_is_released_before() -> None:
    """As on 4.4.0: the next leader counts the delivery. Of a broker that is killed it knows nothing."""
    for stops, states in ((True, [(0, 0, RecordState.AVAILABLE, 1)]), (False, [])):
        async with grouped() as group:
            await group.create()
            await group.hold()
            if stops:
                await group.stage.stop(1)
            else:
                group.stage.kill(1)
            result = await outcome(group.stage, group.persister.read(group.keys[0], 0))
            assert [tuple(each)[:4] for each in result.batches] == states


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_write_ends_with_the_broker_that_repeats_it(restarted: bool) -> None:
    """As Kafka's PersisterStateManager does: a leader that was killed does not change what the next one has read."""
    async with grouped() as group:
        await group.create()
        asked_for = group.accepting(await group.hold())
        writing = await group.begin(group.wire.call(ApiKey.SHARE_ACKNOWLEDGE, 2, asked_for))
        group.stage.kill(1)
        if restarted:
            await group.stage.start(1)
        await group.stage.resume(2)
        for attempt in range(ATTEMPTS):
            await group.turns(BACKOFF_MS << attempt)
        with pytest.raises(Hung):
            await writing
        key = group.keys[0]
        summary = await outcome(group.stage, group.stage.cluster.nodes[2].persister.read_summary(key, 0))
        assert (summary.start_offset, summary.delivery_complete_count) == (0, 0)


@pytest.mark.parametrize("wait_ms", [0, 5_000])
async def test_a_fetch_ends_with_its_broker_whether_its_acknowledgements_are_written_or_not(wait_ms: int) -> None:
    """Nothing is left of it: neither while it waits for records, nor while it waits for what it acknowledged."""
    async with grouped() as group:
        await group.create()
        batches = [FetchAcknowledgementBatch(0, 0, [ACCEPT])]
        acks = [FetchTopic(group.topic_id, [FetchPartition(index, batches) for index in (0, 1)])]
        limits: dict[str, Any] = {"min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        epoch = await group.hold()
        request = ShareFetchRequest(group.group_id, "m", epoch, max_wait_ms=wait_ms, topics=acks, **limits)
        await group.turns()
        before = asyncio.all_tasks()
        fetching = await group.begin(group.wire.call(ApiKey.SHARE_FETCH, 2, request))
        assert asyncio.all_tasks() - before > {fetching}, "the acknowledgements have a task of their own"
        group.stage.kill(1)
        await group.turns()
        with pytest.raises(Hung):
            await fetching
        assert not asyncio.all_tasks() - before


async def test_summaries_are_asked_for_at_the_same_time() -> None:
    """A coordinator that stays away costs its pauses once, however many partitions it has."""
    async with grouped() as group:
        await group.create()
        topics = [DescribeShareGroupOffsetsRequestTopic("t", [0, 1])]
        twice = [DescribeShareGroupOffsetsRequestGroup(group.group_id, topics)] * 2
        request = DescribeShareGroupOffsetsRequest(twice)
        describing = await group.begin(group.wire.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request))
        for attempt in range(ATTEMPTS - 1):
            assert not describing.done()
            await group.turns(BACKOFF_MS << attempt)
        assert describing.done()
        answer = await describing
        start_offsets = [each.start_offset for of_group in answer.groups for each in of_group.topics[0].partitions]
        assert start_offsets == [-1, 0, -1, 0]
