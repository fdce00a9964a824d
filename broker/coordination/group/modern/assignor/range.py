"""Types of server-side assignors, and the assignor ``range`` (groups C.7), after Kafka's ``group.assignor``.

Ties between equally good assignments are broken by the iteration order of Kafka's hash tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from uuid import UUID

from protocol.deferred import dataclass
from protocol.java import utf16

Assignment = dict[UUID, frozenset[int]]
"""A member's partitions by topic."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as input to an assignor.

    ``topics`` are the ids of the subscribed topics that exist, in the order of the member's set of names; ``names`` is
    the size of that set; ``target`` is the current target assignment.
    """

    member_id: str
    instance_id: str | None
    topics: tuple[UUID, ...]
    names: int
    target: Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Job:
    """Input of an assignor: subscribers in the order of their table; partition count and name of each topic."""

    subscribers: Sequence[Subscriber]
    partitions: Mapping[UUID, int]
    homogeneous: bool
    names: Mapping[UUID, str] = field(default_factory=dict)


Assignor = Callable[[Job], dict[str, Assignment]]
"""Job -> assignment by member id."""


def assign_ranges(job: Job) -> dict[str, Assignment]:
    """Assign each subscriber of a topic a contiguous range of its partitions; the first ones may have one more.

    In a homogeneous group the subscription of the first member counts for all.
    """
    ordered = sorted(
        job.subscribers,
        key=lambda each: (
            each.instance_id is None,
            utf16(each.member_id if each.instance_id is None else each.instance_id),
        ),
    )
    assignments: dict[str, Assignment] = {each.member_id: {} for each in ordered}
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
                assignments[each.member_id][topic_id] = frozenset(range(at, at + size))
            at += size
    return assignments
