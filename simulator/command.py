"""The command `understudy simulate`: runs consecutive seeds, and reports each run and its broken promises."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from broker.time.rng import new_seed
from simulator.coverage import observed, table
from simulator.result import Result
from simulator.run import Run, run
from simulator.shrink import Shrinking

_SHOWN = 20  # lines of each kind: a screen
_SHRINKING_S = 110
"""Real time for a run that breaks a promise and all that shrink it, the last one included.

Arbitrary, below the two minutes that a command may take in CI.
"""
_AFTER_MS = 5_000
"""Virtual time after the first broken promise within which a run with fewer faults has to break one."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command.

    ``seconds`` is real time, ``only`` the numbers of the faults that happen, ``kinds`` the optional kinds of each run,
    ``data_dir`` a folder for the brokers' directories.
    """

    seed: int | None
    seeds: int = 1
    seconds: float | None = None
    minutes: float = 0.5  # arbitrary: time for some faults, and a trace that can be read
    only: frozenset[int] | None = None
    kinds: frozenset[str] | None = None
    story: int = 0
    shrink: bool = False
    coverage: bool = False
    data_dir: Path | None = None


def main(options: Options) -> int:
    """Run the seeds; return 1 if a promise was broken, else 0."""
    with observed() as reached:
        code = run_all(options)
    if options.coverage:
        print("\n".join(table(reached)))
    sys.stdout.flush()
    return code


def run_all(options: Options) -> int:
    """Run the seeds and print their reports; return 1 if a promise was broken, else 0."""
    first = new_seed() % 1_000_000_000 if options.seed is None else options.seed
    began, broken, virtual_ms, runs = time.perf_counter(), 0, 0, 0
    for seed in range(first, first + options.seeds):
        if options.seconds is not None and runs and time.perf_counter() - began > options.seconds:
            break
        run_began = time.perf_counter()
        data_dir = None if options.data_dir is None else options.data_dir / f"seed-{seed}"
        result = run(seed, options.minutes, options.only, options.kinds, data_dir)
        runs += 1
        virtual_ms += result.virtual_ms
        broken += bool(result.violations)
        of_run = options
        if result.violations and options.shrink:
            result, of_run = shrunk(result, options, time.perf_counter() - run_began)
        print("\n".join(report(result, of_run)), flush=True)
        if data_dir is not None:
            print(f"  {written(data_dir)}")
    if runs > 1:
        took_s = time.perf_counter() - began
        rate = f"{runs / took_s:.2f} runs and {virtual_ms / 3_600_000 / took_s:.3f} virtual hours per second"
        print(f"{runs} runs, {broken} with broken promises; {rate}")
    return 1 if broken else 0


def written(data_dir: Path) -> str:
    """Return a line about the brokers' directories; a run that did not complete has none."""
    if data_dir.exists():
        return f"the brokers' directories: understudy audit {data_dir}"
    return "the run did not complete, so the brokers' directories were not written"


def shrunk(
    result: Result, options: Options, took_s: float, clock_s: Callable[[], float] = time.perf_counter
) -> tuple[Result, Options]:
    """Find few faults that still break a promise; return their run, and the options that repeat it.

    ``took_s`` is how long the run with all faults took.
    """
    seed, minutes, kinds = result.seed, options.minutes, options.kinds

    def breaks(only: frozenset[int], broken_ms: int) -> int | None:
        # Promises that are broken after the last fault are those of the end, which is not always as long.
        until_ms = broken_ms + _AFTER_MS if broken_ms < minutes * 60_000 else math.inf
        return Run(seed, minutes, only, kinds).first_broken_ms(until_ms)

    def write(line: str) -> None:
        print(f"seed {seed}: {line}", flush=True)

    write(f"broken with {len(result.faults)} faults, which are being reduced")
    broken_ms = result.virtual_ms if result.broken_ms is None else result.broken_ms
    shrinking = Shrinking(
        result.faults, broken_ms, breaks, limit_s=_SHRINKING_S - 2 * took_s, run_s=took_s, clock_s=clock_s, write=write
    )
    only = frozenset(each.number for each in shrinking.shrink())
    again = run(seed, minutes, only, kinds)
    if again.violations:
        return again, replace(options, only=only)
    write("the whole run with these faults breaks no promise that counts: all faults are kept")
    return result, options


def report(result: Result, options: Options) -> list[str]:
    """Return the lines about a run: its hash, and if promises were broken, these, its story and its faults."""
    facts = f"{len(result.faults)} faults, {result.virtual_ms / 1000:.0f} virtual s, {result.lines} lines"
    head = f"seed {result.seed}: {'BROKEN' if result.violations else 'ok'}, {facts}, hash {result.digest}"
    lines = [head]
    if options.story or result.violations:
        lines += result.trace.story(options.story or 40)  # a screen
    lines += [f"  excused: {each}" for each in result.excused]
    if result.violations:
        lines += [f"  broken: {each}" for each in result.violations[:_SHOWN]]
        if len(result.violations) > _SHOWN:
            lines.append(f"  and {len(result.violations) - _SHOWN} more")
        lines += [f"  fault {each.number} at {each.at_ms} ms: {each}" for each in result.faults]
        numbers = "" if options.only is None else f" --faults {','.join(map(str, sorted(options.only)))}"
        kinds = "" if options.kinds is None else f" --kinds {','.join(sorted(options.kinds)) or 'none'}"
        lines.append(f"  again: understudy simulate --seed {result.seed} --minutes {options.minutes:g}{kinds}{numbers}")
    return lines
