"""AddPartitionsToTxn and verification at the coordinator: transactions C.1."""

import pytest

from protocol.errors import ErrorCode
from tests.coordination.transaction.harness import BAR, FOO, START_MS, Bench, S


def test_ADD_01_02_03_partitions_join_once_and_the_start_stays() -> None:
    """A known partition writes nothing; a further one does not move the start."""
    bench = Bench()
    bench.init()
    bench.advance(3)
    bench.add((1000, 0), FOO)
    written = len(bench.log)
    bench.advance(3)
    bench.add((1000, 0), FOO)
    assert len(bench.log) == written
    bench.add((1000, 0), BAR)
    assert (bench.last.start_ms, bench.last.partitions) == (START_MS + 3, frozenset({FOO, BAR}))


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


@pytest.mark.parametrize(("producer", "code"), [((1001, 1), 49), ((1000, 0), 90), ((1000, 2), 90), ((1001, 0), 49)])
def test_ADD_08_strangers_and_zombies_are_refused(producer: tuple[int, int], code: int) -> None:
    """Producer id before epoch; a higher epoch is refused as a lower one is (transactions C.1.1 P9, P10)."""
    bench = Bench()
    bench.plant(S.EMPTY, 1)
    assert bench.code(lambda: bench.add(producer, FOO)) == code
    assert bench.log == []


def test_ADD_07_an_unknown_id_is_no_mapping() -> None:
    """INVALID_PRODUCER_ID_MAPPING where there is no entry (transactions C.1.1 P7)."""
    bench = Bench()
    assert bench.code(lambda: bench.add((1000, 0), FOO)) == 49


def test_ADD_09_10_while_markers_are_outstanding_everybody_waits() -> None:
    """Another producer gets CONCURRENT_TRANSACTIONS too; afterwards each has its error (transactions C.1.1 P8, P9)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.end((1000, 0), client_transaction_version=0)
    pending = list(bench.effects)
    assert bench.code(lambda: bench.add((1000, 0), FOO)) == 51
    assert bench.code(lambda: bench.add((1007, 0), FOO)) == 51
    assert bench.code(bench.init) == 51
    assert bench.code(lambda: bench.init(expected=(1007, 3))) == 51
    bench.effects = pending
    bench.write_markers()
    assert bench.code(lambda: bench.add((1007, 0), FOO)) == 49
    bench.add((1000, 0), FOO)


@pytest.mark.parametrize(("producer", "code"), [((1001, 0), 49), ((1000, 1), 90), ((1000, 0), 51)])
def test_ADD_10_before_4_0_another_producer_is_refused_first(producer: tuple[int, int], code: int) -> None:
    """As 3.9 answers (tests/releases: another producer while markers wait; transactions C.1.1 P9, P10, P11)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO)
    bench.end((1000, 0), client_transaction_version=0)
    assert bench.code(lambda: bench.add(producer, BAR, pending_first=False)) == code
    assert bench.code(lambda: bench.add(producer, BAR)) == 51


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
    found: dict[tuple[str, int], int] = {}
    code = bench.code(lambda: found.update(bench.verify(producer, FOO, BAR, name=name)))
    return code or found


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
