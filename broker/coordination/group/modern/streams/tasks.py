"""Tasks of a streams group: each is a subtopology and a partition, in one of three roles.

An active task reads and writes, a standby task keeps a copy of its state, a warm-up task builds that copy before it
becomes active. The coordinator keeps the epoch in which each active task was assigned (KIP-1251).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from broker.coordination.group.rules import STREAMS_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import string_hash, table_order
from protocol.log_records.streams_group import CurrentTasks, TargetTasks
from protocol.messages.streams_group_heartbeat import TaskOffset

Tasks = Mapping[str, frozenset[int]]
"""Subtopology id -> partitions; a subtopology without partitions is omitted."""
DatedTasks = Mapping[str, Mapping[int, int]]
"""Subtopology id -> partition -> the epoch in which the task was assigned."""
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class TaskSets:
    """Tasks by role."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """A member's tasks by role; active ones with the epochs of their assignment."""

    active: DatedTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def undated(self) -> TaskSets:
        """The tasks without epochs."""
        return TaskSets(
            {subtopology: frozenset(epochs) for subtopology, epochs in self.active.items()}, self.standby, self.warmup
        )


NO_TASKS = TaskSets()


def overlap(tasks: Tasks, others: Tasks) -> bool:
    """Return whether the two have a task in common."""
    return any(not partitions.isdisjoint(others.get(subtopology, ())) for subtopology, partitions in tasks.items())


def any_in_common(tasks: TaskSets, others: TaskSets) -> bool:
    """Return whether the two have a task in common, in the same role."""
    return (
        overlap(tasks.active, others.active)
        or overlap(tasks.standby, others.standby)
        or overlap(tasks.warmup, others.warmup)
    )


def in_java_order(tasks: Mapping[str, V]) -> Iterable[tuple[str, V]]:
    """Iterate over the subtopologies in the order of Kafka's hash table."""
    return ((subtopology, tasks[subtopology]) for subtopology in table_order(list(tasks), string_hash))


def target_tasks(tasks: Tasks) -> tuple[TargetTasks, ...]:
    """Return tasks in the form of a target assignment's record."""
    return tuple(TargetTasks(each, tuple(sorted(tasks[each]))) for each in sorted(tasks))


def current_tasks(tasks: Tasks) -> tuple[CurrentTasks, ...]:
    """Return standby or warm-up tasks in the form of a member's record."""
    return tuple(CurrentTasks(each, tuple(sorted(tasks[each]))) for each in sorted(tasks))


def dated_tasks(tasks: DatedTasks) -> tuple[CurrentTasks, ...]:
    """Return active tasks in the form of a member's record."""
    return tuple(
        CurrentTasks(each, tuple(sorted(tasks[each])), tuple(tasks[each][at] for at in sorted(tasks[each])))
        for each in sorted(tasks)
    )


def read_tasks(recorded: Iterable[TargetTasks | CurrentTasks]) -> Tasks:
    """Return the tasks in a record."""
    return {each.subtopology_id: frozenset(each.partitions) for each in recorded}


def read_dated(recorded: Iterable[CurrentTasks], epoch: int) -> DatedTasks:
    """Return the active tasks in a record; without assignment epochs (before 4.3) the member's ``epoch`` is used."""
    return {
        each.subtopology_id: dict(
            zip(each.partitions, each.assignment_epochs or (epoch,) * len(each.partitions), strict=False)
        )
        for each in recorded
    }


# --- offsets that members report for tasks whose state they keep (4.4): soft state ------------------------------------

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
