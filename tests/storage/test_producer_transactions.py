"""Transactions on a partition: who may begin one, what markers do, what is stable (transactions D.4 to D.6, D.9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch
from storage.append_errors import RecordsRejectedError
from storage.append_info import AppendOrigin
from storage.producers.state import Accept, CompletedTransaction, Duplicate, ProducerStates
from tests.storage.producing import TIME_MS, Partition

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# --- verification ----------------------------------------------------------------------------------------------------


def test_a_transaction_begins_with_its_guard() -> None:
    """Once it is open, nothing more is verified (transactions D.4 S3, VER-03)."""
    partition = Partition()
    guard = partition.guard()
    assert guard is not None
    partition.produce(sequence=0, transactional=True, guard=guard)
    assert partition.states.has_open_transaction(1, 0)
    assert partition.guard(sequence=1) is None
    assert len(partition.states.verifications) == 0
    partition.produce(sequence=1, transactional=True)
    assert partition.states.first_unstable_offset == 0


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_without_the_current_guard_no_transaction_begins(origin: AppendOrigin) -> None:
    """INVALID_TXN_STATE without a guard, with another producer's, or with an outdated one (transactions D.4 S3)."""
    partition = Partition()
    other = Partition().guard()
    partition.guard()
    for guard in (None, other, object()):
        error = partition.refusal(sequence=0, transactional=True, guard=guard, origin=origin)
        assert (error.code, error.message) == (ErrorCode.INVALID_TXN_STATE, None)


def test_a_marker_takes_the_guard_away() -> None:
    """Written between verification and append: it fails with INVALID_TXN_STATE (transactions D.5.4, VER-11)."""
    partition = Partition()
    guard = partition.guard()
    partition.mark(commit=False)
    assert partition.refusal(sequence=0, transactional=True, guard=guard).code == ErrorCode.INVALID_TXN_STATE


def test_a_tv2_marker_leaves_the_guard_of_the_next_transaction() -> None:
    """The entry has the marker's own epoch: it belongs to what comes after (transactions D.5.4)."""
    partition = Partition()
    guard = partition.guard(epoch=1, tv2=True)
    partition.mark(epoch=1, version=2)
    partition.produce(epoch=1, sequence=0, transactional=True, guard=guard)
    older = Partition()
    guard = older.guard(epoch=0, tv2=True)
    older.mark(epoch=1, version=2)
    assert older.refusal(epoch=1, sequence=0, transactional=True, guard=guard).code == ErrorCode.INVALID_TXN_STATE


def test_the_version_of_a_marker_does_not_decide_about_the_guard() -> None:
    """The verified producer does: one of a newer client has an epoch for each transaction (transactions D.5.4)."""
    partition = Partition()
    guard = partition.guard(epoch=1, tv2=True)
    partition.mark(epoch=1, version=0)
    partition.produce(epoch=1, sequence=0, transactional=True, guard=guard)
    older = Partition()
    guard = older.guard(epoch=1)
    older.mark(epoch=1, version=2)
    assert older.refusal(epoch=1, sequence=0, transactional=True, guard=guard).code == ErrorCode.INVALID_TXN_STATE


def test_verification_can_be_switched_off() -> None:
    """transaction.partition.verification.enable=false (transactions VER-12)."""
    assert Partition(verification=False).produce(sequence=7, transactional=True) == 0


def test_requests_of_one_producer_share_a_guard() -> None:
    """The lowest sequence of the newest epoch is remembered (transactions D.5.1)."""
    partition = Partition()
    guard = partition.guard(epoch=1, sequence=5)
    entry = partition.states.verifications.get(1)
    assert entry is not None
    for epoch, sequence, expected in ((1, 3, (1, 3)), (1, 9, (1, 3)), (0, 0, (1, 3)), (2, 8, (2, 8))):
        assert partition.guard(epoch=epoch, sequence=sequence) is guard
        assert (entry.producer_epoch, entry.lowest_sequence) == expected


def test_an_old_epoch_is_refused_before_verification() -> None:
    """INVALID_PRODUCER_EPOCH at once (transactions D.5.1, VER-06)."""
    partition = Partition()
    partition.produce(epoch=2, sequence=0)
    with pytest.raises(RecordsRejectedError) as caught:
        partition.guard(epoch=1)
    assert caught.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_old_epoch_is_refused_before_a_missing_guard() -> None:
    """INVALID_PRODUCER_EPOCH, not INVALID_TXN_STATE (transactions D.4 S2, S3)."""
    partition = Partition()
    partition.produce(epoch=2, sequence=0)
    error = partition.refusal(epoch=1, sequence=0, transactional=True)
    assert error.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_verification_entries_expire() -> None:
    """producer.id.expiration.ms after they were made (transactions D.5.6)."""
    partition = Partition()
    guard = partition.guard(now_ms=1000)
    partition.states.expire(1099, 100)
    assert partition.guard(now_ms=1099) is guard
    partition.states.expire(1100, 100)
    assert partition.guard(now_ms=1100) is not guard


# --- sequences in transactions ---------------------------------------------------------------------------------------


def test_a_tv2_transaction_begins_with_sequence_zero() -> None:
    """Nothing remembered, a request that can bump epochs: only 0 (transactions D.4 S5, VER-10)."""
    partition = Partition()
    guard = partition.guard(sequence=3, tv2=True)
    assert partition.refusal(sequence=3, transactional=True, guard=guard).code == OUT_OF_ORDER
    partition.guard(sequence=0, tv2=True)
    partition.produce(sequence=0, transactional=True, guard=guard)


def test_an_older_transaction_may_begin_anywhere() -> None:
    """Under transaction.version 1 any sequence may be the first (transactions D.4 S9)."""
    partition = Partition()
    guard = partition.guard(sequence=17)
    assert partition.produce(sequence=17, transactional=True, guard=guard) == 0


def test_a_sequence_above_one_that_was_seen_is_out_of_order() -> None:
    """A request that came first has not been appended yet (transactions D.4 S6)."""
    partition = Partition()
    guard = partition.guard(sequence=10)
    partition.guard(sequence=12)
    assert partition.refusal(sequence=12, transactional=True, guard=guard).code == OUT_OF_ORDER
    partition.produce(sequence=10, count=2, transactional=True, guard=guard)
    partition.produce(sequence=12, transactional=True)


def test_a_duplicate_leaves_its_verification_entry() -> None:
    """So the right next sequence is out of order until the entry goes (consequences of transactions D.4 S1, S6)."""
    partition = Partition()
    partition.produce(sequence=0, transactional=True, guard=partition.guard())
    partition.mark()
    guard = partition.guard(sequence=0)
    assert isinstance(partition.check(sequence=0, transactional=True, guard=guard), Duplicate)
    partition.guard(sequence=1)
    assert partition.refusal(sequence=1, transactional=True, guard=guard).code == OUT_OF_ORDER


def test_a_batch_outside_the_open_transaction_is_refused() -> None:
    """INVALID_TXN_STATE, for clients and coordinators, at any epoch (transactions D.4 S10, VER-14)."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, transactional=True)
    for origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
        assert partition.refusal(sequence=1, origin=origin).code == ErrorCode.INVALID_TXN_STATE
    assert partition.refusal(epoch=1, sequence=0).code == ErrorCode.INVALID_TXN_STATE


def test_sequences_go_on_after_an_older_marker() -> None:
    """TV0/1: same epoch, the batches stay remembered."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, count=3, transactional=True)
    partition.mark(epoch=0)
    assert isinstance(partition.check(sequence=0, count=3, transactional=True), Duplicate)
    partition.produce(sequence=3, transactional=True)


def test_sequences_begin_at_0_after_a_tv2_marker() -> None:
    """Epoch + 1, nothing remembered: only 0 (transactions VER-15)."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, count=3, transactional=True)
    partition.mark(epoch=1, version=2)
    assert partition.refusal(epoch=1, sequence=3, transactional=True).code == OUT_OF_ORDER
    assert partition.refusal(epoch=0, sequence=3, transactional=True).code == ErrorCode.INVALID_PRODUCER_EPOCH
    partition.produce(epoch=1, sequence=0, transactional=True)


# --- markers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_ends_the_transaction(commit: bool) -> None:
    """And returns the entry of the transaction index (transactions D.6, D.10)."""
    partition = Partition(start=10, verification=False)
    partition.produce(sequence=0, count=2, transactional=True)
    ended = partition.mark(commit=commit, coordinator_epoch=4, time_ms=TIME_MS + 5)
    assert ended == CompletedTransaction(1, 10, 12, not commit, 13)
    entry = partition.states.producers[1]
    assert (entry.transaction_first_offset, entry.coordinator_epoch) == (None, 4)
    assert (entry.last_timestamp_ms, entry.last_sequence) == (TIME_MS + 5, 1)


def test_a_marker_without_a_transaction_leaves_an_entry() -> None:
    """Also for a producer that was never seen, and again for a repeat (transactions D.6)."""
    partition = Partition()
    assert partition.mark(epoch=3, coordinator_epoch=2) is None
    assert partition.mark(epoch=3, coordinator_epoch=2) is None
    entry = partition.states.producers[1]
    assert (entry.producer_epoch, entry.batches, entry.coordinator_epoch) == (3, (), 2)
    assert partition.end == 2


def test_older_markers_may_repeat_the_epoch() -> None:
    """TV0/1: the epoch of the data or a newer one (transactions D.6 M1)."""
    partition = Partition(verification=False)
    partition.produce(epoch=2, sequence=0, transactional=True)
    assert partition.mark_refusal(epoch=1).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.mark(epoch=2) is not None


def test_tv2_markers_are_one_epoch_ahead() -> None:
    """Unless nothing is open, or epochs are used up (transactions D.6 M2)."""
    partition = Partition(verification=False)
    partition.produce(epoch=2, sequence=0, transactional=True)
    for epoch in (1, 2):
        assert partition.mark_refusal(epoch=epoch, version=2).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.mark(epoch=3, version=2) is not None
    assert partition.mark(epoch=3, version=2) is None
    assert partition.mark_refusal(epoch=2, version=2).code == ErrorCode.INVALID_PRODUCER_EPOCH
    exhausted = Partition(verification=False)
    exhausted.produce(epoch=32_767, sequence=0, transactional=True)
    assert exhausted.mark(epoch=32_767, version=2) is not None


def test_a_marker_has_a_version() -> None:
    """UNKNOWN_SERVER_ERROR for -1, TV_UNKNOWN, unless the epoch is behind anyway (transactions D.6 M0, M1)."""
    partition = Partition(verification=False)
    partition.produce(epoch=2, sequence=0, transactional=True)
    assert partition.mark_refusal(epoch=1, version=-1).code == ErrorCode.INVALID_PRODUCER_EPOCH
    for epoch in (2, 3):
        assert partition.mark_refusal(epoch=epoch, version=-1).code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert partition.states.has_open_transaction(1, 2)


def test_an_old_coordinator_is_fenced() -> None:
    """TRANSACTION_COORDINATOR_FENCED, after the producer's epoch was looked at (transactions D.6 M3)."""
    partition = Partition()
    partition.mark(epoch=1, coordinator_epoch=5)
    assert partition.mark_refusal(epoch=1, coordinator_epoch=4).code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert partition.mark_refusal(epoch=0, coordinator_epoch=4).code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.mark(epoch=1, coordinator_epoch=5) is None


def test_a_control_batch_that_is_no_marker_changes_nothing() -> None:
    """Left empty by the cleaner, or of another kind (transactions D.6, D.14)."""
    states = ProducerStates()
    for records in ([], [Record(0, 0, b"\0\0\0\2", b"")]):
        batch = build_batch(records, producer_id=1, producer_epoch=0, control=True, transactional=True)
        assert states.replay(RecordBatch(batch)) is None
        decision = states.check(RecordBatch(batch), origin=AppendOrigin.COORDINATOR)
        assert isinstance(decision, Accept)
        assert states.apply(decision) is None
    assert not states.producers


# --- what is stable --------------------------------------------------------------------------------------------------


def test_the_earliest_open_transaction_is_unstable() -> None:
    """Of two the later one, when the first has ended and is replicated (transactions LSO-01, LSO-02)."""
    partition = Partition(start=3, verification=False)
    partition.produce(pid=1, sequence=0, count=2, transactional=True)
    partition.produce(pid=2, sequence=0, count=2, transactional=True)
    assert partition.states.first_unstable_offset == 3
    ended = partition.mark(pid=1)
    assert ended is not None
    assert ended.last_stable_offset == 5
    partition.states.high_watermark_advanced(partition.end)
    assert partition.states.first_unstable_offset == 5


def test_a_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    """The high watermark must pass the marker (transactions LSO-03, D.9)."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, count=2, transactional=True)
    partition.mark()
    for high_watermark in (0, 2):
        partition.states.high_watermark_advanced(high_watermark)
        assert partition.states.first_unstable_offset == 0
    partition.states.high_watermark_advanced(3)
    assert partition.states.first_unstable_offset is None


def test_unreplicated_and_open_transactions_both_count() -> None:
    """The first unstable offset is the earlier of the two."""
    partition = Partition(verification=False)
    partition.produce(pid=1, sequence=0, transactional=True)
    partition.produce(pid=2, sequence=0, transactional=True)
    partition.mark(pid=2)
    assert partition.states.first_unstable_offset == 0
    partition.mark(pid=1)
    partition.states.high_watermark_advanced(3)
    assert partition.states.first_unstable_offset == 0
    partition.produce(pid=3, sequence=0, transactional=True)
    partition.states.high_watermark_advanced(4)
    assert partition.states.first_unstable_offset == 4


@given(
    st.lists(st.tuples(st.sampled_from(["data", "commit", "abort"]), st.integers(1, 4)), max_size=40),
    st.integers(0, 40),
)
def test_replay_finds_what_the_leader_knew(steps: list[tuple[str, int]], cut: int) -> None:
    """The same open transactions, the same ended ones, from any prefix of the log (transactions D.8)."""
    partition = Partition(verification=False)
    ended: list[CompletedTransaction | None] = []
    next_sequence = dict.fromkeys(range(1, 5), 0)
    for step, pid in steps[:cut]:
        if step == "data":
            partition.produce(pid=pid, sequence=next_sequence[pid], transactional=True)
            next_sequence[pid] += 1
            ended.append(None)
        else:
            ended.append(partition.mark(pid=pid, commit=step == "commit"))
    again = ProducerStates()
    assert [again.replay(RecordBatch(batch)) for batch in partition.log] == ended
    assert dict(again.producers) == dict(partition.states.producers)
    assert again.first_unstable_offset == partition.states.first_unstable_offset
    again.high_watermark_advanced(partition.end)
    first = [entry.transaction_first_offset for entry in again.producers.values()]
    assert again.first_unstable_offset == min((offset for offset in first if offset is not None), default=None)
