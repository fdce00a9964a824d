"""What each client observes on a real Kafka and on ours: events, exceptions, records and their order.

``python -m tests.differential.clients [NAME...]`` plays the scripts of ``tests/clients`` on both, one client after the
other, and prints what differs. Python clients tell each of their calls; of the others, each step's outcome is compared.
"""

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from comparison.difference import Difference, differences
from tests.clients import targets
from tests.clients.clients import GO, JAVA, JAVASCRIPT, KAFKA_TOOLS, PYTHON, RUST, TRANSACTIONS
from tests.clients.drivers import Driver, Played, play

ALL = (*PYTHON, *JAVA, *GO, *JAVASCRIPT, *RUST, *KAFKA_TOOLS, *TRANSACTIONS)
CHANCE = {
    "client.describe_cluster": "Kafka draws the controller that it tells of",
    "client.list_topics": "whoever asked before has made topics of its own",
    "client.list_groups": "likewise groups",
    "client.describe_broker_configs": "addresses, directories and the settings that each was started with",
}
"""Calls whose results are told without their content, and why."""
SEVERAL_PARTITIONS = {"client.consume", "client.read"}
"""Which partition's records come first is the network's business."""
BY_TIMING = {"transform", "timeout", "group_rebalance", "group_leave", "zombie", "transform_under_load"}
"""Steps in which timing decides how often what is called: the different calls and outcomes count."""
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):\d+(/\d+|/bootstrap)?")
NUMBERS = re.compile(r"\d{4,}|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+ ?ms\b|\b\d+(\.\d+)? MB/sec|\b\d+\.\d+\b")


def observing() -> list[Driver]:
    """The clients that tell each of their calls, of this very environment."""
    return [driver for driver in (*PYTHON, *TRANSACTIONS) if driver.part is None]


def text(value: Any) -> Any:
    """Without addresses, long numbers, times and rates."""
    if isinstance(value, str):
        return NUMBERS.sub("N", ADDRESS.sub("BROKER", value))
    if isinstance(value, dict):
        return {key: text(inner) for key, inner in value.items()}
    return [text(inner) for inner in value] if isinstance(value, list) else value


def seen(played: Played) -> dict[str, Any]:
    """Step -> whether it went well, what it said, and its calls."""
    found: dict[str, Any] = {}
    calls: list[Mapping[str, Any]] = []
    for line in played.told:
        if "call" in line:
            if calls and calls[-1]["call"] == line["call"]:
                calls.pop()  # asked again until it was so
            calls.append(told(line))
        else:
            step = line["step"]
            if step in BY_TIMING:
                found[step] = {"ok": line["ok"], "outcomes": sorted({outcome(call) for call in calls})}
            else:
                said = line["detail"] if not line["ok"] else ""
                found[step] = {"ok": line["ok"], "detail": text(said), "calls": list(calls)}
            calls = []
    return found


def outcome(call: Mapping[str, Any]) -> str:
    """A call and how it ended."""
    return f"{call['call']}: {call.get('raised', 'returned')}"


def told(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call's line without what chance decides."""
    if line["call"] in CHANCE and "returned" in line:
        return {"call": line["call"], "returned": CHANCE[line["call"]]}
    if line["call"] == "client.describe_topic" and "returned" in line:  # replicas are placed by chance
        parts = line["returned"].items()
        shape = {index: [len(replicas), sorted(isr) == sorted(replicas)] for index, (_, replicas, isr) in parts}
        return {"call": line["call"], "returned": shape}
    if line["call"] in SEVERAL_PARTITIONS and "returned" in line:
        return {"call": line["call"], "returned": sorted(map(text, line["returned"]), key=_by_partition)}
    return {name: text(value) for name, value in line.items()}


def _by_partition(record: Any) -> Any:
    """Each partition's records in their order; values that do not say where they were, by themselves."""
    return (record["partition"], "") if isinstance(record, dict) else (0, str(record))


def compared(driver: Driver, kafka: targets.Target, understudy: targets.Target) -> tuple[int, list[Difference]]:
    """Play a client on both: the number of calls and steps that were held against each other, and what differs."""
    base_ms = (int(time.time()) - 3600) * 1000
    theirs, ours = (
        seen(play(driver, target, f"seen-{driver.name}", base_ms, OBSERVE="1")) for target in (kafka, understudy)
    )
    count = sum(1 + len(step.get("calls", step.get("outcomes", ()))) for step in theirs.values())
    return count, list(differences(driver.name, theirs, ours))


def each(drivers: Sequence[Driver], brokers: int = 1) -> Iterator[tuple[Driver, int, list[Difference]]]:
    """Each client on both."""
    targets.prepare_kafka()
    with closing(targets.start(brokers, "kafka")) as kafka, closing(targets.start(brokers, "understudy")) as understudy:
        for driver in drivers:
            yield driver, *compared(driver, kafka, understudy)


def main(names: Sequence[str]) -> int:
    """Compare and tell; 1 where something differs."""
    failed = 0
    for driver, count, found in each([driver for driver in ALL if not names or driver.name in names]):
        print(f"{driver.name:36} {count:4} seen, {len(found)} differ", *map(str, found), sep="\n  ! ", flush=True)  # noqa: T201
        failed |= bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
