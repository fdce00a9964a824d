"""Measures the pipeline: decoder, data sources in Spark next to its own, and commands with and without Spark.

    python -m benchmarks.pipeline [--quick] [--rounds 5] [--records 1000000] [--large 10000000] [--write]

Creates its directories (some 7 GB in the folder for temporary files), and takes about 15 minutes. `--write` puts the
table into docs/inside/benchmarks.md. Spark's own Kafka source is fetched by Maven, once.
Exit code 1: a goal was missed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.decoder import GOALS, millions
from benchmarks.machine import description
from benchmarks.processors import used_s
from benchmarks.report import BEGIN_PIPELINE, END, write_page
from benchmarks.targets import ROOT
from pipeline.reading import read_segments
from protocol.records.compression import Codec
from tools.fill_directory import Filling, fill
from understudy.java import find_java

PAGE = ROOT / "docs" / "inside" / "benchmarks.md"
BATCHES_LISTED, BATCHES_AUDITED = 100_000, 1_000_000
_ENGINES = ("1000000", "0")
"""Megabytes above which Spark works: this process, Spark."""
_LOOKS_S = 0.1
"""Ours: often enough for the processor time of what is about to end."""
Taken = Mapping[str, Mapping[int, list[tuple[float, float]]]]
"""Row -> size -> (wall-clock seconds, seconds of processor time) of each round."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of a row: at least a rate per second, or at most a number of seconds."""

    row: str
    title: str
    least: float | None = None
    most_s: float | None = None


ROWS = (
    Goal("segments", "`kafka_segments`, count and sum, `local[1]`", least=1e6),
    Goal("value", 'the same of the column `value` alone (`.schema("value binary")`)'),
    Goal("ready", "the same of a Python source that has ready-made Arrow: Spark's own part"),
    Goal("connector", "the same by Spark's own Kafka source from a running Understudy, `local[1]`"),
    Goal("batches", "`kafka_batches`, count, `local[2]`", most_s=1),
    Goal("export", "export, `local[2]`", least=3e5),
    Goal("load", "load into a directory, `local[2]`", least=5e5),
)
SLOPE, TIMES_CONNECTOR = 1.2, 3.0


def write_directories(folder: Path, sizes: list[int], batches: tuple[int, int]) -> None:
    """Write the directories to read: records of the usual size in four partitions, and many small batches."""
    for size in sizes:
        fill(folder / f"records-{size}", Filling(size, partitions=4))
    listed, audited = batches
    fill(folder / f"batches-{listed}", Filling(listed * 10, partitions=4, per_batch=10))
    filling = Filling(audited * 3, partitions=8, per_batch=3, value_bytes=60, transactions=50)
    fill(folder / f"audited-{audited * 3}", filling)


def decoded(folder: Path, sizes: list[int], rounds: int) -> list[tuple[str, float, float]]:
    """Measure the decoder alone: title, goal and millions of records per second of processor time."""
    rows = []
    for size in sizes:
        path = folder / f"records-{size}" / "filled-0"
        rate = millions(lambda path=path: read_segments(path), rounds)  # type: ignore[misc]
        rows.append((f"decoder to Arrow, uncompressed, {size // 4:,} records", GOALS[Codec.NONE], rate))
    fill(folder / "zstd", Filling(sizes[0] // 4, codec=Codec.ZSTD))
    rate = millions(lambda: read_segments(folder / "zstd"), rounds)
    return [*rows, (f"decoder to Arrow, zstd, {sizes[0] // 4:,} records", GOALS[Codec.ZSTD], rate)]


def jars() -> str:
    """Return the jars of Spark's own Kafka source, separated by commas; empty if they cannot be fetched."""
    cache = Path(os.environ.get("INTEROP_CACHE", ROOT / ".cache" / "interop"))
    done = subprocess.run([ROOT / "tests" / "clients" / "setup.sh", "spark"], check=False)
    return "" if done.returncode else ",".join(map(str, sorted(cache.glob("java/spark-*/*.jar"))))


def measured(group: str, folder: Path, rounds: int, connector: str) -> Taken:
    """Measure a group of rows."""
    environment = {**os.environ, "JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_KAFKA_JARS": connector, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.spark_rows", group, str(folder), str(rounds)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if not line.startswith("{"):
                print(line, end="", file=sys.stderr, flush=True)
    if process.returncode:
        sys.exit(f"the rows of {group} failed")
    rows = json.loads(lines[-1])
    return {row: {int(size): taken for size, taken in sizes.items()} for row, sizes in rows.items()}


def timed(*arguments: object) -> tuple[float, float]:
    """Return what a whole command takes, by the clock and of processor time of all its processes, in seconds."""
    command = [sys.executable, "-m", "understudy", *map(str, arguments), "--master", "local[2]", "--quiet"]
    begun, used = time.perf_counter(), 0.0
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            used = max(used, used_s(process.pid))
            time.sleep(_LOOKS_S)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return time.perf_counter() - begun, used


def compared(folder: Path, names: list[str], rounds: int) -> list[str]:
    """Return a table of whole commands, by this process and by Spark in turn, by the best rounds of each."""
    lines = [
        "", "| the whole command, its start included | records | this process | Spark, `local[2]` | ratio |",
        "|---|---|---|---|---|",
    ]  # fmt: skip
    for name in names:
        out, loaded = folder / "out", folder / "loaded-by-command"
        for verb, arguments, target in (
            ("audit", (folder / name,), None),
            ("export", (folder / name, out), out),
            ("load", (out, "--to", loaded), loaded),
        ):
            taken: dict[str, list[tuple[float, float]]] = {megabytes: [] for megabytes in _ENGINES}
            for _ in range(rounds):
                for megabytes, seconds in taken.items():
                    if target is not None:
                        shutil.rmtree(target, ignore_errors=True)
                    seconds.append(timed(verb, *arguments, "--spark-above", megabytes))
            (here_s, here_used_s), (spark_s, spark_used_s) = map(min, taken.values())
            ratio = f"{spark_s / here_s:.1f} by the clock, {spark_used_s / here_used_s:.1f} of processor time"
            here, spark = f"{here_s:.1f} s ({here_used_s:.1f})", f"{spark_s:.1f} s ({spark_used_s:.1f})"
            lines.append(f"| {verb} of `{name}` | {int(name.rpartition('-')[2]):,} | {here} | {spark} | {ratio} |")
    return lines


def table(taken: Taken, decoder: list[tuple[str, float, float]]) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether every goal is met."""
    lines = ["| | size | goal | median | best round | processor time per million |", "|---|---|---|---|---|---|"]
    met = True
    for title, goal, rate in decoder:
        met &= rate >= goal
        lines.append(f"| {title} | | {goal:g} M/s | **{rate:.2f} M/s** | | {1 / rate:.2f} s |")
    for row in ROWS:
        for size, rounds in taken.get(row.row, {}).items():
            seconds = statistics.median(wall for wall, _ in rounds)
            best, used = min(wall for wall, _ in rounds), statistics.median(cpu for _, cpu in rounds)
            per_million = f"{used / size * 1e6:.1f} s"
            if row.most_s is not None:
                met &= seconds <= row.most_s
                cells = (f"{row.most_s:g} s", f"{seconds:.2f} s", f"{best:.2f} s")
            else:
                met &= row.least is None or size / seconds >= row.least
                goal_text = "" if row.least is None else f"{row.least / 1e6:g} M/s"
                cells = (goal_text, f"{size / seconds / 1e6:.2f} M/s", f"{size / best / 1e6:.2f} M/s")
            lines.append(f"| {row.title} | {size:,} | {cells[0]} | **{cells[1]}** | {cells[2]} | {per_million} |")
    return lines, met


def ratios(taken: Taken) -> tuple[list[str], bool]:
    """Return growth with size and the ratio to Spark's own source, by the best rounds, which have the least noise."""
    lines, met = ["", "| | goal | |", "|---|---|---|"], True
    for row in ("segments", "export", "load"):
        sizes = taken.get(row, {})
        if len(sizes) > 1:
            small, large = min(sizes), max(sizes)
            clock, used = (
                (min(each[part] for each in sizes[large]) / large) / (min(each[part] for each in sizes[small]) / small)
                for part in (0, 1)
            )
            met &= min(clock, used) <= SLOPE
            title = f"{row}: cost of a record at {large:,} against {small:,}"
            lines.append(f"| {title} | {SLOPE} | {clock:.2f} by the clock, {used:.2f} of processor time |")
    if "connector" in taken:
        size = min(taken["connector"])
        ours, theirs = (min(wall for wall, _ in taken[row][size]) for row in ("segments", "connector"))
        met &= theirs / ours >= TIMES_CONNECTOR
        lines.append(f"| `kafka_segments` against Spark's own source | {TIMES_CONNECTOR:g} | {theirs / ours:.1f} |")
    return lines, met


def main() -> None:
    """Measure, print, write; exit with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000, help="records of the large directory")
    parser.add_argument("--quick", action="store_true", help="a fifth of everything: checks that it runs, not how fast")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    part = 5 if options.quick else 1
    sizes = sorted({options.records // part, options.large // part})
    batches = (BATCHES_LISTED // part, BATCHES_AUDITED // part)
    machine = description()
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as name:
        folder = Path(name)
        print("writing directories ...", file=sys.stderr, flush=True)
        write_directories(folder, sizes, batches)
        decoder = decoded(folder, sizes, options.rounds)
        connector = jars()
        taken = {
            **measured("local2", folder, options.rounds, ""),
            **measured("local1", folder, options.rounds, connector),
        }
        commands = compared(folder, [f"audited-{batches[1] * 3}", *(f"records-{size}" for size in sizes)], 2)
    lines, met = table(taken, decoder)
    more, grows = ratios(taken)
    keys = ("processors", "memory", "system", "Python", "load average at the start")
    head = ["", *(f"* {key}: {machine[key]}" for key in keys), ""]
    text = "\n".join([*head, *lines, *more, *commands, ""])
    if options.write:
        write_page(PAGE, f"{BEGIN_PIPELINE}\n{text}{END}")
    print(text)
    sys.exit(not (met and grows))


if __name__ == "__main__":
    main()
