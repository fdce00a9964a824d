"""The next target of a group: the partitions that each member should have (groups C.4 H8, H10 and groups C.7).

After Kafka's ``TargetAssignmentBuilder``. Consumer groups use it; share groups assign by the same steps, with an
assignor of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from broker.coordination.group.modern.assignor.range import Assignment, Assignor, Job, Subscriber, assign_ranges
from broker.coordination.group.modern.assignor.uniform import assign_uniformly
from broker.coordination.group.modern.topics import Topics
from protocol.java import HashMap, copied_capacity, string_hash, table_order

Partitions = Mapping[UUID, frozenset[int]]
"""Topic id -> partitions."""
ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that ``group.consumer.assignors`` and clients give them."""


class AssignedMember(Protocol):
    """A member as far as its assignment is concerned. ``regex`` is "" for a member that subscribes by names alone."""

    @property
    def member_id(self) -> str:
        """Its id."""
        ...

    @property
    def instance_id(self) -> str | None:
        """Its instance id, if it is static."""
        ...

    @property
    def subscribed(self) -> frozenset[str]:
        """The names of the topics that it subscribes to."""
        ...

    @property
    def regex(self) -> str:
        """The regular expression that it subscribes by."""
        ...


M = TypeVar("M", bound=AssignedMember)


def effective_assignor(preferred: Iterable[str | None], configured: Sequence[str]) -> str:
    """The assignor that most members prefer; ties as in Java. Without any preference it is the first configured one."""
    votes = Counter(name for name in preferred if name is not None)
    if not votes:
        return configured[0]
    return max(table_order(list(votes), string_hash), key=votes.__getitem__)


def compute_target(
    members: HashMap[M],
    names_of: Callable[[M], frozenset[str]],
    targets: Mapping[str, Partitions],
    assignor: Assignor,
    topics: Topics,
) -> dict[str, Assignment]:
    """The assignor's result for these members, whose targets so far are ``targets``.

    ``names_of`` gives the topics that a member subscribes to, those included that its regular expression matches.
    """
    ids: dict[str, UUID] = {}
    counts: dict[UUID, int] = {}
    subscribers = []
    for member in members.values():
        names = names_of(member)
        for name in names:
            if name not in ids and (topic := topics.named(name)) is not None:
                ids[name] = topic.id
                counts[topic.id] = topic.partition_count
        ordered = table_order(sorted(names), string_hash, copied_capacity(len(names)))
        existing = tuple(ids[name] for name in ordered if name in ids)
        target = targets.get(member.member_id, {})
        subscribers.append(Subscriber(member.member_id, member.instance_id, existing, len(names), target))
    return assignor(Job(subscribers, counts, _is_homogeneous(members.values())))


def _is_homogeneous(members: Iterable[AssignedMember]) -> bool:
    """Whether all subscribe to the same: by the same names, or by one regular expression alone."""
    subscriptions = {(member.subscribed, member.regex) for member in members}
    if len(subscriptions) > 1:
        return False
    return all(not regex or not names for names, regex in subscriptions)
