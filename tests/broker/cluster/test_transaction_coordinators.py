"""How long the answer of a transaction coordinator waits for the replicas of its log."""

import asyncio

from broker.node import TRANSACTION_TOPIC
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.scenarios.transactions.harness import SETTINGS, Stage, running

TIMEOUT_MS = 9_000


async def coordinated(stage: Stage) -> int:
    """The broker that coordinates ``tx``, once there is one."""
    wire = await stage.connect()
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
    while True:
        (found,) = (await wire.call(ApiKey.FIND_COORDINATOR, 4, request)).coordinators
        if found.error_code is ErrorCode.NONE:
            return int(found.node_id)
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
