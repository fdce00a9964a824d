"""Row of the simulator: how fast a program of a user's own runs on virtual time."""

import os
import re
import resource
import subprocess
from importlib.util import find_spec
from pathlib import Path

from benchmarks.row import BUILDS, Figure, FreshRow, Scale, Values
from benchmarks.targets import ROOT, Kind, own_command

_PROGRAM = ("--application", "simulated:right", "--topic", "in:2", "--topic", "out:2")
_SEEDS = 16


def _copier(kind: Kind, scale: Scale) -> Values:
    """Play seeds of the copier in examples/simulation; its virtual time beside the processor time of its processes."""
    aiokafka = find_spec("aiokafka")
    assert aiokafka is not None
    assert aiokafka.origin is not None
    command = [*own_command(kind.name == "understudy-compiled"), "simulate", *_PROGRAM]
    before = _used_s()
    done = subprocess.run(
        [*command, "--seeds", f"1-{scale.of(_SEEDS, 2)}"],
        cwd=ROOT / "examples" / "simulation",
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(Path(aiokafka.origin).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    played = re.search(r"(\d+) seeds, 0 with findings; (\d+) virtual s", done.stdout)
    if played is None:
        raise AssertionError(done.stdout + done.stderr)
    return {"simulated": int(played[2]) / (_used_s() - before)}


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


ROWS = (
    FreshRow(
        "simulation",
        (Figure("simulated", "a copier on three simulated brokers, with faults", "virtual s per core second"),),
        _copier,
        targets=BUILDS,
    ),
)
