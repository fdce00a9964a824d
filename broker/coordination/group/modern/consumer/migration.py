"""Online migration of groups between the classic and the consumer protocol (groups C.10.1, C.10.5)."""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.rebalance import Rebalances, join_timer, member_timer, sync_timer
from broker.coordination.group.classic.states import State as ClassicState
from broker.coordination.group.modern.consumer.context import ConsumerContext
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member, Partitions, target_record
from broker.coordination.group.modern.consumer.states import DOWNGRADED, UPGRADED
from broker.coordination.group.modern.consumer.timers import ConsumerTimers
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.group.rules import UPGRADE
from broker.coordination.reasons import Refusal, StateChange
from broker.settings.releases import Behaviour
from protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment, read_subscription, write_assignment
from protocol.errors import ErrorCode
from protocol.java import HashMap, TimelineMap, table_order
from protocol.java import string_hash as hash_of
from protocol.log_records.consumer_group import (
    ClassicMember,
    ClassicProtocol,
    ConsumerRecord,
    GroupEpoch,
    TargetEpoch,
)
from protocol.log_records.group import GroupMember, GroupMetadata
from protocol.messages.sync_group import SyncGroupResponse


class Migration:
    """Decides whether a group may change its protocol, and writes the records of the new group."""

    def __init__(self, context: ConsumerContext, timers: ConsumerTimers, rebalances: Rebalances) -> None:
        self._context, self._timers, self._rebalances = context, timers, rebalances

    def _allowed(self, way: str) -> bool:
        return self._context.settings.string("group.consumer.migration.policy").lower() in (way, "bidirectional")

    # --- classic to consumer -----------------------------------------------------------------------------------------

    def upgrade(self, builder: OutcomeBuilder, classic: ClassicGroup) -> ConsumerGroup:
        """Convert a classic group with members into a consumer group, write its records, and return it (groups C.10.1).

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND with the reason why it cannot be upgraded; UNKNOWN_SERVER_ERROR in its first
                rebalance, and before 4.4 if members' subscriptions are malformed. Replies to its parked requests that
                the builder has by then are sent anyway, as in Kafka.
        """
        if not self._allowed("upgrade"):
            raise _stays(classic, "online upgrade is disabled")
        if not classic.is_consumer_type:
            raise _stays(classic, "the group does not use the consumer embedded protocol")
        if len(classic.members) > self._context.settings.int("group.consumer.max.size"):
            raise _stays(classic, "the group size exceeds the consumer group maximum size")
        _answer_parked(builder, classic)
        table: TimelineMap[Member] = TimelineMap()  # in the order of the records
        for member_id in classic.members:
            table[member_id] = self._member(classic, member_id)
        members = table.values()
        group_id, epoch = classic.group_id, classic.generation
        new_hash = self._context.new_hash(self._context.new_group(group_id), members)
        records = [
            *(member.metadata_record(group_id) for member in members),
            ConsumerRecord.of(group_id, GroupEpoch(epoch, new_hash)),
            *(target_record(group_id, member.member_id, _kept(member)) for member in members),
            ConsumerRecord.of(group_id, TargetEpoch(epoch)),
            *(member.current_record(group_id) for member in members),
        ]
        _cancel_timers(builder, classic)
        group = self._context.new_group(group_id)
        for tombstone in classic.tombstones():
            builder.record(tombstone)
        for record in records:
            builder.record(record)
            group.replay(record)
        builder.changed(StateChange(group_id, UPGRADED, classic.state_name, group.state_name, epoch, epoch))
        for member in members:
            assert member.classic is not None
            self._timers.arm_session(builder, group_id, member.member_id, member.classic.session_timeout_ms)
        return group

    def _member(self, classic: ClassicGroup, member_id: str) -> Member:
        member, epoch = classic.members[member_id], classic.generation
        assignment = read_assignment(member.assignment)
        # The assignment before the subscription, as ConsumerGroup.fromClassicGroup reads them.
        if assignment is None:
            raise self._malformed(classic)
        if assignment.custom:
            raise _stays(
                classic,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade",
            )
        metadata = next((raw for name, raw in member.protocols if name == classic.protocol_name), None)
        if metadata is None:  # no protocol is chosen yet, or the member no longer offers it
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *UPGRADE)
        subscription = read_subscription(metadata)
        if subscription is None:
            raise self._malformed(classic)
        topics = self._context.topics
        assigned: dict[UUID, Mapping[int, int]] = {
            topic.id: dict.fromkeys(sorted(partitions), epoch)
            for name, partitions in assignment.partitions.items()
            if (topic := topics.named(name)) is not None
        }
        offered = tuple(ClassicProtocol(name, metadata) for name, metadata in member.protocols)
        return Member(
            member.member_id,
            member.instance_id,
            subscription.rack_id,
            member.rebalance_timeout_ms,
            member.client_id,
            member.client_host,
            frozenset(subscription.topics),
            classic=ClassicMember(member.session_timeout_ms, offered),
            epoch=epoch,
            previous_epoch=epoch,
            assigned=assigned,
        )

    def _malformed(self, classic: ClassicGroup) -> Refusal:
        if not self._context.behaves(Behaviour.MALFORMED_MEMBERS_REFUSED):
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *UPGRADE)
        return _stays(classic, "the embedded consumer protocol is malformed")

    # --- consumer to classic -----------------------------------------------------------------------------------------

    def downgrade(self, builder: OutcomeBuilder, group: ConsumerGroup, left: Sequence[Member]) -> bool:
        """Convert the group into a classic one if only classic members are left; return whether so (groups C.10.5)."""
        if not left or any(member.classic is None for member in left) or not self._allowed("downgrade"):
            return False
        if len(left) > self._context.settings.int("group.max.size"):
            return False
        self.convert(builder, group, left)
        return True

    def may_downgrade(self, group: ConsumerGroup, replaced: Member) -> bool:
        """Return whether the group becomes classic when a classic member replaces this member."""
        others = [member for member in group.members.values() if member.member_id != replaced.member_id]
        return (
            replaced.classic is None
            and all(member.classic is not None for member in others)
            and self._allowed("downgrade")
            and len(group.members) <= self._context.settings.int("group.max.size")
        )

    def convert(
        self,
        builder: OutcomeBuilder,
        group: ConsumerGroup,
        left: Sequence[Member],
        *,
        heirs: Mapping[str, str] | None = None,
        rebalance: bool = True,
    ) -> None:
        """Write the records of the classic group with these members, all of which use the classic protocol.

        ``heirs`` are replacements: new member id -> the member id whose target it has.
        """
        heirs = heirs or {}
        protocol = _chosen(left)
        topics = self._context.topics
        members = []
        for member in left:
            assert member.classic is not None
            metadata = next(each.metadata for each in member.classic.supported_protocols if each.name == protocol)
            read = read_subscription(metadata)
            target = {
                topic.name: partitions
                for topic_id, partitions in group.targets.get(heirs.get(member.member_id, member.member_id), {}).items()
                if (topic := topics.of_id(topic_id)) is not None
            }
            members.append(
                GroupMember(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.classic.session_timeout_ms,
                    metadata,
                    write_assignment(target, 0 if read is None else read.version),
                    member.instance_id,
                )
            )
            self._timers.cancel_all(builder, group.group_id, member.member_id)
        for record in group.tombstones({old: new for new, old in heirs.items()}):
            builder.record(record)
        # A replacement is added behind the others, and the first one leads (ClassicGroup.fromConsumerGroup).
        leader = next((each.member_id for each in members if each.member_id not in heirs), members[0].member_id)
        builder.record(
            GroupMetadata(
                group.group_id,
                CONSUMER_PROTOCOL_TYPE,
                group.epoch,
                protocol,
                leader,
                builder.now_ms,
                tuple(members),
            )
        )
        after, epoch = ClassicState.STABLE.value, group.epoch
        builder.changed(StateChange(group.group_id, DOWNGRADED, group.state_name, after, epoch, epoch))
        offers = {member.member_id: member.classic.supported_protocols for member in left if member.classic is not None}
        builder.at_once(partial(self._call_back, group.group_id, offers, rebalance))

    def _call_back(
        self, group_id: str, offers: Mapping[str, Sequence[ClassicProtocol]], rebalance: bool, builder: OutcomeBuilder
    ) -> None:
        """Start the members' sessions, and make all of them rejoin.

        The group's record has the chosen protocol only. Until the group is loaded again, members keep all protocols
        that they offered, as Kafka does not replay the record (``GroupMetadataManager.convertToClassicGroup``).
        """
        group = self._context.groups[group_id]
        assert isinstance(group, ClassicGroup)
        for member in group.members.values():
            protocols = tuple((each.name, each.metadata) for each in offers[member.member_id])
            group.update(member, protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
            self._rebalances.rearm(builder, group, member.member_id)
        if rebalance:
            self._rebalances.prepare(builder, group)


def _kept(member: Member) -> Partitions:
    return {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}


def _chosen(members: Sequence[Member]) -> str:
    """Return the protocol with most votes among those that all members support (groups A.5 R7.4)."""
    offered = [[each.name for each in member.classic.supported_protocols] for member in members if member.classic]
    common = set(offered[0]).intersection(*offered)
    votes: HashMap[int] = HashMap()
    for names in offered:
        name = next(each for each in names if each in common)
        votes[name] = (votes.get(name) or 0) + 1
    return max(table_order(list(votes), hash_of), key=votes.__getitem__)


def _stays(classic: ClassicGroup, why: str) -> Refusal:
    text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *UPGRADE, text)


def _answer_parked(builder: OutcomeBuilder, classic: ClassicGroup) -> None:
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member_id, reply_to in classic.awaiting_join.items():
        builder.reply(reply_to, join_refused(again, member_id), direct=True)
    for reply_to in classic.awaiting_sync.values():
        builder.reply(reply_to, SyncGroupResponse(again), direct=True)


def _cancel_timers(builder: OutcomeBuilder, classic: ClassicGroup) -> None:
    for key in (join_timer(classic), sync_timer(classic)):
        builder.cancel(key)
    for member_id in (*classic.members, *classic.pending):
        builder.cancel(member_timer(classic, member_id))
