"""Removal of members that leave, whose session expires, or that do not revoke tasks in time (groups E.2)."""

from collections.abc import Hashable
from dataclasses import replace

from broker.coordination.group.modern.streams.context import StreamsContext, report_change, state_with
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import LEAVING_STATIC, Member, tombstones
from broker.coordination.group.modern.streams.membership import static_member
from broker.coordination.group.modern.streams.step import Beat, BeatResult, no_recovery_lag
from broker.coordination.group.modern.streams.tasks import AssignedTasks
from broker.coordination.group.modern.streams.timers import MemberTimers
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import STREAMS_LEAVE
from protocol.log_records.streams_group import StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


class MemberRemoval:
    """Removes members from the groups of one context."""

    def __init__(self, context: StreamsContext, timers: MemberTimers) -> None:
        self._context, self._timers = context, timers

    def leave(
        self, builder: OutcomeBuilder, request: StreamsGroupHeartbeatRequest, beat: Beat, reply_to: Hashable
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
            member = static_member(group, request.instance_id, request.member_id, STREAMS_LEAVE)
        if request.instance_id is not None and request.member_epoch == LEAVING_STATIC:
            self._put_away(builder, group, member)
        else:
            self.remove(builder, group, member)
        response = StreamsGroupHeartbeatResponse(
            acceptable_recovery_lag=no_recovery_lag(known=beat.knows_recovery_lag),
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            active_tasks=None,
            standby_tasks=None,
            warmup_tasks=None,
            partitions_by_user_endpoint=None,
        )
        builder.reply(reply_to, BeatResult(response))

    def _put_away(self, builder: OutcomeBuilder, group: StreamsGroup, member: Member) -> None:
        """Let a static member leave temporarily: it keeps its tasks until its session expires or it is replaced."""
        undated = {name: dict.fromkeys(epochs, 0) for name, epochs in member.assigned.active.items()}
        assigned = replace(member.assigned, active=undated)
        away = replace(member, epoch=LEAVING_STATIC, assigned=assigned, revoking=AssignedTasks())
        builder.record(away.current_record(group.group_id))
        members = [away if each.member_id == away.member_id else each for each in group.members.values()]
        report_change(builder, group, state_with(group, group.epoch, members), group.epoch)

    def remove(self, builder: OutcomeBuilder, group: StreamsGroup, member: Member) -> None:
        """Delete a member and bump the group epoch."""
        for record in tombstones(group.group_id, member.member_id):
            builder.record(record)
        left = [each for each in group.members.values() if each.member_id != member.member_id]
        self._context.bump_epoch(builder, group, left)
        if not left and self._context.newer():
            builder.record(StreamsRecord.of(group.group_id, StreamsTargetEpoch(group.epoch + 1, 0)))
        self._timers.cancel_all(builder, group.group_id, member.member_id)
