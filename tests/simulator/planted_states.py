"""Mistakes in streams groups, in snapshots and resets, and in features that the simulator has to find."""

from broker.cluster import reset
from broker.cluster.snapshots import Snapshots
from broker.coordination.group.streams import heartbeat, reconciliation
from broker.coordination.group.streams.assignor import _Assignment
from broker.coordination.group.streams.owners import TaskOwners
from broker.coordination.group.streams.timers import MemberTimers
from broker.coordination.metadata import features
from broker.coordination.metadata.machine import MetadataMachine
from tests.simulator.planted import mistake

PLANTED_STATES = [
    # --- streams groups
    mistake(
        "a task is given before it is free",
        reconciliation._TakenInPlace.as_active,
        "self.owners.active(task) is not None or",
        "False or",
    ),
    mistake(
        "no task is asked to be given up",
        reconciliation._next,
        "waits = bool(revoke) and goal.owns_any(revoke)",
        "waits = False",
    ),
    mistake("a silent member keeps its tasks", MemberTimers._fired, "self._expire(", "(lambda *_: None)("),
    mistake("a load forgets who has a task", TaskOwners.add, "for task in _each(tasks.active):", "for task in ():"),
    mistake(
        "an answer has an epoch below the member's",
        heartbeat.Heartbeats._result,
        "member_epoch=member.epoch,",
        "member_epoch=max(member.epoch - 1, 1),",
    ),
    mistake(
        "a task has no owner",
        _Assignment.run,
        "_by_subtopology(self._process(member).active[member.member_id]),",
        "_by_subtopology(sorted(self._process(member).active[member.member_id])[1:]),",
    ),
    # --- states to go back to
    mistake("a snapshot is written to", Snapshots._copy, "return node.files.snapshot()", "return node.files"),
    mistake(
        "a snapshot can be gone back to once", Snapshots.put_back, "node.files = kept.snapshot()", "node.files = kept"
    ),
    mistake("a restore changes nothing", Snapshots.put_back, "node.files = kept.snapshot()", "pass"),
    mistake("a restore is of one broker", Snapshots.put_back, "if isinstance(kept, MemoryFiles):", "if node.id == 1:"),
    mistake("a reset keeps the logs", reset._throw_away, "clear_directories(cluster.nodes.values())", "pass"),
    # --- features
    mistake("a downgrade loses metadata", features._loses, "if not any(", "if True or not any("),
    mistake("an upgrade lowers a level", features._reason, "if update.level < current and upgrade:", "if False:"),
    mistake("a downgrade raises a level", features._reason, "if update.level > current and not upgrade:", "if False:"),
    mistake("a level is not kept", MetadataMachine.update_features, "if name != features.KRAFT_VERSION", "if False"),
    mistake("no broker is asked what it supports", features._unsupported, "for node in nodes:", "for node in ():"),
]

SEEDS_OF_STREAMS: dict[str, int] = {
    "a task is given before it is free": 50000,
    "no task is asked to be given up": 50000,
    "a load forgets who has a task": 50000,
    "an answer has an epoch below the member's": 50000,
    "a task has no owner": 50000,
    "a silent member keeps its tasks": 60000,
}
"""Mistake -> a seed whose run finds it with members of a streams group."""
SEEDS_OF_WORLD: dict[str, int] = {
    "a snapshot is written to": 51001,
    "a snapshot can be gone back to once": 51005,
    "a restore changes nothing": 51001,
    "a restore is of one broker": 51001,
    "a reset keeps the logs": 51000,
}
"""Mistake -> a seed whose run finds it with snapshots, restores and resets."""
SEEDS_OF_RELEASE: dict[str, int] = {
    "a downgrade loses metadata": 52001,
    "an upgrade lowers a level": 52001,
    "a downgrade raises a level": 52005,
    "a level is not kept": 52001,
    "no broker is asked what it supports": 52000,
}
"""Mistake -> a seed whose run finds it with changed features and releases."""
