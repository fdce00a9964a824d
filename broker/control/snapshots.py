"""Verbs that take snapshots of the cluster's state and restore them."""

from broker.cluster import reset
from broker.cluster.snapshots import CannotKeep
from broker.control.problems import conflict, not_found
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.settings.endpoints import PortTaken
from control_api.answers.cluster import SnapshotInfo, Snapshots
from control_api.cluster import SnapshotRestored, SnapshotTaken


@answers("snapshots take")
async def take(request: ControlRequest) -> SnapshotTaken:
    """Take a snapshot of the whole cluster: topics, records, groups, transactions, time."""
    try:
        return {"id": await reset.take_snapshot(request.cluster)}
    except CannotKeep as error:
        raise conflict(str(error)) from error


@answers("snapshots list")
async def read_all(request: ControlRequest) -> Snapshots:
    """List the snapshots, oldest first."""
    kept = request.cluster.snapshots.kept
    return {"snapshots": [SnapshotInfo(id=name, at_ms=snapshot.taken_at_ms) for name, snapshot in kept.items()]}


@answers("snapshots restore")
async def restore(request: ControlRequest) -> SnapshotRestored:
    """Restore a snapshot, as often as needed; connections stay open, coordinators load again."""
    name, kept = request.names["snapshot"], request.cluster.snapshots.kept
    if name not in kept:
        names = ", ".join(kept) or "none"
        raise not_found(f"there is no snapshot {name}; there are {names}")
    try:
        await reset.restore(request.cluster, kept[name])
    except (CannotKeep, PortTaken) as error:
        raise conflict(str(error)) from error
    return {"id": name, "status": "ok"}
