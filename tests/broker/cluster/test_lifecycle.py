"""Brokers that die, stop, hang and come back, in a cluster inside the test's loop with a frozen clock."""

import asyncio
import functools
import inspect
import shutil
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.cluster import reset
from broker.cluster.lifecycle import WrongState
from broker.coordination.metadata.configs import NewConfigs
from broker.request.node import Node
from broker.settings.endpoints import PortTaken
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from storage.files import MemoryFiles
from tests.scenarios.transactions.harness import AsyncWire, Hung, Stage, running
from tests.storage.logs import contents, records_batch

SESSION_MS = 9000
"""broker.session.timeout.ms."""


def on_three_brokers(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The test on a cluster of its own, which lives in the test's own task."""

    @functools.wraps(test)
    async def run(**arguments: Any) -> None:
        async with running(brokers=3) as stage:
            await test(stage, **arguments)

    _, *others = inspect.signature(test).parameters.values()
    run.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
    return run


async def assigned(stage: Stage, *replicas: int, name: str = "t") -> None:
    """A topic with one partition on these brokers."""
    topic = CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, replicas)])
    wire = await stage.connect()
    answer = await wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 1000))
    assert answer.topics[0].error_code is ErrorCode.NONE


async def partition(stage: Stage, broker: int = 1) -> MetadataResponsePartition:
    """Partition 0 in a broker's Metadata."""
    wire = await stage.connect(broker)
    answer = await wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic("t")]))
    described: MetadataResponsePartition = answer.topics[0].partitions[0]
    return described


async def led(stage: Stage) -> tuple[int, int, list[int]]:
    """Leader, leader epoch and in-sync replicas."""
    described = await partition(stage)
    return described.leader_id, described.leader_epoch, sorted(described.isr_nodes)


async def produce(stage: Stage, broker: int, value: bytes, acks: int = 1) -> ErrorCode:
    """One record to partition 0; the code."""
    wire = await stage.connect(broker)
    data = [PartitionProduceData(0, records_batch(value))]
    answer = await wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, acks, 1000, [TopicProduceData("t", data)]))
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


def values(stage: Stage, broker: int) -> list[bytes | None]:
    """What a broker's replica holds."""
    return [value for _, _, value in contents(stage.cluster.partitions["t", 0].logs[broker])]


def node(stage: Stage, broker: int) -> Node:
    """A broker."""
    return stage.cluster.nodes[broker]


async def done(verb: Awaitable[None] | None) -> None:
    """Wait until a verb is done that takes time."""
    await (verb or asyncio.sleep(0))


async def check_gone(wire: AsyncWire) -> None:
    """The connection does not answer any more."""
    with pytest.raises(Hung):
        await wire.call(ApiKey.METADATA, 12, MetadataRequest())


# --- killed ----------------------------------------------------------------------------------------------------------


@on_three_brokers
async def test_a_broker_is_started_once(stage: Stage) -> None:
    """Of two that start it at the same time the second is refused, and it cannot be removed meanwhile."""
    lifecycle, node = stage.cluster.lifecycle, stage.cluster.nodes[2]
    lifecycle.kill(node)
    first = asyncio.create_task(lifecycle.start(node))
    await asyncio.sleep(0)
    with pytest.raises(WrongState, match="broker 2 is starting"):
        await lifecycle.start(node)
    with pytest.raises(WrongState, match="broker 2 is starting"):
        await lifecycle.remove(node)
    await first
    assert (node.up, stage.cluster.servers[node].listening) == (True, True)


@on_three_brokers
async def test_a_killed_broker_is_noticed_after_its_session(stage: Stage) -> None:
    """Until then it leads on paper; then the next in-sync replica does, in the next epoch."""
    await assigned(stage, 2, 3)
    wire = await stage.connect(2)
    stage.cluster.lifecycle.kill(node(stage, 2))
    await check_gone(wire)
    await stage.pass_time(SESSION_MS - 1)
    assert await led(stage) == (2, 0, [2, 3])
    await stage.pass_time(1)
    assert await led(stage) == (3, 1, [3])


@on_three_brokers
async def test_a_broker_that_is_back_in_time_is_never_given_up(stage: Stage) -> None:
    """A new registration all the same: the leader goes and comes."""
    await assigned(stage, 2, 3)
    stage.cluster.lifecycle.kill(node(stage, 2))
    await stage.pass_time(SESSION_MS - 1)
    await stage.cluster.lifecycle.start(node(stage, 2))
    await stage.pass_time(10 * SESSION_MS)
    assert (await led(stage))[2] == [2, 3]
    assert await produce(stage, (await led(stage))[0], b"x", acks=-1) is ErrorCode.NONE


@on_three_brokers
async def test_a_partition_without_another_replica_has_no_leader(stage: Stage) -> None:
    """LEADER_NOT_AVAILABLE, until its broker is back with all that it had."""
    await assigned(stage, 2)
    assert await produce(stage, 2, b"kept") is ErrorCode.NONE
    stage.cluster.lifecycle.kill(node(stage, 2))
    await stage.pass_time(SESSION_MS)
    alone = await partition(stage)
    assert (alone.error_code, alone.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    await stage.cluster.lifecycle.start(node(stage, 2))
    assert (await led(stage))[0] == 2
    assert values(stage, 2) == [b"kept"]


@pytest.mark.parametrize("lost", [(2,), (2, 3)])
async def test_a_leader_that_lost_its_log_does_not_cost_the_others_their_records(
    tmp_path: Path, lost: tuple[int, ...]
) -> None:
    """All who lost it are out of the in-sync replicas before any replica is cut to what its leader has (KIP-966)."""
    async with running(brokers=3, data_dir=tmp_path) as stage:
        await assigned(stage, 2, 3, 1)
        assert await produce(stage, 2, b"kept", acks=-1) is ErrorCode.NONE
    for broker in lost:
        shutil.rmtree(tmp_path / f"broker-{broker}" / "t-0")
        (tmp_path / f"broker-{broker}" / ".kafka_cleanshutdown").unlink()
    async with running(brokers=3, data_dir=tmp_path) as stage:
        assert (await led(stage))[2] == [1, 2, 3]
        assert [values(stage, broker) for broker in (1, 2, 3)] == [[b"kept"]] * 3


@on_three_brokers
async def test_what_only_the_dead_had_is_gone_when_they_come_back(stage: Stage) -> None:
    """acks=1: a leader that dies with a record that no other replica has cannot bring it back."""
    await assigned(stage, 2, 3)
    hosted = stage.cluster.partitions["t", 0]
    assert await produce(stage, 2, b"everywhere") is ErrorCode.NONE
    hosted.held = frozenset({3})
    assert await produce(stage, 2, b"lost") is ErrorCode.NONE
    stage.cluster.lifecycle.kill(node(stage, 2))
    await stage.pass_time(SESSION_MS)
    hosted.held = frozenset()
    assert await produce(stage, 3, b"kept") is ErrorCode.NONE
    await stage.cluster.lifecycle.start(node(stage, 2))
    await stage.pass_time(0)
    assert values(stage, 2) == values(stage, 3) == [b"everywhere", b"kept"]


@on_three_brokers
async def test_a_replica_is_in_sync_again_whose_eligibility_was_cleared(stage: Stage) -> None:
    """As another min.insync.replicas does, which changes the partition while its broker is away."""
    await assigned(stage, 2, 3)
    metadata = stage.cluster.metadata
    for least in ("2", "1"):
        wanted = NewConfigs(2, "t", {"min.insync.replicas": least})
        metadata.submit(lambda _now_ms, wanted=wanted: metadata.machine.alter_configs([wanted]))  # type: ignore[misc]
        stage.cluster.lifecycle.pause(node(stage, 3))
        await stage.pass_time(SESSION_MS)
    stage.cluster.lifecycle.resume(node(stage, 3))
    assert (await led(stage))[2] == [2, 3]


@on_three_brokers
async def test_a_broker_may_die_again_and_again(stage: Stage) -> None:
    """A broker that is killed again and again is detected and replaced each time."""
    await assigned(stage, 2, 3)
    for _ in range(3):
        stage.cluster.lifecycle.kill(node(stage, 2))
        await stage.pass_time(SESSION_MS)
        assert (await led(stage))[0] == 3
        await stage.cluster.lifecycle.start(node(stage, 2))
        assert (await led(stage))[2] == [2, 3]


# --- stopped ---------------------------------------------------------------------------------------------------------


@on_three_brokers
async def test_a_leader_that_lost_its_log_does_not_cut_the_others(stage: Stage) -> None:
    """It comes back within its session, so it still leads as far as the brokers know: registering comes first."""
    await assigned(stage, 2, 3)
    assert [await produce(stage, 2, value, acks=-1) for value in (b"a", b"b")] == [ErrorCode.NONE] * 2
    node = stage.cluster.nodes[2]
    stage.cluster.lifecycle.kill(node)
    (files,) = node.files
    assert isinstance(files, MemoryFiles)
    for path in files.list("t-0"):
        if path.endswith(".log"):
            files.replace(f"t-0/{path}", b"")
    await stage.cluster.lifecycle.start(node)
    assert await led(stage) == (3, 1, [2, 3])
    assert values(stage, 3) == values(stage, 2) == [b"a", b"b"]


@on_three_brokers
async def test_a_stopped_broker_hands_over_first(stage: Stage) -> None:
    """A broker that is stopped hands over its leaderships at once, not after its session."""
    await assigned(stage, 2, 3)
    await stage.cluster.lifecycle.stop(node(stage, 2))
    assert await led(stage) == (3, 1, [3])
    await stage.cluster.lifecycle.start(node(stage, 2))
    assert await led(stage) == (3, 1, [2, 3])


@on_three_brokers
async def test_a_started_broker_listens_where_it_did(stage: Stage) -> None:
    """A broker that is started again has its former port: clients know its address."""
    before = stage.cluster.bootstrap
    await stage.cluster.lifecycle.stop(node(stage, 2))
    await stage.cluster.lifecycle.start(node(stage, 2))
    assert stage.cluster.bootstrap == before
    wire = await stage.connect(2)
    assert len((await wire.call(ApiKey.METADATA, 12, MetadataRequest())).brokers) == 3


@on_three_brokers
async def test_what_waits_at_a_stopped_broker_is_answered_before_its_connection_ends(stage: Stage) -> None:
    """As on 4.4.0: a write that waits for replicas, a fetch that names the leader epoch; not a plain one."""
    await assigned(stage, 2, 3)
    stage.cluster.lifecycle.pause(node(stage, 3))
    data = [PartitionProduceData(0, records_batch(b"x"))]
    write = await stage.connect(2)
    write.send(ApiKey.PRODUCE, 10, ProduceRequest(None, -1, 60_000, [TopicProduceData("t", data)]))
    fetches = []
    for epoch in (0, -1):
        interest = FetchTopic("t", [FetchPartition(0, 0, 1000, current_leader_epoch=epoch)])
        fetches.append(await stage.connect(2))
        fetches[-1].send(ApiKey.FETCH, 12, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[interest]))
    await stage.pass_time(0)
    await stage.cluster.lifecycle.stop(node(stage, 2))
    (written,) = (await write.answer()).responses[0].partition_responses
    assert (written.error_code, written.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)
    (fetched,) = (await fetches[0].answer()).responses[0].partitions
    assert fetched.error_code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(Hung):
        await fetches[1].answer()


@pytest.mark.parametrize("on_disk", [False, True])
async def test_a_taken_port_can_be_waited_for(on_disk: bool, tmp_path: Path) -> None:
    """Starting fails with the reason, and may be tried again."""
    async with running(brokers=2, data_dir=tmp_path if on_disk else None) as stage:
        _, port = stage.cluster.bootstrap[1]
        await stage.cluster.lifecycle.stop(node(stage, 2))
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            with pytest.raises(PortTaken):
                await stage.cluster.lifecycle.start(node(stage, 2))
        await stage.cluster.lifecycle.start(node(stage, 2))
        assert await (await stage.connect(2)).call(ApiKey.METADATA, 12, MetadataRequest())


# --- paused ----------------------------------------------------------------------------------------------------------


@on_three_brokers
async def test_a_paused_broker_answers_when_it_goes_on(stage: Stage) -> None:
    """In time: its session has not expired."""
    await assigned(stage, 2, 3)
    wire = await stage.connect(2)
    stage.cluster.lifecycle.pause(node(stage, 2))
    wire.send(ApiKey.METADATA, 12, MetadataRequest())
    await stage.pass_time(SESSION_MS - 1)
    stage.cluster.lifecycle.resume(node(stage, 2))
    assert (await wire.answer()).brokers
    await stage.pass_time(10 * SESSION_MS)
    assert await led(stage) == (2, 0, [2, 3])


@on_three_brokers
async def test_what_waits_at_a_paused_broker_has_its_response_when_it_goes_on(stage: Stage) -> None:
    """Also if the wait is over before: a process under SIGSTOP writes nothing."""
    await assigned(stage, 2, 3)
    wire = await stage.connect(2)
    for paused in (False, True):
        request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic("t", [FetchPartition(0, 0, 1000)])])
        polled = asyncio.ensure_future(wire.call(ApiKey.FETCH, 12, request))
        await stage.pass_time(0)
        await stage.pass_time(499)
        assert not polled.done()
        if paused:
            stage.cluster.lifecycle.pause(node(stage, 2))
        await stage.pass_time(1)
        await stage.pass_time(0)  # the client reads
        assert polled.done() is not paused
        if paused:
            stage.cluster.lifecycle.resume(node(stage, 2))
        assert not (await polled).responses[0].partitions[0].error_code


@on_three_brokers
async def test_a_leader_that_hangs_commits_nothing(stage: Stage) -> None:
    """Its in-sync replicas have the record, but it does not learn of it; when it goes on, another one leads."""
    await assigned(stage, 2, 1, 3)
    hosted = stage.cluster.partitions["t", 0]
    hosted.held = frozenset({3})
    data = [TopicProduceData("t", [PartitionProduceData(0, records_batch(b"a"))])]
    wire = await stage.connect(2)
    produced = asyncio.ensure_future(wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 60_000, data)))
    await stage.pass_time(0)
    stage.cluster.lifecycle.pause(node(stage, 2))
    hosted.held = frozenset()
    hosted.replicate()
    assert hosted.logs[2].high_watermark == 0
    await stage.pass_time(SESSION_MS)
    assert (await led(stage), produced.done()) == ((1, 1, [1, 3]), False)
    stage.cluster.lifecycle.resume(node(stage, 2))
    (response,) = (await produced).responses[0].partition_responses
    assert response.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert values(stage, 1) == values(stage, 3) == [b"a"]


@on_three_brokers
@pytest.mark.parametrize("paused", [2, 3])
async def test_a_follower_rejoins_the_isr_when_it_or_its_leader_goes_on(stage: Stage, paused: int) -> None:
    """It was let go while one of the two hung, and could not catch up."""
    await assigned(stage, 2, 3)
    hosted, metadata = stage.cluster.partitions["t", 0], stage.cluster.metadata
    hosted.held = frozenset({3})
    metadata.submit(lambda _now_ms: metadata.machine.change_isr("t", 0, (2,)))
    assert await produce(stage, 2, b"a") is ErrorCode.NONE
    stage.cluster.lifecycle.pause(node(stage, paused))
    hosted.held = frozenset()
    hosted.replicate()
    assert (await led(stage), values(stage, 3)) == ((2, 0, [2]), [])
    stage.cluster.lifecycle.resume(node(stage, paused))
    assert (await led(stage), values(stage, 3)) == ((2, 0, [2, 3]), [b"a"])


@on_three_brokers
async def test_a_paused_broker_that_is_killed_gives_no_response(stage: Stage) -> None:
    """What would have been sent when it goes on is lost with its process."""
    await assigned(stage, 2, 3)
    wire = await stage.connect(2)
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic("t", [FetchPartition(0, 0, 1000)])])
    polled = asyncio.ensure_future(wire.call(ApiKey.FETCH, 12, request))
    await stage.pass_time(0)
    stage.cluster.lifecycle.pause(node(stage, 2))
    await stage.pass_time(500)
    stage.cluster.lifecycle.kill(node(stage, 2))
    with pytest.raises(Hung):
        await polled


@on_three_brokers
async def test_a_broker_that_hangs_for_too_long_is_given_up(stage: Stage) -> None:
    """When it goes on it registers again, as a follower."""
    await assigned(stage, 2, 3)
    stage.cluster.lifecycle.pause(node(stage, 2))
    await stage.pass_time(SESSION_MS)
    assert await led(stage) == (3, 1, [3])
    stage.cluster.lifecycle.resume(node(stage, 2))
    await stage.pass_time(0)
    assert await led(stage) == (3, 1, [2, 3])


@on_three_brokers
async def test_a_broker_that_hangs_follows_no_leader(stage: Stage) -> None:
    """What needs all replicas in sync waits until it goes on, or until it is fenced, as for a killed one."""
    await assigned(stage, 2, 3)
    stage.cluster.lifecycle.pause(node(stage, 3))
    assert await produce(stage, 2, b"a") is ErrorCode.NONE
    log = stage.cluster.partitions["t", 0].logs[2]
    assert (values(stage, 3), log.high_watermark) == ([], 0)
    stage.cluster.lifecycle.resume(node(stage, 3))
    assert (values(stage, 3), log.high_watermark) == ([b"a"], 1)
    stage.cluster.lifecycle.pause(node(stage, 3))
    assert await produce(stage, 2, b"b") is ErrorCode.NONE
    await stage.pass_time(SESSION_MS)
    assert (await led(stage), log.high_watermark) == ((2, 0, [2]), 2)
    stage.cluster.lifecycle.resume(node(stage, 3))
    assert (await led(stage), values(stage, 3)) == ((2, 0, [2, 3]), [b"a", b"b"])


@pytest.mark.parametrize("then", ["pause", "kill"])
@on_three_brokers
async def test_silence_counts_from_its_beginning(stage: Stage, then: str) -> None:
    """Paused and then paused again, or killed: it has been silent since the first."""
    await assigned(stage, 2, 3)
    stage.cluster.lifecycle.pause(node(stage, 2))
    await stage.pass_time(SESSION_MS // 2)
    getattr(stage.cluster.lifecycle, then)(node(stage, 2))
    await stage.pass_time(SESSION_MS // 2)
    assert (await led(stage))[0] == 3


@on_three_brokers
async def test_a_broker_that_was_paused_twice_goes_on_for_good(stage: Stage) -> None:
    """The first pause is forgotten with the second."""
    await assigned(stage, 2, 3)
    lifecycle = stage.cluster.lifecycle
    lifecycle.pause(node(stage, 2))
    await stage.pass_time(10)
    lifecycle.pause(node(stage, 2))
    lifecycle.resume(node(stage, 2))
    await stage.pass_time(10 * SESSION_MS)
    assert await led(stage) == (2, 0, [2, 3])


# --- what cannot be --------------------------------------------------------------------------------------------------


@on_three_brokers
async def test_a_broker_that_is_down_can_only_be_started(stage: Stage) -> None:
    """A broker that is down can only be started, and one that is up cannot."""
    lifecycle = stage.cluster.lifecycle
    with pytest.raises(WrongState, match="broker 2 is running"):
        await lifecycle.start(node(stage, 2))
    lifecycle.kill(node(stage, 2))
    for verb in (lifecycle.kill, lifecycle.stop, lifecycle.pause, lifecycle.resume):
        with pytest.raises(WrongState, match="broker 2 is not running"):
            await done(verb(node(stage, 2)))


@pytest.mark.parametrize("how", ["kill", "stop", "pause"])
@on_three_brokers
async def test_a_reset_brings_everybody_back(stage: Stage, how: str) -> None:
    """As just started: listening, reading, alive; and no broker's session expires afterwards."""
    await done(getattr(stage.cluster.lifecycle, how)(node(stage, 2)))
    await reset.reset(stage.cluster, frozenset({"clock"}))
    await stage.pass_time(10 * SESSION_MS)
    wire = await stage.connect(2)
    reported = await wire.call(ApiKey.METADATA, 12, MetadataRequest())
    assert [each.node_id for each in reported.brokers] == [1, 2, 3]
    await assigned(stage, 2, 3)
    assert await produce(stage, 2, b"x", acks=-1) is ErrorCode.NONE
