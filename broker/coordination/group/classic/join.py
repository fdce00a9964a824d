"""JoinGroup to a classic group (groups A.4, A.6), after Kafka's ``classicGroupJoinToClassicGroup``."""

from collections.abc import Callable, Hashable
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup, Member, Protocols
from broker.coordination.group.classic.rebalance import Rebalances, join_answer, joined_members
from broker.coordination.group.classic.states import State
from broker.coordination.group.events import DID_NOT_FIT, REPLACED
from broker.coordination.group.group import Group, Groups, Joiner
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import error_for_clients, join_refused
from broker.coordination.group.rules import JOIN, REPLACEMENT
from broker.coordination.reasons import Refusal
from broker.coordination.settings import Settings
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse


@dataclass(frozen=True, slots=True)
class _Ask:
    """One JoinGroup request and its reply token."""

    request: JoinGroupRequest
    joiner: Joiner
    protocols: Protocols
    reply_to: Hashable

    @property
    def member_id(self) -> str:
        return self.request.member_id


class Joining:
    """Decides JoinGroup requests to the classic groups of one shard."""

    def __init__(
        self,
        groups: Groups,
        settings: Settings,
        rebalances: Rebalances,
        new_uuid: Callable[[], UUID],
    ) -> None:
        self._groups, self._settings, self._rebalances, self._new_uuid = groups, settings, rebalances, new_uuid

    def join(
        self,
        builder: OutcomeBuilder,
        existing: Group | None,
        request: JoinGroupRequest,
        joiner: Joiner,
        reply_to: Hashable,
    ) -> None:
        """Create the group if needed, check its size, decide, record a new group (groups A.4 J1, J2, J5).

        ``existing`` may be an Empty group of another kind, which a new classic group replaces.
        """
        replaced = None if isinstance(existing, ClassicGroup) else existing
        created = not isinstance(existing, ClassicGroup)
        if isinstance(existing, ClassicGroup):
            group = existing
        else:
            if request.member_id:
                # Quirk: an Empty consumer group is dropped without a record; the next load restores it (groups A.3 Q1).
                self._groups.forget(request.group_id)
                refusal = Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *JOIN.row(" J1"))
                builder.refuse(reply_to, join_refused(refusal.code, request.member_id), refusal, direct=True)
                return
            self._groups[request.group_id] = group = ClassicGroup(request.group_id, builder.now_ms)
            for record in () if replaced is None else replaced.tombstones():
                builder.record(record)
        protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
        ask = _Ask(request, joiner, protocols, reply_to)
        if not self._accepts_member(group, request.member_id):
            if (removed := group.members.get(request.member_id)) is not None:
                builder.member(group, DID_NOT_FIT, removed)
            group.remove(request.member_id)
            refusal = Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, *JOIN.row(" J2"))
            builder.refuse(reply_to, join_refused(refusal.code), refusal, direct=True)
        elif not request.member_id:
            self._new_member(builder, group, ask)
        else:
            self._known_member(builder, group, ask)
        # Quirk: even after a refusal, so that a failed first join leaves an Empty group (groups A.4 J5).
        if created:
            builder.record(group.creation_record())
            self._undo_create_on_append_error(builder, group, reply_to, replaced)

    def _undo_create_on_append_error(
        self, builder: OutcomeBuilder, group: ClassicGroup, reply_to: Hashable, replaced: Group | None
    ) -> None:
        answered = builder.replies()  # before the append

        def refused(error: KafkaError, instead: OutcomeBuilder) -> None:
            self._groups.forget(group.group_id)
            if replaced is not None:
                self._groups[group.group_id] = replaced
            if not answered:
                instead.reply(reply_to, join_refused(error_for_clients(error.code)))

        builder.if_not_appended(refused)

    def _accepts_member(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the member fits into group.max.size, for which pending ids do not count (groups A.4 J2)."""
        limit = self._settings.int("group.max.size")
        # Members of the last generation have yet to rejoin: the first ones to come fit, the others are turned away.
        if group.state is State.PREPARING_REBALANCE:
            return member_id in group.awaiting_join or len(group.awaiting_join) < limit
        if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            return member_id in group.members or len(group.members) < limit
        return True

    # --- a member without an id (groups A.4 J3) -------------------------------------------------------------------

    def _new_member(self, builder: OutcomeBuilder, group: ClassicGroup, ask: _Ask) -> None:
        if not group.supports(ask.request.protocol_type, ask.protocols):
            refusal = Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *JOIN.row(" J3.1"))
            builder.refuse(ask.reply_to, join_refused(refusal.code), refusal, direct=True)
            return
        instance_id = ask.request.group_instance_id
        # groups A.1: <instance id or client id>-<random UUID>
        new_id = f"{ask.joiner.client_id if instance_id is None else instance_id}-{self._new_uuid()}"
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is None:
                self._add(builder, group, ask, new_id)
            else:
                self._replace(builder, group, ask, old_id, new_id)
        elif ask.joiner.needs_member_id:
            group.pending.add(new_id)
            self._rebalances.arm_pending(builder, group, new_id, ask.request.session_timeout_ms)
            builder.reply(ask.reply_to, join_refused(ErrorCode.MEMBER_ID_REQUIRED, new_id), direct=True)
        else:
            self._add(builder, group, ask, new_id)

    def _add(self, builder: OutcomeBuilder, group: ClassicGroup, ask: _Ask, member_id: str) -> None:
        request, joiner = ask.request, ask.joiner
        member = Member(
            member_id,
            request.group_instance_id,
            joiner.client_id,
            joiner.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            ask.protocols,
        )
        self._rebalances.add_member(builder, group, member, request.protocol_type, ask.reply_to)

    # --- a member with an id (groups A.4 J4) ----------------------------------------------------------------------

    def _known_member(self, builder: OutcomeBuilder, group: ClassicGroup, ask: _Ask) -> None:
        request = ask.request
        if not group.supports(request.protocol_type, ask.protocols):
            refusal = Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, *JOIN.row(" J4.1"))
            builder.refuse(ask.reply_to, join_refused(refusal.code, ask.member_id), refusal, direct=True)
            return
        if ask.member_id in group.pending:
            if request.group_instance_id is not None:
                # Quirk: static members never have pending ids, so an assertion of Kafka's fails.
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *JOIN.row(" J4.2"))
            self._add(builder, group, ask, ask.member_id)
            return
        try:
            group.check_member(ask.member_id, request.group_instance_id, JOIN.row(" J4.3"))
        except Refusal as refusal:
            builder.refuse(ask.reply_to, join_refused(refusal.code, ask.member_id), refusal, direct=True)
            return
        self._rejoin(builder, group, ask)

    def _rejoin(self, builder: OutcomeBuilder, group: ClassicGroup, ask: _Ask) -> None:
        """Let a member rejoin, by the state of the group (groups A.4 J4.4 to J4.7)."""
        leads = group.leader == ask.member_id
        unchanged = group.members[ask.member_id].protocols == ask.protocols
        if group.state is State.EMPTY:
            refusal = Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *JOIN.row(" J4.7"))
            builder.refuse(ask.reply_to, join_refused(refusal.code, ask.member_id), refusal, direct=True)
        # It has missed the response of this generation, and gets it again. The leader of a Stable group forces a
        # rebalance: it has seen what members' metadata do not show, such as new partitions.
        elif (group.state is State.COMPLETING_REBALANCE and unchanged) or (
            group.state is State.STABLE and unchanged and not leads
        ):
            builder.reply(ask.reply_to, join_answer(group, ask.member_id), direct=True)
        else:
            self._park(group, ask, ask.member_id)
            self._rebalances.rebalance_or_complete(builder, group)

    def _park(self, group: ClassicGroup, ask: _Ask, member_id: str) -> None:
        """Park a JoinGroup. Quirk: a JoinGroup of the same member that is already parked is never answered."""
        request = ask.request
        member = group.members[member_id]
        group.update(member, ask.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        group.awaiting_join[member_id] = ask.reply_to

    # --- a static member that returns without its id (groups A.6) -------------------------------------------------

    def _replace(self, builder: OutcomeBuilder, group: ClassicGroup, ask: _Ask, old_id: str, new_id: str) -> None:
        # An IllegalStateException in Kafka: an Empty group has no member to replace.
        if group.state is State.EMPTY:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *REPLACEMENT.row(".5"))
        old_leader = group.leader or ""
        before = group.members[old_id]
        previous = (before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
        self._fence(builder, group, old_id)
        builder.member(group, REPLACED, before, f"now member {new_id} of client {ask.joiner.client_id}")
        group.replace_static(ask.request.group_instance_id or "", old_id, new_id)
        self._rebalances.rearm(builder, group, new_id)  # with the old session timeout
        self._park(group, ask, new_id)
        if group.state is not State.STABLE or group.chosen_protocol() != group.protocol_name:
            self._rebalances.rebalance_or_complete(builder, group)
            return
        builder.record(group.record({member.member_id: member.assignment for member in group.members.values()}))
        builder.reply(group.awaiting_join.pop(new_id), _returned(group, ask.joiner, new_id, old_leader))

        def refused(error: KafkaError, instead: OutcomeBuilder) -> None:
            group.update(group.members[new_id], *previous)
            group.replace_static(ask.request.group_instance_id or "", new_id, old_id)
            self._rebalances.rearm(instead, group, old_id)
            answer = _not_returned(group, old_leader, error_for_clients(error.code))
            instead.reply(ask.reply_to, answer)

        builder.if_not_appended(refused)

    def _fence(self, builder: OutcomeBuilder, group: ClassicGroup, old_id: str) -> None:
        """Answer the old id's parked requests with FENCED_INSTANCE_ID."""
        self._rebalances.answer_join(builder, group, old_id, join_refused(ErrorCode.FENCED_INSTANCE_ID, old_id))
        self._rebalances.answer_sync(builder, group, old_id, SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))


def _returned(group: ClassicGroup, joiner: Joiner, member_id: str, old_leader: str) -> JoinGroupResponse:
    """Return the response to a static member that returns without a rebalance; without KIP-814 never as the leader."""
    if joiner.skips_assignment:
        leads = group.leader == member_id
        leader, members = group.leader or "", joined_members(group) if leads else ()
    else:
        leads, leader, members = False, old_leader, ()
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader,
        member_id=member_id,
        members=members,
        skip_assignment=leads,
    )


def _not_returned(group: ClassicGroup, old_leader: str, code: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(
        code,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=old_leader,
    )
