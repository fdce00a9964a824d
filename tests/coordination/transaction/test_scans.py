"""Timeouts and expiry by their scans: transactions B.7, B.8."""

import pytest

from broker.coordination.outcome import TransactionOutcome, WriteMarkers
from broker.coordination.transaction.completion import NEVER_TIMES_OUT_MS
from protocol.log_records.transaction import TransactionTombstone
from tests.coordination.transaction.harness import BAR, FOO, Bench, S

SCAN_MS = 10_000
WEEK_MS = 604_800_000
HOUR_MS = 3_600_000


def test_TMO_01_a_transaction_past_its_timeout_is_aborted_by_the_next_scan() -> None:
    """Not at its deadline, and not when the deadline is exactly the scan's instant: strictly later."""
    bench = Bench()
    bench.init(timeout_ms=SCAN_MS)
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.effects.clear()
    bench.advance(SCAN_MS)
    assert bench.state()[0] == "Ongoing"
    bench.advance(SCAN_MS - 1)
    assert bench.state()[0] == "Ongoing"
    bench.advance(1)
    assert bench.state() == ("PrepareAbort", 1000, 1)
    assert bench.effects == [WriteMarkers("tx", 1000, 1, False, frozenset({FOO}), 2)]
    bench.write_markers()
    assert bench.state() == ("CompleteAbort", 1000, 1)


def test_a_scan_leaves_alone_what_is_due_at_its_very_instant() -> None:
    """Another transaction's deadline brings the scan; this one's is now, which is not yet past."""
    bench = Bench()
    bench.init("early", timeout_ms=SCAN_MS // 2)
    bench.init("exact", timeout_ms=SCAN_MS)
    bench.add((1000, 0), FOO, name="early")
    bench.add((2000, 0), FOO, name="exact")
    bench.advance(SCAN_MS)
    assert (bench.state("early")[0], bench.state("exact")[0]) == ("PrepareAbort", "Ongoing")


def test_TMO_03_04_a_newer_producer_comes_back_by_its_abort() -> None:
    """The abort is a retry of the coordinator's; the commit is not."""
    bench = Bench()
    bench.init(timeout_ms=1000)
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.advance(SCAN_MS)
    bench.write_markers()
    assert bench.code(lambda: bench.end((1000, 0), committed=True)) == 48
    assert bench.end((1000, 0), committed=False) == (1000, 1)
    bench.add((1000, 1), FOO, client_transaction_version=2)


def test_TMO_02_an_older_producer_is_out_for_good() -> None:
    """With transaction.version 1 the fence is a fence."""
    bench = Bench(version=1)
    bench.init(timeout_ms=1000)
    bench.add((1000, 0), FOO)
    bench.advance(SCAN_MS)
    bench.write_markers()
    assert bench.state() == ("CompleteAbort", 1000, 1)
    assert bench.code(lambda: bench.add((1000, 0), FOO)) == 90
    assert bench.code(lambda: bench.end((1000, 0), client_transaction_version=0)) == 90
    assert bench.init() == (1000, 2)


def test_TMO_05_further_partitions_do_not_extend_it() -> None:
    """The start is that of the first partition."""
    bench = Bench()
    bench.init(timeout_ms=15_000)
    bench.add((1000, 0), FOO)
    bench.advance(14_000)
    bench.add((1000, 0), BAR)
    bench.advance(6_000)
    assert bench.state()[0] == "PrepareAbort"


def test_each_transaction_is_aborted_in_an_operation_of_its_own() -> None:
    """A log that refuses one does not keep the others; what was refused is tried by the next scan."""
    bench = Bench(version=1)
    for number, name in enumerate(("a", "b")):
        bench.init(name, timeout_ms=1000)
        bench.add((1000 * (number + 1), 0), FOO, name=name)
    bench.advance(9_999)
    batches: list[int] = []
    do = bench.do

    def watched(outcome: TransactionOutcome) -> None:
        batches.append(len(outcome.records))
        do(outcome)

    bench.do = watched  # type: ignore[method-assign]
    bench.advance(1)
    assert batches == [0, 1, 1]
    assert {bench.state("a")[0], bench.state("b")[0]} == {"PrepareAbort"}


def test_two_phase_transactions_never_time_out() -> None:
    """A transaction with two-phase commit stays open past any timeout (KIP-939)."""
    bench = Bench()
    bench.init(timeout_ms=NEVER_TIMES_OUT_MS)
    bench.add((1000, 0), FOO)
    assert "timeouts" not in bench.timers
    bench.advance(NEVER_TIMES_OUT_MS + SCAN_MS)
    assert bench.state()[0] == "Ongoing"


def test_ended_transactions_leave_one_timer_that_finds_nothing() -> None:
    """However many transactions there were, there is one timer, and it is not set again for nothing."""
    bench = Bench()
    bench.init()
    for epoch in range(50):
        bench.add((1000, epoch), FOO, client_transaction_version=2)
        bench.end((1000, epoch))
        bench.write_markers()
    assert set(bench.timers) == {"timeouts", "expiries"}
    written = len(bench.log)
    bench.advance(120_000)
    assert set(bench.timers) == {"expiries"}
    assert len(bench.log) == written


def test_a_shorter_timeout_brings_the_scan_forward() -> None:
    """The timer is set for the transaction that is due first."""
    bench = Bench()
    bench.init("slow", timeout_ms=900_000)
    bench.add((1000, 0), FOO, name="slow")
    bench.init("fast", timeout_ms=1_000)
    bench.add((2000, 0), FOO, name="fast")
    bench.advance(SCAN_MS)
    assert (bench.state("slow")[0], bench.state("fast")[0]) == ("Ongoing", "PrepareAbort")
    bench.advance(900_000)
    assert bench.state("slow")[0] == "PrepareAbort"


def test_the_timeout_goes_on_after_a_load() -> None:
    """It counts from the start in the record (transactions B.9.5)."""
    bench = Bench()
    bench.init(timeout_ms=30_000)
    bench.add((1000, 0), FOO)
    again = Bench(bench.log)
    again.advance(30_000)
    assert again.state()[0] == "Ongoing"
    again.advance(SCAN_MS)
    assert again.state()[0] == "PrepareAbort"


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_EXP_01_an_unused_id_is_forgotten(state: S) -> None:
    """After a week, by the hourly scan; its producer is then a stranger with a way back (transactions IPI-23)."""
    bench = Bench()
    bench.plant(state, 3)
    bench.do(bench.machine.loaded(bench.now_ms))
    bench.advance(WEEK_MS - 1)
    assert bench.written == []
    bench.advance(1)
    assert bench.written == [TransactionTombstone("tx")]
    assert bench.machine.transactions == {}
    assert bench.code(lambda: bench.add((1000, 3), FOO)) == 49
    assert bench.code(lambda: bench.end((1000, 3))) == 49
    assert bench.init(expected=(1000, 3)) == (2000, 0)


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_EXP_02_an_id_in_use_is_not_forgotten(state: S) -> None:
    """Open and prepared transactions never expire."""
    bench = Bench()
    bench.plant(state, 3)
    outcome = bench.machine.scan_expired(bench.now_ms + 2 * WEEK_MS)
    assert outcome.records == ()


def test_many_ids_expire_in_one_batch() -> None:
    """Tombstones are appended together; ids used since then stay."""
    bench = Bench()
    for name in ("c", "a", "b"):
        bench.init(name)
    bench.advance(HOUR_MS)
    bench.init("d")
    bench.advance(WEEK_MS - HOUR_MS)
    assert [type(each) for each in bench.written[-3:]] == [TransactionTombstone] * 3
    assert sorted(bench.machine.transactions) == ["d"]
    bench.advance(HOUR_MS)
    assert bench.machine.transactions == {}


def test_more_ids_than_a_batch_holds_expire_too() -> None:
    """Their tombstones need not be one batch (transactions B.8)."""
    bench = Bench()
    for number in range(10):
        bench.init(f"{number}".rjust(32_000, "x"))
    assert bench.machine.scan_expired(bench.now_ms + WEEK_MS).divisible
    bench.advance(WEEK_MS)
    assert bench.machine.transactions == {}


def test_an_operator_aborts_as_a_timeout_does() -> None:
    """Only an open transaction can be aborted; its producer is fenced."""
    bench = Bench()

    def abort() -> None:
        bench.ask(lambda to: bench.machine.abort("tx", bench.now_ms, to))

    assert bench.code(abort) == 49
    bench.init()
    assert bench.code(abort) == 48
    bench.add((1000, 0), FOO, client_transaction_version=2)
    assert bench.code(abort) == 0
    assert bench.code(abort) == 51
    assert bench.state() == ("PrepareAbort", 1000, 1)


def test_an_epoch_can_be_set() -> None:
    """Steering brings an id to the end of its epochs; what it was is forgotten."""
    bench = Bench()
    bench.init()

    def set_epoch() -> None:
        bench.ask(lambda to: bench.machine.set_epoch("tx", 32766, bench.now_ms, to))

    assert bench.code(set_epoch) == 0
    assert bench.state() == ("Empty", 1000, 32766)
    assert bench.init(expected=(1000, 32766)) == (2000, 0)
    bench.add((2000, 0), FOO)
    bench.end((2000, 0))
    assert bench.code(set_epoch) == 51
