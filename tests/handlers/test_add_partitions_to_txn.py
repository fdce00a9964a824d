"""AddPartitionsToTxn and AddOffsetsToTxn at the handler: transactions C.1, C.2."""

import time

import pytest

from broker.handlers import add_offsets_to_txn, init_producer_id
from broker.handlers.add_partitions_to_txn import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.transaction_harness import Stage
from tests.versions import every_version

Codes = dict[tuple[str, int], int]


@pytest.fixture
async def stage() -> Stage:
    """Topics foo (3 partitions), bar and the offsets topic; ``tx`` at (1000, 0)."""
    stage = Stage()
    stage.topic("foo", 3)
    stage.topic("bar")
    stage.topic("__consumer_offsets", 4)
    await stage.ask(init_producer_id.API, InitProducerIdRequest("tx", 60_000), 4)
    return stage


def transaction(parts: dict[str, list[int]], **fields: object) -> AddPartitionsToTxnTransaction:
    """One transaction of a request: ``tx`` at (1000, 0), with the given fields replaced."""
    values = {"transactional_id": "tx", "producer_id": 1000, "producer_epoch": 0, **fields}
    topics = [AddPartitionsToTxnTopic(topic, partitions) for topic, partitions in parts.items()]
    return AddPartitionsToTxnTransaction(topics=topics, **values)  # type: ignore[arg-type]


async def added(
    stage: Stage,
    parts: dict[str, list[int]],
    version: int = 3,
    denied: tuple[tuple[AclOperation, str], ...] = (),
    **fields: object,
) -> Codes:
    """Code per partition of a request with one transaction."""
    request = AddPartitionsToTxnRequest(transactions=[transaction(parts, **fields)])
    (result,) = (await stage.ask(API, request, version, denied)).results_by_transaction
    return {
        (topic.name, p.partition_index): int(p.partition_error_code)
        for topic in result.topic_results
        for p in topic.results_by_partition
    }


def state(stage: Stage) -> tuple[str, object]:
    """State and partitions of ``tx``."""
    (shard,) = [s for s in stage.nodes[1].coordinators.transactions.values() if "tx" in s.machine.transactions]
    record = shard.machine.transactions["tx"]
    return record.state.text, record.partitions


async def test_ADD_01_partitions_join(stage: Stage) -> None:
    """All partitions of a request join the transaction in one record."""
    assert await added(stage, {"foo": [0, 1]}) == {("foo", 0): 0, ("foo", 1): 0}
    assert state(stage) == ("Ongoing", frozenset({("foo", 0), ("foo", 1)}))


async def test_rights_on_the_id_come_first(stage: Stage) -> None:
    """On every partition; what the coordinator refuses is one code for all (transactions C.1.1 P1, P5, P6, P7)."""
    denied = ((AclOperation.WRITE, "tx"),)
    assert await added(stage, {"foo": [0], "none": [1]}, denied=denied) == {("foo", 0): 53, ("none", 1): 53}
    assert await added(stage, {"foo": [0, 1]}, transactional_id="") == {("foo", 0): 42, ("foo", 1): 42}
    assert await added(stage, {"foo": [0]}, transactional_id="other") == {("foo", 0): 49}


async def test_an_answer_has_a_bound(stage: Stage) -> None:
    """Each entry of an id has the partitions of the last one in its answer, here 500 times 501."""
    again = [transaction({}, verify_only=True) for _ in range(499)]
    last = transaction({"foo": list(range(501))}, verify_only=True)
    answer = await stage.ask(API, AddPartitionsToTxnRequest(transactions=[*again, last]), 5)
    assert (answer.error_code, answer.results_by_transaction) == (ErrorCode.INVALID_REQUEST, ())


@every_version(API)
async def test_ADD_08_zombies_get_the_error_of_their_version(stage: Stage, version: int) -> None:
    """KIP-588: PRODUCER_FENCED from version 2 on, INVALID_PRODUCER_EPOCH before."""
    assert await added(stage, {"foo": [0]}, version, producer_epoch=1) == {("foo", 0): 90 if version >= 2 else 47}
    assert await added(stage, {"foo": [0]}, version, producer_id=5) == {("foo", 0): 49}


async def test_a_coordinator_elsewhere_or_loading(stage: Stage) -> None:
    """On every partition, also for verification (transactions C.1.1 P6)."""
    for index in range(4):
        stage.nodes[1].coordinators.transactions.pop(index)
    assert await added(stage, {"foo": [0]}) == {("foo", 0): 16}
    for index in range(4):
        stage.coordinate(index, 1, load=False)
    assert await added(stage, {"foo": [0]}) == {("foo", 0): 14}
    assert await added(stage, {"foo": [0]}, 5, verify_only=True) == {("foo", 0): 14}


async def offsets(stage: Stage, version: int = 3, epoch: int = 0, **more: object) -> int:
    """AddOffsetsToTxn for group g1."""
    request = AddOffsetsToTxnRequest(str(more.pop("name", "tx")), 1000, epoch, str(more.pop("group", "g1")))
    return int((await stage.ask(add_offsets_to_txn.API, request, version, **more)).error_code)  # type: ignore[arg-type]


@every_version(add_offsets_to_txn.API)
async def test_OFF_02_zombies_get_the_error_of_their_version(stage: Stage, version: int) -> None:
    """KIP-588: INVALID_PRODUCER_EPOCH before version 2; permissions on id and group come first."""
    assert await offsets(stage, version, epoch=3) == (90 if version >= 2 else 47)
    assert await offsets(stage, version, denied=[(AclOperation.WRITE, "tx")]) == 53
    assert await offsets(stage, version, denied=[(AclOperation.READ, "g1")]) == 30
    assert await offsets(stage, version, name="") == 42
    assert await offsets(stage, version, broker_id=2) == 16


async def test_an_id_that_is_named_very_often_with_many_partitions_is_refused(stage: Stage) -> None:
    """Each entry would be answered with all partitions: a request of some kilobytes would fill the memory."""
    few = AddPartitionsToTxnRequest(transactions=[transaction({}), transaction({"bar": [0, 1]})])
    assert len((await stage.ask(API, few, 5)).results_by_transaction) == 2
    often = AddPartitionsToTxnRequest(
        transactions=[*(transaction({}) for _ in range(600)), transaction({"bar": list(range(600))})]
    )
    refused = await stage.ask(API, often, 5)
    assert (refused.error_code, refused.results_by_transaction) == (ErrorCode.INVALID_REQUEST, ())


async def test_many_denied_topics_take_linear_time(stage: Stage) -> None:
    """Each partition is looked at once, not once for each denied topic."""
    names = [f"n{number}" for number in range(20_000)]
    begun = time.process_time()
    codes = await added(
        stage, {name: [0] for name in names}, denied=tuple((AclOperation.WRITE, name) for name in names)
    )
    assert set(codes.values()) == {29}
    assert time.process_time() - begun < 15
