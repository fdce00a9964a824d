"""AddPartitionsToTxn and verification at the coordinator: transactions C.1."""

import pytest

from protocol.errors import ErrorCode
from tests.coordination.transaction.harness import BAR, FOO, START_MS, Bench, S


def test_adding_nothing_begins_a_transaction_all_the_same() -> None:
    """An empty list in Empty writes Ongoing; in Ongoing it writes nothing."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0))
    assert (bench.last.state, bench.last.partitions) == (S.ONGOING, frozenset())
    written = len(bench.log)
    bench.add((1000, 0))
    assert len(bench.log) == written


def test_the_next_transaction_starts_with_its_own_partitions() -> None:
    """After a commit the old partitions are gone and the start is new (TV0: the same epoch)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.end((1000, 0), client_transaction_version=0)
    bench.write_markers()
    bench.advance(50)
    bench.add((1000, 0), BAR)
    assert (bench.last.partitions, bench.last.start_ms) == (frozenset({BAR}), START_MS + 50)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_a_stuck_transaction_keeps_everybody_waiting(state: S) -> None:
    """Prepared, though no markers are written any more (transactions C.1.1 P12, C.1.3 V6, A.2 I3)."""
    bench = Bench()
    bench.plant(state, 1)
    bench.machine.completions.clear()
    assert bench.code(lambda: bench.add((1000, 1), FOO)) == 51
    assert bench.code(bench.init) == 51
    assert bench.code(lambda: bench.verify((1000, 1), FOO)) == 51


def verified(bench: Bench, producer: tuple[int, int], name: str = "tx") -> dict[tuple[str, int], int] | int:
    """Codes per partition, or the one code for all."""
    codes: dict[tuple[str, int], int] = {}
    code = bench.code(lambda: codes.update(bench.verify(producer, FOO, BAR, name=name)))
    return code or codes


def test_ADD_11_verification_writes_nothing() -> None:
    """The checks in order, and the log stays as it is (transactions C.1.3 V3 to V8)."""
    bench = Bench()
    assert verified(bench, (1000, 0)) == 49
    bench.init()
    assert verified(bench, (1000, 0)) == {FOO: 120, BAR: 120}
    bench.add((1000, 0), FOO)
    written = len(bench.log)
    assert verified(bench, (1001, 0)) == 49
    assert verified(bench, (1000, 1)) == 90
    assert verified(bench, (1000, 0)) == {FOO: ErrorCode.NONE, BAR: ErrorCode.TRANSACTION_ABORTABLE}
    bench.end((1000, 0), client_transaction_version=0)
    assert verified(bench, (1000, 0)) == 51
    bench.write_markers()
    assert verified(bench, (1000, 0)) == {FOO: 120, BAR: 120}
    assert len(bench.log) == written + 2
