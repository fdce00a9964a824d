"""Processes that own the tasks of a streams group, after the three maps of ``StreamsGroup``."""

from collections.abc import Iterator, Mapping

from broker.coordination.group.modern.streams.member import Member
from broker.coordination.group.modern.streams.tasks import Tasks

Task = tuple[str, int]
"""Subtopology id and partition."""


class TaskOwners:
    """Task -> process ids, by role. A task that is being revoked counts as owned.

    As in Kafka, a process is noted once even if two of its members have a task: the first one that loses the task
    removes the process.
    """

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[Task, str] = {}
        self._standby: dict[Task, set[str]] = {}
        self._warmup: dict[Task, set[str]] = {}

    def active(self, task: Task) -> str | None:
        """Return the process that has an active task."""
        return self._active.get(task)

    def has_standby(self, task: Task, process_id: str) -> bool:
        """Return whether a process has a standby task."""
        return process_id in self._standby.get(task, ())

    def has_warmup(self, task: Task, process_id: str) -> bool:
        """Return whether a process has a warm-up task."""
        return process_id in self._warmup.get(task, ())

    def has_replica(self, task: Task, process_id: str) -> bool:
        """Return whether a process has a standby or warm-up task."""
        return self.has_standby(task, process_id) or self.has_warmup(task, process_id)

    def has(self, task: Task, process_id: str) -> bool:
        """Return whether a process has a task in any role."""
        return self._active.get(task) == process_id or self.has_replica(task, process_id)

    def add(self, member: Member) -> None:
        """Note the tasks of a member."""
        for tasks in (member.assigned, member.revoking):
            for task in _each(tasks.active):
                self._active[task] = member.process_id
            _add(self._standby, tasks.standby, member.process_id)
            _add(self._warmup, tasks.warmup, member.process_id)

    def remove(self, member: Member) -> None:
        """Remove the tasks of a member."""
        for tasks in (member.assigned, member.revoking):
            for task in _each(tasks.active):
                if self._active.get(task) == member.process_id:
                    del self._active[task]
            _remove(self._standby, tasks.standby, member.process_id)
            _remove(self._warmup, tasks.warmup, member.process_id)


def _each(tasks: Mapping[str, frozenset[int] | Mapping[int, int]]) -> Iterator[Task]:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield subtopology, partition


def _add(owners: dict[Task, set[str]], tasks: Tasks, process_id: str) -> None:
    for task in _each(tasks):
        owners.setdefault(task, set()).add(process_id)


def _remove(owners: dict[Task, set[str]], tasks: Tasks, process_id: str) -> None:
    for task in _each(tasks):
        processes = owners.get(task)
        if processes is not None:
            processes.discard(process_id)
            if not processes:
                del owners[task]
