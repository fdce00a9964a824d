"""How long the answer of a transaction coordinator waits for the replicas of its log."""

import asyncio

import pytest

from broker.coordination.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.partitions.transactions.markers import Marker, Step, write_marker
from broker.settings.releases import release
from broker.time.timers import Timer
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionState
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.cluster.test_lifecycle import assigned
from tests.scenarios.transactions.harness import SETTINGS, Stage, running

TIMEOUT_MS = 9_000


async def coordinated(stage: Stage, key_type: int = 1) -> int:
    """The broker that coordinates ``tx``, once there is one. ``key_type`` 0: the group of that name."""
    wire = await stage.connect()
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["tx"])
    while True:
        (coordinator,) = (await wire.call(ApiKey.FIND_COORDINATOR, 4, request)).coordinators
        if coordinator.error_code is ErrorCode.NONE:
            return int(coordinator.node_id)
        await stage.pass_time(100)


async def test_as_long_as_the_timeout_of_the_transaction() -> None:
    """TransactionStateManager appends with it, so a client may wait longer than for groups (transactions B.2.2)."""
    async with running(brokers=2, settings={**SETTINGS, "transaction.state.log.replication.factor": "2"}) as stage:
        leader = await coordinated(stage)
        for partition in stage.cluster.partitions.values():
            partition.held = frozenset({3 - leader})
        wire = await stage.connect(leader)
        request = InitProducerIdRequest("tx", TIMEOUT_MS)
        answer = asyncio.ensure_future(wire.call(ApiKey.INIT_PRODUCER_ID, 4, request))
        logs = [
            each.logs[leader] for (topic, _), each in stage.cluster.partitions.items() if topic == TRANSACTION_TOPIC
        ]
        while not any(log.log_end_offset for log in logs):
            await stage.pass_time(0)
        await stage.pass_time(TIMEOUT_MS - 1)
        assert not answer.done()
        await stage.pass_time(1)
        assert (await answer).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(("name", "codes"), [("3.9", [ErrorCode.NOT_ENOUGH_REPLICAS]), ("4.0", [])])
async def test_a_marker_among_offsets_that_too_few_replicas_would_have(name: str, codes: list[ErrorCode]) -> None:
    """Releases before 4.0 write none and send it again later; since then it waits for the replicas in the log."""
    settings = {**SETTINGS, "offsets.topic.replication.factor": "2", "min.insync.replicas": "2"}
    async with running(brokers=2, settings=settings) as stage:
        await coordinated(stage, key_type=0)
        await stage.cluster.lifecycle.stop(stage.cluster.nodes[2])
        stage.cluster.emulate(release(name))
        await stage.pass_time(0)
        answered: list[ErrorCode] = []
        node = stage.cluster.nodes[1]
        index = min(node.coordinators.groups)
        log = stage.cluster.partitions[GROUP_TOPIC, index].logs[1]
        before = log.log_end_offset
        written = write_marker(stage.cluster, node, (GROUP_TOPIC, index), Marker(9, 0, True, 0, 1), answered.append)
        assert (answered, written, log.log_end_offset) == (codes, *((-1, before) if codes else (before, before + 1)))


@pytest.mark.parametrize("prepared", [False, True])
async def test_a_push_does_not_repeat_what_time_alone_cannot_do(
    prepared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An abort by timeout, and a Complete record, that too few replicas would have; a week of attempts is no work."""
    log = {"transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "2"}
    async with running(brokers=2, settings={**SETTINGS, **log}) as stage:
        leader = await coordinated(stage)
        await assigned(stage, leader)
        wire, cluster = await stage.connect(leader), stage.cluster
        producer = await wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("tx", TIMEOUT_MS))
        assert producer.error_code is ErrorCode.NONE
        named = "tx", producer.producer_id, producer.producer_epoch
        topics = [AddPartitionsToTxnTopic("t", [0])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=named[0], v3_and_below_producer_id=named[1],
            v3_and_below_producer_epoch=named[2], v3_and_below_topics=topics,
        )  # fmt: skip
        added = await wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code is ErrorCode.NONE
        if prepared:
            cluster.markers.holds.hold("tx", Step.COMPLETE)
            await wire.call(ApiKey.END_TXN, 3, EndTxnRequest(*named, committed=True))
            await stage.pass_time(0)
        other = cluster.nodes[3 - leader]
        await cluster.lifecycle.stop(other)
        cluster.markers.holds.release("tx")
        machine = next(
            each.machine
            for each in cluster.nodes[leader].coordinators.transactions.values()
            if each.machine.transactions
        )
        before, fired, fire = machine.transactions["tx"].state, list[Timer](), Timer.fire

        def counted(timer: Timer) -> None:
            fired.append(timer)
            fire(timer)

        monkeypatch.setattr(Timer, "fire", counted)
        await stage.pass_time(7 * 24 * 3_600_000)
        assert machine.transactions["tx"].state is before
        assert len(fired) < 1000
        await cluster.lifecycle.start(other)
        await stage.pass_time(20_000)
        expected = TransactionState.COMPLETE_COMMIT if prepared else TransactionState.COMPLETE_ABORT
        assert machine.transactions["tx"].state is expected
