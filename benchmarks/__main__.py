"""Runs the benchmarks, side by side with the peers.

    python -m benchmarks [--quick] [--rows produce_1k,first_join] [--targets understudy,kafka] [--json FILE] [--write]

A full run takes about 35 minutes, a quick one 5: if time is short, rows have fewer rounds, but at least one. Kafka's
jars come from KAFKA_LIBS, or are fetched; kfake is built by Go. A full run writes its tables and plots into docs; other
runs only print them, unless --write is given.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from benchmarks import (
    bulk,
    coordinators,
    java,
    latency,
    many,
    process,
    readme,
    report,
    secured,
    shares,
    simulation,
    variants,
)
from benchmarks.machine import description
from benchmarks.row import ALL, Row, Scale
from benchmarks.runner import Results, Run
from benchmarks.targets import CACHE, KINDS, ROOT

PAGE = ROOT / "docs" / "inside" / "benchmarks.md"
_QUIET_LOAD = 1.5


def parser() -> argparse.ArgumentParser:
    """Build the argument parser."""
    command_line = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    command_line.add_argument(
        "--quick", action="store_true", help="two rounds, an eighth of the records: at most 5 minutes"
    )
    command_line.add_argument(
        "--full", action="store_true", help="all rounds and records, at most 35 minutes; the default"
    )
    command_line.add_argument("--minutes", type=float, help="start no further round after this many minutes")
    command_line.add_argument("--rows", default="", help="only these, by name, with commas between")
    command_line.add_argument("--targets", default=",".join(ALL), help="only these: %(default)s")
    command_line.add_argument("--rounds", type=int, help="rounds of each target")
    command_line.add_argument("--part", type=float, help="share of each row's records, 0.01 to 1")
    command_line.add_argument("--json", type=Path, default=CACHE / "latest.json", help="write the figures to this file")
    command_line.add_argument(
        "--write", action="store_true", help="always write the tables into docs/inside/benchmarks.md"
    )
    command_line.add_argument("--list", action="store_true", help="name the rows")
    return command_line


def chosen(rows: tuple[Row, ...], names: str) -> tuple[Row, ...]:
    """Return the rows of these names, in table order; exits with a message if one does not exist."""
    wanted = [name for name in names.split(",") if name]
    known = {row.name for row in rows}
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"no such row: {unknown[0]}; there are {', '.join(sorted(known))}")
    return tuple(row for row in rows if not wanted or row.name in wanted)


def _pictures(results: Results, rows: tuple[Row, ...]) -> list[str]:
    from benchmarks import plots  # noqa: PLC0415 - a second to import, for a full run alone

    return plots.draw(results, rows, PAGE.parent)


def main() -> None:
    """Run the benchmarks, and print and write the results."""
    options = parser().parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a server from the sources would be compiled at each start
    everything: tuple[Row, ...] = (
        *bulk.ROWS,
        *latency.ROWS,
        *many.ROWS,
        *secured.ROWS,
        *variants.ROWS,
        *coordinators.ROWS,
        *shares.ROWS,
        *java.ROWS,
        *process.ROWS,
        *simulation.ROWS,
        *readme.ROWS,
    )
    if options.list:
        print("\n".join(row.name for row in everything))
        return
    rows = chosen(everything, options.rows)
    targets = [name for name in ALL if name in options.targets.split(",")]
    scale = Scale(2, 0.125) if options.quick else Scale()
    scale = Scale(options.rounds or scale.rounds, options.part or scale.part)
    if os.getloadavg()[0] > _QUIET_LOAD:
        print(
            f"the load average is {os.getloadavg()[0]:.1f}: other processes are active, the figures will be inaccurate",
            flush=True,
        )
    for name in targets:
        KINDS[name].prepare()
    machine = {**description(), "rounds, part of the records": f"{scale.rounds}, {scale.part:g}"}
    minutes = options.minutes or (4 if options.quick else 33.5)
    with Run(targets, scale, minutes * 60) as run:
        run.rows(rows)
        results = run.results
    machine["used by others meanwhile"] = f"{statistics.median(results.others or [0]):.2f} of the processors (median)"
    write = options.write or (rows == everything and scale == Scale() and len(targets) == len(ALL))
    pictures = _pictures(results, rows) if write else []
    tables = report.markdown(results, rows, machine, targets, pictures)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report.as_json(results, rows, machine), indent=1) + "\n")
    if write:
        report.write_page(PAGE, tables)
    print(tables)


if __name__ == "__main__":
    main()
