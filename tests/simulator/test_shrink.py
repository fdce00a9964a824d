"""Shrinking a plan of faults."""

from simulator.shrink import shrink


def test_what_is_not_needed_goes() -> None:
    """Of forty faults, the two that break a promise together are kept."""
    left, runs = shrink(range(40), lambda only: {3, 29} <= only)
    assert left == [3, 29]
    assert runs < 80


def test_a_run_that_breaks_without_faults_needs_none() -> None:
    """The plan is empty then."""
    assert shrink(range(8), lambda _: True)[0] == []
