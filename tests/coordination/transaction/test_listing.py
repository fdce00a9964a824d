"""DescribeTransactions and ListTransactions at the coordinator: transactions C.6, C.7."""

import pytest

from broker.coordination.transaction.listing import TransactionFilter, compile_pattern
from protocol.errors import ErrorCode, KafkaError
from tests.coordination.transaction.harness import BAR, FOO, Bench, S


@pytest.fixture
def bench() -> Bench:
    """An empty id, an open one and a finished one; now is 5 s after they began."""
    bench = Bench()
    bench.init("empty")
    bench.init("open")
    bench.init("done")
    bench.add((2000, 0), FOO, BAR, name="open")
    bench.add((3000, 0), FOO, name="done")
    bench.end((3000, 0), name="done")
    bench.write_markers()
    bench.advance(5_000)
    return bench


def names(bench: Bench, **filters: object) -> set[str]:
    """Which ids pass."""
    wanted = TransactionFilter(**filters)  # type: ignore[arg-type]
    return {record.transactional_id for record in wanted.of(bench.machine, bench.now_ms)}


def test_LIST_filters_are_joined_by_and(bench: Bench) -> None:
    """States and producer ids; no known state asks for nothing (transactions LIST-01, LIST-02, LIST-05)."""
    assert names(bench) == {"empty", "open", "done"}
    assert names(bench, states=frozenset({S.ONGOING, S.EMPTY})) == {"empty", "open"}
    assert names(bench, states=frozenset()) == set()
    assert names(bench, producer_ids=frozenset({1000, 2000})) == {"empty", "open"}
    assert names(bench, producer_ids=frozenset({1000}), states=frozenset({S.ONGOING})) == set()


@pytest.mark.parametrize("pattern", ["(", "*", "a(?=b)", "a(?!b)", "(?<=a)b", "(?P=x)", r"(a)\1", r"\\(a)\1", "(?>a)"])
def test_what_re2_does_not_know_is_no_pattern(pattern: str) -> None:
    """INVALID_REGULAR_EXPRESSION, also where Python would read it."""
    with pytest.raises(KafkaError) as refused:
        compile_pattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("pattern", [r"a\\1", "(?i)a", "(?:a|b)+", "(?P<n>a)", r"\d{2,}", "[(?=]"])
def test_what_re2_knows_is_a_pattern(pattern: str) -> None:
    """Escapes, groups and flags of RE2 are valid in a pattern of ids."""
    assert compile_pattern(pattern) is not None
