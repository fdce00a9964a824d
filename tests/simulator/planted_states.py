"""Mistakes in streams groups, in snapshots and resets, and in features that the simulator has to find."""

from broker.cluster import reset
from broker.cluster.snapshots import Snapshots
from broker.coordination.group.modern.streams import heartbeat, reconciliation
from broker.coordination.group.modern.streams.assignor import _Assignment
from broker.coordination.group.modern.streams.owners import TaskOwners
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.metadata import features
from broker.coordination.metadata.machine import MetadataMachine
from tests.simulator.planted import mistake

PLANTED_STATES = [
    # --- streams groups
    mistake(
        "a task is assigned before its owner has revoked it",
        reconciliation._TakenInPlace.as_active,
        "self.owners.active(task) is not None or",
        "False or",
    ),
    mistake(
        "no member is asked to revoke tasks",
        reconciliation._next,
        "waits = bool(revoke) and goal.owns_any(revoke)",
        "waits = False",
    ),
    mistake(
        "a silent member of a streams group keeps its tasks", MemberTimers._fired, "self._expire(", "(lambda *_: None)("
    ),
    mistake(
        "the owner of an active task is not recorded",
        TaskOwners.add,
        "for task in _each(tasks.active):",
        "for task in ():",
    ),
    mistake(
        "a heartbeat returns an epoch below the member's",
        heartbeat.Heartbeats._result,
        "member_epoch=member.epoch,",
        "member_epoch=max(member.epoch - 1, 1),",
    ),
    mistake(
        "a task is assigned to no member",
        _Assignment.run,
        "_by_subtopology(self._process(member).active[member.member_id]),",
        "_by_subtopology(sorted(self._process(member).active[member.member_id])[1:]),",
    ),
    # --- states to go back to
    mistake("later writes change a snapshot", Snapshots._copy, "return files.snapshot()", "return files"),
    mistake(
        "a snapshot can be restored only once",
        Snapshots.put_back,
        "[each.snapshot() for each in snapshot.files",
        "[each for each in snapshot.files",
    ),
    mistake("restoring a snapshot changes nothing", Snapshots.put_back, "node.files = tuple(kept)", "pass"),
    mistake("only one broker is restored", Snapshots.put_back, "if kept:", "if node.id == 1:"),
    mistake("a reset keeps the logs", reset._throw_away, "clear_directories(cluster.all_nodes)", "pass"),
    # --- features
    mistake("a downgrade may lose metadata", features._loses, "if not any(", "if True or not any("),
    mistake(
        "an upgrade may lower a feature level", features._reason, "if update.level < current and upgrade:", "if False:"
    ),
    mistake(
        "a downgrade may raise a feature level",
        features._reason,
        "if update.level > current and not upgrade:",
        "if False:",
    ),
    mistake(
        "an accepted feature level is not stored",
        MetadataMachine.update_features,
        "if name != features.KRAFT_VERSION",
        "if False",
    ),
    mistake(
        "features are not checked against what brokers support",
        features._unsupported,
        "for node in nodes:",
        "for node in ():",
    ),
]

SEEDS_OF_STREAMS: dict[str, int] = {
    "a task is assigned before its owner has revoked it": 50000,
    "no member is asked to revoke tasks": 50000,
    "the owner of an active task is not recorded": 50000,
    "a heartbeat returns an epoch below the member's": 50000,
    "a task is assigned to no member": 50000,
    "a silent member of a streams group keeps its tasks": 60000,
}
"""Mistake -> a seed whose run finds it with members of a streams group."""
SEEDS_OF_WORLD: dict[str, int] = {
    "later writes change a snapshot": 51001,
    "a snapshot can be restored only once": 51005,
    "restoring a snapshot changes nothing": 51001,
    "only one broker is restored": 51001,
    "a reset keeps the logs": 51000,
}
"""Mistake -> a seed whose run finds it with snapshots, restores and resets."""
SEEDS_OF_RELEASE: dict[str, int] = {
    "a downgrade may lose metadata": 52001,
    "an upgrade may lower a feature level": 52001,
    "a downgrade may raise a feature level": 52005,
    "an accepted feature level is not stored": 52001,
    "features are not checked against what brokers support": 52000,
}
"""Mistake -> a seed whose run finds it with changed features and releases."""
