"""ConsumerGroupHeartbeat: to join, to stay, to say what one has, and to hear what one shall have (groups C.4).

After Kafka's ``consumerGroupHeartbeat``. All is decided before anything is remembered: the member as it will be stands
beside the group as it is, and the records say what becomes of both.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.members import (
    JOINING,
    Assigned,
    Member,
    MemberState,
    Partitions,
    target_record,
    tombstones,
)
from broker.coordination.group.consumer.patterns import Patterns, RegexChange, Visible
from broker.coordination.group.consumer.reconciling import Aim, reconciled
from broker.coordination.group.consumer.rules import Shard
from broker.coordination.group.consumer.targets import computed, effective_assignor
from broker.coordination.group.draft import Draft
from broker.coordination.group.java_hash import HashMap
from broker.coordination.group.states import State
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ConsumerRecord, GroupEpoch, TargetEpoch
from protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.types import ZERO_UUID, uuid_text


@dataclass(frozen=True, slots=True)
class Beat:
    """Who sends a heartbeat. ``visible`` tells which topics the sender may know of."""

    client_id: str
    client_host: str
    visible: Visible


@dataclass(slots=True)
class Step:
    """One member's request on its way: as the member was, as it becomes, and what the group becomes with it.

    ``replaced`` is the static member whose place it takes.
    """

    group: ConsumerGroup
    before: Member
    after: Member
    replaced: Member | None = None
    owned: Partitions | None = None
    visible: Visible | None = None

    @property
    def subscription_changed(self) -> bool:
        """Whether the member subscribes to something else than before."""
        return self.before.subscribed != self.after.subscribed or self.before.regex != self.after.regex

    def members(self) -> HashMap[Member]:
        """All members with this one as it becomes."""
        gone = None if self.replaced is None else self.replaced.member_id
        found = HashMap(
            (member.member_id, member) for member in self.group.members.values() if member.member_id != gone
        )
        found[self.after.member_id] = self.after
        return found

    def target(self) -> Partitions:
        """What the member shall have so far; who takes a static member's place has its target."""
        source = self.after if self.replaced is None else self.replaced
        return self.group.targets.get(source.member_id, {})

    def targets(self) -> Mapping[str, Partitions]:
        """What everybody shall have so far; nothing for whom there was no target yet."""
        heirs = {} if self.replaced is None else {self.after.member_id: self.target()}
        return {**self.group.targets, **heirs}


class Heartbeats:
    """Decides heartbeats over the groups of one shard."""

    def __init__(self, shard: Shard, patterns: Patterns) -> None:
        self._shard, self._patterns = shard, patterns

    def beat(self, draft: Draft, request: ConsumerGroupHeartbeatRequest, beat: Beat, token: Hashable) -> None:
        """C.4, for a member epoch of 0 and more: answers a ConsumerGroupHeartbeatResponse.

        Raises:
            KafkaError: 25, 69, 81, 82, 110, 111 or 128; nothing has changed.
        """
        group = self._group(draft, request)
        self.check_room(group, request.member_id)
        member_id = request.member_id or uuid_text(self._shard.new_uuid())
        step = self._step(draft, group, request, member_id)
        step.after, step.visible = _updated(step.before, request, beat), beat.visible
        assigned_before = step.before.assigned
        self.advance(draft, step)
        self._shard.arm_session(draft, group.group_id, member_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=step.after.epoch,
            heartbeat_interval_ms=self._shard.own(group.group_id, "consumer.heartbeat.interval.ms"),
        )
        if request.member_epoch == JOINING or _is_full(request) or assigned_before != step.after.assigned:
            response.assignment = _assignment(step.after.assigned)
        draft.reply(token, response)

    # --- H1 to H5: which group, which member -------------------------------------------------------------------------

    def _group(self, draft: Draft, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        """H1: who joins makes the group, also in place of an Empty classic one."""
        group_id = request.group_id
        found = self._shard.groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if request.member_epoch == JOINING:
            if found is None:
                return ConsumerGroup(group_id, self._shard.topics)
            if isinstance(found, ClassicGroup) and found.state is State.EMPTY:
                for record in found.tombstones():
                    draft.record(record)
                return ConsumerGroup(group_id, self._shard.topics)
            if isinstance(found, ClassicGroup):
                return self._shard.upgraded(draft, found)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        """H2: raise GROUP_MAX_SIZE_REACHED where there is none for that member."""
        limit = self._shard.settings.int("group.consumer.max.size")
        if len(group.members) >= limit and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    def _step(self, draft: Draft, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str) -> Step:
        """H4 and H5."""
        epoch, owned = request.member_epoch, _owned(request)
        if request.instance_id is not None and (epoch != JOINING or request.instance_id in group.static_members):
            held = group.static_member(request.instance_id, None if epoch == JOINING else member_id)
            if epoch == JOINING:
                return self.replace(draft, group, held, member_id)
        elif epoch != JOINING:
            group.member(member_id)
        known = group.members.get(member_id)
        if known is None:
            known = Member(member_id)
        else:
            _check_epoch(known, epoch, owned)
        return Step(group, known, known, owned=owned)

    def replace(
        self, draft: Draft, group: ConsumerGroup, held: Member, member_id: str, *, classic: bool = False
    ) -> Step:
        """A member takes the place of the static one that holds its instance id.

        Raises:
            KafkaError: UNRELEASED_INSTANCE_ID while that one is there, and both speak the consumer protocol.
        """
        if held.classic is None and not classic and not group.away(held):
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {held.instance_id} cannot join the group because the "
                "instance id is owned by another member.",
            )
        heir = replace(held, member_id=member_id, epoch=0, previous_epoch=0)
        for record in tombstones(group.group_id, held.member_id):
            draft.record(record)
        draft.record(heir.metadata_record(group.group_id))
        draft.record(target_record(group.group_id, member_id, group.targets.get(held.member_id, {})))
        draft.record(heir.current_record(group.group_id))
        self._shard.forget_timers(draft, group.group_id, held.member_id)
        return Step(group, heir, heir, replaced=held, owned={})

    # --- H6 to H11: what becomes of both -----------------------------------------------------------------------------

    def advance(self, draft: Draft, step: Step) -> None:
        """Remember what the member says, move the group's epoch and target where that is due, and the member to it."""
        group, group_id = step.group, step.group.group_id
        if step.after.said != step.before.said:
            draft.record(step.after.metadata_record(group_id))
        change = self._patterns.changed(draft, group, step.before, step.after)
        epoch = self._epoch(draft, step, change)
        target_epoch, target = self._target(draft, step, epoch)
        self._patterns.refresh_if_due(draft, group, step.after, step.visible)
        moved = self._reconciled(step, target_epoch, target)
        if moved.at != step.after.at:
            draft.record(moved.current_record(group_id))
            self._shard.follow(draft, group_id, moved)
        step.after = moved

    def _epoch(self, draft: Draft, step: Step, change: RegexChange) -> int:
        """H9: the group's epoch after this request."""
        group = step.group
        bump = step.before.subscribed != step.after.subscribed or change is RegexChange.RESOLVED
        if not bump and group.checked_version == self._shard.topics.version:
            return group.epoch
        metadata_hash = self._shard.new_hash(group, step.members().values())
        if bump or metadata_hash != group.metadata_hash:
            draft.record(ConsumerRecord.of(group.group_id, GroupEpoch(group.epoch + 1, metadata_hash)))
            return group.epoch + 1
        group.checked_version = self._shard.topics.version
        return group.epoch

    def _target(self, draft: Draft, step: Step, epoch: int) -> tuple[int, Partitions]:
        """H10: the target's epoch after this request, and what the member shall have in it."""
        group = step.group
        interval_ms = self._shard.own(group.group_id, "consumer.assignment.interval.ms")
        since_ms = group.assignment_timestamp_ms
        due = since_ms == 0 or interval_ms == 0 or draft.now_ms >= since_ms + interval_ms
        if group.assignment_epoch >= epoch or not due:
            return group.assignment_epoch, step.target()
        members, before = step.members(), step.targets()
        assignor = effective_assignor(members.values(), self._shard.settings.list("group.consumer.assignors"))
        found = computed(group, members, before, assignor, self._shard.topics)
        for member_id in members:
            if before.get(member_id) != found[member_id]:
                draft.record(target_record(group.group_id, member_id, found[member_id]))
        draft.record(ConsumerRecord.of(group.group_id, TargetEpoch(epoch, draft.now_ms)))
        return epoch, found[step.after.member_id]

    def _reconciled(self, step: Step, epoch: int, target: Partitions) -> Member:
        """H11."""
        member = step.after
        if member.state is MemberState.STABLE and member.epoch == epoch and not step.subscription_changed:
            return member
        names = step.group.names_of(member)
        topics = self._shard.topics
        subscribed = {topic.id for name in names if (topic := topics.named(name)) is not None}
        aim = Aim(epoch, target, step.owned, step.subscription_changed, subscribed, step.group.owner_epoch)
        return reconciled(member, aim)


def _check_epoch(member: Member, said: int, owned: Partitions | None) -> None:
    """H5: a member whose last answer was lost may say its previous epoch, if it has nothing that it should not."""
    if said in (JOINING, member.epoch):
        return
    if said > member.epoch:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({said}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
    subset = owned is not None and all(
        partitions <= member.assigned.get(topic_id, {}).keys() for topic_id, partitions in owned.items()
    )
    if said != member.previous_epoch or not subset:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({said}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, beat: Beat) -> Member:
    """H6: what is null says nothing new; from now on the member speaks the consumer protocol."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        client_id=beat.client_id,
        client_host=beat.client_host,
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
    """Whether the member says everything, and so is told everything."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None


def _assignment(assigned: Assigned) -> Assignment:
    return Assignment([TopicPartitions(topic_id, sorted(epochs)) for topic_id, epochs in assigned.items()])
