"""The offsets that members report for tasks whose state they keep (4.4), after ``MemberTaskOffsets``: soft state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from protocol.messages.streams_group_heartbeat import TaskOffset

Reported = Iterable[TaskOffset]


@dataclass(frozen=True, slots=True)
class TaskOffsets:
    """Sums of changelog offsets by subtopology id and partition: of the local state, and of the changelogs' ends."""

    local: tuple[tuple[str, int, int], ...] = ()
    end: tuple[tuple[str, int, int], ...] = ()

    @property
    def by_task(self) -> dict[tuple[str, int], int]:
        """The offsets of the local state."""
        return {(name, partition): offset for name, partition, offset in self.local}

    def updated(self, local: Sequence[TaskOffset] | None, end: Sequence[TaskOffset] | None) -> "TaskOffsets":
        """With a heartbeat's lists; null keeps what is known."""
        return TaskOffsets(self.local if local is None else _listed(local), self.end if end is None else _listed(end))


NO_OFFSETS = TaskOffsets()


def _listed(reported: Reported) -> tuple[tuple[str, int, int], ...]:
    return tuple((each.subtopology_id, each.partition, each.offset) for each in reported)
