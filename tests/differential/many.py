"""As many histories as time allows.

Usage: ``python -m tests.differential.many FIRST LAST STATE [RESTARTS [KIND [AT_ONCE [BROKERS]]]]``.

Plays the seeds FIRST to LAST - 1 that STATE (a JSON file) does not have yet, and writes it after each part, so that
a run may be broken off and continued later. It has the differences, the number of requests and the coverage.

AT_ONCE histories are played at the same time on the same clusters, each with its own names and connections. Most of
the time of a history of share groups is spent waiting: 8 at once take little longer than one. Histories of what a
cluster has once (features, users, quotas), those with restarts and those of several BROKERS are played one by one.
"""

import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from comparison.exchange import Pair
from comparison.histories.run import OVERLAPPING, Histories, Report
from tests.clients.targets import oracle_release
from tests.differential.cluster import KafkaCluster
from tests.differential.targets import KAFKA_SETTINGS, OF_KINDS, SETTINGS, THREE, Kafka, Understudy, side
from tests.differential.targets import sides as several_sides
from tests.serving import Server, start
from tools.compact_json import dumps

PART = 100
RESTART_AFTER = 2_000
"""Brokers that made and deleted many thousand topics get slow: both start again."""
APART = ("share", "share_acls", "share_ends", "consumers", "streams")
"""Kinds whose histories know nothing of each other."""


def blank() -> dict[str, Any]:
    """Nothing was played yet."""
    return {"seeds": [], "histories": 0, "steps": 0, "skipped": 0, "seconds": 0, "known": {}, "found": [], "seen": []}


def missing(seeds: list[list[int]], first: int, last: int) -> Iterator[range]:
    """The ranges of seeds that are still to be played, a part at most in each."""
    played = set().union(*(range(*each) for each in seeds)) if seeds else set()
    left = [seed for seed in range(first, last) if seed not in played]
    while left:
        size = next((n for n in range(1, len(left)) if left[n] != left[0] + n or n == PART), len(left))
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


def noted(state: dict[str, Any], played: range, reports: Iterable[Report], seconds: float) -> None:
    """Add the reports of a part to the state."""
    state["seeds"] = joined(state["seeds"], played)
    state["seconds"] = round(state["seconds"] + seconds)
    seen = Counter({(api, version, code): times for api, version, code, times in state["seen"]})
    known = Counter(state["known"])
    for report in reports:
        state["histories"] += report.histories
        state["steps"] += report.steps
        state["skipped"] += report.skipped
        state["found"] += [
            {"seed": play.seed, "steady": play.steady, "difference": str(play)} for play in report.differing
        ]
        known += report.pair.met
        seen += report.pair.coverage.seen
        report.pair.met.clear()
        report.pair.coverage.seen.clear()
    state["known"] = dict(known)
    state["seen"] = [[*key, times] for key, times in sorted(seen.items())]


def at_once(sides: Sequence[Histories], seeds: Iterable[int], restarts: int, kind: str) -> list[Report]:
    """Play the seeds, each by the player that is free next."""
    left = iter(list(seeds))

    def play(histories: Histories) -> Report:
        return histories.run(left, most_found=1_000, restarts=restarts, kind=kind)

    with ThreadPoolExecutor(len(sides)) as pool:
        return list(pool.map(play, sides))


def main(
    first: int, last: int, file: Path, restarts: int = 0, kind: str = "records", players: int = 1, brokers: int = 1
) -> None:
    """Play until all seeds are played or a signal ends the run."""
    apart = kind in APART or kind.startswith(OVERLAPPING)
    if players > 1 and (restarts or not apart or brokers > 1):
        raise SystemExit(f"histories of {kind} with {restarts} restarts on {brokers} brokers are played one by one")
    state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else blank()
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    batches = missing(state["seeds"], first, last)
    while not over and (batch := next(batches, None)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            played = 0
            several = ([one] for one in clusters_of_several(Path(folder), brokers))
            for sides in clusters(Path(folder), kind, players) if brokers == 1 else several:
                while batch is not None and not over and played < RESTART_AFTER:
                    began = time.monotonic()
                    reports = at_once(sides, batch, restarts, kind)
                    noted(state, batch, reports, time.monotonic() - began)
                    file.write_text(dumps(state), encoding="utf-8")
                    print(line(state), flush=True)  # noqa: T201
                    played += len(batch)
                    batch = next(batches, None) if played < RESTART_AFTER else None


def line(state: Mapping[str, Any]) -> str:
    """How far it is."""
    rate = state["histories"] / max(state["seconds"], 1)
    return f"{state['histories']} histories, {state['steps']} steps, {rate:.1f}/s, {len(state['found'])} found"


def clusters(
    folder: Path, kind: str = "records", players: int = 1, settings: dict[str, str] | None = None
) -> Iterator[list[Histories]]:
    """Both, with so many players on them, for as long as the iterator is held; ``settings`` replace those of a kind."""
    settings = OF_KINDS.get(kind.removeprefix(OVERLAPPING)) if settings is None else settings
    ours = Understudy(folder / "understudy", settings)
    try:
        theirs = Kafka(folder / "kafka", settings)
        try:
            theirs.start()
            yield [
                Histories(Pair(side(theirs, number), side(ours, number)), f"h{number or ''}")
                for number in range(players)
            ]
        finally:
            theirs.stop()
    finally:
        ours.stop()


def clusters_of_several(folder: Path, brokers: int = 3) -> Iterator[Histories]:
    """Both, with several brokers each, for as long as the iterator is held."""
    ours = Server(start(brokers=brokers, settings={**SETTINGS, **THREE}, as_version=oracle_release()))
    try:
        theirs = KafkaCluster(folder / "several", brokers=brokers, settings={**KAFKA_SETTINGS, **THREE})
        try:
            theirs.start()
            yield Histories(Pair(*several_sides(theirs, ours)))
        finally:
            theirs.stop(clean=False)
    finally:
        ours.process.stop()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        int(arguments[0]),
        int(arguments[1]),
        Path(arguments[2]),
        int(arguments[3]) if len(arguments) > 3 else 0,
        arguments[4] if len(arguments) > 4 else "records",
        int(arguments[5]) if len(arguments) > 5 else 1,
        int(arguments[6]) if len(arguments) > 6 else 1,
    )
