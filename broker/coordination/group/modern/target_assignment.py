"""Target assignment of a group: the partitions that each member should have (groups C.4 H8, H10 and groups C.7).

After Kafka's ``TargetAssignmentBuilder``, for consumer groups. Share groups do the same with another assignor.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from broker.coordination.group.modern.assignor.plugin import plugin_assignor
from broker.coordination.group.modern.assignor.range import Assignment, Assignor, Job, Subscriber, assign_ranges
from broker.coordination.group.modern.assignor.uniform import assign_uniformly
from broker.coordination.group.modern.topics import Topics
from broker.coordination.settings import Settings
from control_api.plugins import CONSUMER_ASSIGNORS, is_reference, name_of_reference
from protocol.java import (
    HashMap,
    HashTable,
    copied_capacity,
    reserved_capacity,
    string_hash,
    table_order,
    timeline_order,
)

Partitions = Mapping[UUID, frozenset[int]]
"""Topic id -> partitions."""
ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""Assignors by their names in ``group.consumer.assignors`` and in requests."""
_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
_CLASSES = {f"{_PACKAGE}.UniformAssignor": "uniform", f"{_PACKAGE}.RangeAssignor": "range"}


class AssignedMember(Protocol):
    """The part of a member that its assignment depends on. ``regex`` is "" if it subscribes only by names."""

    @property
    def member_id(self) -> str:
        """The member id."""
        ...

    @property
    def instance_id(self) -> str | None:
        """The instance id of a static member."""
        ...

    @property
    def subscribed(self) -> frozenset[str]:
        """The names of the topics that the member subscribes to."""
        ...

    @property
    def regex(self) -> str:
        """The regular expression that the member subscribes by."""
        ...


M = TypeVar("M", bound=AssignedMember)


class Votes(Protocol):
    """The part of a member that prefers an assignor."""

    @property
    def assignor(self) -> str | None:
        """The name of the preferred assignor, or ``None``."""
        ...


def assignor_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of the assignors that groups may choose from; the first is the default.

    The setting may also have class names (``ConsumerGroupPartitionAssignor.name``), and Python callables.
    """
    return tuple(_name_of(each) for each in settings.list(CONSUMER_ASSIGNORS))


def _name_of(configured: str) -> str:
    return name_of_reference(configured) if is_reference(configured) else _CLASSES.get(configured, configured)


def assignor_named(name: str, settings: Settings) -> Assignor:
    """Return an assignor; for a custom class of Java, which is not loaded, the uniform one."""
    for configured in settings.list(CONSUMER_ASSIGNORS):
        if is_reference(configured) and name_of_reference(configured) == name:
            return plugin_assignor(configured)
    return ASSIGNORS.get(name, assign_uniformly)


def shown_assignor(members: Iterable[Votes], configured: Sequence[str]) -> str:
    """Return the assignor that most members prefer, for ConsumerGroupDescribe (``preferredServerAssignor``).

    With equal votes it is the first in Kafka's ``TimelineHashMap``, without votes the first configured one.
    """
    votes = _votes(members)
    return max(timeline_order(votes), key=votes.__getitem__) if votes else configured[0]


def next_assignor(members: Iterable[Votes], before: Votes, after: Votes, configured: Sequence[str]) -> str:
    """Return the assignor of the next target, while a member changes (``computePreferredServerAssignor``).

    ``members`` are the members before the change. Kafka counts the votes in a copy, a ``HashMap``, so with equal votes
    it may be another assignor than in ConsumerGroupDescribe.
    """
    votes = _votes(members)
    capacity = reserved_capacity(len(votes))
    counts: HashTable[str, int] = HashTable(string_hash, capacity)
    for name in timeline_order(votes):
        counts.put(name, votes[name])
    if before.assignor is not None:
        left = (counts.get(before.assignor) or 0) - 1
        counts.put(before.assignor, left) if left > 0 else counts.remove(before.assignor)
    if after.assignor is not None:
        counts.get_or_create(after.assignor, lambda: 0)
        counts.put(after.assignor, (counts.get(after.assignor) or 0) + 1)
    vote_counts = dict(counts.items())
    return max(vote_counts, key=vote_counts.__getitem__) if vote_counts else configured[0]


def _votes(members: Iterable[Votes]) -> Counter[str]:
    return Counter(member.assignor for member in members if member.assignor is not None)


def compute_target(
    members: HashMap[M],
    names_of: Callable[[M], frozenset[str]],
    targets: Mapping[str, Partitions],
    assignor: Assignor,
    topics: Topics,
    *,
    homogeneous: bool | None = None,
) -> dict[str, Assignment]:
    """Return the assignor's result for these members; ``targets`` are their current targets.

    ``names_of`` returns the topics that a member subscribes to, also by regular expression; ``homogeneous`` is the
    group's cached flag whether all subscriptions are the same, which may be outdated.
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
    alike = _is_homogeneous(members.values()) if homogeneous is None else homogeneous
    return assignor(Job(subscribers, counts, alike, {topic_id: name for name, topic_id in ids.items()}))


def _is_homogeneous(members: Iterable[AssignedMember]) -> bool:
    """Return whether all subscriptions are the same: the same names, or one regular expression without names."""
    subscriptions = {(member.subscribed, member.regex) for member in members}
    if len(subscriptions) > 1:
        return False
    return all(not regex or not names for names, regex in subscriptions)
