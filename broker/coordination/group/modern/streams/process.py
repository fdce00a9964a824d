"""Processes of a streams application during an assignment, after ``ProcessState``."""

from broker.coordination.group.modern.streams.priority_queue import PriorityQueue
from protocol.java import HashMap

Task = tuple[str, int]
"""Subtopology id and partition."""


class Process:
    """The members of a process; ``active`` and ``standby`` are their tasks by member id."""

    __slots__ = ("_by_load", "_counts", "_task_count", "_tasks", "active", "standby")

    def __init__(self) -> None:
        self._counts: HashMap[int] = HashMap()
        self._task_count = 0
        self._tasks: set[Task] = set()
        self._by_load: PriorityQueue[str] | None = None
        self.active: dict[str, set[Task]] = {}
        self.standby: dict[str, set[Task]] = {}

    @property
    def load(self) -> float:
        """The average number of tasks for each member."""
        return self._task_count / len(self._counts)

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self._counts[member_id] = 0
        self.active[member_id], self.standby[member_id] = set(), set()

    def has(self, task: Task) -> bool:
        """Return whether a member of the process has a task in any role."""
        return task in self._tasks

    def count(self, member_id: str) -> int:
        """Return the number of a member's tasks."""
        return self._counts[member_id]

    def add(self, member_id: str, task: Task, *, active: bool) -> int:
        """Assign a task to a member; return the number of its tasks."""
        self._by_load = None  # as in Kafka: resets the order of equally loaded members
        return self._add(member_id, task, active=active)

    def add_to_least_loaded(self, task: Task, *, active: bool) -> int:
        """Assign a task to the member with the fewest tasks; return the number of its tasks."""
        if len(self._counts) == 1:
            return self._add(next(iter(self._counts)), task, active=active)
        if self._by_load is None:
            self._by_load = PriorityQueue(self._counts.__getitem__, self._counts)
        member_id = self._by_load.poll()
        count = self._add(member_id, task, active=active)
        self._by_load.add(member_id)
        return count

    def _add(self, member_id: str, task: Task, *, active: bool) -> int:
        self._task_count += 1
        self._tasks.add(task)
        (self.active if active else self.standby)[member_id].add(task)
        self._counts[member_id] += 1
        return self._counts[member_id]
