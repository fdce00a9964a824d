"""SyncGroup, Heartbeat and LeaveGroup of classic groups (groups A.7, A.8, A.9)."""

from collections import Counter
from collections.abc import Hashable

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.rebalance import Rebalances, member_timer, sync_timer
from broker.coordination.group.classic.states import ASSIGNED, State
from broker.coordination.group.events import EVICTED, LEFT
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import error_for_clients, join_refused
from broker.coordination.group.rules import HEARTBEAT, LEAVE, SYNC, Rule
from broker.coordination.reasons import Reason, Refusal, StateChange
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Membership:
    """Decides SyncGroup, Heartbeat and LeaveGroup requests."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances
        self.unreplicated: Counter[str] = Counter()
        """Groups with records that are not replicated yet, and how many: in Kafka, they are not Stable yet."""

    # --- SyncGroup ---------------------------------------------------------------------------------------------------

    def sync(
        self, builder: OutcomeBuilder, existing: ClassicGroup | None, request: SyncGroupRequest, reply_to: Hashable
    ) -> None:
        """Take the leader's assignments, and give each member its own (groups A.7).

        Raises:
            KafkaError: 22, 23, 25, 27 or 82.
        """
        group = _member_group(existing, SYNC.row(".1"))
        group.check_member(request.member_id, request.group_instance_id, SYNC.row(".2"))
        group.check_generation(request.generation_id, SYNC.row(".3"))
        # The request is validated as a whole before the state: a wrong protocol is reported during a rebalance, too.
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *SYNC.row(".4"))
        if group.state is State.PREPARING_REBALANCE:
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, *SYNC.row(".5"))
        group.pending_sync.discard(request.member_id)
        if not group.pending_sync:
            builder.cancel(sync_timer(group))
        if group.state is State.STABLE:
            # Quirk: the session timer is not armed again.
            at_once = group.group_id not in self.unreplicated
            builder.reply(reply_to, _assigned(group, group.members[request.member_id].assignment), direct=at_once)
            return
        group.awaiting_sync[request.member_id] = reply_to  # a SyncGroup already parked is never answered
        if request.member_id == group.leader:
            self._assign(builder, group, {each.member_id: bytes(each.assignment) for each in request.assignments})

    def _assign(self, builder: OutcomeBuilder, group: ClassicGroup, leader_assignments: dict[str, bytes]) -> None:
        """Complete the generation: record it, and answer the parked SyncGroups with the leader's assignments."""
        assignments = {member_id: leader_assignments.get(member_id, b"") for member_id in group.members}
        builder.record(group.record(assignments))
        generation = group.generation
        builder.changed(
            StateChange(group.group_id, ASSIGNED, group.state_name, State.STABLE.value, generation, generation)
        )
        parked = dict(group.awaiting_sync)
        for member_id in group.members:
            if self._rebalances.answer_sync(builder, group, member_id, _assigned(group, assignments[member_id])):
                self._rebalances.rearm(builder, group, member_id)

        def refused(error: KafkaError, instead: OutcomeBuilder) -> None:
            group.awaiting_sync = parked
            self._rebalances.reset_assignments(instead, group, error_for_clients(error.code))
            self._rebalances.rebalance_or_complete(instead, group)

        builder.if_not_appended(refused)

    # --- Heartbeat ---------------------------------------------------------------------------------------------------

    def heartbeat(
        self, builder: OutcomeBuilder, existing: ClassicGroup | None, request: HeartbeatRequest, reply_to: Hashable
    ) -> None:
        """Restart the member's session, and reply whether it must rejoin (groups A.8).

        Raises:
            KafkaError: 22, 25 or 82.
        """
        group = _member_group(existing, HEARTBEAT)
        group.check_member(request.member_id, request.group_instance_id, HEARTBEAT)
        group.check_generation(request.generation_id, HEARTBEAT)
        # Before the refusal: a member that has to rejoin is alive.
        self._rebalances.rearm(builder, group, request.member_id)
        if self._rebalances.heartbeat_refused(group):
            builder.refused(Refusal(ErrorCode.REBALANCE_IN_PROGRESS, *HEARTBEAT))
            builder.reply(reply_to, HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        else:
            builder.reply(reply_to, HeartbeatResponse())

    # --- LeaveGroup --------------------------------------------------------------------------------------------------

    def leave(
        self, builder: OutcomeBuilder, group: ClassicGroup | None, request: LeaveGroupRequest, reply_to: Hashable
    ) -> None:
        """Remove members, each with its own result, also if the group does not exist (groups A.9)."""
        answers = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                self._remove(builder, _member_group(group, LEAVE), identity, LEFT)
            except Refusal as refusal:
                builder.refused(refusal)
                code = refusal.code
            answers.append(MemberResponse(identity.member_id, identity.group_instance_id, code))
        if group is not None and any(answer.error_code is ErrorCode.NONE for answer in answers):
            self._after_leaving(builder, group)
        builder.reply(reply_to, LeaveGroupResponse(members=tuple(answers)))

    def evict(self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str) -> None:
        """Remove a member as if it had left.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        self._remove(builder, group, MemberIdentity(member_id), EVICTED)
        self._after_leaving(builder, group)

    def _after_leaving(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self._rebalances.prepare(builder, group)
        elif group.state is State.PREPARING_REBALANCE:
            # The initial rebalance delay continues even if the last member leaves.
            self._rebalances.maybe_complete(builder, group)

    def _remove(self, builder: OutcomeBuilder, group: ClassicGroup, identity: MemberIdentity, reason: Reason) -> None:
        member_id = _leaver(group, identity)
        if (member := group.members.get(member_id)) is not None:
            builder.member(group, reason, member, identity.reason or "")
        builder.cancel(member_timer(group, member_id))
        self._rebalances.answer_join(builder, group, member_id, join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)


def _member_group(group: ClassicGroup | None, rule: Rule) -> ClassicGroup:
    """Return the group of a request; a missing group has no members (groups A.3)."""
    if group is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *rule)
    return group


def _leaver(group: ClassicGroup, identity: MemberIdentity) -> str:
    """Return the id of the member that leaves; static members may be given by instance id alone (KIP-345)."""
    # An id returned with MEMBER_ID_REQUIRED may leave before it has joined; it is no member yet.
    if identity.member_id in group.pending:
        return identity.member_id
    if identity.member_id or identity.group_instance_id is None:
        group.check_member(identity.member_id, identity.group_instance_id, LEAVE.row(".3"))
        return identity.member_id
    member_id = group.static_members.get(identity.group_instance_id)
    if member_id is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *LEAVE.row(".1"))
    return member_id


def _differs(named: str | None, known: str | None) -> bool:
    return named is not None and known is not None and named != known


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        assignment=assignment, protocol_type=group.protocol_type, protocol_name=group.protocol_name
    )
