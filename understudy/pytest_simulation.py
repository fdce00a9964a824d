"""pytest: an ``async def`` test with the fixture `sim` is played on virtual time, once for each seed of its marker."""

import inspect
import os
import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from understudy import server_path

if TYPE_CHECKING:
    from understudy.simulation import Simulation

MARKER = "kafka_simulation"
_SEEDS = 20  # runs of one test; `--simulation-seeds` has more; ours, some seconds


class Waiting:
    """Value of the fixture `sim` until a seed is played: each seed has a simulation of its own."""


def addoption(parser: pytest.Parser) -> None:
    """Add --simulation-seeds."""
    group = parser.getgroup("understudy")
    group.addoption("--simulation-seeds", metavar="N|A-B", help="play these seeds of tests with the fixture `sim`")


@pytest.fixture
def sim() -> "Simulation":
    """Return the simulation of one seed: processes of your program, a cluster, virtual time (docs/simulator.md).

    The test is an `async def`, and is played once for each seed of `@pytest.mark.kafka_simulation(seeds=100, minutes=2,
    brokers=3, topics={"orders": 3}, faults="all", settings={}, shrink=True)`.
    """
    return Waiting()  # type: ignore[return-value]  # replaced for each seed


def is_simulated(item: pytest.Function) -> bool:
    """Return whether a test is to be played on virtual time."""
    return isinstance(item.funcargs.get("sim"), Waiting)


def options_of(item: pytest.Function) -> dict[str, Any]:
    """Return the options of the markers; a test's override its class's, which override its module's."""
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers(MARKER))):
        if marker.args:
            pytest.fail(f"@pytest.mark.{MARKER} takes keyword arguments only, such as seeds=100", pytrace=False)
        options |= marker.kwargs
    return options


def seeds_of(seeds: object) -> list[int]:
    """Return the seeds of an option: their number (from 1 on), A-B, or a list.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(seeds, str):
        first, dash, last = seeds.partition("-")
        if first.isdecimal() and (last.isdecimal() if dash else True):
            return list(range(int(first), int(last) + 1)) if dash else [int(first)]
    elif isinstance(seeds, int):
        return list(range(1, seeds + 1))
    elif isinstance(seeds, Iterable):
        return list(seeds)
    raise ValueError(f"seeds needs their number, a text such as '1-100', or a list, not {seeds!r}")


def play(item: pytest.Function) -> None:
    """Play all seeds of a test; the first one with a finding fails it."""
    __tracebackhide__ = True
    function = inspect.unwrap(item.obj)
    if not inspect.iscoroutinefunction(function):
        pytest.fail("a test with the fixture sim is an async def", pytrace=False)
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames if name != "sim"}  # noqa: SLF001

    async def main(simulation: "Simulation") -> None:
        await function(**arguments, sim=simulation)

    problem = _problem(item, main)
    if problem is not None:
        pytest.fail(problem, pytrace=False)


def _problem(item: pytest.Function, main: Any) -> str | None:
    """Play the seeds, one in this process for --pdb; return the report of the first one with a finding."""
    from understudy.found_seed import Player, report
    from understudy.seeds import ChildFailed, outcomes
    from understudy.simulation import options

    chosen = options_of(item)
    try:
        seeds = seeds_of(item.config.getoption("simulation_seeds") or chosen.pop("seeds", _SEEDS))
        chosen.pop("seeds", None)
        shrink = bool(chosen.pop("shrink", True))
        with server_path.entered():
            player = Player(main, options(**chosen))
            debugged = len(seeds) == 1 and item.config.getoption("usepdb")
            played = map(player.play, seeds) if debugged else outcomes(player.play_apart, seeds, 1)
            for outcome in played:
                if outcome.findings:
                    lines = report(
                        player, outcome, partial(_command, item, outcome.seed), lambda _: None, shrink=shrink
                    )
                    return "\n".join([*lines, *_hash_seed()])
    except ChildFailed as error:
        return str(error)
    except (ValueError, TypeError) as error:
        return f"@pytest.mark.{MARKER}: {error}"
    return None


def _command(item: pytest.Function, seed: int, faults: str) -> str:
    """Return the command that repeats a seed; the kinds and numbers of faults are for the marker."""
    marked = "" if faults == "all" else f'  (the same with @pytest.mark.{MARKER}(faults="{faults}"))'
    return f"PYTHONHASHSEED=0 python -m pytest '{item.nodeid}' --simulation-seeds {seed}{marked}"


def _hash_seed() -> list[str]:
    if os.environ.get("PYTHONHASHSEED", "random") != "random" or not sys.flags.hash_randomization:
        return []
    return ["  PYTHONHASHSEED was not set: with it, sets of strings may have another order than in this run"]
