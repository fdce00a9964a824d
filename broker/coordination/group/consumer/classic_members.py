"""Members of a consumer group that speak the classic protocol (groups C.10.2 to C.10.4).

They join one by one, without waiting for each other, and are told by their heartbeats to join anew when the group's
target moves; their generation is their member epoch. After Kafka's ``classicGroupJoinToConsumerGroup``.
"""

from collections.abc import Hashable
from dataclasses import replace

from broker.coordination.group.answers import join_refused
from broker.coordination.group.consumer.embedded import Subscription, read_subscription, write_assignment
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.heartbeats import Heartbeats, Step
from broker.coordination.group.consumer.members import Member, MemberState, Partitions
from broker.coordination.group.consumer.rules import Shard, join_timer, sync_timer
from broker.coordination.group.draft import Draft
from broker.coordination.group.subscription import CONSUMER_PROTOCOL_TYPE
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ClassicMember, ClassicProtocol
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.types import uuid_text

Client = tuple[str, str, bool]
"""Client id, host in Java's form, and whether a member without an id is first told one."""


class ClassicMembers:
    """Decides what members of the classic protocol ask of consumer groups."""

    def __init__(self, shard: Shard, heartbeats: Heartbeats) -> None:
        self._shard, self._heartbeats = shard, heartbeats
        self._called_back: set[tuple[str, str]] = set()
        """Soft: members that were told to join anew, and whose time for that runs."""

    # --- JoinGroup ---------------------------------------------------------------------------------------------------

    def join(
        self, draft: Draft, group: ConsumerGroup, request: JoinGroupRequest, client: Client, token: Hashable
    ) -> None:
        """C.10.2: answers a JoinGroupResponse at once, a refusal too."""
        draft_before = len(draft.records)
        try:
            self._join(draft, group, request, client, token)
        except KafkaError as error:
            del draft.records[draft_before:]
            draft.reply(token, join_refused(error.code))

    def _join(
        self, draft: Draft, group: ConsumerGroup, request: JoinGroupRequest, client: Client, token: Hashable
    ) -> None:
        client_id, client_host, needs_member_id = client
        subscription = self._subscription(group, request)
        self._heartbeats.check_room(group, request.member_id)
        member_id = request.member_id or uuid_text(self._shard.new_uuid())
        if not request.member_id and request.group_instance_id is None and needs_member_id:
            draft.reply(token, join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        step = self._step(draft, group, request, member_id)
        step.owned = self._by_id(subscription)
        offered = tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols)
        step.after = replace(
            step.before,
            instance_id=request.group_instance_id or step.before.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            client_id=client_id,
            client_host=client_host,
            subscribed=frozenset(subscription.topics),
            regex="",
            assignor=None,
            classic=ClassicMember(request.session_timeout_ms, offered),
        )
        self._heartbeats.advance(draft, step)
        group_id = group.group_id
        self._shard.arm_session(draft, group_id, member_id, request.session_timeout_ms)
        self._shard.arm_expiry(draft, sync_timer(group_id, member_id), request.rebalance_timeout_ms)
        self._called_back.discard((group_id, member_id))
        draft.cancel(join_timer(group_id, member_id))
        answer = JoinGroupResponse(
            generation_id=step.after.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=offered[0].name,
            member_id=member_id,
        )
        draft.reply(token, answer)

    def _subscription(self, group: ConsumerGroup, request: JoinGroupRequest) -> Subscription:
        """What the first protocol of the list says; raises INCONSISTENT_GROUP_PROTOCOL."""
        offered = {each.name for each in request.protocols}
        known = [
            {protocol.name for protocol in member.classic.supported_protocols}
            for member in group.members.values()
            if member.classic is not None and member.member_id != request.member_id
        ]
        subscription = read_subscription(bytes(request.protocols[0].metadata)) if request.protocols else None
        if (
            self._shard.settings.string("group.consumer.migration.policy").lower() == "disabled"
            or request.protocol_type != CONSUMER_PROTOCOL_TYPE
            or not offered.intersection(*known)
            or subscription is None
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return subscription

    def _step(self, draft: Draft, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> Step:
        instance_id = request.group_instance_id
        if instance_id is not None and request.member_id:
            group.static_member(instance_id, request.member_id)
        elif instance_id is not None and instance_id in group.static_members:
            return self._heartbeats.replace(draft, group, group.static_member(instance_id), member_id, classic=True)
        known = group.members.get(member_id) or Member(member_id)
        return Step(group, known, known)

    def _by_id(self, subscription: Subscription) -> Partitions:
        topics = self._shard.topics
        return {
            topic.id: frozenset(partitions)
            for name, partitions in subscription.owned.items()
            if (topic := topics.named(name)) is not None
        }

    # --- SyncGroup, Heartbeat, LeaveGroup ----------------------------------------------------------------------------

    def sync(self, draft: Draft, group: ConsumerGroup, request: SyncGroupRequest, token: Hashable) -> None:
        """C.10.3: what the coordinator has assigned; what the request assigns is nobody's.

        Raises:
            KafkaError: 22, 23, 25, 27 or 82.
        """
        member, classic = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        name = classic.supported_protocols[0].name
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        subscription = read_subscription(classic.supported_protocols[0].metadata)
        topics = self._shard.topics
        partitions = {
            topic.name: epochs
            for topic_id, epochs in member.assigned.items()
            if (topic := topics.of_id(topic_id)) is not None
        }
        draft.cancel(sync_timer(group.group_id, member.member_id))
        self._shard.arm_session(draft, group.group_id, member.member_id, classic.session_timeout_ms)
        version = 0 if subscription is None else subscription.version
        answer = SyncGroupResponse(
            assignment=write_assignment(partitions, version), protocol_type=CONSUMER_PROTOCOL_TYPE, protocol_name=name
        )
        draft.reply(token, answer)

    def heartbeat(self, draft: Draft, group: ConsumerGroup, request: HeartbeatRequest, token: Hashable) -> None:
        """C.10.4: the member is alive, and hears whether it has to join anew.

        Raises:
            KafkaError: 22, 25 or 82.
        """
        member, classic = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._shard.arm_session(draft, group.group_id, member.member_id, classic.session_timeout_ms)
        code = ErrorCode.NONE
        if self._has_to_join(group, member):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            place = (group.group_id, member.member_id)
            if place not in self._called_back:
                self._called_back.add(place)
                self._shard.arm_expiry(draft, join_timer(*place), member.rebalance_timeout_ms)
        draft.reply(token, HeartbeatResponse(code))

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

    def leave(self, draft: Draft, group: ConsumerGroup, request: LeaveGroupRequest, token: Hashable) -> None:
        """C.10.4: members of either protocol go together, each with an answer of its own."""
        gone: dict[str, Member] = {}
        answers = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaver(group, identity)
                gone[member.member_id] = member
            except KafkaError as error:
                code = error.code
            answers.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        if gone:
            self._shard.remove(draft, group, list(gone.values()))
        draft.reply(token, LeaveGroupResponse(members=tuple(answers)))

    @staticmethod
    def _member(
        group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[Member, ClassicMember]:
        member = group.member(member_id) if instance_id is None else group.static_member(instance_id, member_id)
        if member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if generation != member.epoch:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member, member.classic


def _leaver(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    return group.static_member(identity.group_instance_id, identity.member_id or None)
