"""Offsets that are committed with a transaction (transactions H.8)."""

from typing import Any

import pytest

from broker.request.node import partition_for
from protocol.apis import ApiKey
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.scenarios.transactions.client import Client, on_cluster
from tests.scenarios.transactions.groups import G, all_stored, committed, member_of, pending, stored
from tests.scenarios.transactions.partitions import FOO, OFFSETS

UNSTABLE = (88, -1, "")


@pytest.mark.parametrize("commit", [True, False])
@on_cluster()
async def test_GRP_01_02_03_pending_until_the_marker(c: Client, commit: bool) -> None:
    """The old value for who asks so, 88 for who wants to be sure; then the new one, or the old one again."""
    await committed(c, 3)
    producer = await c.new()
    assert await pending(c, producer, {0: 10}) == {0: 0}
    assert await stored(c, stable=True, v=7) == UNSTABLE
    assert await stored(c, v=7) == await stored(c, v=6) == (0, 3, "")
    assert await stored(c, partition=1, stable=True) == (0, -1, "")
    await c.finish(producer, commit)
    assert await stored(c, stable=True) == (0, 10 if commit else 3, "")


@on_cluster()
async def test_GRP_04_05_the_later_one_counts(c: Client) -> None:
    """Plain after transactional stays; plain before it is replaced."""
    producer = await c.new()
    await pending(c, producer, {0: 10, 1: 11})
    await committed(c, 7)
    assert (await stored(c), await stored(c, stable=True)) == ((0, 7, ""), UNSTABLE)
    await c.finish(producer)
    assert (await stored(c), await stored(c, partition=1)) == ((0, 7, ""), (0, 11, ""))
    producer = (await c.state())[1:]
    await pending(c, producer, {0: 12})
    await c.finish(producer)
    assert await stored(c) == (0, 12, "")


@on_cluster()
async def test_GRP_06_deleted_while_pending(c: Client) -> None:
    """The marker does not bring back an offset that was deleted while it was pending."""
    producer = await c.new()
    await pending(c, producer, {0: 10})
    topic = OffsetDeleteRequestTopic(FOO, [OffsetDeleteRequestPartition(0)])
    answer = await c.ask(await c.coordinator(G, 0), ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(G, [topic]))
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    assert await stored(c, stable=True) == (0, -1, "")
    await c.finish(producer)
    assert await stored(c, stable=True) == (0, -1, "")


@on_cluster()
async def test_GRP_07_asked_for_everything(c: Client) -> None:
    """A partition with nothing but a pending offset is not listed."""
    await committed(c, 3)
    producer = await c.new()
    await pending(c, producer, {0: 10, 1: 11})
    assert await all_stored(c, stable=False) == [(0, 3, 0)]
    assert await all_stored(c, stable=True) == [(0, -1, 88)]


@pytest.mark.parametrize("version", [3, 4, 5])
@on_cluster()
async def test_GRP_08_members_are_fenced_as_in_a_plain_commit(c: Client, version: int) -> None:
    """Generation, member and instance are checked as in OffsetCommit."""
    member, generation = await member_of(c, "i", generations=3)
    producer = await c.new()
    if version < 5:
        await c.add_offsets(producer, G)

    async def code(generation_id: int, member_id: str, instance: str | None = None) -> int:
        fields: dict[str, Any] = {"generation_id": generation_id, "member_id": member_id, "group_instance_id": instance}
        return (await pending(c, producer, {0: 10}, v=version, **fields))[0]

    assert await code(generation - 1, member) == 22
    assert await code(generation + 1, member) == 22
    assert await code(generation, "unknown") == 25
    assert await code(generation, "unknown", "i") == 82
    assert await code(generation, member, "none") == 25
    assert (await stored(c, stable=True))[0] == 0
    assert await code(generation, member, "i") == 0
    assert await stored(c, stable=True) == UNSTABLE


@on_cluster()
async def test_GRP_09_a_request_without_a_member_is_accepted(c: Client) -> None:
    """Is accepted even by a stable group."""
    await member_of(c)
    producer = await c.new()
    await c.add_offsets(producer, G)
    assert await pending(c, producer, {0: 10}, v=2) == {0: 0}
    assert await pending(c, producer, {0: 10}, v=5) == {0: 0}


@on_cluster()
async def test_GRP_10_an_unknown_group(c: Client) -> None:
    """Is created for a request without a member; any generation of it is unknown."""
    producer = await c.new()
    assert await pending(c, producer, {0: 1}, group="a") == {0: 0}
    assert await pending(c, producer, {0: 1}, group="b", generation_id=0) == {0: 22}
    answer = await c.ask(await c.coordinator("a", 0), ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(["a"]))
    assert answer.groups[0].group_state == "Empty"


@on_cluster()
async def test_GRP_11_refused_and_yet_a_part_of_the_transaction(c: Client) -> None:
    """Quirk: the offsets partition has joined before the group refuses, and gets its marker."""
    member, generation = await member_of(c)
    producer = await c.new()
    fields: dict[str, Any] = {"generation_id": generation + 5, "member_id": member}
    assert await pending(c, producer, {0: 10}, **fields) == {0: 22}
    index = partition_for(G, 4)
    assert await c.parts() == {(OFFSETS, index)}
    await c.finish(producer)
    assert await c.markers(OFFSETS, partition=index) == [(producer[0], 1, "COMMIT")]


@pytest.mark.parametrize(("version", "code"), [(4, 120), (3, 48), (2, 48), (0, 48)])
@on_cluster()
async def test_GRP_12_offsets_that_were_not_announced(c: Client, version: int, code: int) -> None:
    """TxnOffsetCommit without AddOffsetsToTxn is TRANSACTION_ABORTABLE (120), before v4 INVALID_TXN_STATE (48)."""
    assert await pending(c, await c.new(), {0: 10}, v=version) == {0: code}


@pytest.mark.parametrize("version", [3, 4, 5])
@on_cluster()
async def test_GRP_13_a_zombies_offsets(c: Client, version: int) -> None:
    """TxnOffsetCommit of an old producer epoch is INVALID_PRODUCER_EPOCH (47) in every version."""
    producer_id, _ = await c.at_epoch(1)
    assert await pending(c, (producer_id, 0), {0: 10}, v=version) == {0: 47}


@on_cluster()
async def test_GRP_14_metadata_that_is_too_long(c: Client) -> None:
    """12 for that partition, the others go on."""
    producer = await c.new()
    long = {0: "m" * 4097, 1: "n" * 4096}
    assert await pending(c, producer, {0: 1, 1: 2}, metadata=long) == {0: 12, 1: 0}
    await c.finish(producer)
    assert (await stored(c), await stored(c, partition=1)) == ((0, -1, ""), (0, 2, "n" * 4096))


@pytest.mark.parametrize("commit", [True, False])
@on_cluster()
async def test_GRP_15_pending_offsets_survive_the_coordinator(c: Client, commit: bool) -> None:
    """Pending offsets survive a coordinator, and end with their transaction."""
    await committed(c, 3)
    producer = await c.new()
    await pending(c, producer, {0: 10})
    await c.stage.restart()
    c.hang_up()
    assert (await stored(c), await stored(c, stable=True)) == ((0, 3, ""), UNSTABLE)
    await c.finish(producer, commit)
    assert await stored(c, stable=True) == (0, 10 if commit else 3, "")


@on_cluster()
async def test_GRP_16_a_group_that_is_deleted_while_pending(c: Client) -> None:
    """Pending offsets of a deleted group do not come back with the commit."""
    producer = await c.new()
    await pending(c, producer, {0: 10})
    answer = await c.ask(await c.coordinator(G, 0), ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([G]))
    assert [int(result.error_code) for result in answer.results] == [0]
    await c.finish(producer)
    assert await stored(c, stable=True) == (0, -1, "")


@on_cluster()
async def test_GRP_17_two_groups_in_one_partition(c: Client) -> None:
    """One marker ends the pending offsets of two groups in the same partition."""
    other = next(name for name in map(str, range(100)) if partition_for(name, 4) == partition_for(G, 4))
    producer = await c.new()
    assert await pending(c, producer, {0: 10}) == await pending(c, producer, {0: 11}, group=other) == {0: 0}
    assert len(await c.parts()) == 1
    await c.finish(producer)
    assert (await stored(c, stable=True), await stored(c, stable=True, group=other)) == ((0, 10, ""), (0, 11, ""))


@on_cluster()
async def test_a_transaction_over_records_and_offsets_is_one(c: Client) -> None:
    """KIP-98's consume-transform-produce: both appear, or neither."""
    producer = await c.new()
    for commit, offset in ((False, 5), (True, 6)):
        await c.sent(producer=producer, sequence=0, name="tx")
        await pending(c, producer, {0: offset})
        producer = await c.finish(producer, commit)
    assert await stored(c, stable=True) == (0, 6, "")
    fetched = await c.read(isolation=1)
    assert (fetched.aborted, fetched.stable_offset) == ([(producer[0], 0)], 8)


@on_cluster(brokers=2)
async def test_coordinators_on_different_brokers(c: Client) -> None:
    """The transaction's, the group's and the partition's leader need not be the same."""
    await c.reassign(FOO, 0, [2])
    await c.coordinator(G, 0)
    await c.reassign(OFFSETS, partition_for(G, 4), [1])
    producer = await c.new()
    await c.move("tx", 2)
    await c.sent(producer=producer, sequence=0, name="tx")
    await pending(c, producer, {0: 5})
    await c.finish(producer)
    assert await stored(c, stable=True) == (0, 5, "")
    assert await c.stable() == 4


@on_cluster()
async def test_GRP_18_a_members_epoch(c: Client) -> None:
    """Of a consumer group (KIP-848): its own, or one since which it has the partition; a stale epoch is 22 in v5."""
    for names in ([], [FOO]):
        beat = ConsumerGroupHeartbeatRequest(
            G, "m1", 1 if names else 0, rebalance_timeout_ms=9_000, subscribed_topic_names=names
        )
        answer = await c.ask(await c.coordinator(G, 0), ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, beat)
    assert answer.member_epoch == 2
    producer = await c.new()
    codes = [(await pending(c, producer, {0: 10}, generation_id=epoch, member_id="m1"))[0] for epoch in (1, 2, 3)]
    assert codes == [22, 0, 22]
    assert await pending(c, producer, {0: 10}, generation_id=2, member_id="m2") == {0: 25}
    assert await pending(c, producer, {0: 11}) == {0: 0}
