"""Offsets that members report for tasks whose state they keep (4.4), after ``MemberTaskOffsets``: soft state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker.coordination.group.rules import STREAMS_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.streams_group_heartbeat import TaskOffset

Reported = Iterable[TaskOffset]


@dataclass(frozen=True, slots=True)
class TaskOffsets:
    """Sums of changelog offsets by subtopology id and partition: of the local state, and of the log ends."""

    local: tuple[tuple[str, int, int], ...] = ()
    end: tuple[tuple[str, int, int], ...] = ()

    @property
    def by_task(self) -> dict[tuple[str, int], int]:
        """The offsets of the local state, by task."""
        return {(name, partition): offset for name, partition, offset in self.local}

    def updated(self, local: Sequence[TaskOffset] | None, end: Sequence[TaskOffset] | None) -> "TaskOffsets":
        """Return these offsets with a heartbeat's lists; a null list changes nothing.

        Raises:
            KafkaError: INVALID_REQUEST for a duplicate task in a list.
        """
        return TaskOffsets(self.local if local is None else _listed(local), self.end if end is None else _listed(end))


NO_OFFSETS = TaskOffsets()


def _listed(reported: Reported) -> tuple[tuple[str, int, int], ...]:
    offsets: dict[tuple[str, int], int] = {}
    for each in reported:
        task = each.subtopology_id, each.partition
        if task in offsets:
            message = "Task offsets contain a duplicate entry for subtopology {} and partition {}."
            raise Refusal(ErrorCode.INVALID_REQUEST, *STREAMS_HEARTBEAT.row(".6"), message.format(*task))
        offsets[task] = each.offset
    return tuple((*task, offset) for task, offset in offsets.items())
