"""What is under way while a cluster is reset or restored: it ends, and writes nothing to the cluster that comes."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from broker.cluster import reset
from broker.control import brokers
from broker.control.request import ControlRequest
from broker.coordination.share_state.persister import SharePartitionKey
from broker.request.node import Node
from broker.request.share_state import ATTEMPTS, BACKOFF_MS, initialize_partitions
from protocol.errors import KafkaError
from protocol.records.records import Record, build_batch
from tests.broker.cluster.test_lifecycle import assigned, node, on_three_brokers
from tests.scenarios.transactions.harness import Stage, running


async def outcome(stage: Stage, work: Coroutine[Any, Any, Any] | asyncio.Task[Any]) -> Any:
    """What comes of work that may pause by the cluster's clock a few times."""
    task = asyncio.ensure_future(work)
    for _ in range(ATTEMPTS):
        await stage.pass_time(0 if task.done() else BACKOFF_MS << ATTEMPTS)
    return await task


@pytest.mark.parametrize("restored", [False, True])
async def test_the_state_of_share_partitions_is_not_written_to_an_earlier_cluster(restored: bool) -> None:
    """Their coordinator hangs, and the writers pause before they ask again; meanwhile the cluster goes back."""
    async with running(brokers=1) as stage:
        await assigned(stage, 1)
        await assigned(stage, 1, name="u")
        cluster = stage.cluster
        keys = [SharePartitionKey("g", cluster.image.topics[name].id, 0) for name in "tu"]
        await outcome(stage, node(stage, 1).persister.read_summary(keys[0], 0))  # the coordinators' topic is there
        snapshot = cluster.snapshots.kept[await reset.take_snapshot(cluster)]
        cluster.lifecycle.pause(node(stage, 1))
        offsets = {key.topic_id: {0: 5} for key in keys}
        writing = asyncio.create_task(initialize_partitions(node(stage, 1).persister, "g", 1, offsets))
        await stage.pass_time(0)
        if restored:
            await reset.restore(cluster, snapshot)
        else:
            cluster.lifecycle.resume(node(stage, 1))
        await stage.pass_time(BACKOFF_MS)
        results = await outcome(stage, writing)
        assert [results[key.topic_id][0].failed for key in keys] == [restored, restored]
        summaries = [await outcome(stage, node(stage, 1).persister.read_summary(key, 0)) for key in keys]
        assert [each.start_offset for each in summaries] == ([-1, -1] if restored else [5, 5])


@pytest.mark.parametrize("restored", [False, True])
async def test_what_waits_for_its_append_is_not_written_to_an_earlier_cluster(restored: bool) -> None:
    """A Produce that is being verified has its partition already, and goes on when the cluster has gone back."""
    async with running(brokers=2) as stage:
        await assigned(stage, 1, 2)
        cluster = stage.cluster
        partition = cluster.partitions["t", 0]
        batch = build_batch([Record(0, 1, None, b"v")])
        assert partition.append(1, batch, 1).base_offset == 0
        if restored:
            await reset.restore(cluster, cluster.snapshots.kept[await reset.take_snapshot(cluster)])
        else:
            await reset.reset(cluster)
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            partition.append(1, batch, 1)
        ends = [each.log_end_offset for each in cluster.partitions["t", 0].logs.values()] if restored else []
        assert ends == ([1, 1] if restored else [])


@on_three_brokers
async def test_a_reset_ends_though_a_broker_is_added(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were killed serve again, and the one that was added does."""
    cluster, bind = stage.cluster, stage.cluster.bind

    async def adding(node: Node) -> None:
        monkeypatch.setattr(cluster, "bind", bind)
        await cluster.lifecycle.add()
        await bind(node)

    cluster.lifecycle.kill(cluster.nodes[2])
    monkeypatch.setattr(cluster, "bind", adding)
    await reset.reset(cluster)
    assert [each.id for each in cluster.nodes.values() if cluster.servers[each].listening] == [1, 2, 3, 4]


@on_three_brokers
async def test_resets_and_restores_have_their_turns(stage: Stage) -> None:
    """In the order in which they came: the second one does not find listeners that the first has just closed."""
    cluster, done = stage.cluster, list[str]()
    snapshot = cluster.snapshots.kept[await reset.take_snapshot(cluster)]

    async def noted(name: str, work: Coroutine[Any, Any, Any]) -> None:
        await work
        done.append(name)

    await asyncio.gather(
        noted("moved", reset.reset(cluster, disconnect=True)),
        noted("reset", reset.reset(cluster)),
        noted("moved again", reset.reset(cluster, disconnect=True)),
        noted("restored", reset.restore(cluster, snapshot)),
        noted("taken", reset.take_snapshot(cluster)),
    )
    assert done == ["moved", "reset", "moved again", "restored", "taken"]
    assert [(node.up, len(cluster.servers[node]._servers)) for node in cluster.nodes.values()] == [(True, 1)] * 3


@on_three_brokers
async def test_a_broker_is_killed_behind_the_reset_that_came_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not within it, which would open the ports of a broker that is down, and they would be taken at its start."""
    cluster, bind = stage.cluster, stage.cluster.bind
    request, killing = ControlRequest(cluster, {"broker": "3"}), list[asyncio.Task[Any]]()

    async def meanwhile(node: Node) -> None:
        if not killing:
            killing.append(asyncio.create_task(brokers.kill(request)))
        await bind(node)

    cluster.lifecycle.kill(cluster.nodes[2])
    cluster.lifecycle.kill(cluster.nodes[3])
    monkeypatch.setattr(cluster, "bind", meanwhile)
    await reset.reset(cluster)
    assert await killing[0] == {"id": 3, "state": "down"}
    assert not cluster.servers[cluster.nodes[3]].listening
    assert await brokers.start(request) == {"id": 3, "state": "running"}
