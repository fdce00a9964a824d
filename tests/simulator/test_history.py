"""What the simulator's history calls a broken promise."""

import pytest

from simulator.history import History


def history() -> tuple[History, list[int]]:
    """A history, and its clock."""
    now = [0]
    return History(lambda: now[0]), now


@pytest.mark.parametrize("overtaken", [True, False])
def test_an_instance_acts_until_it_is_fenced(overtaken: bool) -> None:
    """By a later epoch, not by a later answer: that to the older epoch may arrive behind that to the newer one."""
    found, now = history()
    given = [(7, "second"), (6, "first")] if overtaken else [(6, "first"), (7, "second")]
    for epoch, instance in given:
        now[0] += 10
        found.given("id", instance, 1000, epoch, 5)
    found.acted("id", "second", 30, "Produce")
    assert not found.violations
    found.acted("id", "first", 15, "Produce")
    assert bool(found.violations) is overtaken  # the second one fenced it at 10, or only at 20
    found.acted("id", "first", 30, "Produce")
    assert found.violations[-1] == "Produce of first succeeded though second had fenced it before"
