"""Changes of share partitions: initialization, new start offsets, deletion (groups D.2, D.10).

Each takes two operations: the first records the intent and returns the share partitions for the call of the share
coordinator, the second records its result. After Kafka's ``alterShareGroupOffsets`` and
``initiateDeleteShareGroupOffsets``.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import field
from uuid import UUID

from broker.coordination.group.modern.share.context import Offsets, ShareContext
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.state_partitions import SharePartitions, TopicState
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import SHARE_HEARTBEAT, SHARE_OFFSETS
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode

_UNKNOWN_NAME = "<UNKNOWN>"


@dataclass(frozen=True, slots=True)
class AlteredOffsets:
    """The first part of AlterShareGroupOffsets: state epoch and start offsets for the share coordinator."""

    state_epoch: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class Deletion:
    """The first part of a deletion: partitions by topic id, the topics' names, and names of topics without a state."""

    partitions: Mapping[UUID, frozenset[int]] = field(default_factory=dict)
    names: Mapping[UUID, str] = field(default_factory=dict)
    without_state: tuple[str, ...] = ()


class ShareOffsets:
    """Changes the share partitions of groups."""

    def __init__(self, context: ShareContext) -> None:
        self._context = context

    # --- initialization ----------------------------------------------------------------------------------------------

    def initialized(self, builder: OutcomeBuilder, group_id: str, partitions: Mapping[UUID, Collection[int]]) -> None:
        """Record that the share coordinator has created the state of all these partitions; empty if no topic exists."""
        if partitions:
            self._record(builder, group_id, lambda lists: lists.finished(self._named(partitions)))

    def not_initialized(
        self, builder: OutcomeBuilder, group_id: str, partitions: Mapping[UUID, Collection[int]]
    ) -> None:
        """Record that some of these partitions could not be initialized; a later heartbeat retries all of them."""
        self._record(builder, group_id, lambda lists: lists.failed(self._named(partitions)))

    def topic_deleted(self, builder: OutcomeBuilder, topic_id: UUID) -> None:
        """Remove a deleted topic from the lists of all groups (groups D.2 I3)."""
        for group in self._context.groups.values():
            if isinstance(group, ShareGroup) and topic_id in group.partitions.topic_ids:
                left = group.partitions.without_topics([topic_id])
                self._context.record_partitions(builder, group.group_id, left)

    # --- AlterShareGroupOffsets --------------------------------------------------------------------------------------

    def alter(
        self,
        builder: OutcomeBuilder,
        group_id: str,
        topics: Iterable[tuple[str, Mapping[int, int]]],
        reply_to: Hashable,
    ) -> None:
        """Begin to set start offsets of existing partitions: reply with AlteredOffsets. A missing group is created.

        If a topic is listed twice, the record has the later partitions, but the state of all is set, as in Kafka.

        Raises:
            Refusal: 68 or 69.
        """
        group = self._context.existing_or_new(group_id, creates=True)
        _check_empty(group)
        offsets: dict[UUID, dict[int, int]] = {}
        states = {}
        for name, of_partitions in topics:
            topic = self._context.topics.named(name)
            if topic is None:
                continue
            states[topic.id] = TopicState(name, frozenset(of_partitions))
            if of_partitions:
                offsets[topic.id] = {**offsets.get(topic.id, {}), **of_partitions}
        if states:
            self._context.record_partitions(builder, group_id, group.partitions.begun(states))
        builder.reply(reply_to, AlteredOffsets(group.epoch, offsets))

    # --- DeleteShareGroupOffsets, DeleteGroups -----------------------------------------------------------------------

    def begin_deletion(self, builder: OutcomeBuilder, group_id: str, topics: Iterable[str], reply_to: Hashable) -> None:
        """Begin to delete the state of topics, which need not exist: reply with a Deletion.

        Raises:
            Refusal: 68 or 69.
        """
        group = self._context.existing(group_id, SHARE_HEARTBEAT.row(" S1"))
        _check_empty(group)
        if not group.has_partitions:  # the response has no topics then
            builder.reply(reply_to, Deletion())
            return
        partitions: dict[UUID, frozenset[int]] = {}
        names: dict[UUID, str] = {}
        without_state = []
        for name in topics:
            topic = self._context.topics.named(name)
            if topic is not None and topic.id in group.partitions.initialized:
                partitions[topic.id] = group.partitions.initialized[topic.id].partitions
            elif topic is not None and topic.id in group.partitions.deleting:
                partitions[topic.id] = frozenset(range(topic.partition_count))
            else:
                without_state.append(name)
                continue
            names[topic.id] = name
        # Written even if nothing changes.
        self._context.record_partitions(builder, group_id, group.partitions.removing(names))
        builder.reply(reply_to, Deletion(partitions, names, tuple(without_state)))

    def begin_group_deletion(self, builder: OutcomeBuilder, group_id: str, reply_to: Hashable) -> None:
        """Begin to delete all state of a share group: reply with a Deletion, empty for groups of other kinds.

        Raises:
            Refusal: NON_EMPTY_GROUP.
        """
        group = self._context.find(group_id)
        if group is None:
            builder.reply(reply_to, Deletion())
            return
        _check_empty(group)
        states = {**group.partitions.initializing}
        for topic_id, state in group.partitions.initialized.items():
            known = states.get(topic_id, TopicState(state.name, frozenset()))
            states[topic_id] = TopicState(state.name, known.partitions | state.partitions)
        for topic_id, name in group.partitions.deleting.items():
            topic = self._context.topics.of_id(topic_id)
            if topic is not None:
                states[topic_id] = TopicState(name, frozenset(range(topic.partition_count)))
        names = {topic_id: state.name for topic_id, state in states.items()}
        if group.has_partitions:
            self._context.record_partitions(builder, group_id, SharePartitions(deleting=names))
        builder.reply(reply_to, Deletion({each: state.partitions for each, state in states.items()}, names))

    def deleted(self, builder: OutcomeBuilder, group_id: str, topic_ids: Collection[UUID], reply_to: Hashable) -> None:
        """Record that the share coordinator has deleted the state of these topics: reply with ``None``."""
        if topic_ids:
            self._record(builder, group_id, lambda lists: lists.removed(topic_ids))
        builder.reply(reply_to, None)

    # --- both --------------------------------------------------------------------------------------------------------

    def _record(
        self, builder: OutcomeBuilder, group_id: str, change: Callable[[SharePartitions], SharePartitions]
    ) -> None:
        group = self._context.find(group_id)
        if group is not None:
            self._context.record_partitions(builder, group_id, change(group.partitions))

    def _named(self, partitions: Mapping[UUID, Collection[int]]) -> dict[UUID, TopicState]:
        named = {}
        for topic_id, indexes in partitions.items():
            topic = self._context.topics.of_id(topic_id)
            named[topic_id] = TopicState(_UNKNOWN_NAME if topic is None else topic.name, frozenset(indexes))
        return named


def _check_empty(group: ShareGroup) -> None:
    if not group.is_empty:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP, *SHARE_OFFSETS, "The group is not empty.")
