"""Verbs that keep the cluster's state and go back to it."""

from typing import Any

from broker.control.asked import Asked
from broker.control.problems import conflict, not_found
from broker.endpoints import PortTaken
from broker.snapshots import CannotKeep


async def take(asked: Asked) -> dict[str, Any]:
    """Keep the whole cluster's state: topics, records, groups, transactions, time."""
    asked.only()
    try:
        return {"id": asked.cluster.snapshots.take()}
    except CannotKeep as error:
        raise conflict(str(error)) from error


async def read_all(asked: Asked) -> dict[str, Any]:
    """The states that were kept, oldest first."""
    kept = asked.cluster.snapshots.kept
    return {"snapshots": [{"id": name, "at_ms": snapshot.taken_at_ms} for name, snapshot in kept.items()]}


async def restore(asked: Asked) -> dict[str, Any]:
    """Go back to a state that was kept, as often as you like; connections stay, coordinators load anew."""
    asked.only()
    name, kept = asked.names["snapshot"], asked.cluster.snapshots.kept
    if name not in kept:
        known = ", ".join(kept) or "none"
        raise not_found(f"there is no snapshot {name}; there are {known}")
    try:
        await asked.cluster.snapshots.restore(kept[name])
    except (CannotKeep, PortTaken) as error:
        raise conflict(str(error)) from error
    return {"id": name, "status": "ok"}
