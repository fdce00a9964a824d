"""InitProducerId at the handler: transactions A.1."""

import pytest

from broker.handlers.init_producer_id import API
from broker.request.context import AclOperation
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.transaction_harness import Stage
from tests.versions import every_version


async def asked(stage: Stage, version: int = 4, **fields: object) -> tuple[int, int, int]:
    """Return error code, producer id and epoch; the timeout is 60 s by default."""
    denied = fields.pop("denied", ())
    broker_id = fields.pop("broker_id", 1)
    given = {"transactional_id": "tx", "transaction_timeout_ms": 60_000, **fields}
    answer = await stage.ask(API, InitProducerIdRequest(**given), version, denied, broker_id)  # type: ignore[arg-type]
    return int(answer.error_code), answer.producer_id, answer.producer_epoch


async def test_IPI_01_02_an_idempotent_producer_is_given_an_id_by_any_broker() -> None:
    """From the broker's own block; other fields of the request do not matter, and no coordinator is asked."""
    stage = Stage()
    assert await asked(stage, transactional_id=None) == (0, 1000, 0)
    assert await asked(stage, transactional_id=None, broker_id=2) == (0, 2000, 0)
    answer = await asked(stage, transactional_id=None, producer_id=77, producer_epoch=5, transaction_timeout_ms=0)
    assert answer == (0, 1001, 0)
    assert stage.log.records == []


async def test_a_block_of_a_thousand_ids_is_used_up_before_the_next() -> None:
    """In order, never twice (transactions A.4)."""
    stage = Stage()
    given = [(await asked(stage, transactional_id=None))[1] for _ in range(1001)]
    assert given == [*range(1000, 2000), 2000]


async def test_without_a_block_the_producer_has_to_wait() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS, with and without a transactional id; later requests succeed."""
    stage = Stage()
    stage.allocate_producer_ids = lambda: range(0)  # type: ignore[method-assign]
    assert await asked(stage, transactional_id=None) == (14, -1, -1)
    assert await asked(stage) == (14, -1, -1)
    del stage.allocate_producer_ids
    assert await asked(stage) == (0, 1000, 0)


async def test_IPI_03_the_empty_id_is_no_id() -> None:
    """INVALID_REQUEST (transactions A.1 A6)."""
    assert await asked(Stage(), transactional_id="") == (42, -1, -1)


@pytest.mark.parametrize(("timeout_ms", "code"), [(900_000, 0), (900_001, 50), (0, 50), (-1, 50), (1, 0)])
async def test_IPI_04_the_timeout_has_a_range(timeout_ms: int, code: int) -> None:
    """From 1 to transaction.max.timeout.ms, else 50 (transactions A.1 A9)."""
    assert (await asked(Stage(), transaction_timeout_ms=timeout_ms))[0] == code


@pytest.mark.parametrize("name", ["tx", None, ""])
async def test_IPI_05_id_and_epoch_come_together(name: str | None) -> None:
    """Before the rest is looked at (transactions A.1 A4)."""
    assert await asked(Stage(), transactional_id=name, producer_id=5) == (42, -1, -1)
    assert await asked(Stage(), transactional_id=name, producer_epoch=3) == (42, -1, -1)


@every_version(API)
async def test_IPI_10_11_a_fenced_producer_gets_the_error_of_its_version(version: int) -> None:
    """KIP-588: PRODUCER_FENCED from version 4 on, INVALID_PRODUCER_EPOCH before."""
    stage = Stage()
    await asked(stage)
    await asked(stage)
    assert await asked(stage, version, producer_id=1000, producer_epoch=0) == (90 if version >= 4 else 47, -1, -1)
    assert await asked(stage, version, producer_id=1100, producer_epoch=1) == (90 if version >= 4 else 47, -1, -1)


async def test_IPI_19_20_only_the_coordinator_answers_and_only_when_it_has_loaded() -> None:
    """What makes no sense is refused before (transactions A.1 A10, A11)."""
    stage = Stage()
    assert await asked(stage, broker_id=2) == (16, -1, -1)
    assert await asked(stage, broker_id=2, transaction_timeout_ms=0) == (50, -1, -1)
    runtimes = [stage.coordinate(index, 2, load=False) for index in range(4)]
    assert await asked(stage, broker_id=2) == (14, -1, -1)
    for runtime in runtimes:
        runtime.load()
    assert (await asked(stage, broker_id=2))[0] == 0


async def test_IPI_24_two_phase_commit_is_as_configured() -> None:
    """Before the timeout; KeepPreparedTxn is refused in every profile (transactions A.1 A7, A8)."""
    off, on = Stage(), Stage(transaction_two_phase_commit_enable="true")
    assert await asked(off, 6, enable2_pc=True, transaction_timeout_ms=0) == (53, -1, -1)
    assert await asked(off, 6, keep_prepared_txn=True) == (35, -1, -1)
    assert await asked(off, 6, enable2_pc=True, keep_prepared_txn=True) == (53, -1, -1)
    assert await asked(on, 6, enable2_pc=True, keep_prepared_txn=True) == (35, -1, -1)
    assert await asked(on, 6, enable2_pc=True, transaction_timeout_ms=0) == (0, 1000, 0)
    (shard,) = [s for s in on.nodes[1].coordinators.transactions.values() if s.machine.transactions]
    assert shard.machine.transactions["tx"].timeout_ms == 2**31 - 1


async def test_IPI_25_rights_come_first() -> None:
    """Before half-given pairs and empty ids (transactions A.1 A1 to A3)."""
    write = (AclOperation.WRITE, "tx")
    assert await asked(Stage(), denied=[write], producer_id=5) == (53, -1, -1)
    two_phase = (AclOperation.TWO_PHASE_COMMIT, "tx")
    assert await asked(Stage(), 6, denied=[two_phase]) == (0, 1000, 0)
    on = Stage(transaction_two_phase_commit_enable="true")
    assert await asked(on, 6, denied=[two_phase], enable2_pc=True) == (53, -1, -1)
    idempotent = (AclOperation.IDEMPOTENT_WRITE, "kafka-cluster")
    assert await asked(Stage(), denied=[idempotent], transactional_id=None) == (0, 1000, 0)
    anywhere = (AclOperation.WRITE, "*")
    assert await asked(Stage(), denied=[idempotent, anywhere], transactional_id=None) == (31, -1, -1)
