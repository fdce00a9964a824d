"""ShareGroupHeartbeat: joins, sessions, assignments, and initialization of share partitions (groups D.1).

After Kafka's ``shareGroupHeartbeat``. Nothing changes while a heartbeat is decided: the updated member is a copy, and
the replay of the records changes the group.
"""

from collections.abc import Collection, Hashable
from dataclasses import replace
from uuid import UUID

from broker.coordination.group.events import JOINED
from broker.coordination.group.modern.assignor.range import Assignment as Assigned
from broker.coordination.group.modern.assignor.range import Subscriber
from broker.coordination.group.modern.assignor.simple import assign_simply
from broker.coordination.group.modern.epochs import JOINING, target_is_due
from broker.coordination.group.modern.share.context import ShareContext, report_change
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.member import Partitions, ShareMember, target_record
from broker.coordination.group.modern.share.state_partitions import TopicState, TopicStates
from broker.coordination.group.modern.share.validation import check_member_epoch
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import InitializeShareState, OutcomeBuilder
from broker.coordination.group.rules import SHARE_HEARTBEAT
from broker.coordination.reasons import Refusal
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import HashMap, copied_capacity, string_hash, table_order
from protocol.log_records.share_group import ShareGroupEpoch, ShareGroupRecord, ShareTargetEpoch
from protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

UNSET_OFFSET, FIRST_OFFSET = -1, 0
"""Start offsets of new share partitions: decided by ``share.auto.offset.reset``, and the first offset."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a heartbeat; ``client_host`` is in Java's form, ``/127.0.0.1``."""

    client_id: str
    client_host: str


@dataclass(slots=True)
class _Step:
    """One heartbeat while it is decided: the member before and after it."""

    group: ShareGroup
    before: ShareMember
    after: ShareMember

    @property
    def subscription_changed(self) -> bool:
        return self.before.subscribed != self.after.subscribed

    def members(self) -> HashMap[ShareMember]:
        """Return all members after the request."""
        members = HashMap((member.member_id, member) for member in self.group.members.values())
        members[self.after.member_id] = self.after
        return members

    def names(self) -> frozenset[str]:
        """Return the topics that any member subscribes to."""
        return frozenset(name for member in self.members().values() for name in member.subscribed)


class Heartbeats:
    """Decides heartbeats to the groups of one context."""

    def __init__(self, context: ShareContext, timers: MemberTimers[ShareGroup, ShareMember]) -> None:
        self._context, self._timers = context, timers

    def handle(
        self, builder: OutcomeBuilder, request: ShareGroupHeartbeatRequest, sender: Sender, reply_to: Hashable
    ) -> None:
        """Handle a heartbeat with a member epoch of at least 0: reply with a ShareGroupHeartbeatResponse.

        Raises:
            Refusal: 25, 69, 81 or 110; nothing was changed.
        """
        joins = request.member_epoch == JOINING
        group = self._context.existing_or_new(request.group_id, creates=joins)
        # The group, its size, the member, its epoch: groups D.1 S2 to groups D.1 S4.
        self._check_size(group, request.member_id)
        known = ShareMember(request.member_id) if joins else group.member(request.member_id)
        known = group.members.get(request.member_id) or known
        check_member_epoch(known, request.member_epoch)
        step = _Step(group, known, _updated(known, request, sender))
        if request.member_id not in group.members:
            builder.member(group, JOINED, step.after)
        if step.after.metadata != step.before.metadata or request.member_id not in group.members:
            builder.record(step.after.metadata_record(group.group_id))
        epoch = self._epoch(builder, step)
        target_epoch, target = self._target(builder, step, epoch)
        member = self._reconciled(step, target_epoch, target, bumped=epoch > group.epoch)
        if (member.epoch, member.previous_epoch, member.assigned) != (
            known.epoch,
            known.previous_epoch,
            known.assigned,
        ):
            builder.record(member.current_record(group.group_id))
        report_change(builder, group, [member], epoch)  # one is enough: a share group with members is Stable
        self._timers.arm_session(builder, group.group_id, member.member_id)
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._context.group_setting(group.group_id, "share.heartbeat.interval.ms"),
        )
        if joins or request.subscribed_topic_names is not None or member.assigned != known.assigned:
            response.assignment = _assignment(member.assigned)
        builder.reply(reply_to, response)
        self._initialize(builder, group, epoch, step.names())

    def _check_size(self, group: ShareGroup, member_id: str) -> None:
        limit = self._context.settings.int("group.share.max.size")
        if len(group.members) >= limit and member_id not in group.members:
            raise Refusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                *SHARE_HEARTBEAT.row(" S3"),
                f"The share group has reached its maximum capacity of {limit} members.",
            )

    # --- groups D.1 S5 to S7: epoch, target, reconciliation --------------------------------------------------------

    def _epoch(self, builder: OutcomeBuilder, step: _Step) -> int:
        """Return the group epoch after this request."""
        group, topics = step.group, self._context.topics
        bump = step.subscription_changed
        if group.assignment_epoch >= group.epoch and not group.is_empty:
            bump |= group.awaits_assignment
        if not bump and group.checked_version == topics.version:
            return group.epoch
        new_hash = metadata_hash(step.names(), topics)
        if bump or new_hash != group.metadata_hash:
            builder.record(ShareGroupRecord.of(group.group_id, ShareGroupEpoch(group.epoch + 1, new_hash)))
            return group.epoch + 1
        group.checked_version = topics.version
        return group.epoch

    def _target(self, builder: OutcomeBuilder, step: _Step, epoch: int) -> tuple[int, Partitions]:
        """Return the target's epoch after this request, and the member's target assignment."""
        group, member_id = step.group, step.after.member_id
        interval_ms = self._context.group_setting(group.group_id, "share.assignment.interval.ms")
        due = target_is_due(group.assignment_timestamp_ms, interval_ms, builder.now_ms)
        if group.assignment_epoch >= epoch or not due:
            return group.assignment_epoch, group.targets.get(member_id, {})
        members = step.members()
        targets = self._assigned(members.values(), group)
        for each in members:
            if group.targets.get(each) != targets[each]:
                builder.record(target_record(group.group_id, each, targets[each]))
        builder.record(ShareGroupRecord.of(group.group_id, ShareTargetEpoch(epoch, builder.now_ms)))
        return epoch, targets[member_id]

    def _assigned(self, members: Collection[ShareMember], group: ShareGroup) -> dict[str, Assigned]:
        """Return the simple assignor's result for the initialized partitions (groups D.3)."""
        topics = self._context.topics
        subscribers = []
        for member in members:
            ordered = table_order(sorted(member.subscribed), string_hash, copied_capacity(len(member.subscribed)))
            existing = tuple(topic.id for name in ordered if (topic := topics.named(name)) is not None)
            target = group.targets.get(member.member_id, {})
            subscribers.append(Subscriber(member.member_id, None, existing, len(ordered), target))
        assignable = {topic_id: state.partitions for topic_id, state in group.partitions.initialized.items()}
        homogeneous = len({member.subscribed for member in members}) <= 1
        return assign_simply(subscribers, assignable, homogeneous=homogeneous)

    def _reconciled(self, step: _Step, epoch: int, target: Partitions, *, bumped: bool) -> ShareMember:
        """Assign the member its target immediately: no partition has to be revoked first.

        If the group epoch was bumped and the next target is not due yet, only partitions of topics that the member no
        longer subscribes to are removed.
        """
        member = step.after
        if member.epoch == epoch and not bumped:
            return member
        topics = self._context.topics
        subscribed = {topic.id for name in member.subscribed if (topic := topics.named(name)) is not None}
        assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
        if member.epoch == epoch:
            return replace(member, assigned=assigned)
        return replace(member, epoch=epoch, previous_epoch=member.epoch, assigned=assigned)

    # --- groups D.2: the state of share partitions -----------------------------------------------------------------

    def _initialize(self, builder: OutcomeBuilder, group: ShareGroup, epoch: int, names: Collection[str]) -> None:
        """Initialize the subscribed share partitions that have no state yet."""
        missing = self._uninitialized(group, names, builder.now_ms)
        if not missing:
            return
        known: set[UUID] = set()
        if self._context.behaves(Behaviour.SHARE_PARTITIONS_FROM_ZERO):
            known = {*group.partitions.initializing, *group.partitions.initialized}
        self._context.record_partitions(builder, group.group_id, group.partitions.begun(missing))
        offsets = {
            topic_id: dict.fromkeys(sorted(state.partitions), FIRST_OFFSET if topic_id in known else UNSET_OFFSET)
            for topic_id, state in missing.items()
        }
        builder.effect(InitializeShareState(group.group_id, epoch, offsets))

    def _uninitialized(self, group: ShareGroup, names: Collection[str], now_ms: int) -> TopicStates:
        """Return partitions that are not initialized, unless an initialization began within the retry interval."""
        retry_ms = self._context.settings.int("group.share.initialize.retry.interval.ms")
        uninitialized = {}
        for name in sorted(names):
            topic = self._context.topics.named(name)
            if topic is None:
                continue
            left = set(range(topic.partition_count))
            if topic.id in group.partitions.initialized:
                left -= group.partitions.initialized[topic.id].partitions
            begun_ms = self._context.begun_ms.get(group.group_id, {}).get(topic.id)
            recent = begun_ms is not None and now_ms - begun_ms < retry_ms
            if topic.id in group.partitions.initializing and recent:
                left -= group.partitions.initializing[topic.id].partitions
            if left:
                uninitialized[topic.id] = TopicState(name, frozenset(left))
        return uninitialized


def _updated(member: ShareMember, request: ShareGroupHeartbeatRequest, sender: Sender) -> ShareMember:
    """Return the updated member; null fields change nothing."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=sender.client_id,
        client_host=sender.client_host,
        subscribed=member.subscribed if names is None else frozenset(names),
    )


def _assignment(assigned: Partitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, sorted(partitions)) for topic_id, partitions in assigned.items()])
