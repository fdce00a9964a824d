"""Classic groups of one coordinator, after Kafka's ``ClassicGroup`` and its half of ``GroupMetadataManager``.

States: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead; ``states`` has the table of transitions.

1. A rebalance collects JoinGroups (PreparingRebalance), answers all of them together (CompletingRebalance) and ends
   with the SyncGroup of the leader (Stable). ``join`` and ``membership`` decide requests, ``rebalance`` the rest.
2. A request that has to wait is parked in the group, and answered by another request, a timer or
   :meth:`ClassicGroups.unloaded`.
3. One record is written when a generation is completed, and one when a group is created.

Exceptions:

* A group changes before its record is in the log, as in Kafka: members, states and parked requests are soft state. They
  are lost with the coordinator, and members rejoin (groups A.12). A refused append is rolled back as far as possible.
* A new group is in the table before its record (``join``), and is removed again if the log refuses the record. An Empty
  group of another kind is removed without a record when a member with an unknown id joins it, as in Kafka.
"""

from collections.abc import Callable, Hashable, Iterable
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.join import Joining
from broker.coordination.group.classic.membership import Membership
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.classic.states import State
from broker.coordination.group.events import UNLOADED
from broker.coordination.group.group import ClassicRequests, Group, Groups, GroupType, Joiner
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.settings import Settings
from protocol.errors import ErrorCode
from protocol.log_records.group import GroupMetadata, GroupMetadataTombstone
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicGroups:
    """The rules of classic groups."""

    type = GroupType.CLASSIC
    record_classes = (GroupMetadata, GroupMetadataTombstone)
    makes_way = False

    def __init__(
        self, groups: Groups, settings: Settings, rebalances: Rebalances, new_uuid: Callable[[], UUID]
    ) -> None:
        self._groups, self._settings, self._rebalances = groups, settings, rebalances
        self._joining = Joining(groups, settings, rebalances, new_uuid)
        self._membership = Membership(rebalances)
        self._live = False

    # --- requests ----------------------------------------------------------------------------------------------------

    @property
    def classic_requests(self) -> ClassicRequests:
        """The handlers of classic protocol requests."""
        return self

    def join(
        self,
        builder: OutcomeBuilder,
        group: Group | None,
        request: JoinGroupRequest,
        joiner: Joiner,
        reply_to: Hashable,
    ) -> None:
        """JoinGroup (groups A.4), also if there is no group or it replaces an Empty one of another kind."""
        self._joining.join(builder, group, request, joiner, reply_to)

    def sync(
        self, builder: OutcomeBuilder, group: ClassicGroup | None, request: SyncGroupRequest, reply_to: Hashable
    ) -> None:
        """SyncGroup (groups A.7)."""
        self._membership.sync(builder, group, request, reply_to)

    def heartbeat(
        self, builder: OutcomeBuilder, group: ClassicGroup | None, request: HeartbeatRequest, reply_to: Hashable
    ) -> None:
        """Heartbeat (groups A.8)."""
        self._membership.heartbeat(builder, group, request, reply_to)

    def leave(
        self, builder: OutcomeBuilder, group: ClassicGroup | None, request: LeaveGroupRequest, reply_to: Hashable
    ) -> None:
        """LeaveGroup (groups A.9)."""
        self._membership.leave(builder, group, request, reply_to)

    # --- control plane -----------------------------------------------------------------------------------------------

    def rebalance(self, builder: OutcomeBuilder, group: ClassicGroup) -> None:
        """Begin a rebalance as if a member had triggered it; no effect on an Empty group."""
        if group.can_rebalance and not group.is_empty:
            self._rebalances.prepare(builder, group)

    def evict(self, builder: OutcomeBuilder, group: ClassicGroup, member_id: str) -> None:
        """Remove a member as if it had left. Raises UNKNOWN_MEMBER_ID."""
        self._membership.evict(builder, group, member_id)

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: GroupMetadata | GroupMetadataTombstone) -> None:
        """Apply a record: a completed generation, or the tombstone of a group."""
        group = self._groups.get(record.group_id)
        if isinstance(record, GroupMetadataTombstone):
            if isinstance(group, ClassicGroup):
                del self._groups[record.group_id]
        elif self._live and isinstance(group, ClassicGroup):
            group.finished(record)
        else:
            self._groups[record.group_id] = ClassicGroup.restored(record)

    def replicating(self, records: Iterable[object]) -> None:
        """Let SyncGroup wait for the replication of completed generations (groups A.7.6)."""
        for record in records:
            if isinstance(record, GroupMetadata):
                self._membership.unreplicated[record.group_id] += 1

    def replicated(self, records: Iterable[object]) -> None:
        """Let SyncGroup answer at once again."""
        waiting = self._membership.unreplicated
        for record in records:
            if isinstance(record, GroupMetadata):
                waiting[record.group_id] -= 1
                if not waiting[record.group_id]:
                    del waiting[record.group_id]

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Start a session for each member; a group larger than group.max.size rebalances (groups A.12)."""
        self._live = True
        for group in self._all():
            for member_id in group.members:
                self._rebalances.rearm(builder, group, member_id)
            if len(group.members) > self._settings.int("group.max.size"):
                self._rebalances.prepare(builder, group)

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Answer every parked JoinGroup and SyncGroup with NOT_COORDINATOR (groups A.12)."""
        for group in self._all():
            if group.state in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE):
                builder.noted(group, UNLOADED)
            for member_id in tuple(group.awaiting_join):
                answer = join_refused(ErrorCode.NOT_COORDINATOR, member_id)
                self._rebalances.answer_join(builder, group, member_id, answer)
            for member_id in tuple(group.awaiting_sync):
                self._rebalances.answer_sync(builder, group, member_id, SyncGroupResponse(ErrorCode.NOT_COORDINATOR))

    def _all(self) -> list[ClassicGroup]:
        return [group for group in self._groups.values() if isinstance(group, ClassicGroup)]
