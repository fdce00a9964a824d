"""When the log refuses a transition: transactions B.4, A.3.5, A.5."""

import pytest

from protocol.errors import ErrorCode
from tests.coordination.transaction.harness import FOO, Bench

MAPPED = {3: 15, 19: 15, 20: 15, 7: 15, 6: 16, 56: 16, 10: -1, 18: -1, 2: 2}


@pytest.mark.parametrize(("refused", "answered"), MAPPED.items())
def test_an_error_of_the_log_is_answered_as_the_coordinators_error(refused: int, answered: int) -> None:
    """For each request that writes; afterwards everything is as it was, and a retry works (transactions B.4)."""
    bench = Bench()
    bench.init()
    for operation in (
        lambda: bench.init(expected=(1000, 0)),
        lambda: bench.add((1000, 1), FOO, client_transaction_version=2),
        lambda: bench.end((1000, 1)),
    ):
        before, state = len(bench.log), bench.state()
        bench.refuse_append = ErrorCode(refused)
        assert bench.code(operation) == answered
        assert (len(bench.log), bench.state()) == (before, state)
        bench.refuse_append = None
        assert bench.code(operation) == 0
    bench.write_markers()
    assert bench.state() == ("CompleteCommit", 1000, 2)


def test_a_new_id_keeps_its_producer_id_over_a_refused_append() -> None:
    """It stays in memory without an epoch, and any producer may have it then."""
    for expected in ((-1, -1), (4711, 9)):
        bench = Bench()
        bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
        assert bench.code(bench.init) == 15
        assert bench.state() == ("Empty", 1000, -1)
        bench.refuse_append = None
        assert bench.init(expected=expected) == (1000, 0)


def test_a_transaction_whose_start_was_refused_times_out_when_it_starts_later() -> None:
    """The timer that came with the refused records is armed again."""
    bench = Bench()
    bench.init(timeout_ms=1_000)
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.code(lambda: bench.add((1000, 0), FOO)) == 15
    assert "timeouts" not in bench.timers
    bench.refuse_append = None
    bench.add((1000, 0), FOO)
    bench.advance(10_000)
    assert bench.state()[0] == "PrepareAbort"


def test_a_refused_fence_shuts_the_old_producer_out_at_once_and_bumps_once() -> None:
    """transaction.version 1: the epoch rises in memory; the next attempt does not raise it again."""
    bench = Bench(version=1)
    bench.init()
    bench.add((1000, 0), FOO)
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.code(bench.init) == 15
    assert bench.state() == ("Ongoing", 1000, 1)
    assert bench.code(lambda: bench.add((1000, 0), FOO)) == 90
    assert bench.code(bench.init) == 15
    bench.refuse_append = None
    assert bench.code(bench.init) == 51
    assert bench.state() == ("PrepareAbort", 1000, 1)


def test_a_refused_fence_of_a_newer_cluster_changes_nothing() -> None:
    """With transaction.version 2 a refused append of the fence leaves the transaction as it was."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.code(bench.init) == 15
    assert bench.state() == ("Ongoing", 1000, 0)


def test_a_refused_timeout_is_tried_by_the_next_scan() -> None:
    """The transaction stays open until the log takes its abort."""
    bench = Bench()
    bench.init(timeout_ms=1_000)
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(10_000)
    assert bench.state() == ("Ongoing", 1000, 0)
    bench.refuse_append = None
    bench.advance(10_000)
    assert bench.state() == ("PrepareAbort", 1000, 1)


@pytest.mark.parametrize(("refused", "completes"), [(19, True), (7, True), (6, False), (56, False), (10, False)])
def test_a_refused_completion_is_repeated_where_the_log_may_come_back(refused: int, completes: bool) -> None:
    """COORDINATOR_NOT_AVAILABLE is tried again; a lost log is its new coordinator's business."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.end((1000, 0))
    bench.refuse_append = ErrorCode(refused)
    bench.write_markers()
    assert bench.state()[0] == "PrepareCommit"
    bench.advance(100)
    bench.refuse_append = None
    bench.advance(1_000)
    assert (bench.state()[0] == "CompleteCommit") is completes
    assert bench.effects == [], "the markers are written already"


def test_tombstones_that_were_refused_are_tried_by_the_next_scan() -> None:
    """Nothing is forgotten before the log has it."""
    bench = Bench()
    bench.init()
    bench.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(604_800_000)
    assert "tx" in bench.machine.transactions
    bench.refuse_append = None
    bench.advance(3_600_000)
    assert bench.machine.transactions == {}


@pytest.mark.parametrize("client_transaction_version", [0, 2])
def test_a_record_that_version_0_cannot_hold_leaves_its_id_in_transition(client_transaction_version: int) -> None:
    """UNSUPPORTED_VERSION, then CONCURRENT_TRANSACTIONS for all that writes, until a load (transactions B.3)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.end((1000, 0))
    bench.write_markers()
    bench.version = 0
    assert bench.code(bench.init) == 35
    for operation in (
        bench.init,
        lambda: bench.init(expected=(1000, 1)),
        lambda: bench.add((1000, 1), FOO, client_transaction_version=client_transaction_version),
        lambda: bench.end((1000, 1), client_transaction_version=client_transaction_version),
    ):
        assert bench.code(operation) == 51
    bench.version = 2
    assert bench.code(bench.init) == 51
    loaded = Bench(bench.log)
    assert loaded.init() == (1000, 2)


def test_the_scans_pass_over_an_id_that_stays_in_transition() -> None:
    """Its transaction does not time out, and it does not expire (transactions B.7, B.8)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    bench.version = 0
    assert bench.code(lambda: bench.end((1000, 0))) == 35
    bench.version = 2
    bench.advance(8 * 86_400_000)
    assert bench.state() == ("Ongoing", 1000, 0)
