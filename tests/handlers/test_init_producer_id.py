"""InitProducerId at the handler: transactions A.1."""

from broker.handlers.init_producer_id import API
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.transaction_harness import Stage
from tests.versions import every_version


async def producer(stage: Stage, version: int = 4, **fields: object) -> tuple[int, int, int]:
    """Return error code, producer id and epoch; the timeout is 60 s by default."""
    denied = fields.pop("denied", ())
    broker_id = fields.pop("broker_id", 1)
    values = {"transactional_id": "tx", "transaction_timeout_ms": 60_000, **fields}
    answer = await stage.ask(API, InitProducerIdRequest(**values), version, denied, broker_id)  # type: ignore[arg-type]
    return int(answer.error_code), answer.producer_id, answer.producer_epoch


async def test_a_block_of_a_thousand_ids_is_used_up_before_the_next() -> None:
    """In order, never twice (transactions A.4)."""
    stage = Stage()
    producer_ids = [(await producer(stage, transactional_id=None))[1] for _ in range(1001)]
    assert producer_ids == [*range(1000, 2000), 2000]


async def test_without_a_block_the_producer_has_to_wait() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS, with and without a transactional id; later requests succeed."""
    stage = Stage()
    stage.allocate_producer_ids = lambda: range(0)  # type: ignore[method-assign]
    assert await producer(stage, transactional_id=None) == (14, -1, -1)
    assert await producer(stage) == (14, -1, -1)
    del stage.allocate_producer_ids
    assert await producer(stage) == (0, 1000, 0)


@every_version(API)
async def test_IPI_10_11_a_fenced_producer_gets_the_error_of_its_version(version: int) -> None:
    """KIP-588: PRODUCER_FENCED from version 4 on, INVALID_PRODUCER_EPOCH before."""
    stage = Stage()
    await producer(stage)
    await producer(stage)
    assert await producer(stage, version, producer_id=1000, producer_epoch=0) == (90 if version >= 4 else 47, -1, -1)
    assert await producer(stage, version, producer_id=1100, producer_epoch=1) == (90 if version >= 4 else 47, -1, -1)


async def test_IPI_24_two_phase_commit_is_as_configured() -> None:
    """Before the timeout; KeepPreparedTxn is refused in every profile (transactions A.1 A7, A8)."""
    off, on = Stage(), Stage(transaction_two_phase_commit_enable="true")
    assert await producer(off, 6, enable2_pc=True, transaction_timeout_ms=0) == (53, -1, -1)
    assert await producer(off, 6, keep_prepared_txn=True) == (35, -1, -1)
    assert await producer(off, 6, enable2_pc=True, keep_prepared_txn=True) == (53, -1, -1)
    assert await producer(on, 6, enable2_pc=True, keep_prepared_txn=True) == (35, -1, -1)
    assert await producer(on, 6, enable2_pc=True, transaction_timeout_ms=0) == (0, 1000, 0)
    (shard,) = [s for s in on.nodes[1].coordinators.transactions.values() if s.machine.transactions]
    assert shard.machine.transactions["tx"].timeout_ms == 2**31 - 1
