"""Tasks of a streams group: a subtopology and a partition each, in one of three roles.

An active task reads and writes, a standby task keeps a copy of its state, a warm-up task builds that copy in order to
become active. The coordinator knows of each active task since which epoch its owner has it (KIP-1251).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from protocol.java import string_hash, table_order
from protocol.log_records.streams_group import CurrentTasks, TargetTasks

Tasks = Mapping[str, frozenset[int]]
"""Subtopology id -> partitions; a subtopology without any is left out."""
DatedTasks = Mapping[str, Mapping[int, int]]
"""Subtopology id -> partition -> the epoch in which the member got the task."""
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
    """Tasks that a member has by role, active ones with the epochs of their assignment."""

    active: DatedTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def undated(self) -> TaskSets:
        """The tasks alone."""
        return TaskSets(
            {subtopology: frozenset(epochs) for subtopology, epochs in self.active.items()}, self.standby, self.warmup
        )


NO_TASKS = TaskSets()


def overlap(tasks: Tasks, others: Tasks) -> bool:
    """Whether a task is in both."""
    return any(not partitions.isdisjoint(others.get(subtopology, ())) for subtopology, partitions in tasks.items())


def any_in_common(tasks: TaskSets, others: TaskSets) -> bool:
    """Whether a task is in both, in the same role."""
    return (
        overlap(tasks.active, others.active)
        or overlap(tasks.standby, others.standby)
        or overlap(tasks.warmup, others.warmup)
    )


def in_java_order(tasks: Mapping[str, V]) -> Iterable[tuple[str, V]]:
    """Subtopologies in the order of Kafka's hash table."""
    return ((subtopology, tasks[subtopology]) for subtopology in table_order(list(tasks), string_hash))


def target_tasks(tasks: Tasks) -> tuple[TargetTasks, ...]:
    """Tasks as a target's record has them."""
    return tuple(TargetTasks(each, tuple(sorted(tasks[each]))) for each in sorted(tasks))


def current_tasks(tasks: Tasks) -> tuple[CurrentTasks, ...]:
    """Standby or warm-up tasks as a member's record has them."""
    return tuple(CurrentTasks(each, tuple(sorted(tasks[each]))) for each in sorted(tasks))


def dated_tasks(tasks: DatedTasks) -> tuple[CurrentTasks, ...]:
    """Active tasks as a member's record has them."""
    return tuple(
        CurrentTasks(each, tuple(sorted(tasks[each])), tuple(tasks[each][at] for at in sorted(tasks[each])))
        for each in sorted(tasks)
    )


def read_tasks(recorded: Iterable[TargetTasks | CurrentTasks]) -> Tasks:
    """Tasks of a record."""
    return {each.subtopology_id: frozenset(each.partitions) for each in recorded}


def read_dated(recorded: Iterable[CurrentTasks], epoch: int) -> DatedTasks:
    """Active tasks of a record; records before 4.3 have no assignment epochs: the member's epoch replaces them."""
    return {
        each.subtopology_id: dict(
            zip(each.partitions, each.assignment_epochs or (epoch,) * len(each.partitions), strict=False)
        )
        for each in recorded
    }
