"""Sequences, duplicates, and how long producers are remembered (transactions H.5)."""

import pytest

from protocol.apis import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.scenarios.transactions.client import Client, on_cluster
from tests.scenarios.transactions.harness import Hung
from tests.scenarios.transactions.partitions import FOO, code

MAX = 2**31 - 1
THREE = [b"a", b"b", b"c"]


async def outcome(c: Client, producer: tuple[int, int], sequence: int, count: int = 3) -> int:
    """The base offset, or the negative error code."""
    answer = await c.produce(values=[b"v"] * count, producer=producer, sequence=sequence)
    return -int(answer.error_code) if answer.error_code else answer.base_offset


@on_cluster()
async def test_SEQ_01_in_order(c: Client) -> None:
    """Batches in sequence get contiguous offsets."""
    p = await c.new(None)
    assert [await outcome(c, p, 0), await outcome(c, p, 3)] == [0, 3]


@on_cluster()
async def test_SEQ_02_a_gap(c: Client) -> None:
    """45, without an offset, with the log's start."""
    p = await c.new(None)
    await c.sent(producer=p, sequence=0)
    answer = await c.produce(producer=p, sequence=5)
    assert (code(answer), answer.base_offset, answer.log_start_offset) == (45, -1, 0)


@on_cluster()
async def test_SEQ_03_a_stranger_may_begin_anywhere(c: Client) -> None:
    """An unknown producer may begin at any sequence: UNKNOWN_PRODUCER_ID is history."""
    assert await outcome(c, await c.new(None), 17) == 0


@on_cluster()
async def test_SEQ_04_05_sequences_wrap(c: Client) -> None:
    """Sequences wrap to 0 inside a batch and between two."""
    p, q = await c.new(None), await c.new(None)
    assert await outcome(c, p, MAX - 1, 1) == 0
    assert await outcome(c, p, MAX, 2) == 1
    assert [await outcome(c, p, 2, 1), await outcome(c, p, 1, 1)] == [-45, 3]
    assert await outcome(c, q, MAX, 1) == 4
    assert [await outcome(c, q, 1, 1), await outcome(c, q, 0, 1)] == [-45, 5]


@on_cluster()
async def test_SEQ_06_07_epochs(c: Client) -> None:
    """A new one starts at 0, an old one is out."""
    p, _ = await c.new(None)
    assert await outcome(c, (p, 0), 0) == 0
    assert [await outcome(c, (p, 1), 5), await outcome(c, (p, 1), 0)] == [-45, 3]
    assert [await outcome(c, (p, 0), s) for s in (0, 3)] == [-47, -47]


@on_cluster()
async def test_SEQ_08_a_producer_without_a_sequence(c: Client) -> None:
    """A batch with a producer id and sequence -1 is refused with INVALID_RECORD (87)."""
    assert await outcome(c, await c.new(None), -1) == -87


@on_cluster()
async def test_SEQ_09_a_higher_epoch_that_was_never_assigned_is_accepted(c: Client) -> None:
    """Idempotent clients raise their epoch by themselves."""
    p, _ = await c.new(None)
    assert [await outcome(c, (p, 0), 0), await outcome(c, (p, 9), 0)] == [0, 3]


@on_cluster()
async def test_DUP_01_a_duplicate(c: Client) -> None:
    """A repeated batch is answered as the first time, and not appended."""
    p = await c.new(None)
    assert [await outcome(c, p, 0), await outcome(c, p, 0)] == [0, 0]
    assert await c.end_of() == 3


@on_cluster()
async def test_DUP_02_03_five_are_remembered(c: Client) -> None:
    """In any order; the sixth last is out of order."""
    p = await c.new(None)
    assert [await outcome(c, p, 3 * n) for n in range(6)] == [0, 3, 6, 9, 12, 15]
    assert [await outcome(c, p, 3 * n) for n in (2, 5, 1, 4, 3)] == [6, 15, 3, 12, 9]
    assert await outcome(c, p, 0) == -45


@on_cluster()
async def test_DUP_04_a_duplicates_time(c: Client) -> None:
    """That of the stored batch, on any topic."""
    p = await c.new(None)
    first = await c.produce(producer=p, sequence=0, at_ms=1_700_000_000_123)
    assert first.log_append_time_ms == -1
    again = await c.produce(producer=p, sequence=0, at_ms=1_700_000_000_123)
    assert (again.base_offset, again.log_append_time_ms) == (0, 1_700_000_000_123)


@on_cluster()
async def test_DUP_05_half_a_duplicate(c: Client) -> None:
    """A batch that overlaps an appended one at either end is OUT_OF_ORDER_SEQUENCE_NUMBER (45)."""
    p = await c.new(None)
    await c.sent(producer=p, sequence=0)
    assert [await outcome(c, p, 1, 2), await outcome(c, p, 0, 2)] == [-45, -45]


@on_cluster()
async def test_DUP_06_after_a_restart_one_is_remembered(c: Client) -> None:
    """The snapshot keeps the last batch of each producer."""
    p = await c.new(None)
    assert [await outcome(c, p, 0), await outcome(c, p, 3)] == [0, 3]
    await c.stage.restart(clean=True)
    c.hang_up()
    assert [await outcome(c, p, 3), await outcome(c, p, 0), await outcome(c, p, 6)] == [3, -45, 6]


@on_cluster(settings={"producer.id.expiration.ms": 3_000, "producer.id.expiration.check.interval.ms": 1_000})
async def test_RET_01_a_producer_is_forgotten(c: Client) -> None:
    """A forgotten producer may begin at any sequence again."""
    p = await c.new(None)
    await c.sent(producer=p, sequence=0)
    assert await outcome(c, p, 50) == -45
    await c.stage.pass_time(6_000)
    assert p[0] not in await c.producers()
    assert await outcome(c, p, 50) == 3


@on_cluster(settings={"producer.id.expiration.check.interval.ms": 1_000})
async def test_RET_02_old_timestamps_are_forgotten_early(c: Client) -> None:
    """A producer is forgotten by the time of its records, not by that of their arrival."""
    p = await c.new(None)
    old_ms = c.stage.clock.now_ms() - 86_400_000
    await c.sent(producer=p, sequence=0, at_ms=old_ms)
    await c.stage.pass_time(3_000)
    assert await outcome(c, p, 50) == 3


@on_cluster()
async def test_RET_03_deleted_records_forget_nothing(c: Client) -> None:
    """KIP-360: the state outlives the data."""
    p = await c.new(None)
    await c.sent(producer=p, sequence=0)
    topic = DeleteRecordsTopic(FOO, [DeleteRecordsPartition(0, 3)])
    answer = await c.ask(1, ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest([topic], 5_000))
    assert answer.topics[0].partitions[0].low_watermark == 3
    assert [await outcome(c, p, 9), await outcome(c, p, 3)] == [-45, 3]


@on_cluster()
async def test_SHAPE_01_what_is_no_batch_of_a_client(c: Client) -> None:
    """Two at once, an offset of its own, a control batch, a broken checksum."""
    one = c.batch(THREE)
    assert code(await c.produce(records=one + c.batch(THREE))) == 87
    moved = build_batch([Record(5, 1, None, b"v")], base_offset=5)
    assert code(await c.produce(records=moved)) == 87
    control = build_batch([Record(0, 1, b"\0\0\0\1", b"v")], control=True, transactional=False)
    assert code(await c.produce(records=control)) == 87
    one[-1] ^= 1
    assert code(await c.produce(records=one)) == 2


@on_cluster()
async def test_SHAPE_02_a_compacted_topic_needs_keys(c: Client) -> None:
    """A record without a key gets 87 in a compacted topic, and is named."""
    topic = CreatableTopic("keyed", 1, 1, configs=[CreatableTopicConfig("cleanup.policy", "compact")])
    await c.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 5_000))
    answer = await c.produce("keyed", [(b"k", b"v"), (None, b"v"), (b"k", b"v")])
    assert (code(answer), [each.batch_index for each in answer.record_errors]) == (87, [1])
    assert answer.error_message is not None


@on_cluster()
async def test_ACK_01_an_error_without_a_response_closes_the_connection(c: Client) -> None:
    """With acks 0 there is no response."""
    p = await c.new(None)
    await c.sent(producer=p, sequence=0)
    wire = await c.stage.connect()
    data = PartitionProduceData(0, c.batch(THREE, p, 9))
    request = ProduceRequest(None, 0, 5_000, [TopicProduceData(FOO, [data])])
    wire.send(ApiKey.PRODUCE, 9, request)
    with pytest.raises(Hung):
        await wire.answer()


@on_cluster(brokers=2)
async def test_ACK_02_the_wrong_broker_names_the_right_one(c: Client) -> None:
    """Produce to a follower names the leader and its address from v10 on."""
    leader = c.leader(FOO)
    response = await c.produce_many({(FOO, 0): c.batch(THREE)}, v=10, broker=3 - leader)
    answer = response.responses[0].partition_responses[0]
    assert (code(answer), answer.base_offset, answer.current_leader.leader_id) == (6, -1, leader)
    host, port = c.stage.bootstrap[leader - 1]
    assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(leader, host, port)]
