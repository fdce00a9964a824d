"""A group's next target: what each member shall have (groups C.4 H8, H10), after ``TargetAssignmentBuilder``."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from broker.coordination.group.consumer.assigning import Assignment, Assignor, Job, Subscriber, assign_ranges
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.members import Member, Partitions
from broker.coordination.group.consumer.topics import Topics
from broker.coordination.group.consumer.uniform import assign_uniformly
from broker.coordination.group.java_hash import HashMap, copied_capacity, string_hash, table_order

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that ``group.consumer.assignors`` and clients give them."""


def effective_assignor(members: Iterable[Member], configured: Sequence[str]) -> str:
    """The assignor that most members want; ties fall as in Java, and without any it is the first configured one."""
    wanted = Counter(member.assignor for member in members if member.assignor is not None)
    if not wanted:
        return configured[0]
    order = table_order(list(wanted), string_hash)
    return max(order, key=wanted.__getitem__)


def computed(
    group: ConsumerGroup, members: HashMap[Member], targets: Mapping[str, Partitions], assignor: str, topics: Topics
) -> dict[str, Assignment]:
    """What the assignor makes of these members, whose targets so far are ``targets``."""
    ids: dict[str, UUID] = {}
    counts: dict[UUID, int] = {}
    subscribers = []
    for member in members.values():
        names = group.names_of(member)
        for name in names:
            if name not in ids and (topic := topics.named(name)) is not None:
                ids[name] = topic.id
                counts[topic.id] = topic.partition_count
        ordered = table_order(sorted(names), string_hash, copied_capacity(len(names)))
        found = tuple(ids[name] for name in ordered if name in ids)
        subscribers.append(
            Subscriber(member.member_id, member.instance_id, found, len(names), targets.get(member.member_id, {}))
        )
    return ASSIGNORS[assignor](Job(subscribers, counts, _alike(members.values())))


def _alike(members: Sequence[Member]) -> bool:
    """Whether all subscribe to the same: by the same names, or by one regular expression alone."""
    said = {(member.subscribed, member.regex) for member in members}
    if len(said) > 1:
        return False
    return all(not regex or not names for names, regex in said)
