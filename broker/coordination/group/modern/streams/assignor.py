"""The task assignor ``sticky`` (groups E.6), after Kafka's ``StickyTaskAssignor`` and ``ProcessState``.

Tasks stay with their owners within quotas that are recomputed whenever a member is full; the others go to the process
with the lowest load. Ties are broken by Java's priority queues and hash tables, so that members keep their tasks when a
group moves between Kafka and this broker.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from broker.coordination.group.modern.streams.tasks import Tasks, TaskSets
from protocol.deferred import dataclass
from protocol.java import HashMap, computed_order, string_hash, table_capacity, table_order, utf16

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A queue with the smallest key first. A key may change only while its element is not in the queue."""

    __slots__ = ("_heap", "_key")

    def __init__(self, key: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._key = key
        self._heap: list[T] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        """Add an element."""
        heap, key = self._heap, self._key
        heap.append(element)
        at = len(heap) - 1
        while at > 0:
            parent = (at - 1) >> 1
            if key(element) >= key(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> T:
        """Remove and return the first element. Raises IndexError if the queue is empty."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: T) -> None:
        heap, key = self._heap, self._key
        at, half = 0, len(heap) >> 1
        while at < half:
            child = 2 * at + 1
            if child + 1 < len(heap) and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if key(element) <= key(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element


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


STICKY = "sticky"
"""The assignor's name in ``group.streams.assignors`` and in StreamsGroupDescribe."""


@dataclass(frozen=True, slots=True)
class AssignableMember:
    """A member as input to the assignor; ``offsets`` are those of its local state (4.4).

    ``target`` are the tasks that it should keep: its current target, in 4.4 its assigned tasks.
    """

    member_id: str
    process_id: str
    target: TaskSets
    offsets: Mapping[Task, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """Input of the assignor: subtopologies sorted by id with their number of tasks, and which of them are stateful.

    ``newer``: as in 4.4, where members with local state may get their tasks back.
    """

    members: Sequence[AssignableMember]
    task_counts: Mapping[str, int]
    stateful: frozenset[str]
    standby_count: int
    newer: bool = False


@dataclass(slots=True)
class Quota:
    """The number of tasks for each member: the remaining tasks over the members that are not full."""

    tasks: int
    members: int
    per_member: int = field(init=False)

    def __post_init__(self) -> None:
        self._share()

    def filled(self, count: int) -> None:
        """Note that a member has ``count`` tasks now; if it is full, recompute the quota of the others."""
        if count == self.per_member:
            self.members -= 1
            self.tasks -= count
            self._share()

    def _share(self) -> None:
        self.per_member = -(-self.tasks // self.members) if self.members else 0


class _Assignment:
    """One run of the assignor."""

    def __init__(self, job: Job) -> None:
        self._job = job
        tasks = sum(job.task_counts.values())
        standbys = sum(job.task_counts[name] for name in job.stateful) * job.standby_count
        self._active_quota = Quota(tasks, len(job.members))
        self._quota = Quota(tasks + standbys, len(job.members))
        self._processes: dict[str, Process] = {}
        self._active_before: dict[Task, AssignableMember] = {}
        self._standby_before: dict[Task, list[AssignableMember]] = {}
        for member in job.members:
            self._processes.setdefault(member.process_id, Process()).add_member(member.member_id)
            for task in _each(member.target.active):
                self._active_before[task] = member
        self._note_holders()

    def _note_holders(self) -> None:
        """Collect the members that had each standby task; since 4.4 also those with its state, most caught up first."""
        holders_of: dict[Task, list[tuple[int, int, AssignableMember]]] = {}
        for member in self._job.members:
            standby = set(_each(member.target.standby))
            for task in _each(member.target.standby):
                holders_of.setdefault(task, []).append((0, -member.offsets.get(task, 0), member))
            for task, offset in member.offsets.items() if self._job.newer else ():
                if task not in standby:
                    holders_of.setdefault(task, []).append((1, -offset, member))
        for task, holders in holders_of.items():
            if self._job.newer:
                holders.sort(key=lambda holder: holder[:2])
            self._standby_before[task] = [member for _, _, member in holders]

    def run(self) -> dict[str, TaskSets]:
        """Return the new target of each member."""
        self._assign_active()
        if self._job.standby_count > 0:
            self._assign_standbys()
        return {
            member.member_id: TaskSets(
                _by_subtopology(self._process(member).active[member.member_id]),
                _by_subtopology(self._process(member).standby[member.member_id]),
            )
            for member in self._job.members
        }

    def _process(self, member: AssignableMember) -> Process:
        return self._processes[member.process_id]

    def _processes_by_load(self) -> PriorityQueue[Process]:
        capacity = table_capacity(len(self._job.members))
        if self._job.newer:
            order = computed_order([member.process_id for member in self._job.members], string_hash, capacity)
        else:
            order = table_order(list(self._processes), string_hash, capacity)
        return PriorityQueue(lambda process: process.load, (self._processes[each] for each in order))

    # --- active tasks ------------------------------------------------------------------------------------------------

    def _assign_active(self) -> None:
        tasks = [(name, at) for name, count in self._job.task_counts.items() for at in range(count)]
        tasks.sort(key=_by_partition)
        tasks = [task for task in tasks if not self._stays(task, self._active_before.get(task))]
        tasks = [task for task in tasks if not self._stays(task, self._least_loaded(task, holds_none=False))]
        tasks.sort(key=_by_name)
        queue = self._processes_by_load()
        for task in tasks:
            process = queue.poll()
            count = process.add_to_least_loaded(task, active=True)
            self._active_quota.filled(count)
            self._quota.filled(count)
            queue.add(process)

    def _stays(self, task: Task, member: AssignableMember | None) -> bool:
        """Assign a task to a member that had it, if the quota allows; return whether it did."""
        if member is None:
            return False
        process = self._process(member)
        if process.count(member.member_id) >= self._active_quota.per_member:
            return False
        count = process.add(member.member_id, task, active=True)
        self._active_quota.filled(count)
        self._quota.filled(count)
        return True

    def _least_loaded(self, task: Task, *, holds_none: bool) -> AssignableMember | None:
        """Return the least loaded member that had a standby task; with ``holds_none`` unless its process has it.

        As in Kafka 4.3, ``holds_none`` checks the process of the first member, not that of the least loaded one.
        """
        members = self._standby_before.get(task)
        if not members:
            return None
        if self._job.newer:
            return self._least_loaded_free(task, members, holds_none=holds_none)
        least, first = members[0], self._process(members[0])
        process_load, member_load = first.load, first.count(least.member_id)
        for member in members[1:]:
            process = self._process(member)
            count = process.count(member.member_id)
            if process.load < process_load and not (holds_none and process.has(task)) and count < member_load:
                least, process_load, member_load = member, process.load, count
        return None if holds_none and first.has(task) else least

    def _least_loaded_free(
        self, task: Task, members: Sequence[AssignableMember], *, holds_none: bool
    ) -> AssignableMember | None:
        """Return the least loaded member as 4.4 does: members whose process has the task are skipped."""
        least: AssignableMember | None = None
        process_load = member_load = 0.0
        for member in members:
            process = self._process(member)
            if holds_none and process.has(task):
                continue
            count = process.count(member.member_id)
            if least is None or (process.load < process_load and count < member_load):
                least, process_load, member_load = member, process.load, count
        return least

    # --- standby tasks -----------------------------------------------------------------------------------------------

    def _assign_standbys(self) -> None:
        counts = self._job.task_counts
        tasks = [(name, at) for name, count in counts.items() if name in self._job.stateful for at in range(count)]
        tasks.sort(key=_by_partition, reverse=True)
        left: list[tuple[Task, int]] = []
        for task in tasks:
            for placed in range(self._job.standby_count):
                if not self._keeps_standby(task):
                    left.append((task, self._job.standby_count - placed))
                    break
        left.sort(key=lambda each: _by_name(each[0]), reverse=True)
        queue = self._processes_by_load()
        for task, count in left:
            for _ in range(count):
                if not self._place_standby(queue, task):
                    break

    def _keeps_standby(self, task: Task) -> bool:
        active = self._active_before.get(task)
        if active is not None and not self._process(active).has(task) and self._is_below_quota(active):
            self._add_standby(active, task)
            return True
        standby = self._least_loaded(task, holds_none=True)
        if standby is not None and self._is_below_quota(standby):
            self._add_standby(standby, task)
            return True
        return False

    def _is_below_quota(self, member: AssignableMember) -> bool:
        return self._process(member).count(member.member_id) < self._quota.per_member

    def _add_standby(self, member: AssignableMember, task: Task) -> None:
        self._quota.filled(self._process(member).add(member.member_id, task, active=False))

    def _place_standby(self, queue: PriorityQueue[Process], task: Task) -> bool:
        """Add a standby task to the least loaded process without the task; return whether there is one."""
        having: list[Process] = []
        placed = False
        while queue and not placed:
            process = queue.poll()
            having.append(process)
            if not process.has(task):
                self._quota.filled(process.add_to_least_loaded(task, active=False))
                placed = True
        for process in reversed(having):
            queue.add(process)
        return placed


def assign_sticky(job: Job) -> dict[str, TaskSets]:
    """Return the target of each member."""
    return _Assignment(job).run() if job.members else {}


def _each(tasks: Tasks) -> Iterable[Task]:
    return ((name, partition) for name, partitions in tasks.items() for partition in partitions)


def _by_partition(task: Task) -> tuple[int, bytes]:
    return task[1], utf16(task[0])


def _by_name(task: Task) -> tuple[bytes, int]:
    return utf16(task[0]), task[1]


def _by_subtopology(tasks: Iterable[Task]) -> Tasks:
    partitions_of: dict[str, set[int]] = {}
    for name, partition in tasks:
        partitions_of.setdefault(name, set()).add(partition)
    return {name: frozenset(partitions) for name, partitions in partitions_of.items()}
