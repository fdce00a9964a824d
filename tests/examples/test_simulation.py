"""examples/simulation: the right copier has no finding, and each copy with a mistake has one."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.clients.targets import ROOT
from understudy import server_path, simulation
from understudy.seeds import outcomes

FOLDER = ROOT / "examples" / "simulation"
sys.path.insert(0, str(FOLDER))
MISTAKES: Mapping[str, Any] = importlib.import_module("mistakes").MISTAKES
"""Name -> class of each copy with a mistake."""
SEEDS = 60


def finding(mistake: Any, seeds: Iterable[int]) -> str:
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


def test_mistakes_are_found() -> None:
    """In the first seed, by the promise that each breaks."""
    assert "without an outcome in out" in finding(MISTAKES["DoesNotRewind"], [1])
    assert "not in the order of their records" in finding(MISTAKES["HandlesRecordsAtOnce"], [1])


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
