"""A driver's self-test: each command of its capabilities, without faults, and the shape of each answer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from understudy.client import Cluster
from understudy.exam.driver import AnyDriver, CallError, DriverProblem, NotSupported
from understudy.exam.exercise import Exercise
from understudy.exam.runner import Runner
from understudy.exam.scenario import SCENARIOS, Scenario

CONTROLS = (
    "produce/plain",
    "idempotence/plain",
    "transactions/commit",
    "transactions/abort",
    "transactions/exactly-once-copy",
    "consumers/plain",
    "consumers/seek-back",
    "groups/plain",
    "groups/commit-and-resume",
    "groups/two-members",
)
"""Scenarios without faults: a library of any worth passes them, so a failure is probably the driver's."""


def self_test(runner: Runner) -> list[str]:
    """Problems of the driver, one sentence each. Raises DriverProblem: it does not get as far as introducing itself.

    A scenario that fails is repeated as in the exam: one that succeeds then is not the driver's fault.
    """
    capabilities = frozenset(runner.introduce().capabilities)
    problems = []
    with runner.opened() as cluster:
        for name in CONTROLS:
            scenario = SCENARIOS[name]
            if not scenario.needs <= capabilities:
                continue
            for _ in range(runner.plays):
                problem = failure(runner, cluster, scenario)
                if problem is None:
                    break
            else:
                problems.append(f"{name}: {problem}")
        problems += answers_of_errors(runner, cluster.bootstrap_servers)
    return problems


def failure(runner: Runner, cluster: Cluster, scenario: Scenario) -> str | None:
    """Play a scenario once; returns what went wrong."""
    cluster.reset(disconnect=True)
    try:
        with runner.driver() as driver:
            driver.hello()
            scenario.play(Exercise(cluster, driver, timeout_ms=runner.timeout_ms))
            driver.call("quit")
    except NotSupported as reason:
        return f"the capability is listed, and the command is not supported: {reason}"
    except Exception as error:  # noqa: BLE001 - every kind of failure is a finding about the driver
        return str(error)
    return None


def answers_of_errors(runner: Runner, servers: str) -> Iterator[str]:
    """Commands that cannot succeed have to be answered with an error, not with the end of the process."""
    calls: Mapping[str, Callable[[AnyDriver], Any]] = {
        "flush of a producer that does not exist": lambda driver: driver.call("flush", producer="none", timeout_ms=1),
        "an unknown command": lambda driver: driver.call("no_such_command", bootstrap_servers=servers),
    }
    for about, call in calls.items():
        try:
            with runner.driver() as driver:
                driver.hello()
                call(driver)
        except (CallError, NotSupported):
            continue
        except DriverProblem as error:
            yield f"{about}: {error}"
        else:
            yield f"{about}: answered with a result"
