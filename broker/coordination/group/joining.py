"""JoinGroup to a classic group (groups A.4, A.6), after Kafka's ``classicGroupJoinToClassicGroup``."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from uuid import UUID

from broker.coordination.group.answers import join_refused, told_to_clients
from broker.coordination.group.classic import ClassicGroup, Member, Protocols
from broker.coordination.group.consumer.classic_members import ClassicMembers
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.draft import Draft
from broker.coordination.group.model import Group
from broker.coordination.group.rebalance import Rebalances, Settings, join_answer, joined_members
from broker.coordination.group.states import State
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.messages.sync_group import SyncGroupResponse


@dataclass(frozen=True, slots=True)
class Joiner:
    """Who sends a JoinGroup, and what its version knows.

    ``client_host`` is in Java's form, ``/127.0.0.1``. ``needs_member_id``: a dynamic member is first told its id
    (KIP-394); ``skips_assignment``: a returning static leader may be told not to assign (KIP-814).
    """

    client_id: str
    client_host: str
    needs_member_id: bool
    skips_assignment: bool


@dataclass(frozen=True, slots=True)
class _Ask:
    """One JoinGroup on its way through the rules."""

    request: JoinGroupRequest
    joiner: Joiner
    protocols: Protocols
    token: Hashable

    @property
    def member_id(self) -> str:
        return self.request.member_id


class Joining:
    """Decides JoinGroups over the groups of one shard."""

    def __init__(
        self,
        groups: dict[str, Group],
        settings: Settings,
        rebalances: Rebalances,
        new_uuid: Callable[[], UUID],
        in_consumer_groups: ClassicMembers,
    ) -> None:
        self._in_consumer_groups = in_consumer_groups
        self._groups, self._settings, self._rebalances, self._new_uuid = groups, settings, rebalances, new_uuid

    def join(self, draft: Draft, request: JoinGroupRequest, joiner: Joiner, token: Hashable) -> None:
        """J1, J2, J5: find or create the group, look whether there is room, decide, remember a new group."""
        group = self._groups.get(request.group_id)
        replaced = group if isinstance(group, ConsumerGroup) and group.is_empty else None
        born = group is replaced
        if group is replaced:
            if request.member_id:
                # Quirk: an Empty consumer group is forgotten, and comes back with the next load (groups A.3 Q1).
                self._groups.pop(request.group_id, None)
                draft.reply(token, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return
            group = self._groups[request.group_id] = ClassicGroup(request.group_id, draft.now_ms)
            for record in () if replaced is None else replaced.tombstones():
                draft.record(record)
        if isinstance(group, ConsumerGroup):
            client = joiner.client_id, joiner.client_host, joiner.needs_member_id
            self._in_consumer_groups.join(draft, group, request, client, token)
            return
        if not isinstance(group, ClassicGroup):
            draft.reply(token, join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
        ask = _Ask(request, joiner, protocols, token)
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            draft.reply(token, join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not request.member_id:
            self._new_member(draft, group, ask)
        else:
            self._known_member(draft, group, ask)
        if born:
            draft.record(group.born_record())
            self._unborn_if_not_appended(draft, group, token, replaced)

    def _unborn_if_not_appended(
        self, draft: Draft, group: ClassicGroup, token: Hashable, replaced: ConsumerGroup | None
    ) -> None:
        answered = draft.replies()

        def refused(error: KafkaError, instead: Draft) -> None:
            self._groups.pop(group.group_id, None)
            if replaced is not None:
                self._groups[group.group_id] = replaced
            for reply in answered:
                instead.reply(reply.to, reply.message)
            if not answered:
                instead.reply(token, join_refused(told_to_clients(error.code)))

        draft.if_not_appended(refused)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """J2. Ids that were only handed out take no room."""
        limit = self._settings.int("group.max.size")
        if group.state is State.PREPARING_REBALANCE:
            return member_id in group.awaiting_join or len(group.awaiting_join) < limit
        if group.state in (State.COMPLETING_REBALANCE, State.STABLE):
            return member_id in group.members or len(group.members) < limit
        return True

    # --- a member without an id (J3) ---------------------------------------------------------------------------------

    def _new_member(self, draft: Draft, group: ClassicGroup, ask: _Ask) -> None:
        if not group.supports(ask.request.protocol_type, ask.protocols):
            draft.reply(ask.token, join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        instance_id = ask.request.group_instance_id
        # A.1: <instance id or client id>-<random UUID>
        new_id = f"{ask.joiner.client_id if instance_id is None else instance_id}-{self._new_uuid()}"
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is None:
                self._add(draft, group, ask, new_id)
            else:
                self._replace(draft, group, ask, old_id, new_id)
        elif ask.joiner.needs_member_id:
            group.pending.add(new_id)
            self._rebalances.arm_pending(draft, group, new_id, ask.request.session_timeout_ms)
            draft.reply(ask.token, join_refused(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        else:
            self._add(draft, group, ask, new_id)

    def _add(self, draft: Draft, group: ClassicGroup, ask: _Ask, member_id: str) -> None:
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
        self._rebalances.add_member(draft, group, member, request.protocol_type, ask.token)

    # --- a member with an id (J4) ------------------------------------------------------------------------------------

    def _known_member(self, draft: Draft, group: ClassicGroup, ask: _Ask) -> None:
        request = ask.request
        if not group.supports(request.protocol_type, ask.protocols):
            draft.reply(ask.token, join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ask.member_id))
            return
        if ask.member_id in group.pending:
            if request.group_instance_id is not None:
                # Quirk: ids are not handed out to static members, so Kafka trips over its own assertion.
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._add(draft, group, ask, ask.member_id)
            return
        try:
            group.check_member(ask.member_id, request.group_instance_id)
        except KafkaError as error:
            draft.reply(ask.token, join_refused(error.code, ask.member_id))
            return
        self._rejoin(draft, group, ask)

    def _rejoin(self, draft: Draft, group: ClassicGroup, ask: _Ask) -> None:
        """J4.4-7: a member joins again; what that means depends on where the group is."""
        leads = group.leader == ask.member_id
        unchanged = group.members[ask.member_id].protocols == ask.protocols
        if group.state is State.EMPTY:
            draft.reply(ask.token, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, ask.member_id))
        elif (group.state is State.COMPLETING_REBALANCE and unchanged) or (
            group.state is State.STABLE and unchanged and not leads
        ):
            draft.reply(ask.token, join_answer(group, ask.member_id))
        else:
            self._park(group, ask, ask.member_id)
            self._rebalances.rebalance_or_complete(draft, group)

    def _park(self, group: ClassicGroup, ask: _Ask, member_id: str) -> None:
        """Quirk: a join of the same member that is parked already is never answered."""
        request = ask.request
        member = group.members[member_id]
        group.update(member, ask.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        group.awaiting_join[member_id] = ask.token

    # --- a static member that comes back without its id (A.6) --------------------------------------------------------

    def _replace(self, draft: Draft, group: ClassicGroup, ask: _Ask, old_id: str, new_id: str) -> None:
        if group.state is State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        old_leader = group.leader or ""
        before = group.members[old_id]
        said = (before.protocols, before.rebalance_timeout_ms, before.session_timeout_ms)
        self._fence(draft, group, old_id)
        group.replace_static(ask.request.group_instance_id or "", old_id, new_id)
        self._rebalances.rearm(draft, group, new_id)  # with the old session timeout
        self._park(group, ask, new_id)
        if group.state is not State.STABLE or group.chosen_protocol() != group.protocol_name:
            self._rebalances.rebalance_or_complete(draft, group)
            return
        draft.record(group.record({member.member_id: member.assignment for member in group.members.values()}))
        draft.reply(group.awaiting_join.pop(new_id), _returned(group, ask.joiner, new_id, old_leader))

        def refused(error: KafkaError, instead: Draft) -> None:
            group.update(group.members[new_id], *said)
            group.replace_static(ask.request.group_instance_id or "", new_id, old_id)
            self._rebalances.rearm(instead, group, old_id)
            answer = _not_returned(group, old_leader, told_to_clients(error.code))
            instead.reply(ask.token, answer)

        draft.if_not_appended(refused)

    def _fence(self, draft: Draft, group: ClassicGroup, old_id: str) -> None:
        """Whoever still waits under the old id hears that another one has taken its place."""
        self._rebalances.answer_join(draft, group, old_id, join_refused(ErrorCode.FENCED_INSTANCE_ID, old_id))
        self._rebalances.answer_sync(draft, group, old_id, SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))


def _returned(group: ClassicGroup, joiner: Joiner, member_id: str, old_leader: str) -> JoinGroupResponse:
    """The answer without a rebalance. Without KIP-814 a returning leader must take itself for a follower."""
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
