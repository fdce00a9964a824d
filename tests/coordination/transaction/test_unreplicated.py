"""A transition that is not replicated is Kafka's pending state: nothing else is done with the id meanwhile."""

from collections.abc import Callable

import pytest

from protocol.errors import ErrorCode
from tests.coordination.transaction.harness import BAR, FOO, Bench

CONCURRENT = 51


@pytest.mark.parametrize(
    "operation",
    [
        lambda bench: bench.init(),
        lambda bench: bench.init(expected=(1000, 0)),
        lambda bench: bench.add((1000, 0), BAR),
        lambda bench: bench.add((1000, 0), BAR, pending_first=False),
        lambda bench: bench.end((1000, 0), client_transaction_version=0),
        lambda bench: bench.end((1000, 0), client_transaction_version=2),
    ],
)
def test_every_operation_waits(operation: Callable[[Bench], object]) -> None:
    """CONCURRENT_TRANSACTIONS while the begin is not replicated. Afterwards that is over."""
    bench = Bench()
    bench.init()
    bench.followers_lag = True
    bench.add((1000, 0), FOO)
    written = len(bench.log)
    assert bench.code(lambda: operation(bench)) == CONCURRENT
    assert len(bench.log) == written
    bench.replicate()
    bench.code(lambda: operation(bench))
    assert len(bench.log) == written + 1


def test_an_older_producer_is_checked_against_the_state_before() -> None:
    """Its epoch is the right one as long as the next one may be lost: asked again later, it is fenced."""
    bench = Bench()
    bench.init()
    bench.followers_lag = True
    bench.init()
    assert bench.code(lambda: bench.end((1000, 0), client_transaction_version=0)) == CONCURRENT
    bench.replicate()
    assert bench.code(lambda: bench.end((1000, 0), client_transaction_version=0)) == 90


def test_partitions_are_in_the_transaction_when_that_is_replicated() -> None:
    """A leader that verifies must not take records of a transaction that its coordinator may forget."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.followers_lag = True
    bench.add((1000, 0), BAR)
    assert bench.verify((1000, 0), FOO, BAR) == {FOO: ErrorCode.NONE, BAR: ErrorCode.TRANSACTION_ABORTABLE}
    bench.replicate()
    assert bench.verify((1000, 0), FOO, BAR) == {FOO: ErrorCode.NONE, BAR: ErrorCode.NONE}


def test_scans_leave_it_alone() -> None:
    """Neither a timeout nor an expiry: the scans after the replication see to it."""
    bench = Bench()
    bench.init(timeout_ms=1_000)
    bench.followers_lag = True
    bench.add((1000, 0), FOO)
    bench.advance(20_000)
    assert bench.state() == ("Ongoing", 1000, 0)
    bench.replicate()
    bench.advance(10_000)
    assert bench.state()[0] == "PrepareAbort"


def test_an_id_that_is_in_transition_does_not_expire() -> None:
    """As ids whose transaction is pending in Kafka."""
    bench = Bench()
    bench.followers_lag = True
    bench.init()
    bench.advance(604_800_000 + 3_600_000)
    assert "tx" in bench.machine.transactions
    bench.replicate()
    bench.advance(3_600_000)
    assert bench.machine.transactions == {}
