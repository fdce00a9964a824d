"""Offsets in transactions: TxnOffsetCommit, markers, RequireStable (transactions C.4.2, E.1, E.2)."""

from typing import Any

import pytest

from broker.coordination.outcome import TransactionalAppend, TransactionEnd
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import GroupMetadataTombstone, OffsetCommit, OffsetCommitTombstone
from protocol.messages.offset_fetch import OffsetFetchRequestGroup
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordination.group.harness import START_MS, Client, Context, G, assembled, stable

PID, EPOCH = 1000, 2
OK, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT


def commit(
    context: Context, offsets: dict[int, int], generation: int = -1, member_id: str = "", **more: Any
) -> dict[int, ErrorCode] | ErrorCode:
    """TxnOffsetCommit for topic foo: codes by partition, or the code of the whole request."""
    metadata = more.get("metadata", {})
    partitions = [TxnOffsetCommitRequestPartition(p, o, metadata.get(p, "")) for p, o in offsets.items()]
    request = TxnOffsetCommitRequest(
        "txn",
        more.get("group_id", G),
        more.get("producer_id", PID),
        EPOCH,
        [TxnOffsetCommitRequestTopic("foo", partitions)],
        generation,
        member_id,
        more.get("instance_id"),
    )
    answer = context.ask(lambda to: context.machine.commit_pending_offsets(request, context.now_ms, to)).message
    if isinstance(answer, KafkaError):
        return answer.code
    return {p.partition_index: p.error_code for p in answer.topics[0].partitions}


def test_a_pending_offset_belongs_to_the_producers_transaction() -> None:
    """One transactional batch of ordinary records, without a topic id."""
    context = Context()
    assert commit(context, {0: 5}) == {0: OK}
    assert context.last.transactional == TransactionalAppend(PID, EPOCH, "txn")
    assert context.records == [OffsetCommit(G, "foo", 0, 5, commit_timestamp_ms=START_MS)]


def test_GRP_01_pending_offsets_are_unstable() -> None:
    """UNSTABLE_OFFSET_COMMIT for requests of stable offsets; others get the old value."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    assert context.offset("foo", stable=True) is UNSTABLE
    assert context.offset("foo") == 5


@pytest.mark.parametrize(("committed", "offset"), [(True, 10), (False, 5)])
def test_GRP_02_GRP_03_a_marker_decides(committed: bool, offset: int) -> None:
    """COMMIT makes the pending offset the committed one, ABORT drops it."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    context.marker(PID, committed=committed)
    assert context.offset("foo", stable=True) == offset
    context.marker(PID, committed=True)
    assert context.offset("foo") == offset


def test_GRP_04_a_later_plain_commit_wins() -> None:
    """Log order decides when the marker comes."""
    context = Context()
    commit(context, {0: 10})
    context.commit("foo", {0: 7})
    context.marker(PID, committed=True)
    assert context.offset("foo") == 7


def test_GRP_05_an_earlier_plain_commit_loses() -> None:
    """The transactional one is later in the log."""
    context = Context()
    context.commit("foo", {0: 7})
    commit(context, {0: 9})
    commit(context, {0: 10})
    context.marker(PID, committed=True)
    assert context.offset("foo") == 10


def test_GRP_06_deleted_offsets_are_not_pending_any_more() -> None:
    """A tombstone for what is committed and for each that is pending; the markers then change nothing."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    commit(context, {0: 11, 1: 12}, producer_id=PID + 1)
    outcome = context.machine.topic_deleted("foo", None, context.now_ms)
    assert outcome.records == tuple(OffsetCommitTombstone(G, "foo", index) for index in (0, 0, 0, 1))
    context.perform(outcome)
    context.marker(PID, committed=True)
    context.marker(PID + 1, committed=True)
    assert context.offset("foo", stable=True) == context.offset("foo", 1, stable=True) == -1


def test_GRP_07_all_topics_leaves_out_what_is_only_pending() -> None:
    """What is committed and pending is listed as unstable."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10, 1: 11})
    (topic,) = context.machine.fetch_offsets(OffsetFetchRequestGroup(G, None), require_stable=True).topics
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.error_code) == (0, UNSTABLE)
    assert (partition.committed_offset, partition.committed_leader_epoch, partition.metadata) == (-1, -1, "")


def test_GRP_08_a_member_is_fenced() -> None:
    """Another generation, an unknown member, and another member's instance have an error each."""
    context = Context()
    member, _ = stable(Client(context), Client(context, instance_id="i1"))
    generation, member_id = member.generation, member.member_id
    assert commit(context, {0: 5}, generation - 1, member_id) is ErrorCode.ILLEGAL_GENERATION
    assert commit(context, {0: 5}, generation, "zz") is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(context, {0: 5}, generation, member_id, instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert commit(context, {0: 5}, generation, member_id) == {0: OK}


def test_GRP_09_no_member_data_is_no_fence() -> None:
    """Versions 0 to 2 have none: accepted though the group is Stable; sessions are not kept by it."""
    context = Context()
    (client,) = stable(Client(context))
    context.advance(4000)
    assert commit(context, {0: 5}) == {0: OK}
    assert context.due_in("member", G, client.member_id) == 6000


def test_a_rebalance_does_not_stop_a_transaction() -> None:
    """Its commits do not get REBALANCE_IN_PROGRESS (transactions C.4.2.5)."""
    context = Context()
    (client,) = assembled(Client(context))
    assert commit(context, {0: 5}, client.generation, client.member_id) == {0: OK}


def test_GRP_10_an_absent_group_is_made_for_no_generation() -> None:
    """-1 makes a simple group, 0 is another generation than none."""
    context = Context()
    assert commit(context, {0: 5}, 0) is ErrorCode.ILLEGAL_GENERATION
    assert not context.machine.groups
    assert commit(context, {0: 5}) == {0: OK}
    assert context.group().is_empty


def test_GRP_14_metadata_has_a_limit() -> None:
    """OFFSET_METADATA_TOO_LARGE for that partition only."""
    context = Context()
    codes = commit(context, {0: 5, 1: 6}, metadata={0: "x" * 4097})
    assert codes == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE, 1: OK}
    assert len(context.records) == 1


def test_GRP_15_what_is_pending_survives_the_coordinator() -> None:
    """Pending offsets are replayed, and stay until the transaction's marker."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    after = context.reloaded()
    assert after.offset("foo", stable=True) is UNSTABLE
    after.marker(PID, committed=True)
    assert after.offset("foo", stable=True) == 10


def test_GRP_16_a_deleted_group_gets_nothing_back() -> None:
    """Open transactions do not keep an Empty group; the marker comes to nothing."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10, 1: 11})
    context.ask(lambda to: context.machine.delete_groups([G], context.now_ms, to))
    assert context.records[-3:] == [
        OffsetCommitTombstone(G, "foo", 0),
        OffsetCommitTombstone(G, "foo", 1),
        GroupMetadataTombstone(G),
    ]
    context.marker(PID, committed=True)
    assert context.offset("foo") == context.offset("foo", 1) == -1
    assert not context.machine.groups


def test_GRP_17_one_marker_decides_for_all_groups() -> None:
    """Two groups of one shard in one transaction."""
    context = Context()
    commit(context, {0: 5})
    commit(context, {0: 6}, group_id="h")
    context.marker(PID, committed=True)
    assert (context.offset("foo"), context.offset("foo", group_id="h")) == (5, 6)


def test_a_transaction_that_the_log_refuses_is_refused() -> None:
    """A stale producer epoch: the caller gets the log's error, and nothing is pending."""
    context = Context(refuse_append=ErrorCode.INVALID_PRODUCER_EPOCH)
    assert commit(context, {0: 5}) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert context.offset("foo", stable=True) == -1


def test_what_is_pending_and_not_replicated_is_stable() -> None:
    """Its transaction may be forgotten by the next coordinator; once replicated, it is unstable until its marker is."""
    context = Context()
    context.commit("foo", {0: 5})
    context.followers_lag = True
    commit(context, {0: 10})
    assert context.offset("foo", stable=True) == 5
    context.machine.replicated(())
    assert context.offset("foo", stable=True) is UNSTABLE


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_that_is_not_replicated_decides_nothing(committed: bool) -> None:
    """Unstable, or the offset before for those that do not ask for stable ones."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    context.machine.replicating((TransactionEnd(PID, committed),), None)
    context.marker(PID, committed=committed)
    assert (context.offset("foo", stable=True), context.offset("foo")) == (UNSTABLE, 5)
    context.machine.replicated(())
    assert context.offset("foo", stable=True) == (10 if committed else 5)


def test_a_whole_transaction_that_is_not_replicated_is_not_seen() -> None:
    """Neither its pending offset nor its end; each appears with its own replication."""
    context = Context()
    context.commit("foo", {0: 5})
    context.followers_lag = True
    commit(context, {0: 10})
    context.machine.replicating((TransactionEnd(PID, committed=True),), None)
    context.marker(PID, committed=True)
    assert context.offset("foo", stable=True) == 5
    context.machine.replicated(())
    assert context.offset("foo", stable=True) is UNSTABLE
    context.machine.replicated(())
    assert context.offset("foo", stable=True) == 10


def test_a_pending_offset_whose_deletion_is_not_replicated_is_unstable() -> None:
    """The next coordinator may not know that it is gone."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    context.followers_lag = True
    context.perform(context.machine.topic_deleted("foo", None, context.now_ms))
    assert (context.offset("foo", stable=True), context.offset("foo")) == (UNSTABLE, 5)
    context.machine.replicated(())
    assert context.offset("foo", stable=True) == -1
