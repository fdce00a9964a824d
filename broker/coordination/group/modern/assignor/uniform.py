"""The assignor ``uniform`` (groups C.7): all members have equally many partitions, and keep those they have.

If all members subscribe to the same topics, quotas are enough. Else unassigned partitions go to the subscriber with the
fewest partitions; then, topic by topic, partitions move from the subscriber with the most to the one with the fewest,
until none moves (Kafka's ``UniformHeterogeneousAssignmentBuilder``).
"""

from uuid import UUID

from broker.coordination.group.modern.assignor.range import Assignment, Job, Subscriber
from protocol.java import as_long, copied_capacity, table_order, uuid_hash


def assign_uniformly(job: Job) -> dict[str, Assignment]:
    """Return the assignment of each member, as Kafka's ``UniformAssignor``."""
    if not job.subscribers:
        return {}
    return _assign_alike(job) if job.homogeneous else assign_balanced(job)


def _assign_alike(job: Job) -> dict[str, Assignment]:
    first = job.subscribers[0]
    topics = table_order(first.topics, uuid_hash, copied_capacity(first.names))
    taken: dict[UUID, set[int]] = {}
    for each in job.subscribers:
        for topic_id, partitions in each.target.items():
            taken.setdefault(topic_id, set()).update(partitions)
    unassigned = [
        (topic_id, partition)
        for topic_id in topics
        for partition in range(job.partitions[topic_id])
        if partition not in taken.get(topic_id, ())
    ]
    share, more = divmod(sum(job.partitions[topic_id] for topic_id in topics), len(job.subscribers))
    assignments: dict[str, dict[UUID, set[int]]] = {}
    hungry: list[tuple[Subscriber, int]] = []
    subscribed = frozenset(topics)
    for index, each in enumerate(job.subscribers):
        has_more = more > 0
        kept, quota = _kept(each, subscribed, share + has_more, unassigned)
        assignments[each.member_id] = kept
        if quota > 0 and has_more and len(job.subscribers) - index > more:
            quota -= 1
            has_more = False
        if quota > 0:
            hungry.append((each, quota))
        more -= has_more
    waiting = iter(unassigned)
    for each, quota in hungry:
        for _, (topic_id, partition) in zip(range(quota), waiting, strict=False):
            assignments[each.member_id].setdefault(topic_id, set()).add(partition)
    return {
        member_id: {topic_id: frozenset(kept[topic_id]) for topic_id in table_order(list(kept), uuid_hash)}
        for member_id, kept in assignments.items()
    }


def _kept(
    each: Subscriber, subscribed: frozenset[UUID], quota: int, unassigned: list[tuple[UUID, int]]
) -> tuple[dict[UUID, set[int]], int]:
    """Return the partitions that a member keeps within its quota, and the rest of the quota; free the others."""
    kept: dict[UUID, set[int]] = {}
    for topic_id in table_order(list(each.target), uuid_hash):
        partitions = each.target[topic_id]
        if topic_id not in subscribed:
            continue
        if len(partitions) <= quota:
            kept[topic_id] = set(partitions)
            quota -= len(partitions)
            continue
        ordered = table_order(sorted(partitions), int, copied_capacity(len(partitions)))
        if quota > 0:
            kept[topic_id] = set(ordered[:quota])
        unassigned.extend((topic_id, partition) for partition in ordered[quota:])
        quota = 0
    return kept, quota


# --- members that subscribe to different topics -----------------------------------------------------------------------

_MOST_PASSES = 16
"""Passes over all topics, after which the assignment may remain unbalanced, as in Kafka (groups C.7)."""


def assign_balanced(job: Job) -> dict[str, Assignment]:
    """Return the assignment of each member, as Kafka's ``UniformHeterogeneousAssignmentBuilder``."""
    return _Balance(job).assigned()


class _Balance:
    """One run of the assignor. Members are numbered in the order of their table."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._sizes = [0] * len(job.subscribers)
        self._owners: dict[UUID, list[int | None]] = {}
        self._readers: dict[UUID, list[int]] = {}
        for number, each in enumerate(job.subscribers):
            for topic_id in each.topics:
                self._readers.setdefault(topic_id, []).append(number)
        for topic_id in self._readers:
            self._owners[topic_id] = [None] * job.partitions[topic_id]
        self._topics = sorted(self._readers, key=self._rank)

    def _rank(self, topic_id: UUID) -> tuple[float, int, int, int]:
        readers = len(self._readers[topic_id])
        # Java compares the halves of a Uuid as longs.
        most, least = as_long(topic_id.int >> 64), as_long(topic_id.int)
        return -self._job.partitions[topic_id] / readers, readers, most, least

    def assigned(self) -> dict[str, Assignment]:
        """Return the partitions of each member."""
        self._keep()
        for topic_id in self._topics:
            self._hand_out(topic_id)
        self._balance()
        assignments: dict[str, dict[UUID, set[int]]] = {each.member_id: {} for each in self._job.subscribers}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner is not None:
                    member_id = self._job.subscribers[owner].member_id
                    assignments[member_id].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(kept[topic_id]) for topic_id in table_order(list(kept), uuid_hash)}
            for member_id, kept in assignments.items()
        }

    def _keep(self) -> None:
        for number, each in enumerate(self._job.subscribers):
            subscribed = frozenset(each.topics)
            for topic_id, partitions in each.target.items():
                if topic_id not in subscribed:
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    if partition < len(owners):
                        owners[partition] = number
                        self._sizes[number] += 1

    def _hand_out(self, topic_id: UUID) -> None:
        owners = self._owners[topic_id]
        least = _Least(self._readers[topic_id], self._sizes)
        for partition, owner in enumerate(owners):
            if owner is None:
                owners[partition] = number = least.pick()
                self._sizes[number] += 1

    def _balance(self) -> None:
        """Balance topics with several subscribers: at most sixteen rounds, until a round moves no partition."""
        topics = [topic_id for topic_id in self._topics if len(self._readers[topic_id]) > 1]
        still, enough = 0, len(topics)
        for _ in range(_MOST_PASSES):
            for topic_id in topics:
                if still >= enough:
                    return
                if self._level(topic_id):
                    still, enough = 0, len(topics) - 1  # this topic need not be checked again
                else:
                    still += 1

    def _level(self, topic_id: UUID) -> bool:
        """Move partitions of one topic from members with most to members with fewest; return whether any moved."""
        readers, owners, sizes = self._readers[topic_id], self._owners[topic_id], self._sizes
        counts = [sizes[number] for number in readers]
        if max(counts) - min(counts) <= 1:
            return False
        runs: dict[int, list[int]] = {number: [] for number in readers}
        for partition, owner in enumerate(owners):
            if owner is not None and owner in runs:
                runs[owner].append(partition)
        least, most = _Least(readers, sizes), _Most(readers, sizes)
        moved = False
        while True:
            giver = most.pick()
            while giver is not None and not runs[giver]:
                most.exclude()
                giver = most.pick()
            if giver is None:
                return moved
            taker = least.pick()
            if most.level - least.level <= 1:
                return moved
            partition = runs[giver].pop()
            owners[partition] = taker
            sizes[giver] -= 1
            sizes[taker] += 1
            moved = True


class _Least:
    """Picks members in ascending order of their number of partitions, one after the other on each level."""

    def __init__(self, readers: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(readers, key=lambda number: (sizes[number], number))
        self.level = sizes[self._sorted[0]] - 1
        self._end = self._next = 0

    def pick(self) -> int:
        """Return the next member; its number of partitions is the level, and the caller adds one."""
        if self._next >= self._end:
            self.level += 1
            while self._end < len(self._sorted) and self._sizes[self._sorted[self._end]] == self.level:
                self._end += 1
            self._next = 0
        number = self._sorted[self._next]
        self._next += 1
        return number


class _Most:
    """Picks members in descending order of their number of partitions: the mirror image of ``_Least``."""

    def __init__(self, readers: list[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(readers, key=lambda number: (sizes[number], number))
        self.level = sizes[self._sorted[-1]] + 1
        self._start = self._end = len(self._sorted)
        self._next = self._end - 1

    def pick(self) -> int | None:
        """Return the next member, ``None`` if all are excluded; the caller removes one of its partitions."""
        if self._next < self._start:
            if self._start < self._end:
                self.level -= 1
            elif self._start > 0:
                self.level = self._sizes[self._sorted[self._start - 1]]
            while self._start > 0 and self._sizes[self._sorted[self._start - 1]] == self.level:
                self._start -= 1
            self._next = self._end - 1
        if self._next < 0 or self._next < self._start:
            return None
        number = self._sorted[self._next]
        self._next -= 1
        return number

    def exclude(self) -> None:
        """Exclude the member that was picked last."""
        at = self._next + 1
        self._sorted[at], self._sorted[self._end - 1] = self._sorted[self._end - 1], self._sorted[at]
        self._end -= 1
