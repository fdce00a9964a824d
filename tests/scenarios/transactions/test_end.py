"""Commit and abort, before and since KIP-890 (transactions H.3)."""

import pytest

from broker.handlers import end_txn
from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.scenarios.transactions.client import APART, QUICK_EXPIRY, Client, CodeAndProducer, on_cluster
from tests.scenarios.transactions.partitions import BAR, COMMITTED, FOO, code
from tests.versions import every_version

NO_PRODUCER = (-1, -1)


async def older(c: Client, name: str = "tx") -> tuple[int, int]:
    """An older client with a record in its open transaction: AddPartitionsToTxn, Produce v11."""
    producer = await c.new(name)
    await c.add(producer, {FOO: [0]}, name)
    await c.sent(values=[b"a"], producer=producer, sequence=0, name=name, v=11)
    return producer


async def newer(c: Client, name: str = "tx") -> tuple[int, int]:
    """A newer client with a record in its open transaction: Produce v12."""
    producer = await c.new(name)
    await c.sent(values=[b"a"], producer=producer, sequence=0, name=name)
    return producer


# --- before KIP-890 --------------------------------------------------------------------------------------------------


@on_cluster()
async def test_E1_01_02_a_commit_and_its_repetition(c: Client) -> None:
    """The answer names no producer; a second commit is fine, an abort is not."""
    producer = await older(c)
    assert await c.end(producer, v=4) == (0, *NO_PRODUCER)
    await c.settle()
    assert await c.markers() == [(*producer, "COMMIT")]
    assert await c.state() == ("CompleteCommit", *producer)
    assert [await c.end(producer, commit, v=4) for commit in (True, False)] == [(0, *NO_PRODUCER), (48, *NO_PRODUCER)]


@on_cluster()
async def test_E1_03_an_abort_and_its_repetition(c: Client) -> None:
    """An abort is repeated with the same result, and a commit after it is refused, before KIP-890."""
    producer = await older(c)
    await c.finish(producer, False, v=4)
    assert await c.markers() == [(*producer, "ABORT")]
    assert [(await c.end(producer, commit, v=4))[0] for commit in (False, True)] == [0, 48]


@every_version(end_txn.API, until=4)
@on_cluster()
async def test_E1_04_nothing_to_end(c: Client, version: int) -> None:
    """Commit and abort without a transaction are refused with INVALID_TXN_STATE (48) before KIP-890."""
    producer = await c.new()
    assert [(await c.end(producer, commit, v=version))[0] for commit in (True, False)] == [48, 48]


@on_cluster(**APART)
async def test_E1_05_before_the_markers_are_written(c: Client) -> None:
    """51 for both; a fenced or unknown producer is refused as such."""
    name = await c.apart()
    producer = await older(c, name)
    c.stage.pause(2)
    assert (await c.end(producer, name=name, v=4))[0] == 0
    assert [(await c.end(producer, commit, name, v=4))[0] for commit in (True, False)] == [51, 51]
    assert (await c.end((producer[0] + 1, 0), name=name, v=4))[0] == 49
    assert (await c.end((producer[0], 1), name=name, v=4))[0] == 90
    assert (await c.state(name))[0] == "PrepareCommit"
    await c.stage.resume(2)
    assert await c.end(producer, name=name, v=4) == (0, *NO_PRODUCER)


@every_version(end_txn.API, until=4)
@on_cluster()
async def test_E1_06_strangers_and_zombies(c: Client, version: int) -> None:
    """47 before v2; the transaction stays open."""
    producer_id, _ = await c.at_epoch(1)
    await c.add((producer_id, 1), {FOO: [0]})
    fenced = 90 if version >= 2 else 47
    for wrong, expected in (((producer_id, 0), fenced), ((producer_id, 2), fenced), ((producer_id + 1, 1), 49)):
        assert (await c.end(wrong, v=version))[0] == expected
    assert (await c.end((producer_id, 1), name="none", v=version))[0] == 49
    assert (await c.state())[0] == "Ongoing"


@on_cluster()
async def test_E1_07_sequences_go_on(c: Client) -> None:
    """The epoch stays, and with it the producer's numbering."""
    producer = await older(c)
    assert await c.finish(producer, v=4) == producer
    await c.add(producer, {FOO: [0]})
    await c.sent(values=[b"b"], producer=producer, sequence=1, name="tx", v=11)
    await c.finish(producer, v=4)
    assert [batch.base_sequence for batch in (await c.read()).batches] == [0, -1, 1, -1]


# --- since KIP-890 ---------------------------------------------------------------------------------------------------


@on_cluster()
async def test_E2_01_to_05_an_epoch_serves_one_transaction(c: Client) -> None:
    """The commit gives the next epoch; its retry the same again, without a record; anything else is refused."""
    producer_id, _ = await newer(c)
    assert await c.end((producer_id, 0)) == (0, producer_id, 1)
    await c.settle()
    assert await c.state() == ("CompleteCommit", producer_id, 1)
    assert await c.markers() == [(producer_id, 1, "COMMIT")]
    written, end = len(await c.log()), await c.end_of()
    assert await c.end((producer_id, 0)) == (0, producer_id, 1)
    assert await c.end((producer_id, 0), False) == (48, *NO_PRODUCER)
    assert await c.end((producer_id, 1)) == (48, *NO_PRODUCER)
    assert (len(await c.log()), await c.end_of()) == (written, end)
    assert await c.end((producer_id, 1), False) == (0, producer_id, 2)
    await c.settle()
    assert await c.state() == ("CompleteAbort", producer_id, 2)
    assert await c.end_of() == end, "no marker anywhere"


@on_cluster()
async def test_E2_06_07_nothing_to_end(c: Client) -> None:
    """An abort raises the epoch, its retry does not; a commit is refused, and so is a zombie."""
    producer_id, _ = await c.new()
    assert await c.end((producer_id, 0)) == (48, *NO_PRODUCER)
    for epoch, next_epoch in ((0, 1), (0, 1), (1, 2)):
        assert await c.end((producer_id, epoch), False) == (0, producer_id, next_epoch)
        await c.settle()
    other, _ = await c.at_epoch(3, "other")
    assert (await c.end((other, 3), name="other"))[0] == 48
    assert (await c.end((other, 2), False, name="other"))[0] == 90


@on_cluster()
async def test_E2_08_no_commit_after_an_abort(c: Client) -> None:
    """A commit after an abort gets 48, with either epoch."""
    producer_id, _ = await newer(c)
    assert await c.finish((producer_id, 0), False) == (producer_id, 1)
    assert [(await c.end((producer_id, epoch)))[0] for epoch in (1, 0)] == [48, 48]


async def overflowing(c: Client, name: str = "tx") -> int:
    """A transaction at the last epoch: its producer id."""
    producer_id, _ = await c.at_epoch(32766, name)
    await c.sent(values=[b"a"], producer=(producer_id, 32766), sequence=0, name=name)
    return producer_id


async def overflown(c: Client) -> tuple[int, CodeAndProducer]:
    """A commit at the last epoch: the old producer id, and the answer."""
    producer_id = await overflowing(c)
    return producer_id, await c.end((producer_id, 32766))


@on_cluster()
async def test_E2_09_10_the_last_epoch(c: Client) -> None:
    """The marker has the old id at 32767, the client is given a new one at 0, and so is its retry."""
    old, (error, fresh, epoch) = await overflown(c)
    assert (error, epoch) == (0, 0)
    assert fresh != old
    await c.settle()
    assert await c.markers() == [(old, 32767, "COMMIT")]
    assert await c.state() == ("CompleteCommit", fresh, 0)
    assert await c.end((old, 32766)) == (0, fresh, 0)
    assert await c.end((old, 32766), False) == (48, *NO_PRODUCER)
    await c.sent(values=[b"b"], producer=(fresh, 0), sequence=0, name="tx")
    assert await c.finish((fresh, 0)) == (fresh, 1)


@on_cluster()
async def test_E2_11_the_rotation_survives_the_coordinator(c: Client) -> None:
    """Lost after the markers were written."""
    old, (_, fresh, _) = await overflown(c)
    await c.settle()
    await c.stage.restart()
    c.hang_up()
    assert await c.end((old, 32766)) == (0, fresh, 0)
    assert (await c.end((old, 32766), False))[0] == 48
    assert await c.markers() == [(old, 32767, "COMMIT")]


@on_cluster(brokers=3, settings={"broker.session.timeout.ms": 20_000})
async def test_E2_11_the_rotation_survives_the_coordinator_before_the_markers(c: Client) -> None:
    """The next one finds the new producer id in the log, and writes the markers."""
    name = await c.apart(coordinator=2, leader=3)
    old = await overflowing(c, name)
    c.stage.pause(3)
    error, fresh, epoch = await c.end((old, 32766), name=name)
    assert (error, epoch) == (0, 0)
    await c.move(name, 1)
    assert (await c.state(name))[0] == "PrepareCommit"
    await c.stage.resume(3)
    assert await c.state(name) == ("CompleteCommit", fresh, 0)
    assert await c.end((old, 32766), name=name) == (0, fresh, 0)
    assert (await c.end((old, 32766), False, name))[0] == 48
    assert (old, 32767, "COMMIT") in await c.markers()


@on_cluster(**APART)
async def test_E2_12_before_the_markers_are_written(c: Client) -> None:
    """51 for the retry, for the next transaction's partitions, and for its first batch."""
    await c.reassign(BAR, 0, [1])
    name = await c.apart()
    producer_id, _ = await newer(c, name)
    c.stage.pause(2)
    assert await c.end((producer_id, 0), name=name) == (0, producer_id, 1)
    assert await c.end((producer_id, 0), name=name) == (51, *NO_PRODUCER)
    assert await c.add((producer_id, 1), {BAR: [0]}, name) == {(BAR, 0): 51}
    c.stage.clock.thaw()
    assert code(await c.produce(BAR, producer=(producer_id, 1), sequence=0, name=name)) == 51
    c.stage.clock.freeze()
    await c.stage.resume(2)
    assert await c.end((producer_id, 0), name=name) == (0, producer_id, 1)
    assert await c.sent(BAR, producer=(producer_id, 1), sequence=0, name=name) == 0


@on_cluster()
async def test_E2_13_14_a_retry_that_comes_too_late(c: Client) -> None:
    """The next transaction is open; or the id has been initialized again."""
    producer_id, _ = await newer(c)
    await c.finish((producer_id, 0))
    await c.sent(values=[b"b"], producer=(producer_id, 1), sequence=0, name="tx")
    assert (await c.end((producer_id, 0)))[0] == 90
    assert await c.state() == ("Ongoing", producer_id, 1)
    assert await c.finish((producer_id, 1)) == (producer_id, 2)
    assert await c.new() == (producer_id, 3)
    assert [(await c.end((producer_id, 1), commit))[0] for commit in (True, False)] == [90, 90]


@on_cluster()
async def test_E2_15_begun_the_old_way_and_ended_the_new_way(c: Client) -> None:
    """The version of EndTxn decides whether the epoch is bumped."""
    producer_id, _ = await older(c)
    assert await c.finish((producer_id, 0)) == (producer_id, 1)
    assert await c.markers() == [(producer_id, 1, "COMMIT")]


@on_cluster()
async def test_no_commit_follows_the_last_epoch(c: Client) -> None:
    """-1 where the id is at 32767, which a fence leaves behind; an abort goes through (transactions B.3)."""
    producer_id, _ = await c.at_epoch(32767)
    await c.sent(values=[b"a"], producer=(producer_id, 32767), sequence=0, name="tx")
    assert await c.end((producer_id, 32767)) == (-1, *NO_PRODUCER)
    assert await c.state() == ("Ongoing", producer_id, 32767)
    code, fresh, epoch = await c.end((producer_id, 32767), False)
    assert (code, fresh != producer_id, epoch) == (0, True, 0)
    await c.settle()
    assert await c.state() == ("CompleteAbort", fresh, 0)


@on_cluster()
async def test_a_record_that_cannot_be_written_leaves_its_id_in_transition(c: Client) -> None:
    """With transaction.version 0: 35 once, then 51, also when it is 2 again, until the next load (transactions B.3)."""
    producer = await newer(c)
    producer = await c.finish(producer)
    for level, codes in ((0, [35, 51]), (2, [51])):
        update = FeatureUpdateKey("transaction.version", level, upgrade_type=1 if level else 2)
        assert not (await c.ask(1, ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(5_000, [update]))).error_code
        await c.settle()
        assert [(await c.init())[0] for _ in codes] == codes
        assert (await c.end(producer, False, v=4))[0] == 51
        assert await c.state() == ("CompleteCommit", *producer)
    await c.stage.restart()
    c.hang_up()
    assert await c.new() == (producer[0], producer[1] + 1)


# --- timeouts and expiry ---------------------------------------------------------------------------------------------


@on_cluster()
async def test_TMO_01_03_a_newer_producer_comes_back(c: Client) -> None:
    """Aborted by the scan; the partition refuses the old epoch, the abort gives the new one."""
    producer_id, _ = await c.new(timeout_ms=1_000)
    await c.sent(producer=(producer_id, 0), sequence=0, name="tx")
    await c.stage.pass_time(10_000)
    assert await c.state() == ("CompleteAbort", producer_id, 1)
    assert await c.markers() == [(producer_id, 1, "ABORT")]
    assert code(await c.produce(producer=(producer_id, 0), sequence=3, name="tx")) == 47
    assert await c.end((producer_id, 0), False) == (0, producer_id, 1)
    await c.sent(producer=(producer_id, 1), sequence=0, name="tx")
    assert await c.finish((producer_id, 1)) == (producer_id, 2)


@on_cluster(features={"transaction.version": 1})
async def test_TMO_01_02_an_older_producer_does_not(c: Client) -> None:
    """After the timeout it is fenced (90, 47, 90), and the next initialization takes over."""
    producer = await c.new(timeout_ms=1_000)
    await c.add(producer, {FOO: [0]})
    await c.sent(producer=producer, sequence=0, name="tx", v=11)
    await c.stage.pass_time(10_000)
    assert await c.state() == ("CompleteAbort", producer[0], 1)
    assert await c.markers() == [(producer[0], 1, "ABORT")]
    assert await c.add(producer, {FOO: [0]}) == {(FOO, 0): 90}
    assert code(await c.produce(producer=producer, sequence=3, name="tx", v=11)) == 47
    assert [(await c.end(producer, commit, v=4))[0] for commit in (True, False)] == [90, 90]
    assert await c.new() == (producer[0], 2)


@on_cluster()
async def test_TMO_04_a_commit_after_the_timeout(c: Client) -> None:
    """A commit after the transaction timed out is INVALID_TXN_STATE (48), never a success."""
    producer_id, _ = await c.new(timeout_ms=1_000)
    await c.sent(producer=(producer_id, 0), sequence=0, name="tx")
    await c.stage.pass_time(10_000)
    assert (await c.end((producer_id, 0)))[0] == 48


@on_cluster()
async def test_TMO_05_work_does_not_extend_the_timeout(c: Client) -> None:
    """It counts from the first partition."""
    producer_id, _ = await c.new(timeout_ms=15_000)
    await c.add((producer_id, 0), {FOO: [0]})
    began_ms = c.stage.clock.now_ms()
    await c.stage.pass_time(14_000)
    await c.add((producer_id, 0), {FOO: [1]})
    assert (await c.describe()).transaction_start_time_ms == began_ms
    await c.stage.pass_time(11_000)
    assert (await c.state())[0] == "CompleteAbort"


@on_cluster(settings={**QUICK_EXPIRY, "transaction.max.timeout.ms": 86_400_000})
async def test_EXP_01_02_an_unused_id_expires(c: Client) -> None:
    """A tombstone in the log and nothing known; an id with an open transaction stays."""
    producer = await c.new()
    other = await c.new("other", timeout_ms=86_400_000)
    await c.add(other, {FOO: [0]}, "other")
    await c.stage.pass_time(6_000)
    assert type((await c.log())[-1]).__name__ == "TransactionTombstone"
    assert (await c.describe()).error_code == 105
    assert await c.add(producer, {FOO: [0]}) == {(FOO, 0): 49}
    assert (await c.state("other"))[0] == "Ongoing"


# --- coordinators that come and go -----------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@on_cluster()
async def test_LOAD_01_an_open_transaction_survives_a_restart(c: Client, clean: bool) -> None:
    """With its partitions and its start; it goes on and ends as any other."""
    producer_id, _ = await newer(c)
    before = await c.describe()
    await c.stage.restart(clean=clean)
    c.hang_up()
    assert await c.describe() == before
    await c.sent(values=[b"b"], producer=(producer_id, 0), sequence=1, name="tx")
    assert await c.finish((producer_id, 0)) == (producer_id, 1)
    assert (await c.read(isolation=COMMITTED)).values == [b"a", b"b"]


@on_cluster(**APART | {"brokers": 3})
async def test_LOAD_02_the_next_coordinator_writes_the_markers(c: Client) -> None:
    """The next coordinator writes the markers of a prepared transaction with its own epoch."""
    name = await c.apart(coordinator=2, leader=3)
    producer_id, _ = await newer(c, name)
    c.stage.pause(3)
    assert (await c.end((producer_id, 0), name=name))[0] == 0
    epoch = await c.move(name, 1)
    await c.settle()
    assert await c.state(name) == ("PrepareCommit", producer_id, 1)
    await c.stage.resume(3)
    assert await c.state(name) == ("CompleteCommit", producer_id, 1)
    assert (producer_id, 1, "COMMIT") in await c.markers()
    assert (await c.producers())[producer_id].coordinator_epoch == epoch > 0
    assert await c.end((producer_id, 0), name=name) == (0, producer_id, 1)


@on_cluster()
async def test_LOAD_03_a_topic_that_is_deleted_meanwhile(c: Client) -> None:
    """The transaction completes without it."""
    producer_id, _ = await newer(c)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(FOO)], timeout_ms=5_000)
    await c.ask(1, ApiKey.DELETE_TOPICS, 6, request)
    assert await c.finish((producer_id, 0)) == (producer_id, 1)
