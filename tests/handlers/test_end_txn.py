"""EndTxn at the handler: transactions C.3, and the window between the answer and the markers (transactions B.5)."""

import asyncio

from broker.coordination.outcome import WriteMarkers
from broker.handlers import add_partitions_to_txn, init_producer_id
from broker.handlers.end_txn import API
from broker.request.context import AclOperation
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.handlers.transaction_harness import Stage
from tests.versions import every_version


async def opened(stage: Stage, *topics: str, version: int = 5) -> None:
    """``tx`` at (1000, 0) with a transaction over partition 0 of these topics."""
    await stage.ask(init_producer_id.API, InitProducerIdRequest("tx", 60_000), 4)
    transaction = AddPartitionsToTxnTransaction("tx", 1000, 0, topics=[AddPartitionsToTxnTopic(t, [0]) for t in topics])
    await stage.ask(add_partitions_to_txn.API, AddPartitionsToTxnRequest(transactions=[transaction]), version)


async def ended(
    stage: Stage, version: int, producer_id: int = 1000, epoch: int = 0, committed: bool = True, **more: object
) -> tuple[int, int, int]:
    """Code, producer id, epoch."""
    name = more.pop("name", "tx")
    answer = await stage.ask(API, EndTxnRequest(name, producer_id, epoch, committed), version, **more)  # type: ignore[arg-type]
    return int(answer.error_code), answer.producer_id, answer.producer_epoch


@every_version(API)
async def test_E1_01_E2_01_the_answer_is_that_of_the_version(version: int) -> None:
    """From v5 with the next epoch, before without; the markers have the epoch and protocol of the version."""
    stage = Stage()
    stage.topic("foo")
    await opened(stage, "foo", version=3 if version < 5 else 5)
    assert await ended(stage, version) == ((0, 1000, 1) if version == 5 else (0, -1, -1))
    epoch, protocol = (1, 2) if version == 5 else (0, 0)
    assert stage.sent == [WriteMarkers("tx", 1000, epoch, True, frozenset({("foo", 0)}), protocol)]


async def test_the_answer_goes_out_before_any_marker() -> None:
    """In between everybody gets CONCURRENT_TRANSACTIONS; a turn later it is over (transactions B.5)."""
    stage = Stage()
    stage.topic("foo")
    await opened(stage, "foo")
    assert await ended(stage, 5) == (0, 1000, 1)
    assert stage.partitions["foo", 0].markers == []
    assert await ended(stage, 5) == (51, -1, -1)
    await asyncio.sleep(0)
    assert stage.partitions["foo", 0].markers == [(1000, 1, True, 7, 2)]
    assert await ended(stage, 5) == (0, 1000, 1)


@every_version(API)
async def test_E1_06_zombies_and_strangers_get_the_error_of_their_version(version: int) -> None:
    """KIP-588: INVALID_PRODUCER_EPOCH before version 2; INVALID_PRODUCER_ID_MAPPING for strangers and unknown ids."""
    stage = Stage()
    stage.topic("foo")
    await opened(stage, "foo")
    fenced = 90 if version >= 2 else 47
    assert (await ended(stage, version, epoch=5))[0] == fenced
    assert (await ended(stage, version, producer_id=1001))[0] == 49
    assert (await ended(stage, version, name="other"))[0] == 49


async def test_refusals_before_the_transaction_is_looked_at() -> None:
    """A missing permission comes first, then an empty id, then the wrong coordinator."""
    stage = Stage()
    assert await ended(stage, 4, denied=[(AclOperation.WRITE, "tx")]) == (53, -1, -1)
    assert await ended(stage, 4, name="") == (42, -1, -1)
    assert await ended(stage, 4, broker_id=2) == (16, -1, -1)
    assert await ended(stage, 4, name="", broker_id=2) == (42, -1, -1)
