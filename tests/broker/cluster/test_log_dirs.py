"""Several log directories of a broker, in memory and by the clock: placement, moves, failure, reset, snapshots.

What a client sees of them, here and on a real Kafka, is in ``tests/scenarios/core/test_log_dirs.py``.
"""

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from broker.cluster.lifecycle import WrongState
from broker.cluster.reset import reset, restore, take_snapshot
from broker.coordination.metadata.image import UNASSIGNED_DIRECTORY
from broker.coordination.metadata.topics import NewTopic
from broker.request.node import Node
from protocol.errors import ErrorCode, KafkaError
from storage.log_dir import WrongDirectoryError
from tests.scenarios.transactions.harness import Stage, running
from tests.storage.logs import contents, records_batch

TWO = {"log.dirs": "/a,/b", "replica.fetch.backoff.ms": "1000", "offsets.topic.num.partitions": "1"}
BACKOFF_MS = 1_000
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def held(node: Node) -> list[list[str]]:
    """The logs of topic t in each of a broker's directories; future ones have a plus sign."""
    return [
        [*(f"{t}-{p}" for t, p in each.logs if t == "t"), *(f"{t}-{p}+" for t, p in each.futures)]
        for each in node.log_dirs
    ]


def directories(stage: Stage, index: int = 0) -> tuple[UUID, ...]:
    """Where the metadata has the replicas of a partition of t."""
    return stage.cluster.image.topics["t"].partitions[index].directories


def append(stage: Stage, value: bytes, broker: int = 1, index: int = 0) -> None:
    """Append a record to a partition of t."""
    stage.cluster.partitions["t", index].append(broker, records_batch(value), stage.clock.now_ms())


def values(stage: Stage, broker: int = 1, index: int = 0) -> list[bytes]:
    """The records of a replica of t."""
    return [value for _, _, value in contents(stage.cluster.partitions["t", index].logs[broker]) if value]


def move(stage: Stage, target: int, broker: int = 1, index: int = 0) -> None:
    """Begin a move."""
    node = stage.cluster.nodes[broker]
    stage.cluster.moves.begin(node, stage.cluster.partitions["t", index], node.log_dirs[target])


async def test_the_controller_learns_the_directories_of_new_replicas() -> None:
    """With several directories it does not know them at first (KIP-858); by one record each, in a later turn."""
    async with running(TWO, brokers=2) as stage:
        metadata = stage.cluster.metadata
        wanted = [NewTopic("t", 2, 2)]
        metadata.submit(lambda _now_ms: metadata.machine.create_topics(wanted))
        assert [directories(stage, each) for each in (0, 1)] == [(UNASSIGNED_DIRECTORY,) * 2] * 2
        await stage.pass_time(0)
        for index in (0, 1):
            directory_ids = {}
            for broker_id, node in stage.cluster.nodes.items():
                log_dir = node.log_dir_of("t", index)
                assert log_dir is not None
                directory_ids[broker_id] = log_dir.directory_id
            state = stage.cluster.image.topics["t"].partitions[index]
            assert dict(zip(state.replicas, state.directories, strict=True)) == directory_ids
            assert (state.leader_epoch, state.partition_epoch) == (0, 2)


async def test_with_one_directory_it_knows_them_at_once() -> None:
    """With one directory per broker the controller knows a replica's directory without a further record."""
    async with running(topics={"t": 1}) as stage:
        end = stage.cluster.metadata_log.log_end_offset
        await stage.pass_time(0)
        assert directories(stage) == (stage.cluster.nodes[1].metadata_dir.directory_id,)
        assert stage.cluster.metadata_log.log_end_offset == end


async def test_a_move_is_made_in_pieces_as_its_rate_permits() -> None:
    """By the clock: nothing before the backoff, then a piece, and the end when the rate permits the next one."""
    async with running({**TWO, RATE: "100"}, topics={"t": 1}) as stage:
        node = stage.cluster.nodes[1]
        append(stage, b"v")
        size_bytes = stage.cluster.partitions["t", 0].logs[1].segments.size
        move(stage, 1)
        await stage.pass_time(BACKOFF_MS - 1)
        assert held(node) == [["t-0"], ["t-0+"]]
        assert node.log_dirs[1].futures["t", 0].log_end_offset == 0
        await stage.pass_time(1)
        assert node.log_dirs[1].futures["t", 0].log_end_offset == 1
        await stage.pass_time(10 * size_bytes - 1)
        assert held(node) == [["t-0"], ["t-0+"]]
        await stage.pass_time(1)
        assert held(node) == [[], ["t-0"]]
        assert directories(stage) == (node.log_dirs[1].directory_id,)
        append(stage, b"w")
        assert values(stage) == [b"v", b"w"]


async def test_a_killed_broker_goes_on_with_a_move() -> None:
    """The future log is recovered, and what was appended meanwhile is copied too."""
    async with running({**TWO, RATE: "100"}, topics={"t": 1}) as stage:
        node = stage.cluster.nodes[1]
        append(stage, b"v")
        move(stage, 1)
        await stage.pass_time(BACKOFF_MS)
        await stage.restart()
        append(stage, b"w")
        assert held(node) == [["t-0"], ["t-0+"]]
        await stage.pass_time(BACKOFF_MS + 10_000)
        assert (held(node), values(stage)) == ([[], ["t-0"]], [b"v", b"w"])


async def test_a_deleted_topic_takes_its_future_logs_along() -> None:
    """A topic of the same name is not filled from them."""
    async with running(TWO, topics={"t": 1}) as stage:
        append(stage, b"v")
        move(stage, 1)
        metadata, topic_id = stage.cluster.metadata, stage.topic_id("t")
        metadata.submit(lambda _now_ms: metadata.machine.delete_topics([topic_id]))
        assert held(stage.cluster.nodes[1]) == [[], []]
        await stage.pass_time(2 * BACKOFF_MS)
        assert held(stage.cluster.nodes[1]) == [[], []]


async def test_a_follower_moves_like_a_leader() -> None:
    """The leader does not notice, and the follower stays in the ISR."""
    async with running({**TWO, "default.replication.factor": 2}, brokers=2, topics={"t": 1}) as stage:
        partition = stage.cluster.partitions["t", 0]
        follower = 3 - partition.state.leader
        append(stage, b"v", partition.state.leader)
        before = partition.state.isr
        move(stage, 1, follower)
        await stage.pass_time(2 * BACKOFF_MS)
        assert held(stage.cluster.nodes[follower]) == [[], ["t-0"]]
        append(stage, b"w", partition.state.leader)
        assert (values(stage, follower), partition.state.isr) == ([b"v", b"w"], before)


async def test_a_failed_directory_takes_only_its_own_partitions_offline() -> None:
    """Their leaders move to the other broker; those of the other directory stay (KIP-112, KIP-858)."""
    async with running({**TWO, "default.replication.factor": 2}, brokers=2, topics={"t": 4}) as stage:
        await stage.pass_time(0)
        node = stage.cluster.nodes[2]
        partitions = stage.cluster.partitions
        failed = node.log_dirs[0]
        stage.cluster.lifecycle.fail_log_dir(node, "/a")
        await stage.pass_time(0)
        for index in range(4):
            state = partitions["t", index].state
            assert (2 in state.isr) == (("t", index) not in failed.logs)
            assert state.leader == (state.leader if ("t", index) not in failed.logs else 1)
        assert stage.cluster.image.brokers[2].directories == (node.log_dirs[1].directory_id,)
        lost, kept = next(key for key in failed.logs if key[0] == "t"), next(iter(node.log_dirs[1].logs))
        with pytest.raises(KafkaError) as refused:
            partitions[lost].led_by(2)
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert partitions[kept].hosted_by(2) is node.log_dirs[1].logs[kept]
        with pytest.raises(WrongState, match="has no log directory /c: it has /a, /b"):
            stage.cluster.lifecycle.fail_log_dir(node, "/c")
        with pytest.raises(WrongState, match="failed already"):
            stage.cluster.lifecycle.fail_log_dir(node, "/a")
        await stage.cluster.lifecycle.repair_log_dir(node)
        await stage.pass_time(0)
        assert all(set(partitions["t", index].state.isr) == {1, 2} for index in range(4))
        assert len(stage.cluster.image.brokers[2].directories) == 2


async def test_the_directory_with_the_metadata_does_not_fail_alone() -> None:
    """Kafka halts such a broker; another directory of the same broker may fail."""
    async with running(TWO, topics={"t": 2}) as stage:
        node = stage.cluster.nodes[1]
        await stage.pass_time(0)
        with pytest.raises(WrongState, match="Kafka halts such a broker"):
            stage.cluster.lifecycle.fail_log_dir(node, "/a")
        stage.cluster.lifecycle.fail_log_dir(node)
        await stage.pass_time(0)
        leaders = [stage.cluster.image.topics["t"].partitions[index].leader for index in (0, 1)]
        assert sorted(leaders) == [-1, 1]


async def refused(*data_dirs: Path) -> str:
    """The sentence with which a start on these directories ends."""
    with pytest.raises(BaseExceptionGroup) as group:
        async with running(data_dir=data_dirs):
            pass
    (error,) = group.value.exceptions
    assert isinstance(error, WrongDirectoryError)
    return str(error)


async def test_directories_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    """One is missing, the order is another one, one is a copy; nothing is written, and together they are served."""
    a, b = tmp_path / "a", tmp_path / "b"
    async with running(topics={"t": 2}, data_dir=(a, b)) as stage:
        await stage.pass_time(0)
        for index in (0, 1):
            append(stage, b"v", index=index)
    assert "has replicas, such as t-0, in a log directory that is not named" in await refused(a)
    assert "is not in the first directory" in await refused(b, a)
    shutil.copytree(b, tmp_path / "copy")
    assert "both have the same directory.id" in await refused(a, b, tmp_path / "copy")
    shutil.copytree(b / "t-0", a / "t-0")
    assert "two log directories of broker 1 have a log of t-0" in await refused(a, b)
    shutil.rmtree(a / "t-0")
    async with running(data_dir=(a, b, tmp_path / "new")) as stage:
        assert [values(stage, index=index) for index in (0, 1)] == [[b"v"], [b"v"]]
        metadata = stage.cluster.metadata
        metadata.submit(lambda _now_ms: metadata.machine.create_topics([NewTopic("more", 1)]))
        assert ("more", 0) in stage.cluster.nodes[1].log_dirs[2].logs


async def test_an_empty_directory_in_the_place_of_a_lost_one_is_filled_again(tmp_path: Path) -> None:
    """As on Kafka, the replicas that were in it begin empty, and lead where there are no others."""
    a, b = tmp_path / "a", tmp_path / "b"
    async with running(topics={"t": 2}, data_dir=(a, b)) as stage:
        await stage.pass_time(0)
        for index in (0, 1):
            append(stage, b"v", index=index)
    async with running(data_dir=(a, tmp_path / "c")) as stage:
        await stage.pass_time(0)
        assert [values(stage, index=index) for index in (0, 1)] == [[], [b"v"]]
        assert [stage.cluster.image.topics["t"].partitions[index].leader for index in (0, 1)] == [1, 1]
        assert directories(stage) == (stage.cluster.nodes[1].log_dirs[1].directory_id,)


async def test_a_reset_and_a_snapshot_have_all_directories(tmp_path: Path) -> None:
    """In memory and on disk: what lies in the second directory goes, and comes back."""
    for data_dirs in ((), (tmp_path / "a", tmp_path / "b")):
        async with running(TWO, topics={"t": 2}, data_dir=data_dirs) as stage:
            for index in (0, 1):
                append(stage, b"v", index=index)
            snapshot = await take_snapshot(stage.cluster)
            await reset(stage.cluster)
            assert [values(stage, index=index) for index in (0, 1)] == [[], []]
            await restore(stage.cluster, stage.cluster.snapshots.kept[snapshot])
            assert [values(stage, index=index) for index in (0, 1)] == [[b"v"], [b"v"]]
            assert [len(each) for each in held(stage.cluster.nodes[1])] == [1, 1]
