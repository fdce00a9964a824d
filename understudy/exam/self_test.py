"""A driver's self-test: sends each command of its capabilities, without faults, and validates the answers."""

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
"""Scenarios without faults: any usable library passes them, so a failure is probably the driver's."""


def self_test(runner: Runner) -> list[str]:
    """Return problems of the driver, one sentence each. Raises DriverProblem if it fails at `hello`.

    As in the exam, a failing scenario is repeated: if it passes then, the driver is not to blame.
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
    """Play a scenario once; return what went wrong."""
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
    """Check that impossible commands are answered with an error and do not end the process."""
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
