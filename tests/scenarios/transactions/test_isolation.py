"""What read_committed and read_uncommitted see (transactions H.7)."""

import asyncio

import pytest

from protocol.apis import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.scenarios.transactions.client import Client, on_cluster
from tests.scenarios.transactions.partitions import COMMITTED, FOO


async def opened(c: Client, name: str = "tx", count: int = 3) -> tuple[int, int]:
    """A transaction with so many records in foo."""
    producer = await c.new(name)
    await c.sent(values=[name.encode()] * count, producer=producer, sequence=0, name=name)
    return producer


@on_cluster()
async def test_LSO_01_an_open_transaction(c: Client) -> None:
    """Hides itself and what follows from read_committed, and nothing from the other."""
    await c.sent()
    await opened(c)
    stable, all_of_it = await c.read(isolation=COMMITTED), await c.read()
    assert (len(stable.values), stable.stable_offset, stable.high_watermark, stable.aborted) == (3, 3, 6, [])
    assert (len(all_of_it.values), all_of_it.stable_offset, all_of_it.aborted) == (6, 3, None)
    beyond = await c.fetch(offset=4, isolation=COMMITTED)
    assert (beyond.code, beyond.batches, beyond.stable_offset) == (0, [], 3)


@on_cluster()
async def test_LSO_02_the_earliest_counts(c: Client) -> None:
    """Two transactions, the first ends first."""
    await c.sent()
    one, other = await opened(c, "one", 2), await opened(c, "other", 2)
    assert await c.stable() == 3
    await c.finish(one, name="one")
    assert await c.stable() == 5
    await c.finish(other, name="other")
    assert await c.stable() == await c.end_of() == 9


@on_cluster()
async def test_LSO_04_deleted_below_an_open_transaction(c: Client) -> None:
    """The base of the batch that the log begins in."""
    producer = await opened(c)
    await c.sent(producer=producer, sequence=3, name="tx")

    async def deleted_before(offset: int) -> int:
        topic = DeleteRecordsTopic(FOO, [DeleteRecordsPartition(0, offset)])
        await c.ask(1, ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest([topic], 5_000))
        return await c.stable()

    assert [await deleted_before(offset) for offset in (1, 3, 4)] == [0, 3, 3]


@on_cluster()
async def test_FET_01_02_03_an_aborted_transaction(c: Client) -> None:
    """Is listed in every fetch that overlaps it, and delivered with its marker."""
    await c.sent()
    producer_id, epoch = await opened(c, count=2)
    await c.finish((producer_id, epoch), False)
    fetched = await c.read(isolation=COMMITTED)
    assert (len(fetched.values), fetched.markers, fetched.aborted) == (
        5,
        [(producer_id, 1, "ABORT")],
        [(producer_id, 3)],
    )
    assert (await c.fetch(offset=6, isolation=COMMITTED)).aborted == []
    assert (producer_id, 3) in ((await c.fetch(offset=4, isolation=COMMITTED)).aborted or [])
    assert (await c.read()).aborted is None


@on_cluster()
async def test_FET_04_interleaved(c: Client) -> None:
    """Only the committed one is delivered."""
    one, other = await opened(c, "one", 1), await opened(c, "other", 1)
    for sequence in (1, 2):
        await c.sent(values=[b"one"], producer=one, sequence=sequence, name="one")
        await c.sent(values=[b"other"], producer=other, sequence=sequence, name="other")
    await c.finish(one, False, name="one")
    await c.finish(other, name="other")
    fetched = await c.read(isolation=COMMITTED)
    assert fetched.aborted == [(one[0], 0)]
    assert fetched.consumed == [b"other"] * 3


@on_cluster()
async def test_FET_05_an_abort_without_data(c: Client) -> None:
    """The abort of a transaction without records names no aborted transaction in a Fetch."""
    producer = await c.new()
    await c.add(producer, {FOO: [0]})
    await c.finish(producer, False)
    fetched = await c.read(isolation=COMMITTED)
    assert (fetched.markers, fetched.aborted) == ([(producer[0], 1, "ABORT")], [])


@on_cluster()
async def test_FET_06_a_long_poll_waits_for_the_marker(c: Client) -> None:
    """Data beyond the stable offset does not count."""
    producer = await opened(c)
    wire = await c.stage.connect()
    wanted = FetchTopic(FOO, [FetchPartition(0, 0, 1 << 20)])
    wire.send(ApiKey.FETCH, 12, FetchRequest(-1, 10_000, 1, 1 << 20, COMMITTED, [wanted]))
    answer = asyncio.ensure_future(wire.answer())
    await c.sent(producer=producer, sequence=3, name="tx")
    await c.stage.pass_time(5_000)
    assert not answer.done()
    await c.finish(producer)
    assert (await answer).responses[0].partitions[0].last_stable_offset == 7


@pytest.mark.parametrize("offset", [6, 7, 9])
@on_cluster()
async def test_a_fetch_of_a_batch_above_the_last_stable_offset_does_not_wait(c: Client, offset: int) -> None:
    """It is beyond what may be read, as after a truncation (core E.3.2)."""
    await c.sent()
    producer = await opened(c)
    await c.sent(producer=producer, sequence=3, name="tx")
    wanted = FetchTopic(FOO, [FetchPartition(0, offset, 1 << 20)])
    answer = await c.ask(1, ApiKey.FETCH, 12, FetchRequest(-1, 60_000, 1, 1 << 20, COMMITTED, [wanted]))
    (partition,) = answer.responses[0].partitions
    assert (partition.error_code, partition.last_stable_offset, partition.high_watermark) == (0, 3, 9)


@on_cluster()
async def test_a_fetch_inside_the_batch_at_the_last_stable_offset_waits(c: Client) -> None:
    """Its position is the beginning of the batch."""
    await c.sent()
    producer = await opened(c)
    wire = await c.stage.connect()
    wanted = FetchTopic(FOO, [FetchPartition(0, 4, 1 << 20)])
    wire.send(ApiKey.FETCH, 12, FetchRequest(-1, 10_000, 1, 1 << 20, COMMITTED, [wanted]))
    answer = asyncio.ensure_future(wire.answer())
    await c.stage.pass_time(5_000)
    assert not answer.done()
    await c.finish(producer)
    assert (await answer).responses[0].partitions[0].last_stable_offset == 7


@pytest.mark.parametrize("version", [12, 13])
@on_cluster()
async def test_an_unknown_isolation_level_is_refused(c: Client, version: int) -> None:
    """The whole request fails (transactions D.11)."""
    topic_id = c.stage.topic_id(FOO)
    wanted = FetchTopic(FOO, [FetchPartition(0, 0, 1)], topic_id)
    answer = await c.ask(1, ApiKey.FETCH, version, FetchRequest(-1, 0, 0, 1, 2, [wanted]))
    assert answer.error_code == -1


@on_cluster()
async def test_LO_01_latest(c: Client) -> None:
    """The latest offset is the high watermark, or for read_committed the last stable offset."""
    await c.sent()
    await opened(c)
    assert (await c.stable(), await c.end_of()) == (3, 6)


@on_cluster()
async def test_LO_02_03_by_time(c: Client) -> None:
    """What lies beyond the stable offset is not found."""
    began_ms = c.stage.clock.now_ms()
    await c.sent()
    await c.stage.pass_time(1_000)
    await opened(c)
    hidden, seen = (
        await c.offset(timestamp=began_ms + 500, isolation=COMMITTED),
        await c.offset(timestamp=began_ms + 500),
    )
    assert (int(hidden.error_code), hidden.offset, hidden.timestamp) == (0, -1, -1)
    assert (seen.offset, seen.timestamp) == (3, began_ms + 1_000)
    assert (await c.offset(timestamp=began_ms, isolation=COMMITTED)).offset == 0
    assert (await c.offset(timestamp=-3, isolation=COMMITTED)).offset == -1
    assert (await c.offset(timestamp=-3)).offset == 3
    assert [(await c.offset(timestamp=-2, isolation=level)).offset for level in (0, 1)] == [0, 0]


@on_cluster()
async def test_REC_01_02_a_crash_changes_nothing(c: Client) -> None:
    """Neither what is open nor what was aborted."""
    gone = await opened(c, "gone")
    await c.finish(gone, False, name="gone")
    producer = await opened(c)
    before = (await c.stable(), (await c.read(isolation=COMMITTED)).aborted)
    assert before == (4, [(gone[0], 0)])
    await c.stage.restart()
    c.hang_up()
    assert (await c.stable(), (await c.read(isolation=COMMITTED)).aborted) == before
    await c.sent(producer=producer, sequence=3, name="tx")
    await c.finish(producer)
    assert await c.stable() == await c.end_of() == 11


@on_cluster()
async def test_CMP_01_compaction_takes_what_was_aborted(c: Client) -> None:
    """And keeps the markers until nothing is left that needs them."""
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "300",
        "min.compaction.lag.ms": "0",
    }
    topic = CreatableTopic("keyed", 1, 1, configs=[CreatableTopicConfig(*each) for each in configs.items()])
    await c.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 5_000))
    kept, gone = await c.new("kept"), await c.new("gone")
    await c.sent("keyed", [(b"a", b"1"), (b"b", b"keep")], kept, 0, name="kept")
    await c.finish(kept, name="kept")
    await c.sent("keyed", [(b"a", b"bad"), (b"c", b"bad")], gone, 0, name="gone")
    await c.finish(gone, False, name="gone")
    for number in range(3):
        await c.stage.pass_time(400)
        await c.sent("keyed", [(b"a", b"%d" % (number + 2))])
    await c.stage.clean()
    fetched = await c.read("keyed")
    assert b"bad" not in fetched.values
    assert b"1" not in fetched.values
    assert b"keep" in fetched.values
    assert {(kept[0], 1, "COMMIT"), (gone[0], 1, "ABORT")} <= set(fetched.markers)
    stable = await c.read("keyed", COMMITTED)
    assert stable.consumed == fetched.values


@pytest.mark.parametrize("replica_id", [-2, -3, -4])
@on_cluster()
async def test_who_is_isolated(c: Client, replica_id: int) -> None:
    """Offsets are hidden from replica id -1 alone, records from all below 0 but -3, a log that is being moved.

    See core E.8.4, FetchRequest.isConsumer.
    """
    await opened(c)
    list_offsets = ListOffsetsRequest(replica_id, [ListOffsetsTopic(FOO, [ListOffsetsPartition(0, -1)])], COMMITTED)
    listed = await c.ask(c.leader(FOO), ApiKey.LIST_OFFSETS, 7, list_offsets)
    assert listed.topics[0].partitions[0].offset == 3
    request = FetchRequest(replica_id, 0, 0, 1 << 24, COMMITTED, [FetchTopic(FOO, [FetchPartition(0, 0, 1 << 24)])])
    (partition,) = (await c.ask(c.leader(FOO), ApiKey.FETCH, 12, request)).responses[0].partitions
    hidden = replica_id != -3
    assert (not partition.records, partition.last_stable_offset, partition.aborted_transactions) == (
        hidden,
        0,
        () if hidden else None,
    )
