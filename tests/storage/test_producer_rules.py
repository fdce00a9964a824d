"""What a release decides about producers, each rule from both sides (broker/settings/releases/behaviours.py)."""

from typing import Any

import pytest

from protocol.errors import ErrorCode
from storage.append_errors import RecordsRejectedError
from storage.producers.rules import ProducerRules
from tests.storage.producing import Partition


def refused(partition: Partition, **batch: Any) -> ErrorCode:
    """The code that a batch is refused with; NONE if it is taken."""
    try:
        partition.check(**batch)
    except RecordsRejectedError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    "unknown", [None, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER], ids=["2.5", "1.0", "0.11"]
)
def test_an_unknown_producer_may_continue_or_may_not(unknown: ErrorCode | None) -> None:
    """It may always begin with sequence 0 (KIP-360)."""
    partition = Partition()
    partition.states.rules.unknown = unknown
    assert refused(partition, sequence=7) is (unknown or ErrorCode.NONE)
    assert refused(partition, sequence=0) is ErrorCode.NONE


@pytest.mark.parametrize("outlive", [True, False])
def test_producers_go_with_their_records_or_stay(outlive: bool) -> None:
    """KAFKA-7190: whose last batch is below the log's start is forgotten; who has a later one keeps that."""
    partition = Partition()
    partition.states.rules.outlive_records = outlive
    for pid, sequence in ((1, 0), (2, 0), (2, 1)):
        partition.produce(pid=pid, sequence=sequence)
    partition.states.records_deleted(2)
    assert set(partition.states.producers) == ({1, 2} if outlive else {2})
    assert len(partition.states.producers[2].batches) == (2 if outlive else 1)
    partition.states.rules.unknown = ErrorCode.UNKNOWN_PRODUCER_ID
    assert refused(partition, pid=1, sequence=1) is (ErrorCode.NONE if outlive else ErrorCode.UNKNOWN_PRODUCER_ID)
    assert refused(partition, pid=2, sequence=2) is ErrorCode.NONE


@pytest.mark.parametrize("zero", [True, False])
def test_a_transaction_begins_with_0_or_does_not(zero: bool) -> None:
    """Under transaction.version 2, where the producer is unknown (transactions D.4 S5, since 4.1)."""
    partition = Partition()
    partition.states.rules = ProducerRules(begins_at_zero=zero)
    guard = partition.guard(sequence=3, tv2=True)
    code = refused(partition, sequence=3, transactional=True, guard=guard)
    assert code is (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if zero else ErrorCode.NONE)


@pytest.mark.parametrize("remembered", [5, 1])
def test_how_many_batches_may_be_repeated(remembered: int) -> None:
    """Five, or the last one alone (0.11)."""
    partition = Partition()
    partition.states.rules.remembered = remembered
    for sequence in range(3):
        partition.produce(sequence=sequence)
    assert refused(partition, sequence=2) is ErrorCode.NONE
    older = ErrorCode.NONE if remembered > 1 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(partition, sequence=1) is older
