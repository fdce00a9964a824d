"""No record enters a partition that the coordinator does not know of (transactions H.6)."""

import asyncio

import pytest

from protocol.messages.produce import PartitionProduceResponse
from tests.scenarios.transactions.client import APART, Client, on_cluster
from tests.scenarios.transactions.partitions import BAR, FOO, code


def refused(answer: PartitionProduceResponse) -> tuple[int, int, int]:
    """Code, base offset, log start."""
    return int(answer.error_code), answer.base_offset, answer.log_start_offset


@on_cluster()
async def test_VER_01_02_a_partition_that_was_not_added(c: Client) -> None:
    """120, before v11 48 with a message; nothing is written."""
    producer = await c.new()
    assert refused(await c.produce(producer=producer, sequence=0, name="tx", v=11)) == (120, -1, -1)
    for version in (9, 10):
        answer = await c.produce(producer=producer, sequence=0, name="tx", v=version)
        assert refused(answer) == (48, -1, -1)
        assert answer.error_message == "Partition was not added to the transaction"
    assert await c.end_of() == 0
    assert (await c.state())[0] == "Empty"


@on_cluster(brokers=2)
async def test_VER_03_an_open_partition_needs_no_coordinator(c: Client) -> None:
    """Later appends pass while it is down."""
    name = await c.coordinated_by(2)
    for topic, index in ((FOO, 0), (FOO, 1), (BAR, 0)):
        await c.reassign(topic, index, [1])
    producer = await c.new(name)
    await c.add(producer, {FOO: [0]}, name)
    await c.sent(producer=producer, sequence=0, name=name, v=11)
    await c.sent(BAR, producer=producer, sequence=0, name=name)
    c.stage.kill(2)
    assert await c.sent(producer=producer, sequence=3, name=name, v=11) == 3
    assert await c.sent(BAR, producer=producer, sequence=3, name=name) == 3
    answer = await c.produce(producer=producer, sequence=0, name=name, partition=1)
    assert code(answer) == 19
    assert str(answer.error_message).endswith("NETWORK_EXCEPTION")


@pytest.mark.parametrize("version", [11, 12])
@on_cluster()
async def test_VER_04_no_coordinator(c: Client, version: int) -> None:
    """If the coordinator cannot be reached for verification, the batch is NOT_ENOUGH_REPLICAS (19), with the reason."""
    answer = await c.produce(producer=await c.new(None), sequence=0, name="never", v=version)
    assert refused(answer) == (19, -1, -1)
    assert str(answer.error_message).endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")


@on_cluster(**APART)
async def test_VER_05_while_the_last_transaction_completes(c: Client) -> None:
    """Older clients are answered 19; newer ones wait for a moment, then are answered 51."""
    await c.reassign(FOO, 0, [1])
    name = await c.apart(BAR)
    producer = await c.new(name)
    await c.add(producer, {FOO: [0], BAR: [0]}, name)
    await c.sent(producer=producer, sequence=0, name=name, v=11)
    c.stage.pause(2)
    assert (await c.end(producer, name=name, v=4))[0] == 0
    await c.stage.pass_time(1_000)
    assert await c.parts(name) == {(BAR, 0)}
    answer = await c.produce(producer=producer, sequence=3, name=name, v=11)
    assert code(answer) == 19
    assert "CONCURRENT_TRANSACTIONS" in str(answer.error_message)
    c.stage.clock.thaw()
    assert code(await c.produce(producer=producer, sequence=3, name=name)) == 51


@on_cluster()
async def test_VER_06_a_zombie(c: Client) -> None:
    """47, before and after the transaction is open."""
    producer_id, _ = await c.at_epoch(1)
    assert code(await c.produce(producer=(producer_id, 0), sequence=0, name="tx")) == 47
    await c.sent(producer=(producer_id, 1), sequence=0, name="tx")
    for partition in (0, 1):
        assert code(await c.produce(producer=(producer_id, 0), sequence=3, name="tx", partition=partition)) == 47


@pytest.mark.parametrize("version", [9, 11, 12])
@on_cluster()
async def test_VER_07_a_transactional_batch_without_an_id(c: Client, version: int) -> None:
    """53 on every partition, also on those that are plain."""
    producer = await c.new()
    records = {(FOO, 0): c.batch([b"v"], producer, 0, transactional=True), (FOO, 1): c.batch([b"v"])}
    response = await c.produce_many(records, v=version)
    assert [refused(each) for each in response.responses[0].partition_responses] == [(53, -1, -1)] * 2
    assert await c.end_of(partition=1) == 0


@on_cluster()
async def test_VER_08_two_producers_in_one_request(c: Client) -> None:
    """Two producer ids in one request are INVALID_PRODUCER_ID_MAPPING (49) on all partitions."""
    one, other = await c.new(), await c.new("other")
    records = {(FOO, n): c.batch([b"v"], p, 0, transactional=True) for n, p in enumerate((one, other))}
    response = await c.produce_many(records, name="tx")
    assert [refused(each) for each in response.responses[0].partition_responses] == [(49, -1, -1)] * 2
    assert (await c.state())[0] == "Empty"


@on_cluster()
async def test_VER_09_an_unknown_id(c: Client) -> None:
    """Verification of an unknown transactional id is refused with INVALID_PRODUCER_ID_MAPPING (49)."""
    await c.new("other")
    assert refused(await c.produce(producer=(4711, 0), sequence=0, name="tx")) == (49, -1, -1)


@on_cluster()
async def test_VER_10_a_newer_transaction_begins_with_0(c: Client) -> None:
    """With transaction.version 2 a first batch with another sequence than 0 is OUT_OF_ORDER_SEQUENCE_NUMBER (45)."""
    producer = await c.new()
    assert refused(await c.produce(producer=producer, sequence=3, name="tx")) == (45, -1, 0)
    assert await c.sent(producer=producer, sequence=0, name="tx") == 0


async def unanswered(c: Client, version: int = 11) -> tuple[tuple[int, int], asyncio.Task[PartitionProduceResponse]]:
    """A producer, and its batch at a leader whose question to the coordinator is not answered: broker 2 hangs."""
    name = await c.apart(coordinator=2, leader=1)
    producer = await c.new(name)
    await c.add(producer, {FOO: [0]}, name)
    other = Client(c.stage)
    await other.sent()
    c.stage.pause(2)
    late = asyncio.create_task(other.produce(FOO, producer=producer, sequence=0, name=name, v=version))
    await c.stage.pass_time(1_000)
    await c.read()  # what is asked later is answered later: the leader has the other's request by now
    return producer, late


@pytest.mark.parametrize("overtaken", [True, False])
@on_cluster(**APART)
async def test_VER_11_a_marker_overtakes_the_append(c: Client, overtaken: bool) -> None:
    """The leader's question to a coordinator that hangs is answered well; a marker has made its answer worthless."""
    producer, late = await unanswered(c)
    if overtaken:
        assert await c.mark(producer, commit=False, broker=1) == 0
    assert not late.done()
    await c.stage.resume(2)
    assert code(await late) == (48 if overtaken else 0)


@on_cluster(**APART)
async def test_a_marker_of_the_batchs_own_epoch_leaves_a_newer_client_its_guard(c: Client) -> None:
    """It is taken for one of the transaction before, though it names no version (transactions D.5.4)."""
    producer, late = await unanswered(c, 12)
    assert await c.mark(producer, commit=False, broker=1) == 0
    assert not late.done()
    await c.stage.resume(2)
    assert code(await late) == 0


@on_cluster(brokers=2, settings={"broker.session.timeout.ms": 60_000, "request.timeout.ms": 2_000})
async def test_a_coordinator_that_hangs_for_too_long(c: Client) -> None:
    """19: the leader waits for its answer as for any broker's."""
    _, late = await unanswered(c)
    assert not late.done()
    await c.stage.pass_time(3_000)
    assert code(await late) == 19
    await c.stage.resume(2)


@on_cluster(settings={"transaction.partition.verification.enable": "false"})
async def test_VER_12_verification_switched_off(c: Client) -> None:
    """An older client writes where it likes."""
    producer = await c.new()
    assert await c.sent(producer=producer, sequence=0, name="tx", v=11) == 0
    assert await c.state() == ("Empty", *producer)


@on_cluster()
async def test_VER_13_the_partition_joins_even_if_the_batch_fails(c: Client) -> None:
    """A partition joins the transaction even if its batch is then refused, and gets its marker."""
    producer = await c.new()
    assert code(await c.produce(producer=producer, sequence=3, name="tx")) == 45
    assert await c.parts() == {(FOO, 0)}
    await c.finish(producer, False)
    assert await c.markers() == [(producer[0], 1, "ABORT")]


@on_cluster()
async def test_VER_14_a_plain_batch_inside_a_transaction(c: Client) -> None:
    """A plain batch inside a transaction gets 48, with the log's start offset."""
    producer = await c.new()
    await c.sent(producer=producer, sequence=0, name="tx")
    assert refused(await c.produce(producer=producer, sequence=3)) == (48, -1, 0)
    assert await c.sent(producer=producer, sequence=3, name="tx") == 3


@on_cluster()
async def test_VER_15_each_transaction_counts_from_0(c: Client) -> None:
    """The numbering does not go on across the bump."""
    producer = await c.new()
    await c.sent(producer=producer, sequence=0, name="tx")
    producer = await c.finish(producer)
    assert code(await c.produce(producer=producer, sequence=3, name="tx")) == 45
    await c.sent(producer=producer, sequence=0, name="tx")


@on_cluster()
async def test_a_duplicate_before_its_transaction_is_open_spoils_the_next_sequence(c: Client) -> None:
    """Its verification remembers the old sequence as the lowest one (transactions D.4)."""
    producer = await c.new()
    await c.add(producer, {FOO: [0]})
    await c.sent(producer=producer, sequence=0, name="tx", v=11)
    await c.finish(producer, v=4)
    await c.add(producer, {FOO: [0]})
    assert await c.sent(producer=producer, sequence=0, name="tx", v=11) == 0
    assert refused(await c.produce(producer=producer, sequence=3, name="tx", v=11)) == (45, -1, 0)


@on_cluster()
async def test_FEN_01_two_producers(c: Client) -> None:
    """The first one is out everywhere: 47, 90, 90."""
    first = await c.new()
    await c.sent(producer=first, sequence=0, name="tx")
    assert (await c.init())[0] == 51
    await c.settle()
    await c.new()
    assert code(await c.produce(producer=first, sequence=3, name="tx")) == 47
    assert await c.add(first, {FOO: [0]}) == {(FOO, 0): 90}
    assert (await c.end(first))[0] == 90
