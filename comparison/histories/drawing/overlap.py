"""Makes the requests of a random history overlap: they wait, queue, come in bursts, are cut off."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from comparison.histories.step_request import Step

CONNECTIONS = ("0", "1", "2", "3")
SHORT_MS, LONG_MS = 600, 60_000
WAITING = {"fetch", "fetch_session", "share_fetch"}
ALONE = {"restart", "wait", "share_member_ends", "disconnect"}
"""Steps that need the clusters for themselves."""


def overlapping(steps: Sequence[Step], seed: object) -> list[Step]:
    """Return the steps of a history as a script whose requests overlap."""
    chance = random.Random(f"overlap {seed}")
    return list(_steps([dict(step) for step in steps if step["do"] not in ALONE], chance))


def _steps(steps: Sequence[dict[str, Any]], chance: random.Random) -> Iterator[Step]:
    for number, step in enumerate(steps):
        step.pop("locks_end", None)
        if step.get("c") in ("0", "1"):
            step["c"] = chance.choice(CONNECTIONS)
        if step["do"] in WAITING and chance.randrange(4):
            _wait(step, chance)
        if number > 1 and chance.randrange(4) == 0:
            step["now"] = True
        yield step
        if number > 1 and chance.randrange(14) == 0:
            cut: dict[str, Any] = {"do": "cut", "c": chance.choice(CONNECTIONS)}
            yield cut | ({"now": True} if chance.randrange(2) else {})


def _wait(step: dict[str, Any], chance: random.Random) -> None:
    """Let a fetch wait, mostly from the end of the log, for more bytes than there are."""
    step["max_wait"] = chance.choice((SHORT_MS, SHORT_MS, LONG_MS))
    step["min_bytes"] = chance.choice((1, 1, 1, 150, 400, 1 << 20))
    if step["do"] == "fetch" and chance.randrange(4):
        step["from"] = chance.choice((0, 0, 0, 0, -1, -2, 1))
