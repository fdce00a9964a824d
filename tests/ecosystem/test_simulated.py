"""Programs on other versions of aiokafka, on FastStream and on Faust, in the simulator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.targets import ROOT
from tests.ecosystem.programs import HERE, fetch

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
EXAMPLES = ROOT / "examples" / "simulation"


def simulated(folder: Path, application: str, libraries: str, topics: str, *arguments: str) -> str:
    """What the command prints for a program in a folder, with these libraries before the installed ones."""
    (site,) = fetch("python", libraries).glob("lib/python*/site-packages")
    named = [part for topic in topics.split() for part in ("--topic", f"{topic}:2")]
    command = [sys.executable, "-m", "understudy", "simulate", "--application", application, *named, *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": f"{ROOT}:{site}"}, capture_output=True, text=True,
        timeout=500, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize("version", ["aiokafka_oldest", "aiokafka_next"])
def test_older_versions_of_aiokafka_copy_exactly_once(version: str) -> None:
    """The copier of the examples on aiokafka 0.12, whose protocol versions are older, and on 0.13."""
    shown = simulated(EXAMPLES, "simulated:right", version, "in out", "--seeds", "1-5")
    assert "5 seeds, 0 with findings" in shown, shown


def test_faststream_serves_three_topics() -> None:
    """The service of the examples loses nothing when processes and brokers fail."""
    topics = "orders payments shipments"
    shown = simulated(EXAMPLES, "simulated_service:main", "faststream_aiokafka", topics, "--seeds", "5-9")
    assert "5 seeds, 0 with findings" in shown, shown


def test_faust_counts_in_a_table() -> None:
    """Its consumer, which has a thread of its own elsewhere, is a part of the run, also while processes end."""
    arguments = ("faust_simulated:main", "faust", "orders counts", "--faults", "none", "--seed", "3")
    assert "1 seed, 0 with findings" in simulated(HERE / "python", *arguments)
    failing = (*arguments[:3], "--faults", "processes", "--seeds", "2-4")
    shown = simulated(HERE / "python", *failing)
    assert "3 seeds, 0 with findings" in shown, shown
