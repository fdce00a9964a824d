"""Partitions and offsets join (transactions H.2)."""

from broker.coordination.transaction.transitions import TV0
from broker.handlers import add_offsets_to_txn, add_partitions_to_txn
from broker.request.node import partition_for
from protocol.log_records.transaction import TransactionRecord
from tests.scenarios.transactions.client import APART, Client, on_cluster
from tests.scenarios.transactions.partitions import BAR, FOO, OFFSETS
from tests.versions import every_version


@on_cluster()
async def test_ADD_01_02_03_partitions_join_once(c: Client) -> None:
    """Listed with a start that stays; what is known is not logged again."""
    producer = await c.new()
    assert (await c.describe()).transaction_start_time_ms == -1
    assert await c.add(producer, {FOO: [0, 1]}) == {(FOO, 0): 0, (FOO, 1): 0}
    began_ms = c.stage.clock.now_ms()
    assert (await c.state())[0] == "Ongoing"
    assert await c.parts() == {(FOO, 0), (FOO, 1)}
    await c.stage.pass_time(50)
    written = len(await c.log())
    assert await c.add(producer, {FOO: [0]}) == {(FOO, 0): 0}
    assert len(await c.log()) == written
    assert await c.add(producer, {FOO: [2]}) == {(FOO, 2): 0}
    last = (await c.log())[-1]
    assert isinstance(last, TransactionRecord)
    assert last.start_ms == began_ms
    assert last.partitions == frozenset({(FOO, 0), (FOO, 1), (FOO, 2)})
    assert last.client_transaction_version == TV0
    assert (await c.describe()).transaction_start_time_ms == began_ms


@on_cluster()
async def test_ADD_04_all_or_nothing(c: Client) -> None:
    """A partition that is missing keeps the others out."""
    producer = await c.new()
    assert await c.add(producer, {FOO: [0], BAR: [9]}) == {(FOO, 0): 55, (BAR, 9): 3}
    assert (await c.state())[0] == "Empty"


@on_cluster()
async def test_ADD_06_clients_may_not_name_internal_topics(c: Client) -> None:
    """Internal topics are refused to clients, whether or not they exist."""
    producer = await c.new()
    await c.coordinator("g", 0)
    assert await c.add(producer, {OFFSETS: [0]}) == {(OFFSETS, 0): 29}
    assert await c.add(producer, {OFFSETS: [0], FOO: [0]}) == {(OFFSETS, 0): 29, (FOO, 0): 55}


@on_cluster()
async def test_ADD_07_an_unknown_id(c: Client) -> None:
    """Partitions of a transactional id without a producer are refused with INVALID_PRODUCER_ID_MAPPING (49)."""
    assert await c.add((5, 0), {FOO: [0]}) == {(FOO, 0): 49}


@every_version(add_partitions_to_txn.API, until=3)
@on_cluster()
async def test_ADD_08_strangers_and_zombies(c: Client, version: int) -> None:
    """A higher epoch is refused as a lower one is."""
    producer_id, _ = await c.at_epoch(1)
    wrong = [(producer_id + 1, 1), (producer_id, 0), (producer_id, 2)]
    fenced = 90 if version >= 2 else 47
    assert [(await c.add(w, {FOO: [0]}, v=version))[FOO, 0] for w in wrong] == [49, fenced, fenced]
    assert (await c.state())[0] == "Empty"


@on_cluster(**APART)
async def test_ADD_09_10_before_the_markers_are_written(c: Client) -> None:
    """51, also for a stranger; then the same epoch begins the next transaction (before KIP-890)."""
    name = await c.apart()
    producer = await c.new(name)
    await c.add(producer, {FOO: [0]}, name)
    c.stage.pause(2)
    assert (await c.end(producer, name=name, v=4))[0] == 0
    assert await c.add(producer, {FOO: [0]}, name) == {(FOO, 0): 51}
    assert await c.add((producer[0] + 7, 0), {FOO: [0]}, name) == {(FOO, 0): 51}
    assert await c.add_offsets(producer, name=name) == 51
    await c.stage.resume(2)
    assert await c.add(producer, {FOO: [0]}, name) == {(FOO, 0): 0}


@on_cluster()
async def test_ADD_11_13_brokers_ask_about_many(c: Client) -> None:
    """Only to verify, or to add; each transaction for itself."""
    producer = await c.new()
    await c.add(producer, {FOO: [0]})
    written = len(await c.log())
    top, results = await c.add_many([("tx", *producer, True, {FOO: [0, 1]}), ("none", *producer, True, {FOO: [0]})])
    assert (top, results[0]) == (0, {(FOO, 0): 0, (FOO, 1): 120})
    assert results[1] in ({(FOO, 0): 49}, {(FOO, 0): 16})
    assert len(await c.log()) == written
    _, (codes,) = await c.add_many([("tx", *producer, False, {FOO: [1]})])
    assert codes == {(FOO, 1): 0}
    assert await c.parts() == {(FOO, 0), (FOO, 1)}


@on_cluster()
async def test_OFF_01_a_groups_offsets_join(c: Client) -> None:
    """Its partition of the offsets topic; for 50 partitions that of g1 is 42."""
    producer = await c.new()
    assert await c.add_offsets(producer) == 0
    assert await c.parts() == {(OFFSETS, partition_for("g1", 4))}
    assert partition_for("g1", 50) == 42


@every_version(add_offsets_to_txn.API)
@on_cluster()
async def test_OFF_02_a_zombies_offsets(c: Client, version: int) -> None:
    """AddOffsetsToTxn of an old epoch is INVALID_PRODUCER_EPOCH (47), from v2 on PRODUCER_FENCED (90)."""
    producer_id, _ = await c.at_epoch(1)
    assert await c.add_offsets((producer_id, 0), v=version) == (90 if version >= 2 else 47)
