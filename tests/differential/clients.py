"""What each client observes on a real Kafka and on ours: events, exceptions, records and their order.

``python -m tests.differential.clients [NAME...]`` plays the scripts of ``tests/clients`` on both, one client after the
other, and prints what differs. The scripts note a library's calls; of what plays by itself (franz-go under load,
Kafka's test tools, Streams), and judges every record by itself, the steps' outcomes are compared.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from comparison.difference import Difference, differences
from tests.clients import targets
from tests.clients.clients import GO, JAVA, JAVASCRIPT, KAFKA_TOOLS, PYTHON, RUST, TRANSACTIONS
from tests.clients.drivers import Driver, Played, play
from tests.clients.known import KNOWN
from tests.differential.responses import BY_TIMING, again, outcome, text, without_chance

ALL = (*PYTHON, *JAVA, *GO, *JAVASCRIPT, *RUST, *KAFKA_TOOLS, *TRANSACTIONS)
OUTCOMES_ONLY = {"franz-go-load", "kafka-test-tools-4.3.1", "kafka-streams-4.3.1", "kafka-streams-4.4.0"}
"""Clients whose calls are not noted."""


def seen(played: Played) -> dict[str, Any]:
    """Step -> whether it passed, its detail, and its calls."""
    steps: dict[str, Any] = {}
    calls: list[Mapping[str, Any]] = []
    for line in played.reported:
        if "call" in line:
            call = without_chance(line)
            if calls and again(calls[-1], call):
                calls.pop()
            calls.append(call)
        else:
            step = line["step"]
            if step in BY_TIMING:
                steps[step] = {"ok": line["ok"], "outcomes": sorted({outcome(call) for call in calls})}
            else:
                reported = line["detail"] if not line["ok"] else ""
                steps[step] = {"ok": line["ok"], "detail": text(reported), "calls": list(calls)}
            calls = []
    return steps


def compared(driver: Driver, kafka: targets.Target, understudy: targets.Target) -> tuple[int, list[Difference]]:
    """Play a client on both: the number of calls and steps that were held against each other, and what differs."""
    base_ms = (int(time.time()) - 3600) * 1000
    theirs, ours = (seen(play(driver, target, f"seen-{driver.name}", base_ms)) for target in (kafka, understudy))
    failed = [name for name in driver.steps if not theirs.get(name, {}).get("ok") and (driver.name, name) not in KNOWN]
    if failed:
        raise RuntimeError(f"{driver.name} does not play {failed} on a real Kafka")
    count = sum(1 + len(step.get("calls", step.get("outcomes", ()))) for step in theirs.values())
    return count, list(differences(driver.name, theirs, ours))


@contextmanager
def both(brokers: int = 1) -> Iterator[tuple[targets.Target, targets.Target]]:
    """A real Kafka and ours."""
    targets.prepare_kafka()
    with closing(targets.start(brokers, "kafka")) as kafka, closing(targets.start(brokers, "understudy")) as understudy:
        yield kafka, understudy


def main(names: Sequence[str]) -> int:
    """Compare and print; return 1 where something differs."""
    failed = 0
    with both() as (kafka, understudy):
        for driver in ALL:
            if names and driver.name not in names:
                continue
            began = time.monotonic()
            count, differing = compared(driver, kafka, understudy)
            line = f"{driver.name:36} {count:4} seen, {len(differing)} differ, {time.monotonic() - began:.1f} s"
            print(line, *map(str, differing), sep="\n  ! ", flush=True)  # noqa: T201
            failed |= bool(differing)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
