"""Markers by hand, descriptions, lists, and the way to the coordinator (transactions H.4)."""

import asyncio
from typing import Any

import pytest

from broker.handlers import list_transactions
from broker.request.node import partition_for
from protocol.apis import ApiKey
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from protocol.records.records import read_records
from tests.scenarios.on_kafka import TARGET, ours_alone
from tests.scenarios.transactions.client import APART, Client, on_cluster
from tests.scenarios.transactions.groups import G, committed
from tests.scenarios.transactions.harness import SETTINGS
from tests.scenarios.transactions.partitions import BAR, FOO, LOG, OFFSETS, logged_in
from tests.versions import every_version

TOPIC = 2


async def opened(c: Client, epoch: int = 2) -> tuple[int, int]:
    """A transaction at that epoch with two records in foo."""
    producer = await c.at_epoch(epoch)
    await c.sent(values=[b"a", b"b"], producer=producer, sequence=0, name="tx")
    return producer


@on_cluster()
async def test_MRK_01_02_03_a_marker_by_hand(c: Client) -> None:
    """78 bytes that end the transaction; a second marker is appended too; a lower epoch is refused."""
    producer = await opened(c)
    assert await c.stable() == 0
    assert await c.mark(producer) == 0
    assert await c.stable() == 3
    batch = (await c.read()).batches[-1]
    assert (batch.size, batch.attributes, batch.base_sequence, batch.last_offset) == (78, 0x30, -1, 2)
    (record,) = read_records(batch)
    assert (record.key, record.value) == (bytes.fromhex("00000001"), bytes(6))
    assert await c.mark(producer) == 0
    assert await c.markers() == [(*producer, "COMMIT")] * 2
    assert await c.mark((producer[0], 1)) == 47
    assert await c.end_of() == 4


@on_cluster()
async def test_MRK_04_coordinator_epochs_do_not_go_back(c: Client) -> None:
    """A marker of an earlier coordinator epoch is refused with TRANSACTION_COORDINATOR_FENCED (52)."""
    producer = await opened(c)
    assert await c.mark(producer, coordinator_epoch=5) == 0
    assert (await c.producers())[producer[0]].coordinator_epoch == 5
    assert [await c.mark(producer, coordinator_epoch=epoch) for epoch in (4, 5)] == [52, 0]


@on_cluster()
async def test_MRK_05_a_marker_of_an_unknown_producer(c: Client) -> None:
    """Is written, and makes the producer known."""
    assert await c.mark((4711, 0), False) == 0
    state = (await c.producers())[4711]
    assert (state.last_sequence, state.producer_epoch, state.current_txn_start_offset) == (-1, 0, -1)


@on_cluster()
async def test_MRK_06_07_the_stricter_rule(c: Client) -> None:
    """A marker of transaction version 2 is one epoch ahead, and may be repeated."""
    producer_id, epoch = await opened(c)
    assert await c.mark((producer_id, epoch), v=2, version=2) == 47
    assert await c.stable() == 0
    assert [await c.mark((producer_id, epoch + 1), v=2, version=2) for _ in range(2)] == [0, 0]
    assert await c.markers() == [(producer_id, epoch + 1, "COMMIT")] * 2


@on_cluster()
async def test_a_marker_of_no_known_version_is_refused(c: Client) -> None:
    """UNKNOWN_SERVER_ERROR for -1; 0 is what requests before v2 mean (transactions D.6 M0)."""
    producer = await opened(c)
    assert await c.mark(producer, v=2, version=-1) == -1
    assert await c.stable() == 0
    assert await c.mark(producer, v=2, version=0) == 0
    assert await c.stable() == 3


async def marked(c: Client, *markers: WritableTxnMarker) -> dict[int, dict[str, list[int]]]:
    """WriteTxnMarkers: producer id -> topic -> codes."""
    answer = await c.ask(1, ApiKey.WRITE_TXN_MARKERS, 2, WriteTxnMarkersRequest(markers))
    return {
        result.producer_id: {topic.name: [int(p.error_code) for p in topic.partitions] for topic in result.topics}
        for result in answer.markers
    }


@pytest.mark.parametrize("version", [0, -1])
@on_cluster()
async def test_markers_on_the_offsets_topic_are_its_coordinators(c: Client, version: int) -> None:
    """One without an epoch fails there alone, elsewhere with the whole request; one that is doubled is written twice.

    See transactions C.5.6, C.5.7.
    """
    await committed(c, 3)
    index = partition_for(G, int(SETTINGS["offsets.topic.num.partitions"]))
    offsets, foo = WritableTxnMarkerTopic(OFFSETS, [index]), WritableTxnMarkerTopic(FOO, [0])
    sound = WritableTxnMarker(8, 0, True, [foo], 0)
    assert await marked(c, WritableTxnMarker(7, -1, True, [offsets], 0), sound) == {7: {OFFSETS: [-1]}, 8: {FOO: [0]}}
    assert await marked(c, WritableTxnMarker(7, -1, True, [foo, offsets], 0), sound) == {
        7: {FOO: [-1], OFFSETS: [-1]},
        8: {FOO: [-1]},
    }
    assert await c.markers() == [(8, 0, "COMMIT")]
    doubled = WritableTxnMarker(9, 0, False, [WritableTxnMarkerTopic(OFFSETS, [index, index])], 0, version)
    assert await marked(c, doubled) == {9: {OFFSETS: [min(version, 0)]}}
    assert await c.markers(OFFSETS, partition=index) == ([] if version else [(9, 0, "ABORT")] * 2)


@on_cluster(brokers=2)
async def test_MRK_08_a_partition_that_is_not_here(c: Client) -> None:
    """A marker for an unknown partition or one that another broker leads gets 3."""
    elsewhere = 3 - c.leader(FOO)
    assert await c.mark((1, 0), partition=9, broker=1) == 3
    assert await c.mark((1, 0), topic="none", broker=1) == 3
    assert await c.mark((1, 0), broker=elsewhere) == 3


@on_cluster(**APART)
async def test_MRK_10_a_silent_leader_is_waited_for(c: Client) -> None:
    """Foo has its marker; bar's comes when its broker is back."""
    await c.reassign(FOO, 0, [1])
    await c.reassign(BAR, 0, [2])
    name = await c.coordinated_by(1)
    producer = await c.new(name)
    for topic in (FOO, BAR):
        await c.sent(topic, producer=producer, sequence=0, name=name)
    c.stage.pause(2)
    assert (await c.end(producer, name=name))[0] == 0
    await c.stage.pass_time(3_000)
    assert await c.parts(name) == {(BAR, 0)}
    assert (await c.state(name))[0] == "PrepareCommit"
    assert await c.markers() == [(producer[0], 1, "COMMIT")]
    await c.stage.resume(2)
    assert (await c.state(name))[0] == "CompleteCommit"
    assert (producer[0], 1, "COMMIT") in await c.markers(BAR)


@on_cluster(brokers=2)
async def test_a_leader_that_died_and_came_back_before_anybody_noticed(c: Client) -> None:
    """A real broker is fenced while it registers again, and its marker left out: the row above covers that."""
    if TARGET == "kafka":
        ours_alone("a broker that starts again is fenced while it registers")
    await c.reassign(BAR, 0, [2])
    name = await c.coordinated_by(1)
    producer = await c.new(name)
    await c.sent(BAR, producer=producer, sequence=0, name=name)
    c.stage.kill(2)
    assert (await c.end(producer, name=name))[0] == 0
    await c.stage.pass_time(3_000)
    assert (await c.state(name))[0] == "PrepareCommit"
    await c.stage.start(2)
    await c.stage.pass_time(1_000)
    assert (await c.state(name))[0] == "CompleteCommit"
    c.hang_up()
    assert await c.markers(BAR) == [(producer[0], 1, "COMMIT")]


@on_cluster(brokers=2, settings={"broker.session.timeout.ms": 9_000})
async def test_MRK_10_a_fenced_leader_is_left_out(c: Client) -> None:
    """As 4.3.1 does it: the transaction completes, and stays open in that partition (KAFKA-20734)."""
    await c.reassign(BAR, 0, [2])
    name = await c.coordinated_by(1)
    producer = await c.new(name)
    await c.sent(BAR, producer=producer, sequence=0, name=name)
    c.stage.kill(2)
    assert (await c.end(producer, name=name))[0] == 0
    await c.stage.pass_time(10_000)
    assert (await c.state(name))[0] == "CompleteCommit"
    await c.stage.start(2)
    await c.settle()
    c.hang_up()
    assert await c.markers(BAR) == []
    assert await c.stable(BAR) == 0


@on_cluster(brokers=2)
async def test_DESC_01_ids_in_three_states(c: Client) -> None:
    """Names and fields; unknown ids, the empty one, and the wrong broker."""
    producer = await c.new(timeout_ms=33_000)
    description = await c.describe()
    reported = (
        description.transaction_state,
        description.transaction_timeout_ms,
        description.transaction_start_time_ms,
        description.producer_id,
    )
    assert (*reported, description.producer_epoch, list(description.topics)) == ("Empty", 33_000, -1, *producer, [])
    await c.add(producer, {FOO: [0, 1], BAR: [0]})
    began_ms = c.stage.clock.now_ms()
    assert await c.parts() == {(FOO, 0), (FOO, 1), (BAR, 0)}
    await c.stage.pass_time(70)
    await c.finish(producer, v=4)
    description = await c.describe()
    assert (description.transaction_state, description.transaction_start_time_ms, list(description.topics)) == (
        "CompleteCommit",
        began_ms,
        [],
    )
    description = await c.describe("none")
    assert (int(description.error_code), description.transaction_state, description.producer_id) == (105, "", 0)
    assert (await c.describe("")).error_code == 42
    assert (await c.describe(broker=3 - await c.coordinator("tx"))).error_code == 16


async def listed(c: Client, v: int = 2, **filters: Any) -> tuple[int, list[str], dict[str, str]]:
    """Code, unknown states, state by id."""
    answer = await c.ask(1, ApiKey.LIST_TRANSACTIONS, v, ListTransactionsRequest(**filters))
    states = {each.transactional_id: each.transaction_state for each in answer.transaction_states}
    return int(answer.error_code), list(answer.unknown_state_filters), states


@every_version(list_transactions.API)
@on_cluster()
async def test_LIST_01_02_05_filters_are_joined(c: Client, version: int) -> None:
    """Unknown states are named; alone they ask for nothing."""
    producer = await c.new()
    await c.sent(producer=producer, sequence=0, name="tx")
    other, _ = await c.new("other")
    assert await listed(c, version) == (0, [], {"tx": "Ongoing", "other": "Empty"})
    assert await listed(c, version, state_filters=["Ongoing", "Bogus"]) == (0, ["Bogus"], {"tx": "Ongoing"})
    assert await listed(c, version, state_filters=["Bogus"]) == (0, ["Bogus"], {})
    assert await listed(c, version, producer_id_filters=[other]) == (0, [], {"other": "Empty"})
    assert await listed(c, version, producer_id_filters=[other], state_filters=["Ongoing"]) == (0, [], {})


@on_cluster()
async def test_LIST_03_durations(c: Client) -> None:
    """An id that never had a transaction passes always, a finished one by its last start."""
    for name in ("tx", "done"):
        await c.sent(FOO, producer=await c.new(name), sequence=0, name=name)
    await c.finish(((await c.state("done"))[1], 0), name="done")
    await c.new("empty")
    await c.stage.pass_time(5_000)
    assert set((await listed(c, 1, duration_filter=1_000))[2]) == {"tx", "done", "empty"}
    assert set((await listed(c, 1, duration_filter=60_000))[2]) == {"empty"}
    assert set((await listed(c, 0))[2]) == {"tx", "done", "empty"}


@on_cluster()
async def test_LIST_04_patterns(c: Client) -> None:
    """A pattern matches the whole transactional id, in RE2's syntax."""
    for name in ("tx-1", "tx-2", "pre-tx-1"):
        await c.new(name)
    assert set((await listed(c, transactional_id_pattern="tx-.*"))[2]) == {"tx-1", "tx-2"}
    assert (await listed(c, transactional_id_pattern="tx-"))[2] == {}
    assert len((await listed(c, transactional_id_pattern=""))[2]) == 3
    assert await listed(c, transactional_id_pattern="(") == (128, [], {})


@on_cluster(brokers=2)
async def test_PROD_01_a_follower_describes_producers(c: Client) -> None:
    """With the start offset of the open transaction."""
    await c.reassign(FOO, 0, [1, 2])
    await c.sent()
    producer = await c.new()
    await c.sent(producer=producer, sequence=0, name="tx")
    for broker in (1, 2):
        state = (await c.producers(broker=broker))[producer[0]]
        assert (state.current_txn_start_offset, state.last_sequence, state.producer_epoch) == (3, 2, 0)


async def coordinators(c: Client, v: int = 4, **fields: Any) -> Any:
    """FindCoordinator."""
    return await c.ask(1, ApiKey.FIND_COORDINATOR, v, FindCoordinatorRequest(**fields))


@on_cluster()
async def test_FC_01_the_first_question_makes_the_topic(c: Client) -> None:
    """15 at first; then the leader, of a compacted topic."""
    (first,) = (await coordinators(c, key_type=1, coordinator_keys=["a"])).coordinators
    assert (int(first.error_code), first.node_id, first.host, first.port) == (15, -1, "", -1)
    assert await c.coordinator("a") == 1
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, LOG, None)])
    answer = await c.ask(1, ApiKey.DESCRIBE_CONFIGS, 4, request)
    configs = {config.name: config.value for config in answer.results[0].configs}
    assert (configs["cleanup.policy"], configs["compression.type"]) == ("compact", "uncompressed")
    assert (configs["unclean.leader.election.enable"], configs["segment.bytes"]) == ("false", "104857600")


@on_cluster(brokers=2)
async def test_FC_02_many_keys_at_once(c: Client) -> None:
    """Each has the leader of its own partition."""
    await c.coordinator("a")
    answer = await coordinators(c, key_type=1, coordinator_keys=["a", "b"])
    led = {key: c.leader(LOG, logged_in(key)) for key in ("a", "b")}
    assert {each.key: each.node_id for each in answer.coordinators} == led


@on_cluster()
async def test_FC_03_odd_questions(c: Client) -> None:
    """42 for an unknown key type; "NONE" is the message of success up to v3, and "" after."""
    await c.coordinator("a")
    (odd,) = (await coordinators(c, key_type=7, coordinator_keys=["a"])).coordinators
    assert (odd.key, int(odd.error_code), odd.node_id, odd.host, odd.port) == ("a", 42, -1, "", -1)
    assert int((await coordinators(c, 3, key_type=7, key="a")).error_code) == 42
    for version in (1, 2, 3):
        answer = await coordinators(c, version, key_type=1, key="a")
        assert (int(answer.error_code), answer.error_message) == (0, "NONE")
    assert (await coordinators(c, key_type=1, coordinator_keys=["a"])).coordinators[0].error_message == ""


@on_cluster(brokers=2)
async def test_LSO_03_a_marker_that_is_not_replicated(c: Client) -> None:
    """The transaction stays unstable, and the marker's answer waits, until the follower is back."""
    await c.reassign(FOO, 0, [1, 2])
    name = await c.coordinated_by(1)
    producer = await c.new(name)
    await c.sent(producer=producer, sequence=0, name=name)
    c.stage.kill(2)
    marker = WritableTxnMarker(*producer, True, [WritableTxnMarkerTopic(FOO, [0])], 0)
    wire = await c.stage.connect(1)
    wire.send(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
    answer = asyncio.ensure_future(wire.answer())
    assert (await c.end_of(), await c.stable()) == (3, 0)
    assert not answer.done()
    await c.stage.start(2)
    await c.settle()
    assert (await answer).markers[0].topics[0].partitions[0].error_code == 0
    assert (await c.end_of(), await c.stable()) == (4, 4)
