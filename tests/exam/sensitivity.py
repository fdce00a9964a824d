"""How many random schedules it takes to find each fault planted in the reference client.

    python -m tests.exam.sensitivity --seeds 30 --jobs 4 --out docs/inside/random-exam.md

Each mutation of the client plays seeds until one leads to a finding; the honest client plays all of them. Meant for a
night: about four seconds a seed and job.
"""

# ruff: noqa: T201 -- a program

import argparse
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.exam.mutants import FURTHER, MUTANTS
from tests.exam.planting import limited
from tests.exam.reference.driver import InProcess, ReferenceDriver
from understudy import server_path
from understudy.client import Cluster
from understudy.exam.driver import AnyDriver
from understudy.exam.random.draw import drawn
from understudy.exam.random.runner import RandomRunner

LIMIT_S: Final = 90.0
OUTSIDE: Final = {
    "tls": "connections with TLS", "sasl": "authentication", "admin": "creation of topics",
    "telemetry": "client metrics", "rebootstrap": "new addresses", "share": "share groups",
    "truncation": "truncated logs",
}  # fmt: skip
"""Areas of the exam of which random schedules have no step or fault."""
BEGIN, END = "<!-- sensitivity -->\n", "<!-- end of sensitivity -->"


@dataclass(frozen=True)
class Row:
    """A fault: the first seed that found it, of how many that were played, and by which check."""

    mutation: str
    seed: int | None
    played: int
    check: str = ""

    def line(self) -> str:
        """Return a row of the table."""
        found = f"after {self.played}" if self.seed is not None else f"not after {self.played}"
        return f"| {self.mutation} | {found} | {'' if self.seed is None else self.seed} | {self.check} |"


def mutations() -> list[str]:
    """Return the mutations of all areas that random schedules have."""
    areas: dict[str, set[str]] = {}
    for scenario, mutation in [*MUTANTS.items(), *((name, mutation) for name, mutation, _ in FURTHER)]:
        areas.setdefault(mutation, set()).add(scenario.partition("/")[0])
    return sorted(mutation for mutation, found in areas.items() if not found <= OUTSIDE.keys())


def first_finding(
    cluster: Cluster, driver: Callable[[], AnyDriver], seeds: Sequence[int]
) -> tuple[int | None, int, str]:
    """Play seeds until one leads to a finding; return it, the number of seeds played, and the check."""
    runner = RandomRunner(driver, plays=1)
    for played, seed in enumerate(seeds, 1):
        schedule = drawn(seed, ReferenceDriver.capabilities)
        assert schedule is not None
        try:
            found = limited(partial(runner.played, cluster, schedule), LIMIT_S).found
        except TimeoutError:
            return seed, played, "history-hang"
        if found:
            return seed, played, found[0].check
    return None, len(seeds), ""


def search(names: Sequence[str], seeds: Sequence[int], jobs: int) -> list[Row]:
    """Look for each mutation; a driver that hangs is left behind with its cluster."""

    def look(name: str) -> Row:
        with RandomRunner(InProcess).opened() as cluster:
            mutated = () if name == "none" else (name,)
            seed, played, check = first_finding(cluster, lambda: InProcess(*mutated), seeds)
        row = Row(name, seed, played, check)
        print(row.line(), flush=True)
        return row

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(look, names))


def page(rows: Sequence[Row], honest: Row, seconds: float) -> str:
    """Return the table in Markdown."""
    found = [row for row in rows if row.seed is not None]
    middle = sorted(row.played for row in found)[len(found) // 2] if found else 0
    outcome = "without a finding" if honest.seed is None else "with findings"
    about = (
        f"{len(found)} of {len(rows)} faults were found, half of them after at most {middle} seeds.\n"
        f"The honest client played {honest.played} seeds {outcome}. All took {seconds / 60:.0f} minutes."
    )
    head = ["| fault | found, in seeds | first seed | by |", "|---|---|---|---|"]
    return "\n".join([about, "", *head, *(row.line() for row in rows), ""])


def main() -> None:
    """Play, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    server_path.enter()
    began = time.monotonic()
    seeds = range(1, arguments.seeds + 1)
    names = arguments.only or ["none", *mutations()]
    rows = search(names, seeds, arguments.jobs)
    honest = next((row for row in rows if row.mutation == "none"), Row("none", None, 0))
    text = page([row for row in rows if row is not honest], honest, time.monotonic() - began)
    print(text)
    if arguments.out is not None:
        before, _, rest = arguments.out.read_text(encoding="utf-8").partition(BEGIN)
        arguments.out.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
