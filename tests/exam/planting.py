"""Plays the table of faults: which scenario of the exam finds each. `python -m tests.exam.planting` writes the page.

It plays the exam with the honest reference client first, and each fault then only in scenarios in which it can have an
effect, until one of them finds it. All of it takes some ten minutes on two cores.
"""

# ruff: noqa: T201 -- a program

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.exam.faults import Fault, Observed, faults
from tests.exam.reference import consumer, consumer_protocol, share_consumer
from tests.exam.reference.driver import InProcess
from understudy.client import Cluster, start
from understudy.exam.runner import BROKEN, OPTIONS, Runner
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


def on_clusters(work: Iterable[Callable[[Cluster], None]], jobs: int) -> None:
    """Run functions on clusters of their own, several at a time; a hanging one is left behind with its cluster."""
    waiting, lock = iter(work), threading.Lock()

    def job() -> None:
        with start(**OPTIONS) as cluster:
            while True:
                with lock:
                    each = next(waiting, None)
                if each is None:
                    return
                each(cluster)

    threads = [threading.Thread(target=job) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def observe(jobs: int) -> Observed:
    """Play the exam with the honest client."""
    observed, lock = Observed(), threading.Lock()

    def play(name: str) -> Callable[[Cluster], None]:
        def on(cluster: Cluster) -> None:
            began = time.monotonic()
            verdict, problem, _ = Runner(InProcess).play(cluster, SCENARIOS[name])
            seconds = time.monotonic() - began
            with lock:
                observed.add(name, cluster.journal.find(limit=10_000), seconds)
                if verdict in BROKEN:
                    print(f"the honest client: {name}: {problem}", flush=True)

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


def look_for(cluster: Cluster, fault: Fault, names: Sequence[str]) -> Found:
    """Play a fault until a scenario finds it."""
    runner = Runner(lambda: InProcess(fault.mutation), timeout_ms=TIMEOUT_MS)
    for tried, name in enumerate(names, 1):
        try:
            verdict, problem, _ = limited(partial(runner.play, cluster, SCENARIOS[name]), LIMIT_S)
        except TimeoutError:
            return Found(fault, name, "fail", "the library does not return", tried)
        if verdict in BROKEN:
            return Found(fault, name, verdict.value, problem, tried)
    return Found(fault, tried=len(names))


def spread(names: Sequence[str], limit: int) -> list[str]:
    """Return at most this many scenarios, of as many areas as possible, the quickest of each first."""
    queues: dict[str, list[str]] = {}
    for name in names:
        queues.setdefault(name.partition("/")[0], []).append(name)
    chosen: list[str] = []
    while len(chosen) < min(limit, len(names)):
        for queue in queues.values():
            if queue and len(chosen) < limit:
                chosen.append(queue.pop(0))
    return chosen


def search(table: Sequence[Fault], observed: Observed, jobs: int, plays: int) -> list[Found]:
    """Look for each fault."""
    results: dict[str, Found] = {}

    def play(fault: Fault) -> Callable[[Cluster], None]:
        def on(cluster: Cluster) -> None:
            found = look_for(cluster, fault, spread(observed.scenarios(fault.mutation), plays))
            results[fault.mutation] = found
            print(
                f"{found.scenario or 'MISSED':40} {fault.mutation}  ({found.tried}) {found.problem[:160]}", flush=True
            )

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
    count = sum(bool(each.scenario) for each in found)
    print(f"{len(table)} faults, {count} found, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
