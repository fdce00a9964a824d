"""Shrinking a plan of faults, on a clock that only runs move."""

import math
from collections.abc import Callable

import pytest

from simulator import command
from simulator.clients.consumer_member import ConsumerMember
from simulator.command import Options, shrunk
from simulator.plan import Fault
from simulator.result import Result
from simulator.run import Run
from simulator.shrink import Shrinking

RUN_S = 6.0


class Bench:
    """A plan of ``count`` faults, one each second, of kinds in turn, and runs that take ``run_s`` each."""

    def __init__(self, count: int, kinds: tuple[str, ...] = ("kill",), run_s: float = 0.0) -> None:
        self.faults = [Fault(n, n * 1000, kinds[n % len(kinds)], 1, 200, str(n)) for n in range(count)]
        self.lines = list[str]()
        self.run_s, self.now_s = run_s, 0.0

    def shrink(
        self, broken_ms: int, breaks: Callable[[frozenset[int]], bool], limit_s: float = math.inf
    ) -> tuple[list[int], int]:
        """Return the numbers of the faults that are left, and the number of runs that this took."""

        def run(only: frozenset[int], broken_ms: int) -> int | None:
            self.now_s += self.run_s
            return broken_ms if breaks(only) else None

        shrinking = Shrinking(
            self.faults, broken_ms, run, limit_s=limit_s, run_s=self.run_s,
            clock_s=lambda: self.now_s, write=self.lines.append,
        )  # fmt: skip
        return [each.number for each in shrinking.shrink()], shrinking.runs


def test_what_is_not_needed_is_left_out() -> None:
    """Of forty faults, the two that break a promise together are kept."""
    left, runs = Bench(40).shrink(40_000, {3, 29}.issubset)
    assert left == [3, 29]
    assert runs < 40


def test_a_run_that_breaks_without_faults_needs_none() -> None:
    """The plan of a run that fails without faults is shrunk to an empty one."""
    assert Bench(8).shrink(8_000, lambda _: True)[0] == []


def test_faults_after_the_broken_promise_are_left_out_without_a_run() -> None:
    """They cannot have had a part in it; that of a shorter run may be broken earlier."""
    left, _ = Bench(40).shrink(5_000, lambda only: only == frozenset(range(6)))
    assert left == [0, 1, 2, 3, 4, 5]


def test_a_kind_is_left_out_at_once() -> None:
    """If faults that are needed are everywhere, halves cannot be left out, and kinds can."""
    needed = set(range(0, 64, 4))
    _, runs = Bench(64, ("kill", "lag", "hold", "lag")).shrink(64_000, needed.issubset)
    left, of_one_kind = Bench(64).shrink(64_000, needed.issubset)
    assert left == sorted(needed)
    assert runs < of_one_kind / 2


def test_shrinking_ends_in_time_with_what_it_has() -> None:
    """No run begins that may end too late."""
    bench = Bench(70, run_s=RUN_S)
    left, runs = bench.shrink(70_000, {3, 29, 44}.issubset, limit_s=60)
    assert runs == 10
    assert bench.now_s == 60
    assert {3, 29, 44} < {*left} < {*range(70)}
    assert bench.lines[-1] == f"{len(left)} of 70 faults are enough (run 10, 60 s); there was no time for more runs"


def test_progress_is_reported_while_nothing_can_be_left_out() -> None:
    """One line at least every few seconds; and one for each success, with the new number."""
    bench = Bench(4, run_s=RUN_S)
    _, runs = bench.shrink(4_000, {0, 1, 2, 3}.issubset)
    assert bench.lines[:-1] == [f"4 of 4 faults are enough (run {n}, {n * 6} s)" for n in range(1, runs + 1)]
    assert bench.lines[-1].endswith("; none can be left out")
    bench = Bench(4)
    bench.shrink(4_000, {3}.issubset)
    assert bench.lines[0] == "2 of 4 faults are enough (run 1, 0 s)"


@pytest.mark.slow
def test_a_run_is_cut_when_a_promise_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or when it is too late for that; a whole run reports when it was broken."""
    monkeypatch.setattr(ConsumerMember, "_timed_since", lambda _self, sent_ms: sent_ms)
    assert Run(629626584, 0.5).first_broken_ms(15_000) is None
    cut = Run(629626584, 0.5)
    assert cut.first_broken_ms(math.inf) == 16_882
    assert round(cut.loop.now_s * 1000) == 16_882


class ShortRun:
    """A run whose promise is always broken at 400 ms, while it has not ended."""

    def __init__(self, *_: object) -> None:
        pass

    def first_broken_ms(self, until_ms: float) -> int:
        """Return when it is broken; runs are given five more seconds."""
        assert until_ms == 5_400
        return 400


@pytest.mark.parametrize("violations", [[], ["a"]])
def test_only_faults_that_break_the_whole_run_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], violations: list[str]
) -> None:
    """What the rest of a run excuses is not seen when it is cut: all faults are kept then."""
    whole = Result(7, ["a"], "", 0, 90_000, Bench(3).faults, broken_ms=400)
    monkeypatch.setattr(command, "Run", ShortRun)
    monkeypatch.setattr(command, "run", lambda *_: Result(7, violations, "", 0, 90_000, []))
    result, options = shrunk(whole, Options(7), 1.0, lambda: 0.0)
    assert (result is whole, options.only) == ((False, frozenset()) if violations else (True, None))
    assert capsys.readouterr().out.startswith("seed 7: broken with 3 faults, which are being reduced\nseed 7: ")
