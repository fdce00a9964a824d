"""The command `understudy simulate`: runs consecutive seeds, and reports each run and its broken promises."""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from broker.rng import new_seed
from simulator.coverage import observed, table
from simulator.run import Result, run
from simulator.shrink import shrink

_SHOWN = 20
LEFT_OUT = "a partition had no leader for a marker (KAFKA-20734)"
UNREPLICATED = "a transaction coordinator had answered from records that were not replicated, and ended"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command.

    ``seconds`` is real time, ``only`` the numbers of the faults that happen, ``kinds`` the optional kinds of each run,
    ``data_dir`` a folder for the brokers' directories.
    """

    seed: int | None
    seeds: int = 1
    seconds: float | None = None
    minutes: float = 0.5
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
        data_dir = None if options.data_dir is None else options.data_dir / f"seed-{seed}"
        result = run(seed, options.minutes, options.only, options.kinds, data_dir)
        runs += 1
        virtual_ms += result.virtual_ms
        broken += bool(result.violations)
        if result.violations and options.shrink:
            result, options = shrunk(result, options)
        print("\n".join(report(result, options)), flush=True)
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


def shrunk(result: Result, options: Options) -> tuple[Result, Options]:
    """Find the fewest faults that still break a promise; return their run, and the options that repeat it."""
    seed, minutes, kinds = result.seed, options.minutes, options.kinds
    left, runs = shrink(
        [each.number for each in result.faults], lambda only: bool(run(seed, minutes, only, kinds).violations)
    )
    print(f"seed {seed}: {len(left)} of {len(result.faults)} faults are enough ({runs} runs)")
    only = frozenset(left)
    return run(seed, minutes, only, kinds), replace(options, only=only)


def report(result: Result, options: Options) -> list[str]:
    """Return the lines about a run: its hash, and if promises were broken, these, its story and its faults."""
    facts = f"{len(result.faults)} faults, {result.virtual_ms / 1000:.0f} virtual s, {result.lines} lines"
    head = f"seed {result.seed}: {'BROKEN' if result.violations else 'ok'}, {facts}, hash {result.digest}"
    lines = [head]
    if options.story or result.violations:
        lines += result.trace.story(options.story or 40)
    lines += [
        f"  excused, since {LEFT_OUT if result.left_out_markers else UNREPLICATED}: {each}" for each in result.excused
    ]
    if result.violations:
        lines += [f"  broken: {each}" for each in result.violations[:_SHOWN]]
        if len(result.violations) > _SHOWN:
            lines.append(f"  and {len(result.violations) - _SHOWN} more")
        lines += [f"  fault {each.number} at {each.at_ms} ms: {each}" for each in result.faults]
        numbers = "" if options.only is None else f" --faults {','.join(map(str, sorted(options.only)))}"
        kinds = "" if options.kinds is None else f" --kinds {','.join(sorted(options.kinds)) or 'none'}"
        lines.append(f"  again: understudy simulate --seed {result.seed} --minutes {options.minutes:g}{kinds}{numbers}")
    return lines
