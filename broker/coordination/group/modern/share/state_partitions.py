"""Lists of a group's share partitions by the progress of their state in the share coordinator (groups D.2).

A topic's partitions are initializing, then initialized; a topic is deleting while its state is being deleted. One
record holds all three lists. After Kafka's ``ShareGroupStatePartitionMetadataInfo``.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import NamedTuple
from uuid import UUID

from protocol.deferred import dataclass
from protocol.java import integer_order, table_order, uuid_hash
from protocol.log_records.share_group import (
    DeletingTopic,
    ShareGroupRecord,
    StatePartitions,
    StateTopic,
)


class TopicState(NamedTuple):
    """A topic's name and some of its partitions."""

    name: str
    partitions: frozenset[int]


TopicStates = Mapping[UUID, TopicState]


@dataclass(frozen=True, slots=True)
class SharePartitions:
    """The three lists of a group, by topic id."""

    initializing: TopicStates = field(default_factory=dict)
    initialized: TopicStates = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)

    @property
    def topic_ids(self) -> frozenset[UUID]:
        """The ids of all topics in the three lists."""
        return frozenset((*self.initializing, *self.initialized, *self.deleting))

    def record(self, group_id: str) -> ShareGroupRecord:
        """Return the record of the lists, with topics in the order of Kafka's hash tables."""
        deleting = (DeletingTopic(each, self.deleting[each]) for each in table_order(list(self.deleting), uuid_hash))
        value = StatePartitions(_written(self.initializing), _written(self.initialized), tuple(deleting))
        return ShareGroupRecord.of(group_id, value)

    def begun(self, topics: TopicStates) -> "SharePartitions":
        """Return the lists with more initializing partitions, whose topics are no longer deleting."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return replace(self, initializing=joined(self.initializing, topics), deleting=deleting)

    def finished(self, topics: TopicStates) -> "SharePartitions":
        """Return the lists with these partitions moved from initializing to initialized."""
        return replace(
            self,
            initializing=_without(self.initializing, topics),
            initialized=joined(self.initialized, topics),
        )

    def failed(self, topics: TopicStates) -> "SharePartitions":
        """Return the lists without these initializing partitions; a later heartbeat retries them."""
        return replace(self, initializing=_without(self.initializing, topics))

    def removing(self, topics: Mapping[UUID, str]) -> "SharePartitions":
        """Return the lists with these topics moved from initialized to deleting."""
        initialized = {each: state for each, state in self.initialized.items() if each not in topics}
        return replace(self, initialized=initialized, deleting={**self.deleting, **topics})

    def removed(self, topic_ids: Collection[UUID]) -> "SharePartitions":
        """Return the lists without these deleting topics."""
        return replace(self, deleting={each: name for each, name in self.deleting.items() if each not in topic_ids})

    def without_topics(self, topic_ids: Collection[UUID]) -> "SharePartitions":
        """Return the lists without deleted topics."""
        return SharePartitions(
            {each: state for each, state in self.initializing.items() if each not in topic_ids},
            {each: state for each, state in self.initialized.items() if each not in topic_ids},
            {each: name for each, name in self.deleting.items() if each not in topic_ids},
        )


def read_state(value: StatePartitions) -> SharePartitions:
    """Return the lists in a record."""
    return SharePartitions(
        _read(value.initializing),
        _read(value.initialized),
        {each.topic_id: each.topic_name for each in value.deleting},
    )


def joined(first: TopicStates, second: TopicStates) -> TopicStates:
    """Return the union of both by topic."""
    both = dict(first)
    for topic_id, state in second.items():
        known = both.get(topic_id, TopicState(state.name, frozenset()))
        both[topic_id] = TopicState(state.name, known.partitions | state.partitions)
    return both


def _without(topics: TopicStates, gone: TopicStates) -> TopicStates:
    left = {
        topic_id: TopicState(
            state.name, state.partitions - gone[topic_id].partitions if topic_id in gone else state.partitions
        )
        for topic_id, state in topics.items()
    }
    return {topic_id: state for topic_id, state in left.items() if state.partitions}


def _read(topics: Iterable[StateTopic]) -> TopicStates:
    return {each.topic_id: TopicState(each.topic_name, frozenset(each.partitions)) for each in topics}


def _written(topics: TopicStates) -> tuple[StateTopic, ...]:
    return tuple(
        StateTopic(topic_id, topics[topic_id].name, tuple(integer_order(topics[topic_id].partitions)))
        for topic_id in table_order(list(topics), uuid_hash)
    )
