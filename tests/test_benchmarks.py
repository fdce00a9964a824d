"""The runner of the benchmarks: how the time of a run is shared among its rows."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from benchmarks import runner
from benchmarks.neighbours import Neighbours
from benchmarks.row import Figure, FreshRow, Scale, Values
from benchmarks.targets import KINDS, ROOT, Kind, free_port
from tests import ports

TAKES_S = 20.0


class Time:
    """A clock that only the measurements move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        """As the module time has it."""
        return self.now_s

    def measure(self, name: str) -> Callable[[Kind, Scale], Values]:
        """A measurement of a row of this name."""

        def measured(_kind: Kind, _scale: Scale) -> Values:
            self.now_s += TAKES_S
            return {name: 1.0}

        return measured


def rounds(monkeypatch: pytest.MonkeyPatch, least_s: float) -> list[int]:
    """How many rounds each of four rows had, of three, in time for seven."""
    time = Time()
    monkeypatch.setattr(runner, "time", time)
    monkeypatch.setattr(Neighbours, "used", lambda _: 0.0)
    names = ("first", "second", "third", "fourth")
    rows = [FreshRow(each, (Figure(each, each, "s"),), time.measure(each), least_s=least_s) for each in names]
    with runner.Run([next(iter(KINDS))], Scale(), 7 * TAKES_S - 1) as run:
        run.rows(rows)
    return [len(run.results.rounds[each].get("understudy", ())) for each in names]


def test_each_row_has_a_round_where_the_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows leave to the later ones what these need."""
    assert rounds(monkeypatch, 0.0) == [3, 3, 1, 0]
    assert rounds(monkeypatch, TAKES_S) == [3, 2, 1, 1]


def test_two_runs_at_once_get_different_ports() -> None:
    """The second one gets a port of the first only when that has ended, also if no server listens on it yet."""
    port = free_port()
    code = f"from tests import ports; ports._candidates = iter(range({port - ports.LOWEST}, ports.COUNT)); "
    code += "print(*ports.free_ports(1))"
    command = [sys.executable, "-c", code]

    def of_second_run() -> int:
        return int(subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120, check=True).stdout)

    assert of_second_run() > port
    while ports._reservations:
        ports._reservations.pop().close()
    assert of_second_run() == port
