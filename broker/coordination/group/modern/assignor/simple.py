"""The assignor ``simple`` of share groups, which may assign a partition to several members (groups D.3).

After Kafka's ``SimpleAssignor``. Members keep their partitions as far as possible; the rest is assigned round-robin, in
the iteration order of Kafka's hash tables.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import ceil
from typing import Generic, TypeVar
from uuid import UUID

from broker.coordination.group.modern.assignor.range import Assignment, Subscriber
from protocol.java import HashTable, sized_capacity, table_order, uuid_hash

K = TypeVar("K", bound=tuple[UUID, int] | int)
_MASK = 0xFFFFFFFF  # the 32 bits of Java's int
Assignable = Mapping[UUID, Collection[int]]
"""Topic id -> the partitions that may be assigned: those that are initialized (groups D.2)."""


def assign_simply(
    subscribers: Sequence[Subscriber], assignable: Assignable, *, homogeneous: bool
) -> dict[str, Assignment]:
    """Return the partitions of each member; ``subscribers`` are in the order of their table.

    ``homogeneous``: whether all of them subscribe to the same topics.
    """
    targets = [{topic: set(partitions) for topic, partitions in each.target.items()} for each in subscribers]
    if not any(each.topics for each in subscribers):  # Kafka's result names no member then
        targets = [{} for _ in subscribers]
    elif homogeneous:
        _deal_all(targets, subscribers[0].topics, assignable)
    else:
        _deal_by_topic(subscribers, targets, assignable)
    return {
        each.member_id: {topic: frozenset(partitions) for topic, partitions in target.items()}
        for each, target in zip(subscribers, targets, strict=True)
    }


def _deal_all(targets: list[dict[UUID, set[int]]], topics: Sequence[UUID], assignable: Assignable) -> None:
    wanted = [(topic, partition) for topic in topics for partition in sorted(assignable.get(topic, ()))]
    for target in targets:
        for topic in [topic for topic in target if topic not in topics]:
            del target[topic]
    held = [
        [(topic, partition) for topic in _topic_order(target) for partition in _partition_order(target[topic])]
        for target in targets
    ]
    deal = _Deal(range(len(targets)), wanted, dict(enumerate(held)), _place_hash)
    deal.run()
    for number, (topic, partition) in deal.taken:
        targets[number][topic].discard(partition)
    for number, (topic, partition) in deal.gained:
        targets[number].setdefault(topic, set()).add(partition)


def _deal_by_topic(
    subscribers: Sequence[Subscriber], targets: list[dict[UUID, set[int]]], assignable: Assignable
) -> None:
    # A topic without subscribers stays in the targets, as in Kafka, although it is not assigned.
    union = dict.fromkeys(topic for each in subscribers for topic in each.topics)
    for topic in table_order(list(union), uuid_hash):
        readers = [number for number, each in enumerate(subscribers) if topic in each.topics]
        held = {number: _partition_order(target[topic]) for number, target in enumerate(targets) if topic in target}
        deal = _Deal(readers, sorted(assignable.get(topic, ())), held, int)
        deal.run()
        for number, partition in deal.taken:
            targets[number][topic].discard(partition)
        for number, partition in deal.gained:
            targets[number].setdefault(topic, set()).add(partition)


class _Deal(Generic[K]):
    """One round of assignment: partitions that members lose (``taken``) and gain (``gained``)."""

    def __init__(
        self, members: Sequence[int], wanted: Sequence[K], held: Mapping[int, Sequence[K]], hash_of: Callable[[K], int]
    ) -> None:
        self._members, self._wanted, self._hash_of = members, wanted, hash_of
        count, total = len(members), len(wanted)
        self._sharing = ceil(count / total) if total else 0
        average = self._sharing * total / count if count else 0
        self._want = {each: ceil(average * (at + 1)) - ceil(average * at) for at, each in enumerate(members)}
        self._holders: HashTable[K, HashTable[int, bool]] = HashTable(hash_of, sized_capacity(total))
        self._held: dict[int, HashTable[K, bool]] = {}
        for each in sorted({*members, *held}):
            self._held[each] = HashTable(hash_of)
            for key in held.get(each, ()):
                self._holders.get_or_create(key, lambda: HashTable(int)).put(each, True)
                self._held[each].put(key, True)
        self.taken: list[tuple[int, K]] = []
        self.gained: list[tuple[int, K]] = []

    def run(self) -> None:
        """Take partitions from members with too many, and from too many holders, then assign the rest."""
        for each, keys in self._held.items():
            for key in list(keys)[: max(len(keys) - self._want.get(each, 0), 0)]:
                self._take(each, key)
        for key, holders in self._holders.items():
            for each in list(holders)[: max(len(holders) - self._sharing, 0)]:
                self._take(each, key)
        for key in self._wanted:
            self._holders.get_or_create(key, lambda: HashTable(int))
        self._give([each for each in self._members if len(self._held[each]) < self._want[each]])

    def _take(self, member: int, key: K) -> None:
        self._held[member].remove(key)
        holders = self._holders.get(key)
        if holders is not None:
            holders.remove(member)
        self.taken.append((member, key))

    def _give(self, unfilled: list[int]) -> None:
        """Assign round-robin; the round continues from one partition to the next."""
        at, given_in_round = 0, False
        for key, holders in self._holders.items():
            missing = self._sharing - len(holders)
            while missing > 0:
                if at >= len(unfilled):
                    if not given_in_round or not unfilled:
                        break
                    at, given_in_round = 0, False
                member = unfilled[at]
                at += 1
                if member in holders:
                    continue
                self.gained.append((member, key))
                self._held[member].put(key, True)
                missing -= 1
                given_in_round = True
                if len(self._held[member]) >= self._want[member]:
                    at -= 1
                    del unfilled[at]
            if not unfilled:
                break


def _place_hash(place: tuple[UUID, int]) -> int:
    """Return Java's hash of a partition (``TopicIdPartition.hashCode``)."""
    return (31 * uuid_hash(place[0]) + place[1]) & _MASK


def _topic_order(target: Mapping[UUID, object]) -> list[UUID]:
    return table_order(list(target), uuid_hash)


def _partition_order(partitions: Collection[int]) -> list[int]:
    return table_order(sorted(partitions), int)
