"""ConsumerGroupHeartbeat: joins, sessions, owned partitions and assignments (groups C.4).

After Kafka's ``consumerGroupHeartbeat``. Nothing changes while a heartbeat is decided: the updated member is a copy,
and the replay of the records changes the group.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State
from broker.coordination.group.events import JOINED, REPLACED
from broker.coordination.group.modern.consumer.context import ConsumerContext, report_change
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import (
    Assigned,
    Member,
    MemberState,
    Partitions,
    target_record,
    tombstones,
)
from broker.coordination.group.modern.consumer.migration import Migration
from broker.coordination.group.modern.consumer.reconciliation import TargetState, reconciled
from broker.coordination.group.modern.consumer.regular_expressions import Patterns, RegexChange, Visible
from broker.coordination.group.modern.consumer.timers import ConsumerTimers
from broker.coordination.group.modern.epochs import JOINING, check_member_epoch, target_is_due
from broker.coordination.group.modern.target_assignment import (
    assignor_named,
    compute_target,
    next_assignor,
    shown_assignor,
)
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import CONSUMER_HEARTBEAT, MEMBER_LOOKUP
from broker.coordination.reasons import Refusal
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import HashMap
from protocol.log_records.consumer_group import ConsumerRecord, GroupEpoch, TargetEpoch
from protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.types import ZERO_UUID, uuid_text


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a heartbeat. ``visible(topic)``: whether the sender may describe the topic."""

    client_id: str
    client_host: str
    visible: Visible


@dataclass(slots=True)
class Step:
    """One heartbeat while it is decided: the member before and after it.

    ``replaced`` is the static member that it replaces.
    """

    group: ConsumerGroup
    before: Member
    after: Member
    replaced: Member | None = None
    owned: Partitions | None = None
    visible: Visible | None = None

    @property
    def subscription_changed(self) -> bool:
        """Whether the request changes the member's subscription."""
        return self.before.subscribed != self.after.subscribed or self.before.regex != self.after.regex

    @property
    def regex_changed(self) -> bool:
        """Whether the request changes the member's regular expression."""
        return self.before.regex != self.after.regex

    def members(self) -> HashMap[Member]:
        """Return all members after the request."""
        gone = None if self.replaced is None else self.replaced.member_id
        members = HashMap(
            (member.member_id, member) for member in self.group.members.values() if member.member_id != gone
        )
        members[self.after.member_id] = self.after
        return members

    def target(self) -> Partitions:
        """Return the member's target before this heartbeat; a replacement inherits the static member's target."""
        return self.group.target_for(self.after.member_id, self.after.instance_id)

    def targets(self) -> Mapping[str, Partitions]:
        """Return the targets before this heartbeat by member id; members without a target are omitted.

        A replacement inherits the static member's target, if there is one.
        """
        inherits = self.replaced is not None and self.replaced.member_id in self.group.targets
        return {**self.group.targets, **({self.after.member_id: self.target()} if inherits else {})}


class Heartbeats:
    """Decides heartbeats to the groups of one context."""

    def __init__(
        self, context: ConsumerContext, timers: ConsumerTimers, migration: Migration, patterns: Patterns
    ) -> None:
        self._context, self._timers, self._migration, self._patterns = context, timers, migration, patterns

    def handle(
        self, builder: OutcomeBuilder, request: ConsumerGroupHeartbeatRequest, sender: Sender, reply_to: Hashable
    ) -> None:
        """Handle a heartbeat with member epoch 0 or above: reply with a ConsumerGroupHeartbeatResponse (groups C.4).

        Raises:
            KafkaError: 25, 69, 81, 82, 110, 111 or 128; nothing was changed.
        """
        group = self._group(builder, request)
        self.check_size(group, request.member_id, request.instance_id)
        member_id = request.member_id or uuid_text(self._context.new_uuid())
        step = self._step(builder, group, request, member_id)
        step.after, step.visible = _updated(step.before, request, sender), sender.visible
        assigned_before = step.before.assigned
        self.advance(builder, step)
        self._timers.arm_session(builder, group.group_id, member_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=step.after.epoch,
            heartbeat_interval_ms=self._context.group_setting(group.group_id, "consumer.heartbeat.interval.ms"),
        )
        if request.member_epoch == JOINING or _is_full(request) or assigned_before != step.after.assigned:
            response.assignment = _assignment(step.after.assigned)
        builder.reply(reply_to, response)

    # --- groups C.4 H1 to H5: find the group and the member -------------------------------------------------------

    def _group(self, builder: OutcomeBuilder, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """Return the group; a join creates it, also in place of an Empty classic one (groups C.4 H1)."""
        group_id = request.group_id
        group = self._context.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch == JOINING:
            if group is None:
                return self._context.new_group(group_id)
            if isinstance(group, ClassicGroup) and group.state is State.EMPTY:
                for record in group.tombstones():
                    builder.record(record)
                return self._context.new_group(group_id)
            if isinstance(group, ClassicGroup):
                return self._migration.upgrade(builder, group)
        # Another message than elsewhere (GroupMetadataManager.getOrMaybeCreateConsumerGroup).
        return self._context.existing(group_id, CONSUMER_HEARTBEAT.row(" H1"), absent="Consumer group {} not found.")

    def check_size(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if the group is full and the member is new (groups C.4 H2)."""
        limit = self._context.settings.int("group.consumer.max.size")
        if instance_id in group.static_members and self._context.behaves(Behaviour.RETURNING_STATIC_MEMBERS_FIT):
            return
        if len(group.members) >= limit and member_id not in group.members:
            raise Refusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                *CONSUMER_HEARTBEAT.row(" H2"),
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    def _step(
        self, builder: OutcomeBuilder, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> Step:
        """Find or create the member, and fence a wrong member epoch (groups C.4 H4 and H5)."""
        epoch, owned = request.member_epoch, _owned(request)
        if request.instance_id is not None and (epoch != JOINING or request.instance_id in group.static_members):
            held = group.static_member(request.instance_id, None if epoch == JOINING else member_id)
            if epoch == JOINING:
                return self.replace(builder, group, held, member_id, request.instance_id)
        elif epoch != JOINING:
            group.member(member_id)
        known = group.members.get(member_id)
        if known is None:
            known = Member(member_id)
        else:
            subset = _owns_subset(known, owned)
            check_member_epoch(known.epoch, known.previous_epoch, epoch, owns_subset=subset, kind="consumer")
        return Step(group, known, known, owned=owned)

    def replace(
        self,
        builder: OutcomeBuilder,
        group: ConsumerGroup,
        held: Member,
        member_id: str,
        instance_id: str,
        *,
        classic: bool = False,
    ) -> Step:
        """Replace the static member that holds the instance id.

        Raises:
            KafkaError: UNRELEASED_INSTANCE_ID if the holder has not left, and both use the consumer protocol.
        """
        # Quirk: a member that joins again under its own member id is refused, too (groups C.4 H4).
        if held.classic is None and not classic and not group.away(held):
            raise Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                *MEMBER_LOOKUP,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {held.member_id} member.",
            )
        builder.member(group, REPLACED, held, f"now member {member_id}")
        heir = replace(held, member_id=member_id, epoch=0, previous_epoch=0)
        for record in tombstones(group.group_id, held.member_id):
            builder.record(record)
        builder.record(heir.metadata_record(group.group_id))
        builder.record(target_record(group.group_id, member_id, group.targets.get(held.member_id, {})))
        builder.record(heir.current_record(group.group_id))
        self._timers.cancel_all(builder, group.group_id, held.member_id)
        return Step(group, heir, heir, replaced=held, owned={})

    # --- groups C.4 H6 to H11: update the group and the member ----------------------------------------------------

    def advance(self, builder: OutcomeBuilder, step: Step) -> None:
        """Record the member's metadata, bump the group epoch, compute a target if due, and reconcile the member."""
        group, group_id = step.group, step.group.group_id
        if step.replaced is None and step.after.member_id not in group.members:
            builder.member(group, JOINED, step.after)
        if step.after.metadata != step.before.metadata:
            builder.record(step.after.metadata_record(group_id))
        change = self._patterns.changed(builder, group, step.before, step.after)
        epoch, homogeneous = self._epoch(builder, step, change)
        target_epoch, target = self._target(builder, step, epoch, homogeneous=homogeneous)
        self._patterns.refresh_if_due(builder, group, group.patterns_with(step.before, step.after), step.visible)
        moved = self._reconciled(step, target_epoch, target)
        if moved.at != step.after.at:
            builder.record(moved.current_record(group_id))
            if moved.classic is None:  # classic members have limits of their own; a running one is kept
                revokes = moved.state is MemberState.UNREVOKED_PARTITIONS
                self._timers.update_rebalance(builder, group_id, moved, revokes=revokes)
        step.after = moved
        if builder.records:
            report_change(builder, group, step.members().values(), epoch, target_epoch)

    def settle(self, builder: OutcomeBuilder, step: Step) -> bool:
        """Record a member before its group becomes a classic one; return whether the target is older than the epoch.

        Only a target of the current group epoch is assigned to the member.
        """
        group = step.group
        if step.after.metadata != step.before.metadata:
            builder.record(step.after.metadata_record(group.group_id))
        change = self._patterns.changed(builder, group, step.before, step.after)
        epoch, _ = self._epoch(builder, step, change)
        if group.assignment_epoch < epoch:
            return True
        moved = self._reconciled(step, group.assignment_epoch, step.target())
        if moved.at != step.after.at:
            builder.record(moved.current_record(group.group_id))
        step.after = moved
        return False

    def _epoch(self, builder: OutcomeBuilder, step: Step, change: RegexChange) -> tuple[int, bool]:
        """Return the new group epoch, and whether all members have the same subscription (groups C.4 H9)."""
        group = step.group
        bump = step.before.subscribed != step.after.subscribed or change is RegexChange.RESOLVED
        if step.after.classic is not None:  # without waiting until an expression is resolved
            bump |= change is not RegexChange.NONE
        else:
            bump |= self._votes_move(step)
        version = self._context.topics.version
        if not bump and not group.hash_is_due(version):
            return group.epoch, group.homogeneous
        members, epoch = step.members(), group.epoch
        new_hash = metadata_hash(group.names_with(step.before, step.after), self._context.topics)
        if bump or new_hash != group.metadata_hash:
            epoch += 1
            builder.record(ConsumerRecord.of(group.group_id, GroupEpoch(epoch, new_hash)))
        group.checked = version, epoch
        return epoch, group.homogeneous_with(step.before, step.after, len(members))

    def _votes_move(self, step: Step) -> bool:
        """Return whether the preferred assignor changes; Kafka compares two tables that break ties differently."""
        if not self._context.behaves(Behaviour.PREFERRED_ASSIGNOR_COUNTS):
            return False
        members = step.group.members.values()
        assignors = self._context.assignors
        return shown_assignor(members, assignors) != next_assignor(members, step.before, step.after, assignors)

    def _target(self, builder: OutcomeBuilder, step: Step, epoch: int, *, homogeneous: bool) -> tuple[int, Partitions]:
        """Return the target's epoch after this request, and the member's target assignment (groups C.4 H10)."""
        group = step.group
        interval_ms = self._context.group_setting(group.group_id, "consumer.assignment.interval.ms")
        due = target_is_due(group.assignment_timestamp_ms, interval_ms, builder.now_ms)
        if group.assignment_epoch >= epoch or not due:
            return group.assignment_epoch, step.target()
        members, before = step.members(), step.targets()
        assignors = self._context.assignors
        assignor = assignor_named(
            next_assignor(group.members.values(), step.before, step.after, assignors), self._context.settings
        )
        topics = self._context.topics
        targets = compute_target(members, group.names_of, before, assignor, topics, homogeneous=homogeneous)
        known = before if self._context.behaves(Behaviour.REPLACEMENTS_INHERIT_TARGETS) else group.targets
        for member_id in members:
            if known.get(member_id) != targets[member_id]:
                builder.record(target_record(group.group_id, member_id, targets[member_id]))
        builder.record(ConsumerRecord.of(group.group_id, TargetEpoch(epoch, builder.now_ms)))
        return epoch, targets[step.after.member_id]

    def _reconciled(self, step: Step, epoch: int, target: Partitions) -> Member:
        """Reconcile the member with its target, as far as the owned partitions allow (groups C.4 H11)."""
        member = step.after
        if member.state is MemberState.STABLE and member.epoch == epoch and not step.subscription_changed:
            return member
        names = step.group.names_of(member)
        topics = self._context.topics
        subscribed = {topic.id for name in names if (topic := topics.named(name)) is not None}
        goal = TargetState(
            epoch, target, step.owned, step.subscription_changed, bool(names), subscribed, step.group.owner_epoch
        )
        return reconciled(member, goal)


def _owns_subset(member: Member, owned: Partitions | None) -> bool:
    """Return whether a heartbeat lists owned partitions, all of them assigned to the member."""
    return owned is not None and all(
        partitions <= member.assigned.get(topic_id, {}).keys() for topic_id, partitions in owned.items()
    )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, sender: Sender) -> Member:
    """Return the updated member; null fields change nothing. It now uses the consumer protocol (groups C.4 H6)."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=sender.client_id,
        client_host=sender.client_host,
        subscribed=member.subscribed if names is None else frozenset(names),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return {each.topic_id or ZERO_UUID: frozenset(each.partitions) for each in request.topic_partitions}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the heartbeat is a full request, which gets a full response."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def _assignment(assigned: Assigned) -> Assignment:
    return Assignment([TopicPartitions(topic_id, list(epochs)) for topic_id, epochs in assigned.items()])
