"""SyncGroup, Heartbeat and LeaveGroup of classic groups (groups A.7, A.8, A.9)."""

from collections.abc import Hashable, Mapping

from broker.coordination.group.answers import join_refused, told_to_clients
from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer.classic_members import ClassicMembers
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.draft import Draft
from broker.coordination.group.model import Group
from broker.coordination.group.rebalance import Rebalances, member_timer, sync_timer
from broker.coordination.group.states import State
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Membership:
    """What members do between joining and going."""

    def __init__(
        self, groups: Mapping[str, Group], rebalances: Rebalances, in_consumer_groups: ClassicMembers
    ) -> None:
        self._groups, self._rebalances, self._in_consumer_groups = groups, rebalances, in_consumer_groups

    # --- SyncGroup ---------------------------------------------------------------------------------------------------

    def sync(self, draft: Draft, request: SyncGroupRequest, token: Hashable) -> None:
        """A.7: the leader brings the assignments, everybody takes its own.

        Raises:
            KafkaError: the member's codes: 22, 23, 25, 27, 82.
        """
        if isinstance(found := self._groups.get(request.group_id), ConsumerGroup):
            self._in_consumer_groups.sync(draft, found, request, token)
            return
        group = self._member_group(request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is State.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.discard(request.member_id)
        if not group.pending_sync:
            draft.cancel(sync_timer(group))
        if group.state is State.STABLE:
            # Quirk: the session timer is not armed again.
            draft.reply(token, _assigned(group, group.members[request.member_id].assignment))
            return
        group.awaiting_sync[request.member_id] = token  # one that is parked already is never answered
        if request.member_id == group.leader:
            self._assign(draft, group, {each.member_id: bytes(each.assignment) for each in request.assignments})

    def _assign(self, draft: Draft, group: ClassicGroup, given: dict[str, bytes]) -> None:
        """The generation is finished: remember it, and hand out what the leader has decided."""
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        draft.record(group.record(assignments))
        parked = dict(group.awaiting_sync)
        for member_id in group.members:
            if self._rebalances.answer_sync(draft, group, member_id, _assigned(group, assignments[member_id])):
                self._rebalances.rearm(draft, group, member_id)

        def refused(error: KafkaError, instead: Draft) -> None:
            group.awaiting_sync = parked
            self._rebalances.reset_assignments(instead, group, told_to_clients(error.code))
            self._rebalances.rebalance_or_complete(instead, group)

        draft.if_not_appended(refused)

    # --- Heartbeat ---------------------------------------------------------------------------------------------------

    def heartbeat(self, draft: Draft, request: HeartbeatRequest, token: Hashable) -> None:
        """A.8: the member is alive, and hears whether it has to join anew.

        Raises:
            KafkaError: 22, 25 or 82.
        """
        if isinstance(found := self._groups.get(request.group_id), ConsumerGroup):
            self._in_consumer_groups.heartbeat(draft, found, request, token)
            return
        group = self._member_group(request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalances.rearm(draft, group, request.member_id)
        rejoin = group.state is State.PREPARING_REBALANCE
        draft.reply(token, HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS if rejoin else ErrorCode.NONE))

    # --- LeaveGroup --------------------------------------------------------------------------------------------------

    def leave(self, draft: Draft, request: LeaveGroupRequest, token: Hashable) -> None:
        """A.9: members go, each with an answer of its own; a group that does not exist is missed by each of them."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._in_consumer_groups.leave(draft, group, request, token)
            return
        answers = []
        for identity in request.members:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            if isinstance(group, ClassicGroup):
                code = self._remove(draft, group, identity)
            answers.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        if isinstance(group, ClassicGroup) and any(answer.error_code is ErrorCode.NONE for answer in answers):
            self._after_leaving(draft, group)
        draft.reply(token, LeaveGroupResponse(members=tuple(answers)))

    def evict(self, draft: Draft, group: ClassicGroup, member_id: str) -> None:
        """Take a member out as if it had left.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        code = self._remove(draft, group, MemberIdentity(member_id))
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
        self._after_leaving(draft, group)

    def _after_leaving(self, draft: Draft, group: ClassicGroup) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self._rebalances.prepare(draft, group)
        elif group.state is State.PREPARING_REBALANCE:
            # During the initial delay the last one who leaves does not end it.
            self._rebalances.maybe_complete(draft, group)

    def _remove(self, draft: Draft, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        try:
            member_id = _leaver(group, identity)
        except KafkaError as error:
            return error.code
        draft.cancel(member_timer(group, member_id))
        self._rebalances.answer_join(draft, group, member_id, join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        return ErrorCode.NONE

    def _member_group(self, group_id: str) -> ClassicGroup:
        """The classic group that a member speaks of; there are no members where there is none (groups A.3)."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group


def _leaver(group: ClassicGroup, identity: MemberIdentity) -> str:
    """The id of the member that leaves; an administrator may name static members by instance id alone (KIP-345)."""
    if identity.member_id in group.pending:
        return identity.member_id
    if identity.member_id or identity.group_instance_id is None:
        group.check_member(identity.member_id, identity.group_instance_id)
        return identity.member_id
    member_id = group.static_members.get(identity.group_instance_id)
    if member_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member_id


def _differs(named: str | None, known: str | None) -> bool:
    return named is not None and known is not None and named != known


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol_name
    )
