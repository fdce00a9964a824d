"""Plays the table of faults: which scenario of the exam finds each. `python -m tests.exam.planting` writes the page.

It plays the exam with the honest reference client first, and each fault then only in scenarios in which it can have an
effect, until one of them finds it. All of it takes some ten minutes on two cores.
"""

# ruff: noqa: T201 -- a program

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.exam.faults import Fault, Observed, faults, why_equivalent
from tests.exam.reference import consumer, consumer_protocol, share_consumer
from tests.exam.reference.driver import InProcess
from understudy.client import Cluster
from understudy.exam.runner import BROKEN, OPTIONS, UNSTEERED, Runner, started
from understudy.exam.scenario import SCENARIOS

TIMEOUT_MS: Final = 3_000
DEADLINE_S: Final = 4.0
LIMIT_S: Final = 60.0
JOBS: Final = 6
PLAYS: Final = 12
"""In how many scenarios a fault is played at most."""


@dataclass(frozen=True)
class Found:
    """Whether and how a fault was found: the scenario, its verdict, and what it reports."""

    fault: Fault
    scenario: str = ""
    verdict: str = ""
    problem: str = ""
    tried: int = 0

    @property
    def why_not(self) -> str:
        """Return why no scenario can find it; empty if one did or should, or if none met the situation."""
        return why_equivalent(self.fault.mutation) if self.tried and not self.scenario else ""


def on_clusters(work: Iterable[Callable[[Cluster], bool]], jobs: int) -> None:
    """Run functions on clusters of their own, several at a time; one that returns False leaves its cluster unusable."""
    waiting, lock = iter(work), threading.Lock()

    def job() -> None:
        while True:
            with started(OPTIONS) as cluster:
                usable = True
                while usable:
                    with lock:
                        each = next(waiting, None)
                    if each is None:
                        return
                    usable = each(cluster)

    threads = [threading.Thread(target=job) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def observe(jobs: int) -> Observed:
    """Play the exam with the honest client."""
    observed, lock = Observed(), threading.Lock()

    def play(name: str) -> Callable[[Cluster], bool]:
        def on(cluster: Cluster) -> bool:
            began = time.monotonic()
            verdict, problem, _ = Runner(InProcess).play(cluster, SCENARIOS[name])
            seconds = time.monotonic() - began
            with lock:
                observed.add(name, cluster.journal.find(limit=10_000), seconds)
                if verdict in BROKEN:
                    print(f"the honest client: {name}: {problem}", flush=True)
            return not problem.startswith(UNSTEERED)

        return on

    on_clusters(map(play, SCENARIOS), jobs)
    return observed


def limited(call: Callable[[], Any], limit_s: float) -> Any:
    """Return a function's result. Raises TimeoutError; the thread is left behind."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - passed on
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(limit_s)


def look_for(cluster: Cluster, fault: Fault, names: Sequence[str]) -> tuple[Found, bool]:
    """Play a fault until a scenario finds it; also return whether the cluster can be used further."""
    runner = Runner(lambda: InProcess(fault.mutation), timeout_ms=TIMEOUT_MS)
    usable = True
    for tried, name in enumerate(names, 1):
        try:
            verdict, problem, _ = limited(partial(runner.play, cluster, SCENARIOS[name]), LIMIT_S)
        except TimeoutError:
            return Found(fault, name, "fail", "the library does not return", tried), False
        if verdict in BROKEN:
            return Found(fault, name, verdict.value, problem, tried), usable
        usable = usable and not problem.startswith(UNSTEERED)
    return Found(fault, tried=len(names)), usable


def spread(names: Sequence[str], limit: int) -> list[str]:
    """Return at most this many scenarios, of as many areas as possible, the quickest of each first."""
    queues: dict[str, list[str]] = {}
    for name in names:
        queues.setdefault(name.partition("/")[0], []).append(name)
    chosen = list(names[: limit // 2])  # those that are about it
    while len(chosen) < limit and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < limit:
                chosen.append(queue.pop(0))
    return list(dict.fromkeys(chosen))


def search(table: Sequence[Fault], observed: Observed, jobs: int, plays: int) -> list[Found]:
    """Look for each fault."""
    results: dict[str, Found] = {}

    def play(fault: Fault) -> Callable[[Cluster], bool]:
        def on(cluster: Cluster) -> bool:
            found, usable = look_for(cluster, fault, spread(observed.scenarios(fault.mutation), plays))
            results[fault.mutation] = found
            place = found.scenario or ("EQUIVALENT" if found.why_not else "MISSED")
            print(f"{place:40} {fault.mutation}  ({found.tried}) {found.problem[:160]}", flush=True)
            return usable

        return on

    on_clusters(map(play, table), jobs)
    return [results[fault.mutation] for fault in table]


def main() -> None:
    """Play the table, or the part of it that matches; write the page only if it is whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="faults that contain this text")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--plays", type=int, default=PLAYS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    for module in (consumer, consumer_protocol, share_consumer):
        module.DEADLINE_S = DEADLINE_S  # type: ignore[attr-defined]
    observed = observe(arguments.jobs)
    table = [each for each in faults(observed) if not arguments.only or any(o in each.mutation for o in arguments.only)]
    began = time.monotonic()
    found = search(table, observed, arguments.jobs, arguments.plays)
    equivalent = sum(bool(each.why_not) for each in found)
    count = sum(bool(each.scenario) for each in found)
    seconds = time.monotonic() - began
    print(f"{len(table)} faults, {count} found, {equivalent} equivalent, in {seconds:.0f} s")
    if arguments.out is not None:
        arguments.out.write_text("\n".join(page(found)) + "\n", encoding="utf-8")


NOT_MET: Final = ": no scenario brings it about"
ABOUT: Final = """\
# What the exam finds

For authors of client libraries, and for anyone who wants to know what a verdict of [`understudy exam`](exam.md) proves.
{total} faults were made from the protocol and planted in a small client that passes the exam, one at a time: each field
of a request that it fills is sent as another, each field of a response that it reads is read as another, only the
first or the last row of a list is read, each error code is taken for a success or for an error of another class, and
what the client does wrong in other ways. The exam finds {found} of them; {equivalent} have no effect that could be
seen; {missed} are missed, most of them since no scenario answers with the code.
`python -m tests.exam.planting --out docs/exam-faults.md` plays them again and writes this page.

A fault is played only in scenarios in which it can have an effect, until one of them finds it: *found by* is that
scenario, not the only one."""


def page(results: Sequence[Found]) -> Iterator[str]:
    """Return the page of the table."""
    missed = [each for each in results if not each.scenario and not each.why_not]
    found = sum(bool(each.scenario) for each in results)
    equivalent = len(results) - found - len(missed)
    yield ABOUT.format(total=len(results), found=found, equivalent=equivalent, missed=len(missed))
    for kind in dict.fromkeys(each.fault.kind for each in results):
        rows = [each for each in results if each.fault.kind == kind]
        yield f"\n## {kind.capitalize()}: {sum(bool(each.scenario) for each in rows)} of {len(rows)}\n"
        yield "| found by | faults |"
        yield "|---|---|"
        groups: dict[str, list[str]] = {}
        for each in rows:
            groups.setdefault(group(each), []).append(f"`{each.fault.mutation}`")
        for name in sorted(groups, key=lambda name: (name.startswith("**"), name not in SCENARIOS, name)):
            yield f"| {name} | {', '.join(sorted(groups[name]))} |"


def group(found: Found) -> str:
    """Return the scenario, or why there is none: a fault without effect, or missed."""
    if found.scenario:
        return found.scenario
    return f"no effect: {found.why_not}" if found.why_not else f"**missed**{'' if found.tried else NOT_MET}"


if __name__ == "__main__":
    main()
