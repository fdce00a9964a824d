"""Which transitions runs have reached: of transactions, groups, members and records of share groups."""

import pytest

from simulator.coverage import all_transitions, observed, table
from simulator.run import run
from simulator.workload import CONSUMER, SHARE

REACHED = {
    ("transaction", "ONGOING", "PREPARE_COMMIT"),
    ("classic group", "EMPTY", "PREPARING_REBALANCE"),
    ("consumer member", "none", "STABLE"),
    ("share record, acquire", "AVAILABLE", "ACQUIRED"),
    ("share record, end", "ACQUIRED", "ACKNOWLEDGED"),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_transitions_of_each_machine_are_counted() -> None:
    """Those that a run with members of modern groups must reach, and none that the tables do not have."""
    with observed() as transitions:
        run(3, 0.2, kinds=(CONSUMER, SHARE))
    assert all_transitions() >= REACHED
    assert {each for each in REACHED if not transitions[each]} == set()
    moved = {(machine, old, new) for machine, old, new in transitions if old != new and "share record" in machine}
    assert moved <= all_transitions()
    lines = table(transitions)
    assert any(line.startswith("share record, end: ACQUIRED -> ACKNOWLEDGED") for line in lines)
    assert any(line.endswith("never") for line in lines)


@pytest.mark.slow
def test_nothing_is_counted_afterwards() -> None:
    """After the observation the machines are as they were, and nothing is counted."""
    with observed() as transitions:
        pass
    run(3, 0.05, kinds=())
    assert not transitions
