"""Streams groups of one coordinator (KIP-1071), after Kafka's ``StreamsGroup`` and ``GroupMetadataManager``.

States: Empty, NotReady, Assigning, Reconciling, Stable; derived from the topology, the group's epoch, its target's
epoch and its members.

1. Groups and members change only in :meth:`StreamsGroups.replay`; no request is parked.
2. A heartbeat joins with the topology, reports owned tasks and returns the assignment in one step (``heartbeat``,
   ``reconciliation``); a new group epoch leads to a new target (``assignor``).
3. The topology is validated against the topics that exist (``configuration``); the result of a
   heartbeat lists missing internal topics, and the broker creates them.
4. A member is removed when it leaves, or when one of its timers fires (``modern.timers``).

Exceptions, as in Kafka: the configured topology, the check of the topics, the cached target, the endpoint epoch, the
member that requested a shutdown and the initial delay are soft state. A heartbeat changes it even if it fails later, or
its records are refused.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.events import AWAY, EVICTED, LEFT
from broker.coordination.group.group import ClassicRequests, Groups, GroupType, NoClassicMembers
from broker.coordination.group.modern.context import report_transition
from broker.coordination.group.modern.epochs import JOINING, LEAVING_STATIC
from broker.coordination.group.modern.streams.context import StreamsContext, state_with
from broker.coordination.group.modern.streams.description import described
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.heartbeat import Heartbeats, delay_timer
from broker.coordination.group.modern.streams.member import Member, MemberState, tombstones
from broker.coordination.group.modern.streams.states import REASONS
from broker.coordination.group.modern.streams.step import HeartbeatResult, Sender, no_recovery_lag
from broker.coordination.group.modern.streams.tasks import AssignedTasks
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import GroupOutcome, OutcomeBuilder
from broker.coordination.group.rules import STREAMS_DESCRIBE, STREAMS_LEAVE
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour
from protocol.errors import KafkaError
from protocol.log_records.streams_group import StreamsKind, StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


class StreamsGroups:
    """The rules of streams groups; the arguments are those of :class:`StreamsContext`."""

    type = GroupType.STREAMS
    record_classes = (StreamsRecord,)
    makes_way = True

    def __init__(
        self,
        groups: Groups,
        settings: Settings,
        topics: Topics,
        group_setting: Callable[[str, str], int],
        rack_tags: Callable[[str], Sequence[str]],
        behaves: Callable[[Behaviour], bool],
    ) -> None:
        self._groups = groups
        self._context = context = StreamsContext(
            StreamsGroup, groups, settings, topics, group_setting, behaves, rack_tags
        )
        self._timers = MemberTimers[StreamsGroup, Member](context, self._remove)
        self._heartbeats = Heartbeats(context, self._timers)
        self.classic_requests: ClassicRequests = NoClassicMembers()

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, sender: Sender, now_ms: int, reply_to: Hashable
    ) -> GroupOutcome:
        """StreamsGroupHeartbeat (groups E.2, E.3) of a valid request: replies with a ``HeartbeatResult`` or an error.

        Timers are set even if the heartbeat fails, as in Kafka: so a member that gets only errors stays.

        Raises:
            KafkaError: if refused before any timer was set; no record was written.
        """
        builder = OutcomeBuilder(now_ms)
        if request.member_epoch < JOINING:
            self._leave(builder, request, sender, reply_to)
            return builder.outcome()
        builder.keeps_timers = True
        try:
            self._heartbeats.handle(builder, request, sender, reply_to)
        except KafkaError as error:
            instead = OutcomeBuilder(now_ms)
            if not instead.keep_timers(builder):
                raise
            instead.failed = True
            instead.reply_error(reply_to, error)
            return instead.outcome()
        return builder.outcome()

    def _leave(
        self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest, sender: Sender, reply_to: Hashable
    ) -> None:
        """Handle a member that leaves, or a static one that leaves temporarily, at any epoch; note a shutdown request.

        As in Kafka, the shutdown request is noted even if the member is unknown.

        Raises:
            KafkaError: 25, 69 or 82.
        """
        group = self._context.existing(request.group_id, STREAMS_LEAVE)
        if request.shutdown_application and group.shutdown_member is None:
            group.shutdown_member = request.member_id
        if request.instance_id is None:
            member = group.member(request.member_id, STREAMS_LEAVE)
        else:
            member = group.static_member(request.instance_id, request.member_id, STREAMS_LEAVE)
        if request.instance_id is not None and request.member_epoch == LEAVING_STATIC:
            builder.member(group, AWAY, member)
            self._put_away(builder, group, member)
        else:
            builder.member(group, LEFT, member)
            self._remove(builder, group, member)
        response = StreamsGroupHeartbeatResponse(
            acceptable_recovery_lag=no_recovery_lag(known=sender.knows_recovery_lag),
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            active_tasks=None,
            standby_tasks=None,
            warmup_tasks=None,
            partitions_by_user_endpoint=None,
        )
        builder.reply(reply_to, HeartbeatResult(response))

    def _put_away(self, builder: OutcomeBuilder, group: StreamsGroup, member: Member) -> None:
        """Let a static member leave temporarily: it keeps its tasks until its session expires or it is replaced."""
        undated = {name: dict.fromkeys(epochs, 0) for name, epochs in member.assigned.active.items()}
        assigned = replace(member.assigned, active=undated)
        away = replace(member, epoch=LEAVING_STATIC, assigned=assigned, revoking=AssignedTasks())
        builder.record(away.current_record(group.group_id))
        members = [away if each.member_id == away.member_id else each for each in group.members.values()]
        report_transition(builder, group, state_with(group, group.epoch, members), group.epoch, REASONS)

    def _remove(self, builder: OutcomeBuilder, group: StreamsGroup, member: Member) -> None:
        """Delete a member and bump the group epoch."""
        for record in tombstones(group.group_id, member.member_id):
            builder.record(record)
        left = [each for each in group.members.values() if each.member_id != member.member_id]
        self._context.bump_epoch(builder, group, left)
        if not left and self._context.newer():
            builder.record(StreamsRecord.of(group.group_id, StreamsTargetEpoch(group.epoch + 1, 0)))
        self._timers.cancel_all(builder, group.group_id, member.member_id)

    def describe(self, group_id: str) -> DescribedGroup:
        """Return a group with its topology and members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, also for groups of other kinds, which have their own Describe APIs.
        """
        return described(self._context.existing(group_id, STREAMS_DESCRIBE, reads=True), self._context.writes.count)

    def end_delay(self, builder: OutcomeBuilder, group_id: str) -> None:
        """End the initial rebalance delay of an Empty group that a classic group replaces."""
        if self._context.delays.pop(group_id, None) is not None:
            builder.cancel(delay_timer(group_id))

    # --- control plane -----------------------------------------------------------------------------------------------

    def rebalance(self, builder: OutcomeBuilder, group: StreamsGroup) -> None:
        """Begin a new epoch, and so a new target; no effect on an Empty group."""
        if not group.is_empty:
            self._context.bump_epoch(builder, group, group.members.values())

    def evict(self, builder: OutcomeBuilder, group: StreamsGroup, member_id: str) -> None:
        """Remove a member as if its session had expired. Raises UNKNOWN_MEMBER_ID."""
        member = group.member(member_id)
        builder.member(group, EVICTED, member)
        self._remove(builder, group, member)

    # --- the log -----------------------------------------------------------------------------------------------------

    def note_write(self) -> None:
        """Count a record of the shard, of any kind of group or of offsets."""
        self._context.writes.count += 1

    def replay(self, record: StreamsRecord) -> None:
        """Apply a record; the first one creates the group, also in place of a "simple" group created by commits."""
        group = self._groups.get(record.group_id)
        if not isinstance(group, StreamsGroup):
            if record.value is None or (isinstance(group, ClassicGroup) and not group.is_empty):
                return
            group = self._groups[record.group_id] = StreamsGroup(record.group_id)
        if record.value is None and record.kind is StreamsKind.GROUP_METADATA:
            self._context.delays.pop(record.group_id, None)
            del self._groups[record.group_id]
        else:
            group.replay(record)

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Do nothing: no request to a streams group is parked."""

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Start a session for each member."""
        for group in self._groups.values():
            if not isinstance(group, StreamsGroup):
                continue
            for member in group.members.values():
                self._timers.arm_session(builder, group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_TASKS:
                    self._timers.limit_revocation(builder, group.group_id, member)
