"""Cached target from which members get their tasks in 4.4 (groups E.6; ``AssignmentRefiner``).

It is meant to become an intermediate assignment with warm-up tasks; in 4.4.0 it is the target itself. Kafka keeps it
outside of the records, even if the heartbeat that computed it fails afterwards; then members do not get the next target
of that epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.coordination.group.modern.streams.tasks import TaskSets


@dataclass(slots=True)
class Refined:
    """Tasks by member id, and the epoch of their target."""

    epoch: int = -1
    tasks: Mapping[str, TaskSets] = field(default_factory=dict)

    def relabel(self, member_id: str, heir_id: str) -> None:
        """Move a static member's tasks to its replacement, even if that is refused later (groups E.6)."""
        if member_id in self.tasks:
            tasks = dict(self.tasks)
            tasks[heir_id] = tasks.pop(member_id)
            self.tasks = tasks

    def keep(self, epoch: int, tasks: Mapping[str, TaskSets]) -> None:
        """Cache the tasks of an epoch; the mapping must not change afterwards."""
        self.epoch, self.tasks = epoch, tasks

    def of_epoch(self, epoch: int) -> Mapping[str, TaskSets] | None:
        """Return the cached tasks of an epoch, or ``None``."""
        return self.tasks if self.epoch == epoch else None
