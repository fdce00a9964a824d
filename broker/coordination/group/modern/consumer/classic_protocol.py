"""Members of a consumer group that use the classic protocol (groups C.10.2 to C.10.4).

They join without waiting for each other; heartbeat responses make them rejoin when the group's target changes. Their
generation is their member epoch. After Kafka's ``classicGroupJoinToConsumerGroup``.
"""

from collections.abc import Hashable
from dataclasses import replace

from broker.coordination.group.events import LEFT
from broker.coordination.group.group import Joiner
from broker.coordination.group.modern.consumer.context import ConsumerContext
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.heartbeat import Heartbeats, Step
from broker.coordination.group.modern.consumer.member import Member, MemberState, Partitions
from broker.coordination.group.modern.consumer.member_removal import MemberRemoval
from broker.coordination.group.modern.consumer.migration import Migration
from broker.coordination.group.modern.consumer.timers import ConsumerTimers, sync_timer
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.group.rules import CLASSIC_HEARTBEAT, CLASSIC_JOIN, CLASSIC_SYNC, Rule
from broker.coordination.reasons import Refusal
from broker.settings.releases import Behaviour
from protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, Subscription, read_subscription, write_assignment
from protocol.errors import ErrorCode
from protocol.log_records.consumer_group import ClassicMember, ClassicProtocol
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.types import uuid_text


class ClassicMembers:
    """Decides requests of the classic protocol to consumer groups."""

    def __init__(
        self,
        context: ConsumerContext,
        timers: ConsumerTimers,
        heartbeats: Heartbeats,
        removal: MemberRemoval,
        migration: Migration,
    ) -> None:
        self._context, self._timers, self._heartbeats, self._removal = context, timers, heartbeats, removal
        self._migration = migration

    # --- JoinGroup ---------------------------------------------------------------------------------------------------

    def join(
        self,
        builder: OutcomeBuilder,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        joiner: Joiner,
        reply_to: Hashable,
    ) -> None:
        """Reply with a JoinGroupResponse immediately (groups C.10.2).

        Raises:
            KafkaError: 23, 25, 81 or 82; nothing was changed.
        """
        if self._context.settings.string("group.consumer.migration.policy").lower() == "disabled":
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *CLASSIC_JOIN)
        self._heartbeats.check_size(group, request.member_id, request.group_instance_id)
        _check_protocols(group, request)
        member_id = request.member_id or uuid_text(self._context.new_uuid())
        if not request.member_id and request.group_instance_id is None and joiner.needs_member_id:
            builder.reply(reply_to, join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id), direct=True)
            return
        step = self._step(builder, group, request, member_id)
        subscription, timeout_ms = self._subscription(request), request.rebalance_timeout_ms
        step.owned = self._by_id(subscription)
        offered = tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols)
        step.after = replace(
            step.before,
            instance_id=request.group_instance_id or step.before.instance_id,
            rack_id=subscription.rack_id or step.before.rack_id,
            rebalance_timeout_ms=step.before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            client_id=joiner.client_id,
            client_host=joiner.client_host,
            subscribed=frozenset(subscription.topics),
            regex="",
            classic=ClassicMember(request.session_timeout_ms, offered),
        )
        group_id = group.group_id
        held = None if request.group_instance_id is None else group.static_members.get(request.group_instance_id)
        if held is not None and self._migration.may_downgrade(group, group.members[held]):
            if group.members[held].instance_id != request.group_instance_id:
                # The holder's instance id has changed since: ClassicGroup.fromConsumerGroup does not omit it, and
                # fails as the holder does not use the classic protocol.
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *CLASSIC_JOIN)
            self._join_downgraded(builder, step, group.members[held], reply_to)
            return
        self._heartbeats.advance(builder, step)
        self._timers.arm_session(builder, group_id, member_id, request.session_timeout_ms)
        self._timers.await_sync(builder, group_id, member_id, timeout_ms)
        self._timers.end_call(builder, group_id, member_id)
        builder.reply(reply_to, _joined(step.after))

    def _join_downgraded(self, builder: OutcomeBuilder, step: Step, held: Member, reply_to: Hashable) -> None:
        """Downgrade the group: the member replaces the last one that uses the consumer protocol.

        Its generation is the epoch that it has as the replacement, which is 0 for a new member id: if the group has no
        target of its current epoch yet, the member's epoch stays (``classicGroupJoinToConsumerGroup``).
        """
        group = step.group
        stale = self._heartbeats.settle(builder, step)
        builder.reply(reply_to, _joined(step.after))
        members = step.members().values()
        self._timers.cancel_all(builder, group.group_id, held.member_id)
        heirs = {step.after.member_id: held.member_id}
        self._migration.convert(builder, group, members, heirs=heirs, rebalance=stale)

    def _step(self, builder: OutcomeBuilder, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> Step:
        instance_id = request.group_instance_id
        if instance_id is not None and request.member_id:
            group.static_member(instance_id, request.member_id, CLASSIC_JOIN)
        elif instance_id is not None and instance_id in group.static_members:
            held = group.static_member(instance_id)
            return self._heartbeats.replace(builder, group, held, member_id, instance_id, classic=True)
        known = group.members.get(member_id) or Member(member_id)
        return Step(group, known, known)

    def _subscription(self, request: JoinGroupRequest) -> Subscription:
        """Return the subscription in the metadata of the request's first protocol.

        Raises:
            KafkaError: INCONSISTENT_GROUP_PROTOCOL if it is malformed; before 4.4 UNKNOWN_SERVER_ERROR.
        """
        subscription = read_subscription(bytes(request.protocols[0].metadata))
        if subscription is None:
            refused = self._context.behaves(Behaviour.MALFORMED_MEMBERS_REFUSED)
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if refused else ErrorCode.UNKNOWN_SERVER_ERROR
            raise Refusal(code, *CLASSIC_JOIN)
        return subscription

    def _by_id(self, subscription: Subscription) -> Partitions:
        topics = self._context.topics
        return {
            topic.id: frozenset(partitions)
            for name, partitions in subscription.owned.items()
            if (topic := topics.named(name)) is not None
        }

    # --- SyncGroup, Heartbeat, LeaveGroup ----------------------------------------------------------------------------

    def sync(
        self, builder: OutcomeBuilder, group: ConsumerGroup, request: SyncGroupRequest, reply_to: Hashable
    ) -> None:
        """Reply with the coordinator's assignment; the request's assignments are ignored (groups C.10.3).

        Raises:
            KafkaError: 22, 23, 25 or 82.
        """
        member, classic = self._member(group, request, CLASSIC_SYNC)
        name = classic.supported_protocols[0].name
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *CLASSIC_SYNC)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            again = ErrorCode.REBALANCE_IN_PROGRESS
            self._timers.call_back(builder, group.group_id, member)
            builder.failed = True
            builder.refuse(reply_to, SyncGroupResponse(again), Refusal(again, *CLASSIC_SYNC))
            return
        subscription = read_subscription(classic.supported_protocols[0].metadata)
        topics = self._context.topics
        partitions = {
            topic.name: epochs
            for topic_id, epochs in member.assigned.items()
            if (topic := topics.of_id(topic_id)) is not None
        }
        builder.cancel(sync_timer(group.group_id, member.member_id))
        self._timers.arm_session(builder, group.group_id, member.member_id, classic.session_timeout_ms)
        version = 0 if subscription is None else subscription.version
        answer = SyncGroupResponse(
            assignment=write_assignment(partitions, version), protocol_type=CONSUMER_PROTOCOL_TYPE, protocol_name=name
        )
        builder.reply(reply_to, answer)

    def heartbeat(
        self, builder: OutcomeBuilder, group: ConsumerGroup, request: HeartbeatRequest, reply_to: Hashable
    ) -> None:
        """Restart the member's session, and reply whether it must rejoin (groups C.10.4).

        Raises:
            KafkaError: 22, 25 or 82.
        """
        member, classic = self._member(group, request, CLASSIC_HEARTBEAT)
        self._timers.arm_session(builder, group.group_id, member.member_id, classic.session_timeout_ms)
        code = ErrorCode.NONE
        if self._has_to_join(group, member):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            builder.refused(Refusal(code, *CLASSIC_HEARTBEAT))
            self._timers.call_back(builder, group.group_id, member)
        builder.reply(reply_to, HeartbeatResponse(code))

    @staticmethod
    def _has_to_join(group: ConsumerGroup, member: Member) -> bool:
        if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return all(
            group.owner_epoch(topic_id, partition) is None
            for topic_id, partitions in group.targets.get(member.member_id, {}).items()
            for partition in partitions
            if partition not in member.assigned.get(topic_id, {})
        )

    def leave(
        self, builder: OutcomeBuilder, group: ConsumerGroup, request: LeaveGroupRequest, reply_to: Hashable
    ) -> None:
        """Remove members of either protocol, each with its own result (groups C.10.4)."""
        gone: dict[str, Member] = {}
        answers = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaver(group, identity)
                gone[member.member_id] = member
                builder.member(group, LEFT, member, identity.reason or "")
            except Refusal as refusal:
                builder.refused(refusal)
                code = refusal.code
            answers.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        if gone:
            self._removal.remove(builder, group, list(gone.values()))
        builder.reply(reply_to, LeaveGroupResponse(members=tuple(answers)))

    @staticmethod
    def _member(
        group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest, rule: Rule
    ) -> tuple[Member, ClassicMember]:
        if request.group_instance_id is None:
            member = group.member(request.member_id, rule)
        else:
            member = group.static_member(request.group_instance_id, request.member_id, rule)
        # A member that has left this protocol is unknown to it, at any generation (groups C.10.3, groups C.10.4).
        if member.classic is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *rule)
        if request.generation_id != member.epoch:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION, *rule)
        return member, member.classic


def _joined(member: Member) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        member_id=member.member_id,
    )


def _leaver(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id, CLASSIC_HEARTBEAT)
    return group.static_member(identity.group_instance_id, identity.member_id or None, CLASSIC_HEARTBEAT)


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """Raise INCONSISTENT_GROUP_PROTOCOL unless the member offers a protocol that all classic members support.

    If it rejoins, its previous protocols count too (``ConsumerGroup.supportsClassicProtocols``).
    """
    offered = {each.name for each in request.protocols}
    known = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not offered.intersection(*known):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *CLASSIC_JOIN)
