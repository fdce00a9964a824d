"""Removal of members that leave, whose session expires, or that do not revoke partitions in time (groups C.3, C.8)."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from broker.coordination.group.events import AWAY, LEFT
from broker.coordination.group.modern.consumer.context import ConsumerContext, report_change
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Assigned, Member, tombstones
from broker.coordination.group.modern.consumer.migration import Migration
from broker.coordination.group.modern.consumer.timers import ConsumerTimers
from broker.coordination.group.modern.epochs import LEAVING_STATIC
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import CONSUMER_LEAVE
from broker.settings.releases import Behaviour
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord, TargetEpoch
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class MemberRemoval:
    """Removes members from the groups of one context."""

    def __init__(self, context: ConsumerContext, timers: ConsumerTimers, migration: Migration) -> None:
        self._context, self._timers, self._migration = context, timers, migration

    def leave(self, builder: OutcomeBuilder, request: ConsumerGroupHeartbeatRequest, reply_to: Hashable) -> None:
        """Handle a member that leaves (-1), or a static one that leaves temporarily (-2), at any epoch (groups C.3).

        Raises:
            KafkaError: 25, 69 or 82.
        """
        group = self._context.existing(request.group_id, CONSUMER_LEAVE.row(" L1"))
        if request.instance_id is None:
            member = group.member(request.member_id, CONSUMER_LEAVE.row(" L2"))
        else:
            member = group.static_member(request.instance_id, request.member_id, CONSUMER_LEAVE.row(" L2"))
        if request.instance_id is not None and request.member_epoch == LEAVING_STATIC:
            builder.member(group, AWAY, member)
            # Its session goes on: the member keeps its partitions until then, unless it returns (groups C.3 L3).
            away = replace(member, epoch=LEAVING_STATIC, assigned=_undated(member.assigned), revoking={})
            builder.record(away.current_record(group.group_id))
            members = [away if each.member_id == away.member_id else each for each in group.members.values()]
            report_change(builder, group, members, group.epoch, group.assignment_epoch)
        else:
            builder.member(group, LEFT, member)
            self.remove(builder, group, [member])
        builder.reply(
            reply_to, ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def remove(self, builder: OutcomeBuilder, group: ConsumerGroup, members: Sequence[Member]) -> None:
        """Delete members and bump the group epoch (groups C.8)."""
        gone = {member.member_id for member in members}
        left = [member for member in group.members.values() if member.member_id not in gone]
        if self._migration.downgrade(builder, group, left):
            for member in members:
                self._timers.cancel_all(builder, group.group_id, member.member_id)
            return
        for member in members:
            for record in tombstones(group.group_id, member.member_id):
                builder.record(record)
            self._timers.cancel_all(builder, group.group_id, member.member_id)
        forgotten = forget_regexes(builder, group, [member.regex for member in members], left)
        self._context.bump_epoch(builder, group, left, forgotten)
        if not left and self._context.behaves(Behaviour.CONSUMER_EMPTIED_ASSIGNMENT):
            builder.record(ConsumerRecord.of(group.group_id, TargetEpoch(group.epoch + 1, 0)))


def forget_regexes(
    builder: OutcomeBuilder, group: ConsumerGroup, regexes: Sequence[str], left: Sequence[Member]
) -> list[str]:
    """Write tombstones for regular expressions without subscribers left, and return those expressions."""
    used = {member.regex for member in left}
    forgotten = [regex for regex in dict.fromkeys(regexes) if regex and regex not in used]
    for regex in forgotten:
        builder.record(ConsumerRecord(ConsumerKind.REGULAR_EXPRESSION, group.group_id, regex))
    return forgotten


def _undated(assigned: Assigned) -> Assigned:
    return {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in assigned.items()}
