"""Producer states: their rules (transactions D.4 S1 to S10), duplicates, expiry."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch
from storage.append_info import AppendOrigin
from storage.producers.state import Accept, Duplicate, ProducerStates
from tests.storage.producing import Partition, data_batch

LAST = 2**31 - 1
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_that_follow_are_accepted() -> None:
    """From 0, one batch after the other (transactions SEQ-01)."""
    partition = Partition()
    assert partition.produce(sequence=0, count=3) == 0
    assert partition.produce(sequence=3, count=3) == 3
    entry = partition.states.producers[1]
    assert (entry.producer_epoch, entry.last_sequence, len(entry.batches)) == (0, 5, 2)


@pytest.mark.parametrize("sequence", [0, 1, 4, 5, 7, LAST])
def test_a_gap_or_a_step_back_is_out_of_order(sequence: int) -> None:
    """After last sequence 5 only 6 will do (transactions D.4 S8, SEQ-02)."""
    partition = Partition()
    partition.produce(sequence=0, count=6)
    error = partition.refusal(sequence=sequence)
    assert (error.code, error.message, error.record_errors) == (OUT_OF_ORDER, None, ())
    assert error.reports_log_start
    assert partition.produce(sequence=6) == 6


@pytest.mark.parametrize("sequence", [0, 17, LAST])
def test_an_unknown_producer_may_begin_anywhere(sequence: int) -> None:
    """UNKNOWN_PRODUCER_ID is no more (transactions D.4 S9, SEQ-03)."""
    assert Partition().produce(sequence=sequence) == 0


def test_sequences_wrap_inside_a_batch() -> None:
    """2147483647 and 0 in one batch, then 1 (transactions SEQ-04)."""
    partition = Partition()
    partition.produce(sequence=LAST - 1)
    partition.produce(sequence=LAST, count=2)
    assert partition.refusal(sequence=0).code == OUT_OF_ORDER
    partition.produce(sequence=1)
    duplicate = partition.check(sequence=LAST, count=2)
    assert duplicate == Duplicate(1, 2, partition.time_ms)


def test_sequences_wrap_between_batches() -> None:
    """After 2147483647 comes 0, not 1 (transactions SEQ-05)."""
    partition = Partition()
    partition.produce(sequence=LAST)
    assert partition.refusal(sequence=1).code == OUT_OF_ORDER
    assert partition.produce(sequence=0) == 1


def test_a_new_epoch_begins_with_zero() -> None:
    """The producer keeps the new epoch (transactions D.4 S7, SEQ-06, SEQ-09)."""
    partition = Partition()
    partition.produce(sequence=0, count=5)
    assert partition.refusal(epoch=1, sequence=5).code == OUT_OF_ORDER
    partition.produce(epoch=1, sequence=0)
    assert partition.refusal(epoch=0, sequence=5).code == ErrorCode.INVALID_PRODUCER_EPOCH
    partition.produce(epoch=9, sequence=0)
    assert len(partition.states.producers[1].batches) == 1


def test_an_old_epoch_is_refused_with_any_sequence() -> None:
    """Also a batch that was appended once (transactions D.4 S4, SEQ-07)."""
    partition = Partition()
    partition.produce(epoch=0, sequence=0)
    partition.produce(epoch=1, sequence=0)
    for sequence in (0, 1, 5):
        error = partition.refusal(epoch=0, sequence=sequence)
        assert (error.code, error.message) == (ErrorCode.INVALID_PRODUCER_EPOCH, None)


def test_a_duplicate_is_answered_with_its_first_offset() -> None:
    """Nothing changes (transactions D.4 S1, DUP-01, DUP-04)."""
    partition = Partition(start=100)
    partition.produce(sequence=0, count=3)
    before = partition.states.producers[1].batches
    assert partition.check(sequence=0, count=3) == Duplicate(100, 102, partition.time_ms)
    assert partition.states.producers[1].batches == before


def test_five_batches_are_remembered() -> None:
    """In any order; the sixth is forgotten (transactions DUP-02, DUP-03)."""
    partition = Partition()
    for number in range(5):
        partition.produce(sequence=2 * number, count=2)
    for number in (3, 0, 4, 1, 2):
        assert partition.check(sequence=2 * number, count=2) == Duplicate(2 * number, 2 * number + 1, partition.time_ms)
    partition.produce(sequence=10)
    assert partition.refusal(sequence=0, count=2).code == OUT_OF_ORDER
    assert isinstance(partition.check(sequence=2, count=2), Duplicate)


@pytest.mark.parametrize(("sequence", "count"), [(1, 2), (0, 2), (0, 4), (2, 1)])
def test_a_partial_overlap_is_out_of_order(sequence: int, count: int) -> None:
    """Only exactly the same sequences are a duplicate (transactions DUP-05)."""
    partition = Partition()
    partition.produce(sequence=0, count=3)
    assert partition.refusal(sequence=sequence, count=count).code == OUT_OF_ORDER


def test_duplicates_are_those_of_the_same_epoch() -> None:
    """Each epoch begins its sequences at 0 again."""
    partition = Partition()
    partition.produce(epoch=0, sequence=0)
    assert isinstance(partition.check(epoch=1, sequence=0), Accept)


def test_coordinators_need_no_sequences() -> None:
    """Their batches are neither duplicates nor out of order, but epochs count (transactions D.4)."""
    partition = Partition()
    for _ in range(3):
        partition.produce(epoch=2, sequence=0, origin=AppendOrigin.COORDINATOR)
    assert partition.end == 3
    error = partition.refusal(epoch=1, sequence=0, origin=AppendOrigin.COORDINATOR)
    assert error.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_checking_changes_nothing() -> None:
    """What is not written leaves no trace (transactions D.3)."""
    states = ProducerStates()
    accepted = states.check(RecordBatch(data_batch(1, 0, 0)))
    assert isinstance(accepted, Accept)
    assert not states.producers
    assert states.apply(accepted) is None
    assert list(states.producers) == [1]


def test_refusals_have_a_reason_in_plain_english() -> None:
    """For people: producer, sequence, and the expected one; a client gets the code alone."""
    partition = Partition()
    partition.produce(sequence=0, count=6)
    error = partition.refusal(sequence=9)
    assert "producer 1 at epoch 0 sent sequence 9" in str(error)
    assert "5" in error.reason


def test_idle_producers_are_forgotten() -> None:
    """By the time of their records (transactions RET-01, RET-02)."""
    partition = Partition()
    partition.produce(sequence=0)
    partition.produce(pid=2, sequence=0, time_ms=partition.time_ms - 1)
    assert partition.states.expire(partition.time_ms + 999, 1000) == [2]
    assert partition.states.expire(partition.time_ms + 999, 1000) == []
    assert partition.states.expire(partition.time_ms + 1000, 1000) == [1]
    assert partition.produce(sequence=50) == 2


def test_a_producer_in_a_transaction_is_never_forgotten() -> None:
    """However old its records are (transactions D.7)."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, transactional=True)
    assert partition.states.expire(partition.time_ms + 10**12, 1000) == []
    partition.mark(epoch=0)
    assert partition.states.expire(partition.time_ms + 10**12, 1000) == [1]


def test_forgetting_a_producer_lets_it_begin_anywhere() -> None:
    """What KIP-360 recovers from; its open transaction goes too."""
    partition = Partition(verification=False)
    partition.produce(sequence=0, transactional=True)
    assert partition.states.first_unstable_offset == 0
    assert partition.states.forget(1)
    assert not partition.states.forget(1)
    assert partition.states.first_unstable_offset is None
    assert partition.produce(sequence=40, transactional=True) == 1


def test_replay_believes_what_the_log_holds() -> None:
    """Gaps, steps back and old epochs among it (transactions D.8)."""
    states = ProducerStates()
    for offset, (epoch, sequence) in enumerate(((0, 0), (0, 9), (3, 7), (1, 2))):
        states.replay(RecordBatch(data_batch(1, epoch, sequence, base_offset=offset)))
    assert states.replay(RecordBatch(data_batch(-1, -1, -1))) is None
    entry = states.producers[1]
    assert (entry.producer_epoch, entry.last_sequence, len(entry.batches)) == (1, 2, 1)


def test_the_entries_cannot_be_changed_from_outside() -> None:
    """The mapping of producers is read-only."""
    partition = Partition()
    partition.produce(sequence=0)
    with pytest.raises(TypeError):
        partition.states.producers[2] = partition.states.producers[1]  # type: ignore[index]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(1, 4)), max_size=40))
def test_the_log_of_a_producer_has_no_gap_and_no_double(requests: list[tuple[int, int, int]]) -> None:
    """For any requests: within an epoch the accepted sequences are contiguous, and replay finds the same state."""
    partition = Partition()
    accepted: list[tuple[int, int, int]] = []
    for epoch, sequence, count in requests:
        if partition.try_to_produce(epoch=epoch, sequence=sequence, count=count):
            accepted.append((epoch, sequence, count))
    for (epoch, sequence, count), (next_epoch, next_sequence, _) in pairwise(accepted):
        assert next_epoch >= epoch
        assert next_sequence == (sequence + count if next_epoch == epoch else 0)
    again = ProducerStates()
    for batch in partition.log:
        again.replay(RecordBatch(batch))
    assert dict(again.producers) == dict(partition.states.producers)
