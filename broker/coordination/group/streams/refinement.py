"""The target as 4.4 hands it out, kept from one heartbeat to the next (groups E.6; ``AssignmentRefiner``).

It will be a step between a target and warm-up tasks; in 4.4.0 it is the target. Kafka keeps it beside the records, even
if the heartbeat that computed it fails afterwards, and that is seen: the next target of that epoch is not handed out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.coordination.group.streams.tasks import TaskSets


@dataclass(slots=True)
class Refined:
    """What members are to have by member id, and in which epoch of the target."""

    epoch: int = -1
    tasks: Mapping[str, TaskSets] = field(default_factory=dict)

    def relabel(self, member_id: str, heir_id: str) -> None:
        """Another member takes the place of a static one, or only tries to (groups E.6)."""
        if member_id in self.tasks:
            tasks = dict(self.tasks)
            tasks[heir_id] = tasks.pop(member_id)
            self.tasks = tasks

    def keep(self, epoch: int, tasks: Mapping[str, TaskSets]) -> None:
        """Hand these tasks out in that epoch; the mapping has to stay as it is."""
        self.epoch, self.tasks = epoch, tasks

    def of_epoch(self, epoch: int) -> Mapping[str, TaskSets] | None:
        """The tasks that were kept of an epoch."""
        return self.tasks if self.epoch == epoch else None
