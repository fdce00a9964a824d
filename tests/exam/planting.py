"""Plays the table of faults: which scenario of the exam finds each. `python -m tests.exam.planting` writes the page.

It plays the exam with the honest reference client first, and each fault then only in scenarios in which it can have an
effect, until one of them finds it. All of it takes some ten minutes on two cores.
"""

# ruff: noqa: T201 -- a program

import argparse
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.exam.faults import Fault, Observed, faults, why_equivalent
from tests.exam.mutants import FORESEEN
from tests.exam.reference import consumer, consumer_protocol, share_consumer
from tests.exam.reference.driver import InProcess
from tools.compact_json import dumps
from understudy.client import Cluster
from understudy.exam.runner import BROKEN, OPTIONS, UNSTEERED, Runner, started
from understudy.exam.scenario import SCENARIOS

RECORDED: Final = Path(__file__).with_name("planted.json")
PAGE: Final = Path(__file__).parents[2] / "docs" / "inside" / "exam-faults.md"
TIMEOUT_MS: Final = 3_000
DEADLINE_S: Final = 4.0
LIMIT_S: Final = 60.0
JOBS: Final = 6
PLAYS: Final = 12
"""In how many scenarios a fault is played at most."""


@dataclass(frozen=True)
class Result:
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
    """Play the exam with the honest client, as patient as those with faults: where it fails, nothing is proved."""
    observed, lock = Observed(), threading.Lock()

    def play(name: str) -> Callable[[Cluster], bool]:
        def on(cluster: Cluster) -> bool:
            began = time.monotonic()
            verdict, problem, _ = Runner(InProcess, timeout_ms=TIMEOUT_MS).play(cluster, SCENARIOS[name])
            seconds = time.monotonic() - began
            with lock:
                observed.add(name, cluster.journal.find(limit=10_000), seconds)
                if verdict in BROKEN:
                    observed.unfit.add(name)
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


def look_for(
    cluster: Cluster, fault: Fault, names: Sequence[str], *, timeout_ms: int = TIMEOUT_MS
) -> tuple[Result, bool]:
    """Play a fault until a scenario finds it; also return whether the cluster can be used further."""
    runner = Runner(lambda: InProcess(fault.mutation), timeout_ms=timeout_ms)
    usable = True
    for tried, name in enumerate(names, 1):
        try:
            verdict, problem, _ = limited(partial(runner.play, cluster, SCENARIOS[name]), LIMIT_S)
        except TimeoutError:
            return Result(fault, name, "fail", "the library does not return", tried), False
        if verdict in BROKEN:
            return Result(fault, name, verdict.value, problem, tried), usable
        usable = usable and not problem.startswith(UNSTEERED)
    return Result(fault, tried=len(names)), usable


def spread(names: Sequence[str], limit: int) -> list[str]:
    """Return at most this many scenarios, of as many areas as possible, the quickest of each first."""
    queues: dict[str, list[str]] = {}
    for name in names:
        queues.setdefault(name.partition("/")[0], []).append(name)
    chosen = list(names[: limit // 2])  # those that are about it
    while len(chosen) < limit and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < limit and (name := queue.pop(0)) not in chosen:
                chosen.append(name)
    return chosen


def search(table: Sequence[Fault], observed: Observed, jobs: int, plays: int) -> list[Result]:
    """Look for each fault."""
    results: dict[str, Result] = {}

    def play(fault: Fault) -> Callable[[Cluster], bool]:
        def on(cluster: Cluster) -> bool:
            result, usable = look_for(cluster, fault, spread(observed.scenarios(fault.mutation), plays))
            results[fault.mutation] = result
            place = result.scenario or ("EQUIVALENT" if result.why_not else "MISSED")
            print(f"{place:40} {fault.mutation}  ({result.tried}) {result.problem[:160]}", flush=True)
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
    parser.add_argument("--record", action="store_true", help="write the page, and what finds each fault")
    arguments = parser.parse_args()
    for module in (consumer, consumer_protocol, share_consumer):
        module.DEADLINE_S = DEADLINE_S  # type: ignore[attr-defined]
    observed = observe(arguments.jobs)
    table = [each for each in faults(observed) if not arguments.only or any(o in each.mutation for o in arguments.only)]
    began = time.monotonic()
    results = search(table, observed, arguments.jobs, arguments.plays)
    equivalent = sum(bool(each.why_not) for each in results)
    count = sum(bool(each.scenario) for each in results)
    seconds = time.monotonic() - began
    print(f"{len(table)} faults, {count} found, {equivalent} equivalent, in {seconds:.0f} s")
    if arguments.record and not arguments.only:
        RECORDED.write_text(dumps(tabulated(results), depth=2), encoding="utf-8")
        PAGE.write_text(page(recorded()), encoding="utf-8")


MISSED: Final = "missed"
NOT_MET: Final = f"{MISSED}: no scenario brings it about"
NO_EFFECT: Final = "no effect: "
PLANNED: Final = (
    "base-offset-for-all", "commits-revoked-partitions", "resets-every-partition", "aborted-records-come-later",
    "accepts-foreign-nonce", "heartbeats-rarely", "accepts-the-rest-when-closed", "sends-after-expiry",
    "assigns-to-everybody", "keeps-positions-when-removed",
)  # fmt: skip
MISSED_OF_TEN: Final = (
    "returns-to-former-positions", "counts-the-last-record", "bumps-for-one-partition", "offsets-are-nothing",
    "keeps-topic-ids", "null-values-are-empty",
)  # fmt: skip
PLANNED_LATER: Final = ("repeats-what-was-written", "resets-to-earliest", "uses-expired-sequence-again")
Table = Mapping[str, Mapping[str, Sequence[str]]]
"""Kind of fault -> scenario that finds them, or why none does -> faults."""
ABOUT: Final = """\
# What the exam finds, and what it misses

{total} faults were made from the protocol and planted in a small client that passes [`understudy exam`](../exam.md),
one at a time: each field of a request that it fills is sent as another, each field of a response that it reads is read
as another, only the first or the last row of a list is read, each error code is taken for a success or for an error of
another class, and what the client does wrong in other ways. The exam finds {found} of them; {equivalent} have no effect
that could be seen; {missed} are missed.
`python -m tests.exam.planting --record` plays them again, writes this page, and keeps in `tests/exam/planted.json`
which scenario finds each: one that does, not the only one. A scenario that the honest client fails with the same
patience (3 s) is not played.

Ten of the faults in behaviour were planned from the protocol before the scenarios of their areas were read, to find
blind spots:
{ten}.
The exam of that day found the first of them; a scenario for each of the others has been added. Of twelve more it found
eight; the other four are {twelve} and timestamps in seconds. Scenarios for them, and for faults like them, have been
added, too. Of 28 on a third list, fourteen of which were written down before the others were read, seven were found and
eleven missed; these have scenarios now: {third}. Four need what the contract of drivers has not (headers, times of
records that are read, offsets by time, metadata of commits), and six have not been played.

Ten more were written down out of the protocol and of public bug reports, before this page and the scenarios were read.
The exam of that day found four: `uses-expired-sequence-again` and `assigns-to-everybody`, which were planted already,
`adds-partitions-once` and `waits-no-longer`. It missed {missed_of_ten}, the last of which the contract of drivers could
not express. Each of these has a scenario now, `waits-no-longer` a second one, and null values that are written have
one, too."""


def recorded() -> Table:
    """Return what the last whole run found."""
    table: Table = json.loads(RECORDED.read_text(encoding="utf-8"))
    return table


def tabulated(results: Iterable[Result]) -> Table:
    """Return the table of a run: scenarios in order, then what no scenario finds."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for each in results:
        kinds.setdefault(each.fault.kind.capitalize(), {}).setdefault(place(each), []).append(each.fault.mutation)
    return {
        kind: {name: sorted(places[name]) for name in sorted(places, key=lambda name: (name not in SCENARIOS, name))}
        for kind, places in kinds.items()
    }


def page(table: Table) -> str:
    """Return the page: sums, and the faults that no scenario finds."""
    counts = {kind: Counter({name: len(faults) for name, faults in row.items()}) for kind, row in table.items()}
    lines = ["", "| kind | faults | found | no effect | missed |", "|---|--:|--:|--:|--:|"]
    sums = {kind: summed(count) for kind, count in counts.items()}
    lines += [f"| {kind} | {' | '.join(map(str, numbers))} |" for kind, numbers in sums.items()]
    total, noticed, equivalent, missed = (sum(column) for column in zip(*sums.values(), strict=True))
    lines += ["", "## Missed", "", "| kind | faults |", "|---|---|"] if missed else []
    for kind, row in table.items():
        missing = [f"`{fault}`" for name, faults in row.items() if name.startswith(MISSED) for fault in faults]
        lines += [f"| {kind} | {', '.join(sorted(missing))} |"] if missing else []
    lines += ["", "## No effect", "", "| why | faults |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for name, planted in (each for row in table.values() for each in row.items() if each[0].startswith(NO_EFFECT)):
        reasons.setdefault(name.removeprefix(NO_EFFECT), []).extend(f"`{fault}`" for fault in planted)
    lines += [f"| {reason} | {', '.join(sorted(reasons[reason]))} |" for reason in sorted(reasons)]
    ten = ", ".join(f"`{each}`" for each in PLANNED)
    twelve = ", ".join(f"`{each}`" for each in PLANNED_LATER)
    third = ", ".join(f"`{each}`" for each in sorted({*FORESEEN.values()}))
    of_ten = ", ".join(f"`{each}`" for each in MISSED_OF_TEN)
    head = ABOUT.format(
        ten=ten, twelve=twelve, third=third, missed_of_ten=of_ten, total=total, found=noticed, equivalent=equivalent,
        missed=missed,
    )  # fmt: skip
    return "\n".join([head, *lines]) + "\n"


def summed(count: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Return how many faults of a kind there are, are found, have no effect, are missed."""
    noticed = sum(number for name, number in count.items() if name in SCENARIOS)
    equivalent = sum(number for name, number in count.items() if name.startswith(NO_EFFECT))
    total = sum(count.values())
    return total, noticed, equivalent, total - noticed - equivalent


def place(result: Result) -> str:
    """Return the scenario, or why there is none: a fault without effect, or missed."""
    if result.scenario:
        return result.scenario
    return f"{NO_EFFECT}{result.why_not}" if result.why_not else MISSED if result.tried else NOT_MET


if __name__ == "__main__":
    main()
