"""By the results of WriteTxnMarkers a transaction completes, retries or stays prepared (transactions B.6)."""

import pytest

from broker.coordination.outcome import WriteMarkers
from broker.coordination.transaction.listing import describe
from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from protocol.errors import ErrorCode
from tests.coordination.transaction.harness import BAR, FOO, Bench

P1 = ProducerIdAndEpoch(1000, 1)
WRITTEN = [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT]
RETRIED = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
]
FENCED = [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
STUCK = [
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def prepared(*partitions: tuple[str, int]) -> Bench:
    """A commit that waits for its markers."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), *partitions, client_transaction_version=2)
    bench.end((1000, 0))
    return bench


def report(bench: Bench, results: dict[tuple[str, int], ErrorCode], producer: ProducerIdAndEpoch = P1) -> None:
    """Report the results of WriteTxnMarkers, by partition."""
    bench.effects.clear()
    bench.do(bench.machine.markers_written("tx", producer, results, bench.now_ms))


@pytest.mark.parametrize("result", WRITTEN)
def test_a_partition_that_has_its_marker_or_can_have_none_is_complete(result: ErrorCode) -> None:
    """A partition that has its marker, or can have none, lets the transaction complete."""
    bench = prepared(FOO)
    report(bench, {FOO: result})
    assert bench.state() == ("CompleteCommit", 1000, 1)


@pytest.mark.parametrize("result", RETRIED)
def test_a_marker_that_was_not_written_is_sent_again(result: ErrorCode) -> None:
    """Only that one; partitions with a marker have left the transaction, as DescribeTransactions shows."""
    bench = prepared(FOO, BAR)
    report(bench, {FOO: ErrorCode.NONE, BAR: result})
    assert bench.state()[0] == "PrepareCommit"
    assert describe(bench.machine, "tx")[1] == {BAR}
    assert bench.effects == []
    bench.advance(20)
    assert bench.effects == [WriteMarkers("tx", 1000, 1, True, frozenset({BAR}), 2)]
    bench.write_markers()
    assert bench.state()[0] == "CompleteCommit"


def test_retries_come_less_often() -> None:
    """20 ms, then twice as long each time, up to half a second."""
    bench = prepared(FOO)
    waits = []
    for _ in range(8):
        report(bench, {FOO: ErrorCode.NETWORK_EXCEPTION})
        waits.append(bench.timers["markers", "tx"].at_ms - bench.now_ms)
        bench.advance(waits[-1])
    assert waits == [20, 40, 80, 160, 320, 500, 500, 500]


def test_results_that_come_singly_share_one_retry() -> None:
    """Two partitions fail one after the other; both go out again together."""
    bench = prepared(FOO, BAR)
    report(bench, {FOO: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    report(bench, {BAR: ErrorCode.REQUEST_TIMED_OUT})
    bench.advance(20)
    assert bench.effects == [WriteMarkers("tx", 1000, 1, True, frozenset({FOO, BAR}), 2)]
    assert bench.timers.keys() <= {"timeouts", "expiries"}


@pytest.mark.parametrize("result", [*FENCED, *STUCK])
def test_a_transaction_that_cannot_complete_stays_prepared(result: ErrorCode) -> None:
    """Fenced, or refused in a way that Kafka does not expect: prepared until the next load, which sends all again."""
    bench = prepared(FOO, BAR)
    report(bench, {FOO: ErrorCode.NONE, BAR: result})
    bench.advance(3_000)
    assert bench.state()[0] == "PrepareCommit"
    assert bench.effects == []
    assert bench.code(lambda: bench.end((1000, 0))) == 51
    again = Bench(bench.log)
    assert again.effects == [WriteMarkers("tx", 1000, 1, True, frozenset({FOO, BAR}), 2)]


def test_after_a_fencing_error_no_marker_is_sent() -> None:
    """Neither a retry that was scheduled before; and late results change nothing."""
    bench = prepared(FOO, BAR)
    report(bench, {FOO: ErrorCode.NETWORK_EXCEPTION})
    report(bench, {BAR: ErrorCode.TRANSACTION_COORDINATOR_FENCED})
    bench.advance(1_000)
    report(bench, {FOO: ErrorCode.NONE, BAR: ErrorCode.NONE})
    assert bench.effects == []
    assert bench.state()[0] == "PrepareCommit"


@pytest.mark.parametrize("fenced_first", [True, False])
def test_a_fenced_transaction_lists_only_the_partitions_without_a_marker(fenced_first: bool) -> None:
    """Markers that were written count, whether others failed or not (TransactionMarkerRequestCompletionHandler)."""
    bench = prepared(FOO, BAR)
    results = {BAR: ErrorCode.INVALID_PRODUCER_EPOCH, FOO: ErrorCode.NONE}
    report(bench, results if fenced_first else dict(reversed(results.items())))
    assert describe(bench.machine, "tx")[1] == {BAR}
    bench = prepared(FOO, BAR)
    report(bench, {BAR: ErrorCode.INVALID_PRODUCER_EPOCH})
    report(bench, {FOO: ErrorCode.NONE})
    assert describe(bench.machine, "tx")[1] == {BAR}
    assert bench.state()[0] == "PrepareCommit"


def test_results_of_an_earlier_transaction_are_ignored() -> None:
    """Late results do not complete the transaction that follows."""
    bench = prepared(FOO)
    report(bench, {FOO: ErrorCode.NONE}, ProducerIdAndEpoch(1000, 0))
    assert bench.state()[0] == "PrepareCommit"
    report(bench, {FOO: ErrorCode.NONE})
    written = len(bench.log)
    report(bench, {FOO: ErrorCode.NONE})
    assert len(bench.log) == written


def test_a_transaction_can_be_held_before_it_is_complete() -> None:
    """All markers are written, and no Complete record is, until their results are reported again."""
    bench = prepared(FOO)
    bench.do(bench.machine.markers_written("tx", P1, {FOO: ErrorCode.NONE}, bench.now_ms, completes=False))
    assert bench.state()[0] == "PrepareCommit"
    assert describe(bench.machine, "tx")[1] == frozenset()
    assert bench.code(bench.init) == 51
    report(bench, {})
    assert bench.state()[0] == "CompleteCommit"


def test_without_kip_890_a_prepared_transaction_of_it_stays_prepared_until_the_next_load() -> None:
    """Version 0 of the record has no client version, so that Kafka cannot write it, and does not try again."""
    bench = prepared(FOO)
    bench.version = 0
    report(bench, {FOO: ErrorCode.NONE})
    assert bench.state() == ("PrepareCommit", 1000, 1)
    (change,) = bench.changes
    assert (change.name, change.reason.kind, change.state_after) == ("tx", "cannot be completed", "PrepareCommit")
    bench.advance(3_000)
    assert bench.effects == []

    again = Bench(bench.log)
    again.write_markers()
    assert again.state() == ("CompleteCommit", 1000, 1)
