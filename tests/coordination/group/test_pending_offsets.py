"""Offsets in transactions: TxnOffsetCommit, markers, RequireStable (transactions C.4.2, E.1, E.2)."""

from typing import Any

import pytest

from broker.coordination.outcome import TransactionalAppend, TransactionEnd
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import OffsetCommit
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordination.group.harness import START_MS, Client, Context, G, assembled

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


def test_a_rebalance_does_not_stop_a_transaction() -> None:
    """Its commits do not get REBALANCE_IN_PROGRESS (transactions C.4.2.5)."""
    context = Context()
    (client,) = assembled(Client(context))
    assert commit(context, {0: 5}, client.generation, client.member_id) == {0: OK}


def test_GRP_15_what_is_pending_survives_the_coordinator() -> None:
    """Pending offsets are replayed, and stay until the transaction's marker."""
    context = Context()
    context.commit("foo", {0: 5})
    commit(context, {0: 10})
    after = context.reloaded()
    assert after.offset("foo", stable=True) is UNSTABLE
    after.marker(PID, committed=True)
    assert after.offset("foo", stable=True) == 10


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
