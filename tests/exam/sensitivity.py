"""How many random schedules it takes to find each fault planted in the reference client.

    python -m tests.exam.sensitivity --seeds 60 --most 20 --jobs 4 --sample 60 --out docs/inside/random-exam.md

Each fault that the scripted exam finds plays seeds in which it has an effect, until one leads to a finding; the honest
client plays all of them. About four seconds a seed and job: a night for all faults. They are in an order that is drawn
from a seed, so that the first of them are a sample, and the same each time.
"""

# ruff: noqa: T201 -- a program

import argparse
import json
import math
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.exam.faults import Fault, Observed
from tests.exam.mutants import FURTHER, MUTANTS
from tests.exam.planting import RECORDED, limited
from tests.exam.reference.driver import InProcess, ReferenceDriver
from understudy import server_path
from understudy.client import Cluster
from understudy.errors import Unreachable
from understudy.exam.driver import AnyDriver
from understudy.exam.random.draw import drawn
from understudy.exam.random.runner import RandomRunner
from understudy.exam.random.schedule import ROLES as ALL_ROLES

ROLES: Final = {
    "admin": {"admin"},
    "consumer-protocol": {"member"},
    "consumers": {"reader", "member", "copier"},
    "groups": {"member", "copier"},
    "idempotence": {"idempotent", "transactional"},
    "produce": {"plain", "idempotent", "transactional"},
    "sessions": {"reader", "member", "copier"},
    "share": {"sharer"},
    "transactions": {"transactional", "copier"},
}
"""Area of the exam -> the roles of random schedules in which its faults can have an effect."""
LIMIT_S: Final = 90.0
HANG: Final = "history-hang"
SAMPLED_BY: Final = 44
OUTSIDE: Final = {"telemetry": "client metrics", "rebootstrap": "new addresses", "truncation": "truncated logs"}
"""Areas of the exam of which random schedules have no step or fault."""
BEGIN, END = "<!-- sensitivity -->\n", "<!-- end of sensitivity -->"


@dataclass(frozen=True)
class Row:
    """A fault: the first seed that found it, how many were played, and by which check."""

    kind: str
    mutation: str
    seed: int | None
    played: int
    check: str = ""

    def line(self) -> str:
        """Return a row of the table."""
        seed = "not found" if self.seed is None else self.seed
        return f"| `{self.mutation}` | {self.played} | {seed} | {self.check} |"


def areas() -> dict[str, set[str]]:
    """Return the faults in behaviour, and the areas of the exam that have scenarios about them."""
    areas_of: dict[str, set[str]] = {}
    for scenario, mutation in [*MUTANTS.items(), *((name, mutation) for name, mutation, _ in FURTHER)]:
        if " " not in mutation:
            areas_of.setdefault(mutation, set()).add(scenario.partition("/")[0])
    return areas_of


def first_finding(
    cluster: Cluster, driver: Callable[[], AnyDriver], seeds: Sequence[int]
) -> tuple[int | None, int, str]:
    """Play seeds until one leads to the same finding twice; return it, the number of seeds played, and the check."""
    runner = RandomRunner(driver, plays=1)
    for played, seed in enumerate(seeds, 1):
        schedule = drawn(seed, ReferenceDriver.capabilities)
        assert schedule is not None
        try:
            findings = limited(partial(runner.played, cluster, schedule), LIMIT_S).findings
            again = limited(partial(runner.played, cluster, schedule), LIMIT_S) if findings else None
        except TimeoutError:
            return seed, played, HANG
        repeated = [each.check for each in findings if again is not None and again.has(each.check)]
        if repeated:
            return seed, played, repeated[0]
    return None, len(seeds), ""


def observe(cluster: Cluster, seeds: Sequence[int]) -> tuple[Observed, list[str]]:
    """Play all seeds with the honest client; return what it sent and read, and what was found."""
    observed, problems = Observed(), []
    runner = RandomRunner(InProcess, plays=1)
    for seed in seeds:
        schedule = drawn(seed, ReferenceDriver.capabilities)
        assert schedule is not None
        began = time.monotonic()
        findings = runner.played(cluster, schedule).findings
        problems += [f"seed {seed}: {each}" for each in findings]
        observed.add(str(seed), cluster.journal.find(limit=10_000), time.monotonic() - began)
    return observed, problems


def search(table: Sequence[tuple[Fault, Sequence[int]]], jobs: int, until: float) -> list[Row]:
    """Look for each fault in its seeds, for as long as there is time; a driver that hangs keeps its cluster."""
    clusters: queue.SimpleQueue[Cluster] = queue.SimpleQueue()
    opening = threading.Lock()

    def another() -> Cluster:
        with opening:
            return opened.enter_context(RandomRunner(InProcess).opened())

    def look(each: tuple[Fault, Sequence[int]]) -> Row | None:
        if time.monotonic() > until:
            return None
        fault, seeds = each
        cluster = clusters.get()
        try:
            seed, played, check = first_finding(cluster, lambda: InProcess(fault.mutation), seeds)
        except Unreachable:  # the machine has no time for the cluster, which proves nothing
            clusters.put(another())
            return None
        clusters.put(another() if check == HANG else cluster)
        row = Row(fault.kind, fault.mutation, seed, played, check)
        print(row.line(), flush=True)
        return row

    with ExitStack() as opened, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            clusters.put(another())
        rows = [row for row in pool.map(look, table) if row is not None]
    return sorted(rows, key=lambda row: (row.kind, row.mutation))


def seeds_of(observed: Observed, fault: Fault, seeds: Sequence[int]) -> list[int]:
    """Return the seeds in which a fault has an effect: its message is sent, or clients of its areas are there."""
    if " " in fault.mutation:
        return [int(name) for name in observed.scenarios(fault.mutation) if name.isdigit()]
    about = areas()[fault.mutation]
    if about <= OUTSIDE.keys():
        return []
    wanted = set[str]().union(*(ROLES.get(area, set(ALL_ROLES)) for area in about))
    return [seed for seed in seeds if wanted & roles_of(seed)]


def roles_of(seed: int) -> set[str]:
    """Return the roles of the clients of a seed."""
    schedule = drawn(seed, ReferenceDriver.capabilities)
    assert schedule is not None
    return {str(about["role"]) for about in schedule.used().values()}


def planted(observed: Observed, seeds: Sequence[int], most: int) -> list[tuple[Fault, Sequence[int]]]:
    """Return the faults that the scripted exam finds, each with at most so many seeds in which it has an effect."""
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    table = [
        Fault(kind.lower(), mutation)
        for kind, by_scenario in document.items()
        for scenario, mutations in by_scenario.items()
        for mutation in mutations
        if not scenario.startswith("no effect")
    ]
    return [(fault, seeds_of(observed, fault, seeds)[:most]) for fault in sorted(table, key=lambda each: each.mutation)]


def page(rows: Sequence[Row], honest: str, seconds: float) -> str:
    """Return the tables in Markdown: a summary, then each fault that was found."""
    lines = [
        f"{honest} All took {seconds / 60:.0f} minutes.",
        "",
        "| faults | found | in seeds (median) |",
        "|---|---|---|",
    ]
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        counts = sorted(row.played for row in mine if row.seed is not None)
        lines.append(f"| {kind} | {len(counts)} of {len(mine)} | {counts[len(counts) // 2] if counts else ''} |")
    lines += ["", "| fault | found, in seeds | seed | by |", "|---|---|---|---|"]
    lines += [row.line() for row in rows if row.seed is not None]
    missed = [f"`{row.mutation}` ({row.played})" for row in rows if row.seed is None and row.played]
    lines += ["", f"Not found, in so many seeds: {', '.join(missed)}.", ""] if missed else [""]
    unmet = [f"`{row.mutation}`" for row in rows if not row.played]
    lines += [f"Without an effect in any of the seeds: {', '.join(unmet)}.", ""] if unmet else []
    return "\n".join(lines)


def main() -> None:
    """Play, and write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--most", type=int, default=20, help="seeds for each fault")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--sample", type=int, metavar="N", help=f"N of the faults, drawn with seed {SAMPLED_BY}")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin with no fault after this time")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    server_path.enter()
    began = time.monotonic()
    seeds = range(1, arguments.seeds + 1)
    with RandomRunner(InProcess).opened() as cluster:
        observed, problems = observe(cluster, seeds)
    print(*problems, sep="\n")
    table = planted(observed, seeds, arguments.most)
    sample = random.Random(SAMPLED_BY).sample(table, arguments.sample or len(table))
    rows = search(sample, arguments.jobs, began + 60 * arguments.minutes)
    honest = (
        f"{len(rows)} of {len(table)} faults, drawn with seed {SAMPLED_BY}, played at most {arguments.most} of "
        f"{len(seeds)} seeds each. The honest client played each once, with {len(problems) or 'no'} findings."
    )
    text = page(rows, honest, time.monotonic() - began)
    print(text)
    if arguments.out is not None:
        before, _, rest = arguments.out.read_text(encoding="utf-8").partition(BEGIN)
        arguments.out.write_text(f"{before}{BEGIN}{text}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
