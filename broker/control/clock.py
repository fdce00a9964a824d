"""Verbs of time."""

from typing import Any

from broker.control.asked import Asked

ADVANCE = {
    "type": "object",
    "properties": {"ms": {"type": "integer", "minimum": 0, "description": "how far to move on, in milliseconds"}},
    "required": ["ms"],
    "additionalProperties": False,
}


def _state(asked: Asked) -> dict[str, Any]:
    clock = asked.cluster.clock
    return {"now_ms": clock.now_ms(), "ahead_ms": clock.pushed_ms, "frozen": clock.frozen}


async def read(asked: Asked) -> dict[str, Any]:
    """The cluster's time, how far it is ahead of the machine's, and whether it stands still."""
    return _state(asked)


async def advance(asked: Asked) -> dict[str, Any]:
    """Move time forward; returns after everything that became due has run."""
    asked.only("ms")
    await asked.cluster.clock.push(asked.integer("ms"))
    return _state(asked)


async def freeze(asked: Asked) -> dict[str, Any]:
    """Stop the clock: from now on only advancing moves it."""
    asked.cluster.clock.freeze()
    return _state(asked)


async def thaw(asked: Asked) -> dict[str, Any]:
    """Let the clock run again, from where it stands."""
    asked.cluster.clock.thaw()
    return _state(asked)
