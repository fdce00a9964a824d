"""Which share partitions of a group have a state in the share coordinator (groups D.2).

A topic's partitions are initializing, then initialized; a topic is deleting while its state is being deleted. One
record, written whole, holds all three lists. After Kafka's ``ShareGroupStatePartitionMetadataInfo``.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from protocol.java import integer_order, table_order, uuid_hash
from protocol.log_records.share_group import (
    DeletingTopic,
    ShareGroupRecord,
    StatePartitions,
    StateTopic,
)


class TopicState(NamedTuple):
    """Partitions of a topic, with its name."""

    name: str
    partitions: frozenset[int]


TopicStates = Mapping[UUID, TopicState]


@dataclass(frozen=True, slots=True)
class SharePartitions:
    """The three lists, by topic id."""

    initializing: TopicStates = field(default_factory=dict)
    initialized: TopicStates = field(default_factory=dict)
    deleting: Mapping[UUID, str] = field(default_factory=dict)

    @property
    def topic_ids(self) -> frozenset[UUID]:
        """All topics of the three lists."""
        return frozenset((*self.initializing, *self.initialized, *self.deleting))

    def record(self, group_id: str) -> ShareGroupRecord:
        """The record of the lists, topics in the order of Kafka's hash tables."""
        deleting = (DeletingTopic(each, self.deleting[each]) for each in table_order(list(self.deleting), uuid_hash))
        value = StatePartitions(_written(self.initializing), _written(self.initialized), tuple(deleting))
        return ShareGroupRecord.of(group_id, value)

    def begun(self, topics: TopicStates) -> "SharePartitions":
        """With partitions whose state is about to be created; their topics are not deleting any more."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return replace(self, initializing=joined(self.initializing, topics), deleting=deleting)

    def finished(self, topics: TopicStates) -> "SharePartitions":
        """With partitions whose state exists now."""
        return replace(
            self,
            initializing=_without(self.initializing, topics),
            initialized=joined(self.initialized, topics),
        )

    def failed(self, topics: TopicStates) -> "SharePartitions":
        """Without partitions whose state could not be created: a later heartbeat tries again."""
        return replace(self, initializing=_without(self.initializing, topics))

    def removing(self, topics: Mapping[UUID, str]) -> "SharePartitions":
        """With topics whose state is about to be deleted."""
        initialized = {each: state for each, state in self.initialized.items() if each not in topics}
        return replace(self, initialized=initialized, deleting={**self.deleting, **topics})

    def removed(self, topic_ids: Collection[UUID]) -> "SharePartitions":
        """Without topics whose state is deleted."""
        return replace(self, deleting={each: name for each, name in self.deleting.items() if each not in topic_ids})

    def without_topics(self, topic_ids: Collection[UUID]) -> "SharePartitions":
        """Without topics that do not exist any more."""
        return SharePartitions(
            {each: state for each, state in self.initializing.items() if each not in topic_ids},
            {each: state for each, state in self.initialized.items() if each not in topic_ids},
            {each: name for each, name in self.deleting.items() if each not in topic_ids},
        )


def read_state(value: StatePartitions) -> SharePartitions:
    """The lists in a record."""
    return SharePartitions(
        _read(value.initializing),
        _read(value.initialized),
        {each.topic_id: each.topic_name for each in value.deleting},
    )


def joined(first: TopicStates, second: TopicStates) -> TopicStates:
    """The partitions of both."""
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
