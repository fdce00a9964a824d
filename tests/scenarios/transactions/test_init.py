"""Who gets which producer id and epoch (transactions H.1)."""

import pytest

from protocol.apis import ApiKey
from protocol.log_records.transaction import TransactionRecord, TransactionState
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.scenarios.transactions.client import APART, QUICK_EXPIRY, Client, on_cluster
from tests.scenarios.transactions.partitions import BAR, FOO, LOG, logged_in

NO_PRODUCER = (-1, -1)


@on_cluster(brokers=2)
async def test_IPI_01_any_broker_serves_idempotent_producers(c: Client) -> None:
    """Each call a fresh id, at epoch 0."""
    results = [await c.init(None, broker=broker) for broker in (1, 2, 1, 2)]
    assert [(code, epoch) for code, _, epoch in results] == [(0, 0)] * 4
    assert len({producer_id for _, producer_id, _ in results}) == 4
    assert LOG not in c.stage.topic_names()


@on_cluster()
async def test_IPI_02_without_an_id_the_rest_is_ignored(c: Client) -> None:
    """Producer id, epoch and timeout of the request."""
    code, producer_id, epoch = await c.init(None, (77, 5), timeout_ms=0)
    assert (code, epoch) == (0, 0)
    assert producer_id != 77


@on_cluster()
async def test_IPI_03_the_empty_id(c: Client) -> None:
    """An empty transactional id is INVALID_REQUEST (42), without a producer id."""
    assert await c.init("") == (42, *NO_PRODUCER)


@on_cluster()
async def test_IPI_04_the_range_of_the_timeout(c: Client) -> None:
    """50 outside 1 to transaction.max.timeout.ms."""
    assert [(await c.init(timeout_ms=ms))[0] for ms in (900_000, 900_001, 0, -1)] == [0, 50, 50, 50]


@on_cluster()
async def test_IPI_05_half_a_producer(c: Client) -> None:
    """An id without an epoch, or the other way round, gets 42, with and without a transactional id."""
    for name in ("tx", None):
        for half in ((5, -1), (-1, 3)):
            for version in (3, 4, 5):
                assert await c.init(name, half, v=version) == (42, *NO_PRODUCER)


@on_cluster()
async def test_IPI_06_a_new_id_is_logged(c: Client) -> None:
    """A new transactional id is logged as Empty, without partitions and start."""
    producer = await c.new(timeout_ms=45_000)
    (record,) = await c.log()
    assert isinstance(record, TransactionRecord)
    assert producer == (record.producer_id, 0)
    assert (record.state, record.partitions, record.start_ms, record.timeout_ms) == (
        TransactionState.EMPTY,
        None,
        -1,
        45_000,
    )


@on_cluster()
async def test_IPI_07_each_plain_call_bumps(c: Client) -> None:
    """Each InitProducerId without an expected producer bumps the epoch, in every version."""
    producer_id, _ = await c.new()
    assert [await c.new(v=version) for version in range(6)] == [(producer_id, epoch) for epoch in range(1, 7)]


@on_cluster()
async def test_IPI_08_09_10_a_known_producer_bumps_once(c: Client) -> None:
    """Its retry is answered the same; after a plain call it is fenced, with the code its version knows."""
    producer_id, _ = await c.new()
    assert await c.init(producer=(producer_id, 0), v=3) == (0, producer_id, 1)
    assert await c.init(producer=(producer_id, 0)) == (0, producer_id, 1)
    assert await c.new() == (producer_id, 2)
    assert await c.init(producer=(producer_id, 1)) == (90, *NO_PRODUCER)
    assert await c.init(producer=(producer_id, 1), v=3) == (47, *NO_PRODUCER)


@on_cluster()
async def test_IPI_11_strangers_and_the_future(c: Client) -> None:
    """An expected producer of another id or a later epoch is fenced: 90, before v4 47."""
    producer_id, _ = await c.at_epoch(3)
    for wrong in ((producer_id, 9), (producer_id + 100, 3)):
        assert await c.init(producer=wrong) == (90, *NO_PRODUCER)
        assert await c.init(producer=wrong, v=3) == (47, *NO_PRODUCER)


@pytest.mark.parametrize(("expects", "code"), [(False, 0), (True, 90)])
@on_cluster(features={"transaction.version": 1})
async def test_IPI_12_13_an_older_cluster_fences_the_producer_of_an_open_transaction(
    c: Client, expects: bool, code: int
) -> None:
    """51 first; then a plain call returns an epoch raised by two, and the old producer is fenced."""
    producer_id, _ = await c.new()
    await c.add((producer_id, 0), {FOO: [0]})
    await c.sent(producer=(producer_id, 0), sequence=0, name="tx", v=11)
    expected = (producer_id, 0) if expects else NO_PRODUCER
    assert await c.init(producer=expected) == (51, *NO_PRODUCER)
    await c.settle()
    assert await c.markers() == [(producer_id, 1, "ABORT")]
    assert await c.init(producer=expected) == ((0, producer_id, 2) if code == 0 else (code, *NO_PRODUCER))


@on_cluster()
async def test_IPI_14_a_newer_cluster_lets_it_come_back(c: Client) -> None:
    """With transaction.version 2 the producer of an aborted transaction continues one epoch later."""
    producer_id, _ = await c.new()
    await c.sent(producer=(producer_id, 0), sequence=0, name="tx")
    assert await c.init(producer=(producer_id, 0)) == (51, *NO_PRODUCER)
    await c.settle()
    assert await c.init(producer=(producer_id, 0)) == (0, producer_id, 1)
    assert await c.markers() == [(producer_id, 1, "ABORT")]


@on_cluster()
async def test_IPI_15_a_zombie_aborts_the_live_transaction(c: Client) -> None:
    """Quirk transactions A.2 I5; afterwards the zombie is refused."""
    producer_id, _ = await c.at_epoch(5)
    await c.sent(producer=(producer_id, 5), sequence=0, name="tx")
    assert await c.init(producer=(producer_id, 2)) == (51, *NO_PRODUCER)
    await c.settle()
    assert await c.state() == ("CompleteAbort", producer_id, 6)
    assert await c.init(producer=(producer_id, 2)) == (90, *NO_PRODUCER)


@on_cluster()
async def test_IPI_16_17_18_26_the_end_of_the_epochs(c: Client) -> None:
    """32766 is given once; then a new producer id, for a plain call, a known producer, and its retry."""
    producer_id, _ = await c.at_epoch(32765)
    assert await c.init(producer=(producer_id, 32765)) == (0, producer_id, 32766)
    assert await c.init(producer=(producer_id, 32765)) == (-1, *NO_PRODUCER), "quirk E3"
    code, fresh, epoch = await c.init(producer=(producer_id, 32766))
    assert (code, epoch) == (0, 0)
    assert fresh != producer_id
    assert await c.init(producer=(producer_id, 32766)) == (0, fresh, 0)
    await c.at_epoch(32765, "other")
    other, epoch = await c.new("other")
    assert epoch == 32766
    plain = await c.new("other")
    assert plain[0] not in (other, fresh)
    assert plain[1] == 0


@on_cluster(brokers=2)
async def test_IPI_19_the_coordinator_moves(c: Client) -> None:
    """The old one answers NOT_COORDINATOR, FindCoordinator returns the new one, and it knows the id."""
    producer_id, _ = await c.new()
    old = await c.coordinator("tx")
    await c.move("tx", 3 - old)
    assert await c.init(broker=old) == (16, *NO_PRODUCER)
    assert await c.coordinator("tx") == 3 - old
    assert await c.new() == (producer_id, 1)


@on_cluster(brokers=2)
async def test_IPI_20_a_coordinator_that_loads(c: Client) -> None:
    """14, and after the load as if nothing had been."""
    producer_id, _ = await c.new()
    old = await c.coordinator("tx")
    await c.move("tx", 3 - old)
    c.cluster.metadata_publisher.reload_coordinator(c.cluster.partitions[LOG, logged_in("tx")], 5_000)
    assert await c.init(broker=3 - old) == (14, *NO_PRODUCER)
    assert (await c.describe(broker=3 - old)).error_code == 14
    await c.stage.pass_time(5_000)
    assert await c.init(broker=3 - old) == (0, producer_id, 1)


@on_cluster()
async def test_IPI_21_a_retry_across_a_restart(c: Client) -> None:
    """After a restart a retry with the last epoch is refused, because that is not persisted."""
    producer_id, _ = await c.new()
    assert await c.new(producer=(producer_id, 0)) == (producer_id, 1)
    await c.stage.restart()
    c.hang_up()
    assert await c.init(producer=(producer_id, 0)) == (90, *NO_PRODUCER)
    assert await c.init(producer=(producer_id, 1)) == (0, producer_id, 2)


@on_cluster(**APART)
async def test_IPI_22_while_markers_are_held_everybody_waits(c: Client) -> None:
    """51 for every kind of call, until they are written."""
    name = await c.apart()
    producer_id, _ = await c.new(name)
    await c.sent(producer=(producer_id, 0), sequence=0, name=name)
    c.stage.pause(2)
    assert await c.end((producer_id, 0), name=name) == (0, producer_id, 1)
    for expected in (NO_PRODUCER, (producer_id, 1), (producer_id, 0)):
        assert await c.init(name, expected) == (51, *NO_PRODUCER)
    await c.stage.resume(2)
    assert await c.new(name) == (producer_id, 2)


@on_cluster(settings=QUICK_EXPIRY)
async def test_IPI_23_an_expired_id_is_given_a_new_producer_id(c: Client) -> None:
    """Even if the request has the old one."""
    producer_id, _ = await c.at_epoch(4)
    await c.stage.pass_time(6_000)
    code, fresh, epoch = await c.init(producer=(producer_id, 4))
    assert (code, epoch) == (0, 0)
    assert fresh != producer_id


@on_cluster(settings={**QUICK_EXPIRY, "message.max.bytes": 2_000, "transaction.state.log.num.partitions": 1})
async def test_more_ids_expire_at_once_than_one_batch_takes(c: Client) -> None:
    """Their tombstones are several batches where `message.max.bytes` is small (transactions B.8)."""
    names = [f"{number}".rjust(400, "x") for number in range(10)]
    before = {(await c.new(name))[0] for name in names}
    await c.stage.pass_time(6_000)
    assert before.isdisjoint({(await c.new(name))[0] for name in names})


@on_cluster(settings={"unstable.api.versions.enable": "true"})
async def test_IPI_24_version_6_is_served_where_it_is_asked_for(c: Client) -> None:
    """Two-phase commit is off, prepared transactions are not kept, and the new fields are -1."""

    async def init_producer_id(two_phase: bool, keep: bool) -> tuple[int, int, int]:
        request = InitProducerIdRequest("tx", 60_000, -1, -1, two_phase, keep)
        answer = await c.ask(await c.coordinator("tx"), ApiKey.INIT_PRODUCER_ID, 6, request)
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == NO_PRODUCER
        return int(answer.error_code), answer.producer_id, answer.producer_epoch

    assert await init_producer_id(True, False) == (53, *NO_PRODUCER)
    assert await init_producer_id(False, True) == (35, *NO_PRODUCER)
    assert await init_producer_id(True, True) == (53, *NO_PRODUCER)
    assert (await init_producer_id(False, False))[0] == 0


TWO_REPLICAS = {"transaction.state.log.replication.factor": 2, "transaction.state.log.min.isr": 2}


@on_cluster(brokers=2, settings=TWO_REPLICAS, features={"transaction.version": 1})
async def test_a_refused_fence_bumps_once(c: Client) -> None:
    """The coordinator's log takes nothing: the old producer is out at once, the next attempt bumps no more."""
    await c.reassign(FOO, 0, [1])
    name = await c.coordinated_by(1)
    producer_id, _ = producer = await c.new(name)
    await c.add(producer, {FOO: [0]}, name)
    await c.stage.stop(2)
    assert await c.init(name) == (15, *NO_PRODUCER)
    assert await c.add(producer, {FOO: [0]}, name) == {(FOO, 0): 90}
    assert await c.init(name) == (15, *NO_PRODUCER)
    await c.stage.start(2)
    assert await c.init(name) == (51, *NO_PRODUCER)
    await c.settle()
    assert await c.state(name) == ("CompleteAbort", producer_id, 1)
    assert await c.new(name) == (producer_id, 2)


@on_cluster()
async def test_two_ids_do_not_share_an_epoch(c: Client) -> None:
    """Each transactional id has its own producer id and epoch."""
    one, other = await c.new("one"), await c.new("other")
    assert await c.new("one") == (one[0], 1)
    assert await c.state("other") == ("Empty", other[0], 0)
    assert await c.add(one, {BAR: [0]}, "other") == {(BAR, 0): 49}
