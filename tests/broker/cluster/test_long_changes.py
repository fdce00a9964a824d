"""Changes of thousands of partitions: others are served meanwhile, and no client sees a half rebuilt cluster."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from broker.cluster import reset
from broker.time import long_work
from broker.time.clock import turns
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.scenarios.transactions.harness import AsyncWire, Stage, running
from tests.storage.logs import records_batch

MANY = 600


@pytest.fixture(autouse=True)
def each_pause_ends_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the machine is."""
    monkeypatch.setattr(long_work, "_SLICE_US", 0)


def on_a_cluster(test: Callable[[Stage], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """The test on a cluster of its own, which lives in the test's own task."""

    @functools.wraps(test)
    async def run() -> None:
        async with running() as stage:
            await test(stage)

    del run.__wrapped__
    return run


async def create(wire: AsyncWire, name: str, partitions: int) -> None:
    """A topic."""
    answer = await wire.call(
        ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, partitions, 1)], 60_000)
    )
    assert answer.topics[0].error_code is ErrorCode.NONE


async def counted(work: Awaitable[Any], beside: Callable[[], Awaitable[None]]) -> int:
    """How often another client was answered while the work went on."""
    times, task = 0, asyncio.ensure_future(work)
    await turns(3)
    while not task.done():
        await beside()
        times += 1
    await task
    return times


async def produce(wire: AsyncWire, topic: str) -> None:
    """One record, which is taken."""
    data = [TopicProduceData(topic, [PartitionProduceData(0, records_batch(b"v"))])]
    answer = await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, data))
    assert answer.responses[0].partition_responses[0].error_code is ErrorCode.NONE


async def topics(wire: AsyncWire) -> dict[str, int]:
    """Topics with their numbers of partitions, as Metadata has them."""
    answer = await wire.call(ApiKey.METADATA, 12, MetadataRequest(None))
    return {topic.name: len(topic.partitions) for topic in answer.topics}


@pytest.mark.slow
@on_a_cluster
async def test_producers_are_served_while_a_topic_of_many_partitions_is_created_and_deleted(stage: Stage) -> None:
    """Dozens of times; beside a small topic hardly ever."""
    wire, other = await stage.connect(), await stage.connect()
    await create(wire, "small", 1)
    few = await counted(create(wire, "ten", 10), lambda: produce(other, "small"))
    many = await counted(create(wire, "large", MANY), lambda: produce(other, "small"))
    assert many > max(10, 2 * few)
    request = DeleteTopicsRequest(timeout_ms=60_000, topics=[DeleteTopicState("large")])
    assert await counted(wire.call(ApiKey.DELETE_TOPICS, 6, request), lambda: produce(other, "small")) > 10
    assert await topics(wire) == {"small": 1, "ten": 10}


@on_a_cluster
async def test_no_client_sees_a_topic_with_some_of_its_partitions(stage: Stage) -> None:
    """Metadata have none of them, or all."""
    wire, other = await stage.connect(), await stage.connect()
    seen: set[int] = set()
    looks = count()

    async def look() -> None:
        if not next(looks) % 10:
            seen.add((await topics(other)).get("large", 0))
        await turns(1)

    assert await counted(create(wire, "large", MANY), look) > 10
    assert seen <= {0, MANY}
    assert (await topics(other))["large"] == MANY


@on_a_cluster
async def test_another_change_of_the_metadata_comes_after_the_long_one(stage: Stage) -> None:
    """It lets it end first; both are done, each once."""
    wire, other = await stage.connect(), await stage.connect()
    long = asyncio.ensure_future(create(wire, "large", MANY))
    await turns(20)
    assert not long.done()
    await create(other, "small", 2)
    await long
    assert await topics(wire) == {"large": MANY, "small": 2}
    assert len(stage.cluster.partitions) == MANY + 2
    assert all(partition.logs for partition in stage.cluster.partitions.values())


@on_a_cluster
async def test_settings_are_decided_after_the_long_change(stage: Stage) -> None:
    """A topic that is being deleted gets none, which another topic of that name would have."""
    wire, other = await stage.connect(), await stage.connect()
    names = [f"t{number}" for number in range(MANY // 2)]
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 60_000)
    await wire.call(ApiKey.CREATE_TOPICS, 7, request)
    doomed = DeleteTopicsRequest(timeout_ms=60_000, topics=[DeleteTopicState(name) for name in names])
    long = asyncio.ensure_future(wire.call(ApiKey.DELETE_TOPICS, 6, doomed))
    await turns(20)
    assert not long.done()
    change = AlterConfigsResource(2, names[-1], [AlterableConfig("retention.ms", 0, "1")])
    answer = await other.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]))
    assert answer.responses[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await long
    assert (2, names[-1]) not in stage.cluster.image.configs


@on_a_cluster
async def test_a_restore_is_seen_as_one_step(stage: Stage) -> None:
    """Requests that come meanwhile are answered by the restored cluster, ApiVersions at once and as before."""
    wire, other, third = [await stage.connect() for _ in range(3)]
    await create(wire, "large", MANY)
    snapshot = stage.cluster.snapshots.kept[await reset.take_snapshot(stage.cluster)]
    await create(wire, "late", 1)
    versions = await other.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"))
    held = False

    async def look() -> None:
        nonlocal held
        met = await other.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"))
        assert met.finalized_features == versions.finalized_features
        held = held or stage.cluster.rebuilding.under_way

    restoring = asyncio.ensure_future(reset.restore(stage.cluster, snapshot))
    await turns(3)
    asking = asyncio.ensure_future(topics(third))
    assert await counted(restoring, look) > 10
    assert held
    assert await asking == {"large": MANY}
    await produce(wire, "large")


@on_a_cluster
async def test_a_reset_of_many_partitions_lets_the_others_be_answered(stage: Stage) -> None:
    """And what asks for the cluster meanwhile gets the new one."""
    wire, other, third = [await stage.connect() for _ in range(3)]
    await create(wire, "large", MANY)

    async def look() -> None:
        await other.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"))

    resetting = asyncio.ensure_future(reset.reset(stage.cluster))
    await turns(3)
    asking = asyncio.ensure_future(topics(third))
    assert await counted(resetting, look) > 10
    assert await asking == {}


@on_a_cluster
async def test_no_timer_fires_while_the_cluster_is_rebuilt(stage: Stage) -> None:
    """One that is due then fires afterwards."""
    wire = await stage.connect()
    await create(wire, "large", MANY)
    snapshot = stage.cluster.snapshots.kept[await reset.take_snapshot(stage.cluster)]
    restoring = asyncio.ensure_future(reset.restore(stage.cluster, snapshot))
    await turns(5)
    fired: list[bool] = []
    stage.cluster.clock.call_at(stage.cluster.clock.now_ms(), lambda: fired.append(stage.cluster.rebuilding.under_way))
    await restoring
    await turns(5)
    while not fired:
        await turns(1)
    assert fired == [False]


@on_a_cluster
async def test_a_server_that_ends_finishes_the_restore_first(stage: Stage) -> None:
    """So that a data directory is whole."""
    wire = await stage.connect()
    await create(wire, "large", MANY)
    snapshot = stage.cluster.snapshots.kept[await reset.take_snapshot(stage.cluster)]
    restoring = asyncio.ensure_future(reset.restore(stage.cluster, snapshot))
    await turns(5)
    assert stage.cluster.rebuilding.under_way
    stage.cluster.rebuilding.finish()
    assert len(stage.cluster.partitions) == MANY
    await restoring


@on_a_cluster
async def test_a_long_change_does_not_end_the_protection_of_the_next_one(stage: Stage) -> None:
    """The first is run to its end by the second; what comes third still finds the second, and runs that to its end."""
    wires = [await stage.connect() for _ in range(3)]
    first = asyncio.ensure_future(create(wires[0], "first", MANY))
    await turns(20)
    assert not first.done()
    second = asyncio.ensure_future(create(wires[1], "second", MANY))
    await turns(20)
    assert not second.done()
    again = CreateTopicsRequest([CreatableTopic("second", 1, 1)], 60_000)
    answer = await wires[2].call(ApiKey.CREATE_TOPICS, 7, again)
    assert answer.topics[0].error_code is ErrorCode.TOPIC_ALREADY_EXISTS
    await first
    await second
    assert await topics(wires[0]) == {"first": MANY, "second": MANY}
