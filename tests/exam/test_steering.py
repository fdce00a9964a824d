"""What a scenario asks of the cluster beside faults is what it declares."""

from collections.abc import Callable, Iterator
from types import FunctionType

import pytest

from understudy.exam import scenarios
from understudy.exam.scenario import SCENARIOS, STEERING

OF_NAMES = {
    "move_leader": "leaders",
    "brokers": "brokers",
    "coordinators": "coordinators",
    "clock": "clock",
    "evict": "members",
    "OWN_TOPIC": "topics",
    "start_at": "topics",
    "configure": "topics",
    "versions": "versions",
    "security": "listeners",
}
"""Name in the code of a scenario -> what it steers."""


def functions(first: Callable[..., object]) -> Iterator[FunctionType]:
    """A function, and those of the scenarios that it can call: global ones, and those of its closure and defaults."""
    seen: set[object] = set()
    left: list[object] = [first]
    while left:
        each = left.pop()
        if not isinstance(each, FunctionType) or each in seen or not each.__module__.startswith(scenarios.__name__):
            continue
        seen.add(each)
        yield each
        left += [each.__globals__.get(name) for name in each.__code__.co_names]
        left += [cell.cell_contents for cell in each.__closure__ or ()]
        left += [*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values()]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_declares_what_it_steers(name: str) -> None:
    """Otherwise it would be played on a cluster that does not have it."""
    used = {each for function in functions(SCENARIOS[name].play) for each in function.__code__.co_names}
    assert {steered for each, steered in OF_NAMES.items() if each in used} == SCENARIOS[name].steers


def test_each_kind_of_steering_is_used() -> None:
    """The names above are those of the code."""
    assert {each for scenario in SCENARIOS.values() for each in scenario.steers} == STEERING
