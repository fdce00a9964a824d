"""Rebalances of classic groups, rule by rule (groups A.5), after Kafka's ``GroupMetadataManager``.

A rebalance collects JoinGroups (PreparingRebalance), answers them all together (CompletingRebalance) and ends with the
leader's SyncGroup. All rules write into a builder. Timers look up the group by its id, since it may be deleted or
replaced when they fire.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Final

from broker.coordination.group.classic.group import ClassicGroup, Member
from broker.coordination.group.classic.states import ALL_JOINED, ALL_LEFT, REBALANCE_BEGUN, State
from broker.coordination.group.events import (
    ID_EXPIRED,
    JOINED,
    MISSED_REBALANCE,
    MISSED_SYNC,
    SESSION_EXPIRED,
)
from broker.coordination.group.group import Group
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.reasons import StateChange
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour, newest_behaves
from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.sync_group import SyncGroupResponse

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""Session timeout of a new member until its first join phase ends: it cannot send heartbeats before.

GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS.
"""


def member_timer(group: ClassicGroup, member_id: str) -> Hashable:
    """Return the key of the timer that expires a member or a pending id."""
    return ("member", group.group_id, member_id)


def join_timer(group: ClassicGroup) -> Hashable:
    """Return the key of the timer that ends the join phase."""
    return ("join", group.group_id)


def sync_timer(group: ClassicGroup) -> Hashable:
    """Return the key of the timer that ends the wait for SyncGroups."""
    return ("sync", group.group_id)


class Rebalances:
    """The rebalance rules of one shard's groups. Members and parked requests are soft state; see ``machine.py``."""

    def __init__(
        self, groups: Mapping[str, Group], settings: Settings, behaves: Callable[[Behaviour], bool] = newest_behaves
    ) -> None:
        self._groups, self._settings, self._behaves = groups, settings, behaves

    def heartbeat_refused(self, group: ClassicGroup) -> bool:
        """Return whether a member's heartbeat is answered with REBALANCE_IN_PROGRESS (groups A.8)."""
        if group.state is State.COMPLETING_REBALANCE:
            return not self._behaves(Behaviour.HEARTBEATS_WHILE_SYNCING)
        return group.state is State.PREPARING_REBALANCE

    # --- joining -----------------------------------------------------------------------------------------------------

    def add_member(
        self, builder: OutcomeBuilder, group: ClassicGroup, member: Member, protocol_type: str, reply_to: Hashable
    ) -> None:
        """Add a member, park its JoinGroup, and begin or complete a rebalance if due (groups A.5 R1)."""
        # Only newcomers of a group's first rebalance extend its delay (groups A.5 R5).
        if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
            group.new_member_added = True
        member.is_new = True
        group.add(member, protocol_type)
        builder.member(group, JOINED, member)
        group.awaiting_join[member.member_id] = reply_to
        self._arm(builder, group, member.member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.rebalance_or_complete(builder, group)

    def rebalance_or_complete(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Begin a rebalance, or complete the current one if all members have joined (groups A.5 R2)."""
        if group.can_rebalance:
            self.prepare(builder, group)
        else:
            self.maybe_complete(builder, group)

    def prepare(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Begin a rebalance: all members have to rejoin (groups A.5 R3)."""
        if group.state is State.COMPLETING_REBALANCE:
            self.reset_assignments(builder, group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        builder.cancel(sync_timer(group))
        if group.state is State.EMPTY:
            self._prepare_first(builder, group)
            return
        self._begin(builder, group)
        if group.all_joined:  # groups A.5 R4
            self.complete(builder, group)
        else:
            self._arm_join(builder, group)

    def _prepare_first(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Begin the first rebalance, which waits for more members (groups A.5 R5)."""
        delay_ms = self._settings.int("group.initial.rebalance.delay.ms")
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        self._arm_first(builder, group, delay_ms, remaining_ms)
        self._begin(builder, group)

    def _begin(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        before, generation = group.state_name, group.generation
        group.enter(State.PREPARING_REBALANCE, builder.now_ms)
        change = StateChange(group.group_id, REBALANCE_BEGUN, before, group.state_name, generation, generation)
        builder.changed(change)

    def _arm_first(self, builder: OutcomeBuilder, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        over = partial(self._first_window_over, group.group_id, delay_ms, remaining_ms)
        builder.timer(join_timer(group), delay_ms, over)

    def _first_window_over(self, group_id: str, delay_ms: int, remaining_ms: int, builder: OutcomeBuilder) -> None:
        """Extend the initial delay if a member joined, up to the rebalance timeout; else end it (groups A.5 R5)."""
        group = self._find(group_id)
        if group is None:
            return
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            window_ms = min(self._settings.int("group.initial.rebalance.delay.ms"), remaining_ms)
            self._arm_first(builder, group, window_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete(builder, group)

    def maybe_complete(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Complete the join phase if all members have joined, unless this is the first rebalance (groups A.5 R6)."""
        if group.state is State.PREPARING_REBALANCE and group.all_joined and group.previous_state is not State.EMPTY:
            self.complete(builder, group)

    def complete(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Complete the join phase (groups A.5 R7)."""
        builder.cancel(join_timer(group))
        for member in group.members.values():
            # A static member that did not rejoin keeps its place until its session ends (KIP-345).
            if member.member_id not in group.awaiting_join and member.instance_id is None:
                builder.member(group, MISSED_REBALANCE, member, f"{group.rebalance_timeout_ms} ms")
                group.remove(member.member_id)
                builder.cancel(member_timer(group, member.member_id))
        # Only static members are left and none has rejoined: without a leader none can assign, so the phase is
        # extended until sessions end.
        if not group.elect_joined_leader() and len(group.members):
            self._arm_join(builder, group)
            return
        before, generation = group.state_name, group.generation
        group.next_generation(builder.now_ms)
        reason = ALL_LEFT if group.state is State.EMPTY else ALL_JOINED
        builder.changed(StateChange(group.group_id, reason, before, group.state_name, generation, group.generation))
        if group.state is State.EMPTY:
            builder.record(group.record({}))
            builder.keeps_timers = True
            return
        for member in group.members.values():
            self.answer_join(builder, group, member.member_id, join_answer(group, member.member_id))
            self.rearm(builder, group, member.member_id)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        if self._behaves(Behaviour.PENDING_SYNC):
            expire = partial(self._sync_overdue, group.group_id, group.generation)
            builder.timer(sync_timer(group), group.rebalance_timeout_ms, expire)

    # --- timers ------------------------------------------------------------------------------------------------------

    def _arm_join(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        builder.timer(join_timer(group), group.rebalance_timeout_ms, partial(self._join_overdue, group.group_id))

    def _join_overdue(self, group_id: str, builder: OutcomeBuilder) -> None:
        group = self._find(group_id)
        if group is not None and group.state is State.PREPARING_REBALANCE:
            self.complete(builder, group)

    def _sync_overdue(self, group_id: str, generation: int, builder: OutcomeBuilder) -> None:
        """Remove the members that have not sent their SyncGroup in time, and rebalance (groups A.5 R8)."""
        group = self._find(group_id)
        if group is None or group.generation != generation or not group.pending_sync:
            return
        # Stable counts too: the leader's SyncGroup completes the generation while others have yet to send theirs.
        if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
            return
        for member_id in sorted(group.pending_sync):
            if (member := group.members.get(member_id)) is not None:
                builder.member(group, MISSED_SYNC, member, f"{group.rebalance_timeout_ms} ms")
            group.remove(member_id)
            builder.cancel(member_timer(group, member_id))
        self.prepare(builder, group)

    def rearm(self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str) -> None:
        """Restart the session of a member that has sent a request."""
        self._arm(builder, group, member_id, group.members[member_id].session_timeout_ms)

    def arm_pending(
        self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str, session_timeout_ms: int
    ) -> None:
        """Arm the timer of an id returned with MEMBER_ID_REQUIRED, which has to join in time."""
        self._arm(builder, group, member_id, session_timeout_ms)

    def _arm(self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str, delay_ms: int) -> None:
        builder.timer(member_timer(group, member_id), delay_ms, partial(self.expire_member, group.group_id, member_id))

    def expire_member(self, group_id: str, member_id: str, builder: OutcomeBuilder) -> None:
        """Remove a member or a pending id whose session has expired (groups A.5 R9)."""
        group = self._find(group_id)
        if group is None:
            return
        if member_id in group.pending:
            builder.noted(group, ID_EXPIRED, member_id=member_id)
            group.remove(member_id)
            if group.state is State.PREPARING_REBALANCE and group.all_joined:
                self.complete(builder, group)
            return
        member = group.members.get(member_id)
        if member is None:
            return
        parked = member_id in group.awaiting_join or member_id in group.awaiting_sync
        if parked and not member.is_new:
            return  # the timer is armed again with the answer
        self.answer_join(builder, group, member_id, join_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        builder.member(group, SESSION_EXPIRED, member, f"{timeout_ms} ms")
        group.remove(member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare(builder, group)
        elif group.state is State.PREPARING_REBALANCE and group.all_joined:
            self.complete(builder, group)  # quirk: also during the initial delay

    # --- answering ---------------------------------------------------------------------------------------------------

    def answer_join(
        self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str, answer: JoinGroupResponse
    ) -> None:
        """Answer a member's parked JoinGroup, if there is one, without waiting for records (``completeJoinFuture``)."""
        reply_to = group.awaiting_join.pop(member_id, None)
        if reply_to is not None:
            builder.reply(reply_to, answer, direct=True)

    def answer_sync(
        self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str, answer: SyncGroupResponse
    ) -> bool:
        """Answer a member's parked SyncGroup; return whether there is one. An assignment waits for its record."""
        reply_to = group.awaiting_sync.pop(member_id, None)
        if reply_to is not None:
            builder.reply(reply_to, answer, direct=answer.error_code is not ErrorCode.NONE)
        return reply_to is not None

    def reset_assignments(self, builder: OutcomeBuilder, group: ClassicGroup, error: ErrorCode) -> None:
        """Drop all assignments, and answer the parked SyncGroups with the error."""
        for member in group.members.values():
            member.assignment = b""
            if self.answer_sync(builder, group, member.member_id, SyncGroupResponse(error)):
                # Its session timer may have fired while the request was parked, without effect.
                self.rearm(builder, group, member.member_id)

    def _find(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None


def join_answer(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Return the JoinGroupResponse of the current generation for a member; the leader's lists all members."""
    members = joined_members(group) if group.leader == member_id else ()
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member_id,
        members=members,
    )


def joined_members(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """Return all members with their metadata for the chosen protocol."""
    protocol = group.protocol_name or ""
    return tuple(
        JoinGroupResponseMember(member.member_id, member.metadata(protocol), member.instance_id)
        for member in group.members.values()
    )
