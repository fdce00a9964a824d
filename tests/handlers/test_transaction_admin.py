"""WriteTxnMarkers, DescribeTransactions and ListTransactions at the handler: transactions C.5 to C.7."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.coordination.runtime import State
from broker.handlers import describe_transactions, list_transactions, write_txn_markers
from broker.request.context import AclOperation
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.handlers.test_end_txn import opened
from tests.handlers.transaction_harness import Stage
from tests.versions import SERVED

ALTER = (AclOperation.ALTER, "kafka-cluster")


def marker(producer_id: int, topic: str, *partitions: int) -> WritableTxnMarker:
    """A commit at epoch 2, coordinator epoch 5, transaction version 2."""
    return WritableTxnMarker(producer_id, 2, True, [WritableTxnMarkerTopic(topic, partitions)], 5, 2)


async def marked(stage: Stage, *markers: WritableTxnMarker, **more: Any) -> dict[int, dict[tuple[str, int], int]]:
    """Producer id -> partition -> code."""
    answer = await stage.ask(write_txn_markers.API, WriteTxnMarkersRequest(markers), 2, **more)
    return {
        result.producer_id: {
            (topic.name, p.partition_index): int(p.error_code) for topic in result.topics for p in topic.partitions
        }
        for result in answer.markers
    }


async def test_no_markers_no_results() -> None:
    """A marker without partitions has none either, also where Kafka forgets to answer (transactions C.5.2, C.5.6)."""
    assert await marked(Stage()) == {}
    stage = Stage()
    stage.topic("foo")
    nothing = WritableTxnMarker(9)
    for markers in ([nothing, marker(8, "foo", 0)], [marker(8, "foo", 0), nothing]):
        assert await marked(stage, *markers) == {8: {("foo", 0): 0}}


async def test_results_of_markers_are_in_the_order_of_tables() -> None:
    """Producer ids, topics and partitions, as 4.4.0 lists them."""
    stage = Stage()
    answer = await marked(stage, marker(9, "eta", 1, 0, 2), marker(8, "gamma", 5, 0, 17), marker(8, "delta", 0))
    assert [(producer, list(places)) for producer, places in answer.items()] == [
        (8, [("delta", 0), ("gamma", 0), ("gamma", 5), ("gamma", 17)]),
        (9, [("eta", 2), ("eta", 0), ("eta", 1)]),
    ]


async def test_LSO_03_the_answer_waits_for_replication() -> None:
    """With acks -1; and not longer than request.timeout.ms."""
    stage = Stage()
    stage.topic("foo")
    partition = stage.partitions["foo", 0]
    partition.behind = True
    waiting = asyncio.ensure_future(marked(stage, marker(7, "foo", 0)))
    await asyncio.sleep(0)
    stage.clock.advance(29_999)
    partition.wake()
    await asyncio.sleep(0)
    assert not waiting.done()
    partition.replicate()
    assert await waiting == {7: {("foo", 0): 0}}
    waiting = asyncio.ensure_future(marked(stage, marker(7, "foo", 0)))
    await asyncio.sleep(0)
    stage.clock.advance(30_000)
    assert await waiting == {7: {("foo", 0): 7}}


async def test_a_leader_that_loses_the_partition_meanwhile_answers_so() -> None:
    """NOT_LEADER_OR_FOLLOWER, so that the coordinator asks the next one."""
    stage = Stage()
    stage.topic("foo")
    partition = stage.partitions["foo", 0]
    partition.behind = True
    waiting = asyncio.ensure_future(marked(stage, marker(7, "foo", 0)))
    await asyncio.sleep(0)
    partition.leader = 2
    partition.wake()
    assert await waiting == {7: {("foo", 0): 6}}


async def test_the_group_coordinator_is_notified_of_a_marker_on_its_log() -> None:
    """A shard that is not here, or loads, counts as no leader, and the marker is not written (transactions C.5.3)."""
    stage = Stage()
    stage.topic("__consumer_offsets")
    assert await marked(stage, marker(7, "__consumer_offsets", 0)) == {7: {("__consumer_offsets", 0): 6}}

    class Shard:
        state = State.LOADING
        heard: list[tuple[int, int, bool, int]] = []  # noqa: RUF012

        def marker_written(self, *news: Any) -> None:
            self.heard.append(news)

    shard = Shard()
    stage.nodes[1].coordinators.groups[0] = cast("Any", shard)
    assert await marked(stage, marker(7, "__consumer_offsets", 0)) == {7: {("__consumer_offsets", 0): 6}}
    assert stage.partitions["__consumer_offsets", 0].markers == []
    shard.state = State.ACTIVE
    assert await marked(stage, marker(7, "__consumer_offsets", 0)) == {7: {("__consumer_offsets", 0): 0}}
    assert shard.heard == [(7, 2, True, 1)], "with the offset behind the marker"


def offsets_shard(stage: Stage) -> None:
    """A group coordinator for the only partition of the offsets topic."""
    stage.topic("__consumer_offsets")
    coordinator = SimpleNamespace(state=State.ACTIVE, marker_written=lambda *_: None)
    stage.nodes[1].coordinators.groups[0] = cast("Any", coordinator)


async def test_the_offsets_topic_asks_for_no_replicas_in_sync() -> None:
    """Its coordinator writes with acks=1 and waits; a marker on another topic is refused (transactions C.5.3)."""
    stage = Stage()
    stage.topic("foo")
    offsets_shard(stage)
    for partition in stage.partitions.values():
        partition.short = partition.behind = True
    assert await marked(stage, marker(7, "foo", 0)) == {7: {("foo", 0): 19}}
    waiting = asyncio.ensure_future(marked(stage, marker(7, "__consumer_offsets", 0)))
    await asyncio.sleep(0)
    assert len(stage.partitions["__consumer_offsets", 0].markers) == 1
    stage.clock.advance(30_000)
    assert await waiting == {7: {("__consumer_offsets", 0): 7}}


@pytest.mark.parametrize("producer", [(7, -1), (-1, 2)])
async def test_a_marker_without_a_producer_fails_alone_on_the_offsets_topic(producer: tuple[int, int]) -> None:
    """There the coordinator makes it; elsewhere the request fails as a whole (transactions C.5.7)."""
    stage = Stage()
    stage.topic("foo")
    offsets_shard(stage)
    offsets, foo = WritableTxnMarkerTopic("__consumer_offsets", [0]), WritableTxnMarkerTopic("foo", [0])
    sound = marker(8, "foo", 0)
    answer = await marked(stage, WritableTxnMarker(*producer, True, [offsets], 5, 2), sound)
    assert answer == {producer[0]: {("__consumer_offsets", 0): -1}, 8: {("foo", 0): 0}}
    answer = await marked(stage, WritableTxnMarker(*producer, True, [offsets, foo], 5, 2), sound)
    assert answer == {producer[0]: {("__consumer_offsets", 0): -1, ("foo", 0): -1}, 8: {("foo", 0): -1}}
    assert len(stage.partitions["foo", 0].markers) == 1
    assert stage.partitions["__consumer_offsets", 0].markers == []


async def test_a_partition_that_a_marker_names_twice() -> None:
    """One marker, where Kafka never answers; two on the offsets topic, where it does (transactions C.5.6)."""
    stage = Stage()
    stage.topic("foo")
    offsets_shard(stage)
    for topic, count in (("foo", 1), ("__consumer_offsets", 2)):
        assert await marked(stage, marker(7, topic, 0, 0)) == {7: {(topic, 0): 0}}
        assert len(stage.partitions[topic, 0].markers) == count


def unknown(code: int, name: str) -> tuple[object, ...]:
    """An error entry: the id, and nothing else."""
    return (code, name, "", 0, 0, 0, 0, {})


async def listed(stage: Stage, version: int = 2, **more: Any) -> tuple[int, list[str], dict[str, str]]:
    """Code, unknown filters, state by id."""
    context = {key: more.pop(key) for key in ("denied", "broker_id") if key in more}
    answer = await stage.ask(list_transactions.API, ListTransactionsRequest(**more), version, **context)
    states = {s.transactional_id: s.transaction_state for s in answer.transaction_states}
    return int(answer.error_code), list(answer.unknown_state_filters), states


async def test_ids_that_may_not_be_seen_are_not_listed() -> None:
    """Silently; and a broker of which one coordinator loads answers nothing (transactions C.7)."""
    stage = Stage()
    stage.topic("foo")
    await opened(stage, "foo")
    assert await listed(stage, denied=[(AclOperation.DESCRIBE, "tx")]) == (0, [], {})
    assert await listed(stage, broker_id=2) == (0, [], {})
    stage.coordinate(3, 2, load=False)
    for pattern in (None, "("):  # it is looked at before the pattern
        loading = await listed(stage, broker_id=2, transactional_id_pattern=pattern)
        assert loading == (int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), [], {})


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        (describe_transactions.API, DescribeTransactionsRequest(("a", "b"))),
        (list_transactions.API, ListTransactionsRequest()),
        (write_txn_markers.API, WriteTxnMarkersRequest([marker(7, "foo", 0), marker(8, "bar", 1)])),
    ],
)
def test_a_refusal_is_put_wherever_the_api_has_errors(api: Any, request_: Any) -> None:
    """Each API has its own shape of an error (core 0.3.1)."""
    answer = api.refuse(request_, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), SERVED[api.key].versions[1])
    assert "UNKNOWN_SERVER_ERROR" in repr(answer)
    assert repr(answer).count("UNKNOWN_SERVER_ERROR") == (1 if api is list_transactions.API else 2)
