"""As many histories as there is time for: ``python -m tests.differential.many FIRST LAST STATE [RESTARTS [KIND]]``.

Plays the seeds FIRST to LAST - 1 that STATE (a JSON file) does not have yet, and writes it after each hundred, so that
a run may be broken off and continued later. It has the differences, the number of requests and the coverage.
"""

import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from comparison.exchange import Pair
from comparison.histories.run import Histories, Report
from tests.differential.targets import OF_KINDS, Kafka, Understudy, side

AT_ONCE = 100
RESTART_AFTER = 2_000
"""Brokers that made and deleted many thousand topics get slow: both start again."""


def blank() -> dict[str, Any]:
    """Nothing was played yet."""
    return {"seeds": [], "histories": 0, "steps": 0, "skipped": 0, "seconds": 0, "known": {}, "found": [], "seen": []}


def missing(seeds: list[list[int]], first: int, last: int) -> Iterator[range]:
    """The ranges of seeds that are still to be played, a hundred at most in each."""
    played = set().union(*(range(*each) for each in seeds)) if seeds else set()
    left = [seed for seed in range(first, last) if seed not in played]
    while left:
        size = next((n for n in range(1, len(left)) if left[n] != left[0] + n or n == AT_ONCE), len(left))
        yield range(left[0], left[0] + size)
        left = left[size:]


def joined(seeds: list[list[int]], more: range) -> list[list[int]]:
    """Ranges of seeds with one more, those that touch made one."""
    whole: list[list[int]] = []
    for low, high in sorted([*seeds, [more.start, more.stop]]):
        if whole and whole[-1][1] >= low:
            whole[-1][1] = max(high, whole[-1][1])
        else:
            whole.append([low, high])
    return whole


def noted(state: dict[str, Any], played: range, report: Report, seconds: float) -> None:
    """Add a report to the state."""
    state["seeds"] = joined(state["seeds"], played)
    state["histories"] += report.histories
    state["steps"] += report.steps
    state["skipped"] += report.skipped
    state["seconds"] = round(state["seconds"] + seconds)
    state["known"] = dict(Counter(state["known"]) + report.pair.met)
    state["found"] += [{"seed": found.seed, "steady": found.steady, "difference": str(found)} for found in report.found]
    seen = Counter({(api, version, code): times for api, version, code, times in state["seen"]})
    seen += report.pair.coverage.seen
    state["seen"] = [[*key, times] for key, times in sorted(seen.items())]
    report.pair.met.clear()
    report.pair.coverage.seen.clear()


def main(first: int, last: int, file: Path, restarts: int = 0, kind: str = "records") -> None:
    """Play until all seeds are played or a signal ends the run."""
    state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else blank()
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    batches = missing(state["seeds"], first, last)
    while not over and (batch := next(batches, None)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            played = 0
            for histories in clusters(Path(folder), kind):
                while batch is not None and not over and played < RESTART_AFTER:
                    began = time.monotonic()
                    report = histories.run(batch, most_found=1_000, restarts=restarts, kind=kind)
                    noted(state, batch, report, time.monotonic() - began)
                    file.write_text(json.dumps(state, indent=0) + "\n", encoding="utf-8")
                    print(line(state), flush=True)  # noqa: T201
                    played += len(batch)
                    batch = next(batches, None) if played < RESTART_AFTER else None


def line(state: Mapping[str, Any]) -> str:
    """How far it is."""
    rate = state["histories"] / max(state["seconds"], 1)
    return f"{state['histories']} histories, {state['steps']} steps, {rate:.1f}/s, {len(state['found'])} found"


def clusters(folder: Path, kind: str = "records") -> Iterator[Histories]:
    """Both, for as long as the iterator is held."""
    settings = OF_KINDS.get(kind)
    ours = Understudy(folder / "understudy", settings)
    try:
        theirs = Kafka(folder / "kafka", settings)
        try:
            theirs.start()
            yield Histories(Pair(side(theirs), side(ours)))
        finally:
            theirs.stop()
    finally:
        ours.stop()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    restarts_of_each = int(arguments[3]) if len(arguments) > 3 else 0
    main(int(arguments[0]), int(arguments[1]), Path(arguments[2]), restarts_of_each, *arguments[4:5])
