"""Markers over the cluster's brokers, and the places where a transaction can be held: transactions B.5, B.6."""

import asyncio
from typing import Any

import pytest

from broker.coordination.metadata.image import NO_LEADER, Partition
from broker.handlers import describe_transactions
from broker.partitions.transactions.markers import Step
from protocol.errors import ErrorCode
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.handlers.test_end_txn import ended, opened
from tests.handlers.transaction_harness import Stage


async def turn() -> None:
    """Let the loop do what it has."""
    for _ in range(3):
        await asyncio.sleep(0)


async def state(stage: Stage) -> tuple[str, dict[str, list[int]]]:
    """State and partitions of ``tx`` in DescribeTransactions."""
    answer = await stage.ask(describe_transactions.API, DescribeTransactionsRequest(("tx",)), 0)
    (reported,) = answer.transaction_states
    return reported.transaction_state, {topic.topic: list(topic.partitions) for topic in reported.topics}


async def committed(stage: Stage, *topics: str) -> None:
    """A commit over these topics, answered."""
    for topic in topics:
        if topic not in stage.image.topics:
            stage.topic(topic)
    await opened(stage, *topics)
    assert await ended(stage, 5) == (0, 1000, 1)


def lead(stage: Stage, topic: str, leader: int) -> None:
    """Give partition 0 another leader, or none."""
    stage.image.topics[topic].partitions[0] = Partition((1, 2), (1, 2), leader)
    stage.partitions[topic, 0].leader = leader


async def test_a_marker_goes_to_the_leader_of_the_partition() -> None:
    """The coordinator is on broker 1, the partition on broker 2."""
    stage = Stage()
    stage.topic("foo", leader=2)
    await committed(stage, "foo")
    await turn()
    assert stage.partitions["foo", 0].markers == [(1000, 1, True, 7, 2)]
    assert await state(stage) == ("CompleteCommit", {})


@pytest.mark.parametrize("gone", ["deleted", "leaderless"])
async def test_LOAD_03_a_partition_without_a_leader_is_left_out(gone: str) -> None:
    """A deleted topic; and, as 4.3.1 does it (KAFKA-20734), a partition whose broker is fenced."""
    stage = Stage()
    stage.topic("foo")
    await opened(stage, "foo")
    if gone == "deleted":
        del stage.image.topics["foo"]
    else:
        lead(stage, "foo", NO_LEADER)
    await ended(stage, 5)
    await turn()
    assert await state(stage) == ("CompleteCommit", {})
    assert stage.partitions["foo", 0].markers == []
    noted = [note.place for note in stage.markers.notes.left_out()]
    assert noted == ([] if gone == "deleted" else [("foo", 0)])


async def test_MRK_10_a_silent_leader_is_waited_for() -> None:
    """The other partition has its marker; the transaction is complete when the broker is back."""
    stage = Stage()
    stage.topic("bar", leader=2)
    stage.nodes[2].up = False
    await committed(stage, "foo", "bar")
    await turn()
    assert await state(stage) == ("PrepareCommit", {"bar": [0]})
    assert len(stage.partitions["foo", 0].markers) == 1
    for _ in range(10):
        stage.clock.advance(500)
        await turn()
    assert await state(stage) == ("PrepareCommit", {"bar": [0]})
    stage.nodes[2].up = True
    stage.clock.advance(500)
    await turn()
    assert await state(stage) == ("CompleteCommit", {})
    assert [len(stage.partitions[topic, 0].markers) for topic in ("foo", "bar")] == [1, 1]


async def test_a_partition_that_moves_gets_its_marker_at_the_new_leader() -> None:
    """The old leader refuses, and the next attempt looks the leader up again."""
    stage = Stage()
    await committed(stage, "foo")
    stage.partitions["foo", 0].leader = 2  # the registration has not followed yet
    await turn()
    assert await state(stage) == ("PrepareCommit", {"foo": [0]})
    lead(stage, "foo", 2)
    stage.clock.advance(20)
    await turn()
    assert await state(stage) == ("CompleteCommit", {})


async def test_a_marker_that_is_not_replicated_yet_keeps_only_its_partition_waiting() -> None:
    """Its answer comes later and singly."""
    stage = Stage()
    stage.topic("foo")
    stage.partitions["foo", 0].behind = True
    await committed(stage, "foo", "bar")
    await turn()
    assert await state(stage) == ("PrepareCommit", {"foo": [0]})
    stage.partitions["foo", 0].replicate()
    assert await state(stage) == ("CompleteCommit", {})


async def test_a_fenced_coordinator_stops() -> None:
    """Another one has written a marker with a higher epoch; this one leaves the transaction prepared."""
    stage = Stage()
    stage.topic("foo")
    stage.partitions["foo", 0].refuse = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    await committed(stage, "foo")
    await turn()
    stage.partitions["foo", 0].refuse = None
    stage.clock.advance(5_000)
    await turn()
    assert (await state(stage))[0] == "PrepareCommit"
    assert stage.partitions["foo", 0].markers == []


async def test_a_coordinator_that_moves_drops_its_markers() -> None:
    """Its successor sends them all, so the old one must not."""
    stage = Stage()
    await committed(stage, "foo")
    for runtime in stage.nodes[1].coordinators.transactions.values():
        runtime.close()
    await turn()
    assert stage.partitions["foo", 0].markers == []


# --- holding ---------------------------------------------------------------------------------------------------------


async def held(at: Step, after: int = 0) -> Stage:
    """A commit over three partitions that is held."""
    stage = Stage()
    stage.markers.holds.hold("tx", at, after)
    await committed(stage, "a", "b", "c")
    await turn()
    return stage


def written(stage: Stage) -> list[int]:
    """Markers per partition."""
    return [len(stage.partitions[topic, 0].markers) for topic in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("at", "after", "markers", "left"),
    [
        (Step.PREPARE, 0, [0, 0, 0], {"a": [0], "b": [0], "c": [0]}),
        (Step.PREPARE, 2, [0, 0, 0], {"a": [0], "b": [0], "c": [0]}),
        (Step.MARKERS, 0, [0, 0, 0], {"a": [0], "b": [0], "c": [0]}),
        (Step.MARKERS, 2, [1, 1, 0], {"c": [0]}),
        (Step.MARKERS, 3, [1, 1, 1], {}),
        (Step.COMPLETE, 0, [1, 1, 1], {}),
    ],
)
async def test_a_transaction_is_held_at_a_step(at: Step, after: int, markers: list[int], left: dict[str, Any]) -> None:
    """Some markers are written, the rest is outstanding, and clients are answered CONCURRENT_TRANSACTIONS."""
    stage = await held(at, after)
    assert written(stage) == markers
    assert await state(stage) == ("PrepareCommit", left)
    assert (await ended(stage, 5))[0] == 51
    assert stage.markers.holds.held("tx") == (at, True)
    stage.clock.advance(60_000)
    await turn()
    assert (await state(stage))[0] == "PrepareCommit"
    assert stage.markers.holds.release("tx")
    await turn()
    assert written(stage) == [1, 1, 1]
    assert await state(stage) == ("CompleteCommit", {})
    assert stage.markers.holds.held("tx") is None
    assert not stage.markers.holds.release("tx")


async def test_a_hold_stops_one_id_only_and_can_be_moved() -> None:
    """Another id is not held; a new hold does not release a transaction that is stopped already."""
    stage = await held(Step.PREPARE)
    stage.markers.holds.hold("other", Step.PREPARE)
    assert stage.markers.holds.held("other") == (Step.PREPARE, False)
    stage.markers.holds.hold("tx", Step.COMPLETE)
    await turn()
    assert written(stage) == [0, 0, 0]
    assert stage.markers.holds.release("tx")
    await turn()
    assert await state(stage) == ("CompleteCommit", {})


async def test_what_was_held_at_a_coordinator_that_is_gone_stays_undone() -> None:
    """After a reset or a move the release writes nothing."""
    stage = await held(Step.MARKERS, 1)
    for runtime in stage.nodes[1].coordinators.transactions.values():
        runtime.close()
    stage.markers.holds.release("tx")
    await turn()
    assert written(stage) == [1, 0, 0]
    stage.markers.holds.hold("tx", Step.PREPARE)
    stage.markers.holds.clear()
    assert stage.markers.holds.held("tx") is None


async def test_the_abort_of_nothing_is_held_too() -> None:
    """No marker is to be written, and yet it is not complete."""
    stage = Stage()
    await opened(stage)
    await ended(stage, 5)
    await turn()
    stage.markers.holds.hold("tx", Step.COMPLETE)
    assert await ended(stage, 5, epoch=1, committed=False) == (0, 1000, 2)
    await turn()
    assert (await state(stage))[0] == "PrepareAbort"
    stage.markers.holds.release("tx")
    assert (await state(stage))[0] == "CompleteAbort"
