"""Share groups of one coordinator (KIP-932), after Kafka's ``ShareGroup`` and ``GroupMetadataManager``.

States: Empty, Stable; a group is Stable while it has members.

1. Groups and members change only in :meth:`ShareGroups.replay`; no request is parked.
2. A heartbeat joins, subscribes and returns the assignment in one step, without revocation (``heartbeat``). Partitions
   are assigned once their state exists.
3. The share coordinator has the state of share partitions. The effect ``InitializeShareState`` calls it; its result is
   a separate operation (``offsets``).
4. A member is removed when it leaves, or when its session expires (``modern.timers``).

Exceptions: the sessions, and the times at which initializations began, are soft state.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from uuid import UUID

from broker.coordination.group.events import EVICTED, LEFT
from broker.coordination.group.group import ClassicRequests, Groups, GroupType, NoClassicMembers
from broker.coordination.group.modern.epochs import LEAVING
from broker.coordination.group.modern.share.context import ShareContext
from broker.coordination.group.modern.share.description import described
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.heartbeat import Heartbeats, Sender
from broker.coordination.group.modern.share.member import ShareMember, tombstones
from broker.coordination.group.modern.share.offsets import ShareOffsets
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import GroupOutcome, OutcomeBuilder
from broker.coordination.group.rules import SHARE_HEARTBEAT
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour
from protocol.log_records.share_group import ShareGroupKind, ShareGroupRecord, ShareTargetEpoch
from protocol.messages.share_group_describe import DescribedGroup
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

Partitions = Mapping[UUID, frozenset[int]]


class ShareGroups:
    """The rules of share groups; ``group_setting(group_id, name)`` returns a numeric group setting."""

    type = GroupType.SHARE
    record_classes = (ShareGroupRecord,)
    makes_way = False
    classic_requests: ClassicRequests = NoClassicMembers()

    def __init__(
        self,
        groups: Groups,
        settings: Settings,
        topics: Topics,
        group_setting: Callable[[str, str], int],
        behaves: Callable[[Behaviour], bool],
    ) -> None:
        self._groups = groups
        self._context = context = ShareContext(ShareGroup, groups, settings, topics, group_setting, behaves)
        self._timers = MemberTimers[ShareGroup, ShareMember](context, self._remove)
        self._heartbeats = Heartbeats(context, self._timers)
        self.offsets = ShareOffsets(context)

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, sender: Sender, now_ms: int, reply_to: Hashable
    ) -> GroupOutcome:
        """ShareGroupHeartbeat (groups D.1) of a valid request: replies with a ShareGroupHeartbeatResponse.

        The member's session is restarted even if the log refuses the records, as in Kafka.

        Raises:
            KafkaError: if refused; nothing was changed.
        """
        builder = OutcomeBuilder(now_ms)
        if request.member_epoch == LEAVING:
            self._leave(builder, request, reply_to)
        else:
            builder.keeps_timers = self._context.find(request.group_id) is not None
            self._heartbeats.handle(builder, request, sender, reply_to)
        return builder.outcome()

    def _leave(self, builder: OutcomeBuilder, request: ShareGroupHeartbeatRequest, reply_to: Hashable) -> None:
        """Remove a member that leaves. Raises 25 or 69."""
        group = self._context.existing(request.group_id, SHARE_HEARTBEAT.row(" S1"))
        member = group.member(request.member_id)
        builder.member(group, LEFT, member)
        self._remove(builder, group, member)
        builder.reply(
            reply_to, ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def _remove(self, builder: OutcomeBuilder, group: ShareGroup, member: ShareMember) -> None:
        """Delete a member and bump the group epoch."""
        left = [each for each in group.members.values() if each.member_id != member.member_id]
        for record in tombstones(group.group_id, member.member_id):
            builder.record(record)
        self._context.bump_epoch(builder, group, left)
        if not left and self._context.behaves(Behaviour.SHARE_EMPTIED_ASSIGNMENT):
            builder.record(ShareGroupRecord.of(group.group_id, ShareTargetEpoch(group.epoch + 1, 0)))
        self._timers.cancel_all(builder, group.group_id, member.member_id)

    def describe(self, group_id: str) -> DescribedGroup:
        """Return a group with its members. Raises GROUP_ID_NOT_FOUND."""
        return described(self._context.existing(group_id, SHARE_HEARTBEAT.row(" S1"), reads=True), self._context.topics)

    def initialized_partitions(self, group_id: str) -> Partitions:
        """Return the initialized share partitions of a group; none if there is no such group."""
        group = self._context.find(group_id)
        if group is None:
            return {}
        return {topic_id: state.partitions for topic_id, state in group.partitions.initialized.items()}

    def state_created(
        self, group_id: str, partitions: Mapping[UUID, Collection[int]], now_ms: int, *, failed: bool
    ) -> GroupOutcome:
        """Record that the share coordinator has created the state of these partitions, or failed for one of them."""
        builder = OutcomeBuilder(now_ms)
        if failed:
            self.offsets.not_initialized(builder, group_id, partitions)
        else:
            self.offsets.initialized(builder, group_id, partitions)
        return builder.outcome()

    def changed(self, now_ms: int, change: Callable[[ShareOffsets, OutcomeBuilder], None]) -> GroupOutcome:
        """Return the outcome of an operation of ``offsets``. Raises the errors of that operation."""
        builder = OutcomeBuilder(now_ms)
        change(self.offsets, builder)
        return builder.outcome()

    # --- control plane -----------------------------------------------------------------------------------------------

    def rebalance(self, builder: OutcomeBuilder, group: ShareGroup) -> None:
        """Begin a new epoch, and so a new target; no effect on an Empty group."""
        if not group.is_empty:
            self._context.bump_epoch(builder, group, group.members.values())

    def evict(self, builder: OutcomeBuilder, group: ShareGroup, member_id: str) -> None:
        """Remove a member as if its session had expired. Raises UNKNOWN_MEMBER_ID."""
        member = group.member(member_id)
        builder.member(group, EVICTED, member)
        self._remove(builder, group, member)

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: ShareGroupRecord) -> None:
        """Apply a record; the first one creates the group."""
        group = self._groups.get(record.group_id)
        if group is None and record.value is not None:
            group = self._groups[record.group_id] = ShareGroup(record.group_id)
        if not isinstance(group, ShareGroup):
            return
        if record.value is None and record.kind is ShareGroupKind.GROUP_METADATA:
            del self._groups[record.group_id]
            self._context.begun_ms.pop(record.group_id, None)
        else:
            group.replay(record)

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Do nothing: no request to a share group is parked."""

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Start a session for each member, and the retry interval of initializations (groups D.2 I4)."""
        for group in self._groups.values():
            if isinstance(group, ShareGroup):
                self._context.partitions_seen(group.group_id, group.partitions, builder.now_ms)
                for member_id in group.members:
                    self._timers.arm_session(builder, group.group_id, member_id)
