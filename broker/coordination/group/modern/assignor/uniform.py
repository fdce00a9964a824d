"""The assignor ``uniform`` (groups C.7): all members have equally many partitions, and keep those they have.

If all members subscribe to the same topics, quotas are enough; else partitions are balanced topic by topic
(``uniform_heterogeneous``).
"""

from uuid import UUID

from broker.coordination.group.modern.assignor.range import Assignment, Job, Subscriber
from broker.coordination.group.modern.assignor.uniform_heterogeneous import assign_balanced
from protocol.java import copied_capacity, table_order, uuid_hash


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
    found: dict[str, dict[UUID, set[int]]] = {}
    hungry: list[tuple[Subscriber, int]] = []
    subscribed = frozenset(topics)
    for index, each in enumerate(job.subscribers):
        has_more = more > 0
        kept, quota = _kept(each, subscribed, share + has_more, unassigned)
        found[each.member_id] = kept
        if quota > 0 and has_more and len(job.subscribers) - index > more:
            quota -= 1
            has_more = False
        if quota > 0:
            hungry.append((each, quota))
        more -= has_more
    waiting = iter(unassigned)
    for each, quota in hungry:
        for _, (topic_id, partition) in zip(range(quota), waiting, strict=False):
            found[each.member_id].setdefault(topic_id, set()).add(partition)
    return {
        member_id: {topic_id: frozenset(kept[topic_id]) for topic_id in table_order(list(kept), uuid_hash)}
        for member_id, kept in found.items()
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
