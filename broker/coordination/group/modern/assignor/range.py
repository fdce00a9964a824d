"""The server's assignors: the distribution of partitions over members (groups C.7), after Kafka's ``group.assignor``.

Where several assignments are as good, Kafka's falls as its hash tables iterate; so does this one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from protocol.java import utf16

Assignment = dict[UUID, frozenset[int]]
"""A member's partitions by topic."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it.

    ``topics`` are the ids of the existing topics that it subscribes to, in the order of its set of names, which has
    ``names`` of them; ``target`` is what it should have had so far.
    """

    member_id: str
    instance_id: str | None
    topics: tuple[UUID, ...]
    names: int
    target: Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Job:
    """What there is to assign: subscribers in the order of their table, and the partition count of each topic."""

    subscribers: Sequence[Subscriber]
    partitions: Mapping[UUID, int]
    homogeneous: bool


Assignor = Callable[[Job], dict[str, Assignment]]
"""A job to the assignment of each member."""


def assign_ranges(job: Job) -> dict[str, Assignment]:
    """``range``: of each topic, each subscriber has a run of partitions; the first have one more where need be.

    In a group that is held for homogeneous all are taken for subscribers of what the first one subscribes to.
    """
    ordered = sorted(
        job.subscribers,
        key=lambda each: (
            each.instance_id is None,
            utf16(each.member_id if each.instance_id is None else each.instance_id),
        ),
    )
    found: dict[str, Assignment] = {each.member_id: {} for each in ordered}
    readers: dict[UUID, list[Subscriber]] = {}
    for each in ordered:
        for topic_id in (ordered[0] if job.homogeneous else each).topics:
            readers.setdefault(topic_id, []).append(each)
    for topic_id, members in readers.items():
        share, more = divmod(job.partitions[topic_id], len(members))
        at = 0
        for index, each in enumerate(members):
            size = share + (index < more)
            if size:
                found[each.member_id][topic_id] = frozenset(range(at, at + size))
            at += size
    return found
