"""Makes the requests of a random history overlap: they wait, queue, come in bursts, are cut off.

How numbers are chosen: `pieces`.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from comparison.histories.step_request import Step

CONNECTIONS = ("0", "1", "2", "3")
SHORT_MS, LONG_MS = 600, 60_000  # waits that end within a script, and that do not
WAITING = {"fetch", "fetch_session", "share_fetch"}
ALONE = {"restart", "wait", "share_member_ends", "disconnect"}
"""Steps that need the clusters for themselves."""
READS = {
    "describe_cluster", "describe_configs", "describe_log_dirs", "describe_topic", "find_coordinator",
    "list_config_resources", "list_groups", "list_offsets", "list_reassignments", "list_transactions", "metadata",
}  # fmt: skip
"""Steps of which most become a fetch that waits: there is little to see in them beside others."""
FETCH_VERSIONS = (4, 11, 12)
"""Without a session, with session fields, and flexible; by topic name, so that a topic may be created meanwhile."""


def overlapping(steps: Sequence[Step], seed: object) -> list[Step]:
    """Return the steps of a history as a script whose requests overlap."""
    chance = random.Random(f"overlap {seed}")
    return list(_steps([dict(step) for step in steps if step["do"] not in ALONE], chance))


def _steps(steps: Sequence[dict[str, Any]], chance: random.Random) -> Iterator[Step]:
    places: list[dict[str, Any]] = []
    shares = [step for step in steps if step["do"] == "share_fetch"]
    for number, drawn in enumerate(steps):
        step = drawn
        if "partition" in step:
            places.append({"topic": step["topic"], "partition": step["partition"]})
        if step["do"] in READS and chance.randrange(4):
            step = dict(chance.choice(shares)) if shares else _poll(step, places, chance)
        step.pop("locks_end", None)
        if step.get("c") in ("0", "1"):
            step["c"] = chance.choice(CONNECTIONS)
        if step["do"] in WAITING and chance.randrange(6):
            _wait(step, chance)
        if number > 1 and chance.randrange(4) == 0:
            step["now"] = True
        yield step
        if number > 1 and chance.randrange(14) == 0:
            cut: dict[str, Any] = {"do": "cut", "c": chance.choice(CONNECTIONS)}
            yield cut | ({"now": True} if chance.randrange(2) else {})


def _poll(step: dict[str, Any], places: Sequence[dict[str, Any]], chance: random.Random) -> dict[str, Any]:
    """Return a fetch of a partition that the script uses; the step itself if there is none yet."""
    if not places:
        return step
    fields = {"offset": chance.randrange(8), "isolation": chance.randrange(2)}
    return {"do": "fetch", "v": chance.choice(FETCH_VERSIONS), "c": step["c"], **chance.choice(places), **fields}


def _wait(step: dict[str, Any], chance: random.Random) -> None:
    """Let a fetch wait, mostly from the end of the log, some of them for more bytes than there are."""
    step["max_wait"] = chance.choice((SHORT_MS, SHORT_MS, LONG_MS))
    step["min_bytes"] = chance.choice((1, 1, 1, 150, 400, 1 << 20))
    if step["do"] == "fetch" and chance.randrange(4):
        step["from"] = chance.choice((0, 0, 0, 0, -1, -2, 1))
