"""examples/simulation: the right copier has no finding, and each copy with a mistake has one."""

import importlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from simulator.loop import sleep_ms
from tests.clients.targets import ROOT
from understudy import server_path, simulation
from understudy.seeds import outcomes

FOLDER = ROOT / "examples" / "simulation"
sys.path.insert(0, str(FOLDER))
MISTAKES: Mapping[str, Any] = importlib.import_module("mistakes").MISTAKES
"""Name -> class of each copy with a mistake."""
RIGHT: Any = importlib.import_module("copier").Copier
SEEDS = 60


def finding(mistake: Any, seeds: Sequence[int]) -> str:
    """What the first of these seeds finds that finds something; each is played in a process of its own."""
    with server_path.entered():
        options = simulation.options(topics={"in": 2, "out": 2})
        played = outcomes(lambda seed: simulation.play(mistake.simulated, seed, options)[0], seeds, os.cpu_count() or 1)
        return next((each.findings[0] for each in played if each.findings), "")


def right_one(seeds: str, jobs: int = 1) -> str:
    """What the command of the page prints, run in the folder of the example."""
    command = [sys.executable, "-m", "understudy", "simulate", "--application", "simulated:right", "--seeds", seeds]
    command += ["--topic", "in:2", "--topic", "out:2", "--jobs", str(jobs)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_the_right_copier_has_no_finding() -> None:
    """Each record has one outcome, in order, and the program ends."""
    assert "2 seeds, 0 with findings" in right_one("1-2")


def test_the_right_copier_is_not_harmed_by_a_late_commit() -> None:
    """In seed 1384, a commit that was repeated arrives in the middle of a later transaction."""
    assert "1 seed, 0 with findings" in right_one("1384-1384")


def test_mistakes_are_found() -> None:
    """In one of the first seeds, by the promise that each breaks."""
    assert "without an outcome in out" in finding(MISTAKES["DoesNotRewind"], [1])
    assert "not in the order of their records" in finding(MISTAKES["HandlesRecordsAtOnce"], [2])


def test_the_right_copier_waits_for_its_commit_in_a_rebalance() -> None:
    """aiokafka would take the offsets from before the commit, whose markers are late, and copy the record again."""

    async def main(sim: Any) -> None:
        await RIGHT.begin_with_first_records(sim.bootstrap_servers)
        sim.process("copier", lambda: RIGHT(sim.bootstrap_servers, looked_up).run())
        await sleep_ms(8_000)
        await sim.cluster.transactions["copier"].hold("prepare")
        await sim.feed("in", [{"key": "k", "value": "1"}], over_s=0.01)
        await sleep_ms(3_000)
        await sim.cluster.groups["copiers"].rebalance()
        await sleep_ms(4_000)
        await sim.cluster.transactions["copier"].release()
        await sim.calm()
        await sim.check_one_outcome_each("in", "out")

    simulation.run(main, seed=1, topics={"in": 2, "out": 2}, minutes=0.2, faults="none")


async def looked_up(number: int) -> bytes:
    """The other service."""
    return str(number).encode()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_the_right_copier_has_no_finding_in_seeds_of_tonight() -> None:
    """The right copier has no finding in tonight's seeds; ten nights play ten thousand."""
    first = datetime.now(UTC).date().toordinal() * 1_000
    assert "1000 seeds, 0 with findings" in right_one(f"{first}-{first + 999}", os.cpu_count() or 1)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found_by_one_of_the_first_seeds(name: str) -> None:
    """A mistake that no seed finds would make a row of the page untrue."""
    assert finding(MISTAKES[name], range(1, SEEDS + 1))
