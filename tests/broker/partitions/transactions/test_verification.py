"""What a partition's leader asks of the transaction's coordinator before an append: transactions D.5, C.4.1."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from broker.handlers import produce, txn_offset_commit
from broker.partitions.transactions import verification
from broker.partitions.transactions.markers import Step
from broker.partitions.transactions.verification import verify, verify_offsets
from broker.request.produce_results import Admitted, Produced
from protocol.errors import ErrorCode, KafkaError
from storage.producers.state import ProducerEntry
from tests.handlers.test_end_txn import ended, opened
from tests.handlers.transaction_harness import Stage
from tests.versions import every_version


def entry(stage: Stage, topic: str = "foo", epoch: int = 0, sequence: int = 0, producer_id: int = 1000) -> Admitted:
    """A transactional batch on its way to partition 0."""
    batch = SimpleNamespace(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True
    )
    partition = cast("Any", stage.partitions[topic, 0])
    return Admitted(topic, None, topic, 0, partition, cast("Any", batch), memoryview(b""))


async def verified(
    stage: Stage, version: int, *entries: Admitted, name: str = "tx", broker_id: int = 1
) -> list[Admitted | Produced]:
    """The entries behind the verification."""
    return await verify(name, entries, stage.context(produce.API, version, broker_id=broker_id))


async def codes(stage: Stage, version: int, *entries: Admitted, name: str = "tx") -> list[int]:
    """The codes that the entries end with."""
    return [
        int(error_of(each).code) if isinstance(each, Produced) else 0
        for each in await verified(stage, version, *entries, name=name)
    ]


def error_of(each: Admitted | Produced) -> KafkaError:
    """Why it does not go to the log."""
    assert isinstance(each, Produced)
    assert each.error is not None
    return each.error


def guard_of(each: Admitted | Produced) -> object:
    """What it goes to the log with."""
    assert isinstance(each, Admitted)
    return each.guard


def partitions(stage: Stage) -> object:
    """What the coordinator has in ``tx``."""
    return next(
        shard.machine.transactions["tx"].partitions
        for shard in stage.nodes[1].coordinators.transactions.values()
        if "tx" in shard.machine.transactions
    )


@pytest.fixture
async def stage() -> Stage:
    """``tx`` at (1000, 0), open over foo-0; bar-0 is not in it."""
    stage = Stage()
    stage.topic("foo")
    stage.topic("bar")
    await opened(stage, "foo", version=3)
    return stage


@pytest.mark.parametrize("version", [9, 10, 11])
async def test_VER_01_02_older_clients_are_verified(stage: Stage, version: int) -> None:
    """What was not added is refused as the version knows it; nothing is added."""
    foo, bar = await verified(stage, version, entry(stage), entry(stage, "bar"))
    assert guard_of(foo) is not None
    assert error_of(bar).code == (120 if version == 11 else 48)
    assert error_of(bar).message == (None if version == 11 else "Partition was not added to the transaction")
    assert partitions(stage) == {("foo", 0)}


@pytest.mark.parametrize("version", [12, 13])
async def test_newer_clients_have_their_partitions_added(stage: Stage, version: int) -> None:
    """A newer client's Produce adds all partitions of the request to its transaction at once."""
    assert await codes(stage, version, entry(stage), entry(stage, "bar")) == [0, 0]
    assert partitions(stage) == {("foo", 0), ("bar", 0)}


async def test_VER_03_an_open_transaction_is_not_asked_about(stage: Stage) -> None:
    """A transaction that is open in the partition needs no coordinator, which may even be gone."""
    known = ProducerEntry(1000, 0, transaction_first_offset=0)
    stage.partitions["foo", 0].log.producers._producers[1000] = known
    del stage.image.topics["__transaction_state"]
    (open_one,) = await verified(stage, 12, entry(stage))
    assert guard_of(open_one) is None


@pytest.mark.parametrize("version", [11, 12])
async def test_VER_04_a_coordinator_that_cannot_be_asked_is_a_reason_to_retry(stage: Stage, version: int) -> None:
    """19, with the reason in the message: no topic, no leader, silent, moved, loading."""

    async def heard() -> str:
        (one,) = await verified(stage, version, entry(stage))
        error = error_of(one)
        assert error.code == 19
        assert error.message is not None
        return error.message.rsplit(": ", 1)[1]

    stage.nodes[1].up = False
    assert await heard() == "NETWORK_EXCEPTION"
    stage.nodes[1].up = True
    shards = dict(stage.nodes[1].coordinators.transactions)
    stage.nodes[1].coordinators.transactions.clear()
    assert await heard() == "NOT_COORDINATOR"
    for index in shards:
        stage.coordinate(index, 1, load=False)
    assert await heard() == "COORDINATOR_LOAD_IN_PROGRESS"
    del stage.image.topics["__transaction_state"]
    assert await heard() == "COORDINATOR_NOT_AVAILABLE"


@pytest.mark.parametrize(
    ("fields", "name", "code"),
    [({"epoch": 1}, "tx", 47), ({"producer_id": 7}, "tx", 49), ({}, "other", 49), ({}, "", 42)],
)
@pytest.mark.parametrize("version", [11, 12])
async def test_VER_06_09_strangers_and_zombies(
    stage: Stage, version: int, fields: dict[str, int], name: str, code: int
) -> None:
    """90 becomes 47 here in every version; other errors are the coordinator's."""
    assert await codes(stage, version, entry(stage, **fields), name=name) == [code]  # type: ignore[arg-type]


async def test_a_stale_epoch_is_refused_before_the_coordinator_is_asked(stage: Stage) -> None:
    """4.1: the partition knows better; its message is not sent."""
    stage.partitions["foo", 0].log.producers._producers[1000] = ProducerEntry(1000, 3)
    (one,) = await verified(stage, 12, entry(stage))
    assert error_of(one).code == 47
    assert error_of(one).message is None


async def test_a_partition_that_is_led_elsewhere(stage: Stage) -> None:
    """A partition that another broker leads gets NOT_LEADER_OR_FOLLOWER (6); the others go on."""
    stage.partitions["bar", 0].leader = 2
    assert await codes(stage, 12, entry(stage, "bar"), entry(stage)) == [6, 0]


async def test_VER_05_an_older_client_retries_itself(stage: Stage) -> None:
    """An older client gets NOT_ENOUGH_REPLICAS (19) with a message where the coordinator answered 51."""
    stage.markers.holds.hold("tx", Step.PREPARE)
    await ended(stage, 4)
    (one,) = await verified(stage, 11, entry(stage))
    assert error_of(one).code == 19
    assert str(error_of(one)).endswith("Underlying error: CONCURRENT_TRANSACTIONS")


async def test_VER_05_a_newer_client_waits_a_moment_at_the_broker(stage: Stage) -> None:
    """Every 20 ms for 100 ms, then 51; unless the markers are written in the meantime."""
    stage.markers.holds.hold("tx", Step.PREPARE)
    await ended(stage, 5)
    waiting = asyncio.ensure_future(codes(stage, 12, entry(stage, epoch=1)))
    for _ in range(5):
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        stage.clock.advance(20)
    assert await waiting == [51]
    waiting = asyncio.ensure_future(codes(stage, 12, entry(stage, epoch=1)))
    await asyncio.sleep(0)
    stage.markers.holds.release("tx")
    for _ in range(3):
        await asyncio.sleep(0)
    stage.clock.advance(20)
    assert await waiting == [0]
    assert partitions(stage) == {("foo", 0)}


async def test_the_guard_is_taken_again_with_each_question(stage: Stage) -> None:
    """A marker may have taken the first one away meanwhile (ReplicaManager.maybeRetryOnConcurrentTransactions)."""
    stage.markers.holds.hold("tx", Step.PREPARE)
    await ended(stage, 5)
    waiting = asyncio.ensure_future(verified(stage, 12, entry(stage, epoch=1)))
    await asyncio.sleep(0)
    verifications = stage.partitions["foo", 0].log.producers.verifications
    assert len(verifications) == 1
    verifications.ended(1000, 0)
    assert len(verifications) == 0
    stage.markers.holds.release("tx")
    for _ in range(3):
        await asyncio.sleep(0)
    stage.clock.advance(20)
    (one,) = await waiting
    assert verifications.is_current(1000, guard_of(one))


async def test_a_partition_whose_transaction_was_opened_meanwhile_is_not_asked_about_again(stage: Stage) -> None:
    """By another request of the producer, while the broker waited."""
    stage.markers.holds.hold("tx", Step.PREPARE)
    await ended(stage, 5)
    waiting = asyncio.ensure_future(verified(stage, 12, entry(stage, epoch=1)))
    await asyncio.sleep(0)
    known = ProducerEntry(1000, 1, transaction_first_offset=0)
    stage.partitions["foo", 0].log.producers._producers[1000] = known
    stage.clock.advance(20)
    (one,) = await waiting
    assert guard_of(one) is None


async def test_VER_12_verification_can_be_switched_off_but_not_the_adding() -> None:
    """transaction.partition.verification.enable=false."""
    stage = Stage(transaction_partition_verification_enable="false")
    stage.topic("foo")
    stage.topic("bar")
    await opened(stage, "foo")
    bar = entry(stage, "bar")
    (one,) = await verified(stage, 11, bar)
    assert guard_of(one) is None
    assert partitions(stage) == {("foo", 0)}
    assert await codes(stage, 12, bar) == [0]
    assert partitions(stage) == {("foo", 0), ("bar", 0)}


@pytest.mark.parametrize("version", [11, 12])
async def test_the_answer_of_the_coordinator_takes_time_where_there_is_a_network(stage: Stage, version: int) -> None:
    """As in the simulator: until it arrives, the batch does not go to the log."""
    arrives = asyncio.Event()

    async def travels() -> None:
        await arrives.wait()

    stage.between_brokers = travels
    waiting = asyncio.ensure_future(codes(stage, version, entry(stage)))
    await asyncio.wait({waiting}, timeout=0)
    assert not waiting.done()
    arrives.set()
    assert await waiting == [0]


# --- offsets ---------------------------------------------------------------------------------------------------------


async def offsets(stage: Stage, version: int, producer: tuple[int, int] = (1000, 0)) -> object:
    """The guard for offsets of group g1, or the code of the refusal."""
    ctx = stage.context(txn_offset_commit.API, version)
    try:
        return await verify_offsets("tx", ProducerIdAndEpoch(*producer), "g1", ctx)
    except KafkaError as error:
        return int(error.code)


@every_version(txn_offset_commit.API)
async def test_GRP_12_offsets_are_verified_or_added_by_version(stage: Stage, version: int) -> None:
    """Added from v5; before, 120 where the version knows it, else 48."""
    stage.topic("__consumer_offsets", 4)
    code = await offsets(stage, version)
    if version >= 5:
        assert not isinstance(code, int)
        assert partitions(stage) == {("foo", 0), ("__consumer_offsets", 2)}
    else:
        assert code == (120 if version == 4 else 48)
        assert partitions(stage) == {("foo", 0)}


async def test_GRP_13_and_the_other_refusals_of_offsets(stage: Stage) -> None:
    """47 for a zombie, 49 for a stranger, 51 at once, and retriable codes as group clients know them."""
    assert await offsets(stage, 5) == 16, "no offsets topic: this is not the group's coordinator"
    stage.topic("__consumer_offsets", 4)
    assert await offsets(stage, 5, (1000, 4)) == 47
    assert await offsets(stage, 5, (7, 0)) == 49
    stage.nodes[1].up = False
    assert await offsets(stage, 5) == 14
    stage.nodes[1].up = True
    stage.partitions["__consumer_offsets", 2].leader = 2
    assert await offsets(stage, 5) == 16
    stage.partitions["__consumer_offsets", 2].leader = 1
    stage.markers.holds.hold("tx", Step.PREPARE)
    await ended(stage, 5)
    assert await offsets(stage, 5, (1000, 1)) == 51
    del stage.image.topics["__transaction_state"]
    assert await offsets(stage, 5, (1000, 1)) == int(ErrorCode.COORDINATOR_NOT_AVAILABLE)


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (ErrorCode.PRODUCER_FENCED, 47),
        (ErrorCode.NETWORK_EXCEPTION, 14),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 15),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 15),
        (ErrorCode.REQUEST_TIMED_OUT, 15),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 16),
        (ErrorCode.KAFKA_STORAGE_ERROR, 16),
        (ErrorCode.MESSAGE_TOO_LARGE, -1),
        (ErrorCode.RECORD_LIST_TOO_LARGE, -1),
        (ErrorCode.INVALID_FETCH_SIZE, -1),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 51),
    ],
)
async def test_the_coordinators_errors_have_other_names_for_a_commit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, answered: int
) -> None:
    """As group clients know them (transactions C.4.1)."""
    stage.topic("__consumer_offsets", 4)

    async def refused(*_: object) -> None:
        raise KafkaError(code)

    monkeypatch.setattr(verification, "_ask", refused)
    assert await offsets(stage, 5) == answered


async def test_offsets_of_an_open_transaction_need_no_question(stage: Stage) -> None:
    """Neither where verification is switched off for older clients."""
    stage.topic("__consumer_offsets", 4)
    log = stage.partitions["__consumer_offsets", 2].log
    log.producers._producers[1000] = ProducerEntry(1000, 0, transaction_first_offset=0)
    del stage.image.topics["__transaction_state"]
    assert await offsets(stage, 5) is None
    off = Stage(transaction_partition_verification_enable="false")
    assert await offsets(off, 4) is None
