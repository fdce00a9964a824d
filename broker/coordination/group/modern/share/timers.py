"""Sessions of share group members, and removal of members (groups D.1 S1)."""

from collections.abc import Collection, Hashable
from functools import partial

from broker.coordination.group.modern.share.context import ShareContext, report_change
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.member import ShareMember, tombstones
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder, Rule
from broker.settings.releases import Behaviour
from protocol.errors import KafkaError
from protocol.log_records.share_group import ShareGroupEpoch, ShareGroupRecord, ShareTargetEpoch
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

RETRY_MS = 500
"""Delay before an expired session is handled again if the log refused the records (groups 0.6.7)."""


class Sessions:
    """Sessions of the members of one context's groups."""

    def __init__(self, context: ShareContext) -> None:
        self._context = context

    def arm(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Restart a member's session."""
        timeout_ms = self._context.group_setting(group_id, "share.session.timeout.ms")
        builder.timer(_key(group_id, member_id), timeout_ms, partial(self._ended, group_id, member_id))

    def _ended(self, group_id: str, member_id: str, builder: OutcomeBuilder) -> None:
        group = self._context.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        rule: Rule = partial(self._ended, group_id, member_id)

        def refused(_error: KafkaError, instead: OutcomeBuilder) -> None:
            instead.timer(_key(group_id, member_id), RETRY_MS, rule)

        builder.if_not_appended(refused)
        self.remove(builder, group, member)

    def leave(self, builder: OutcomeBuilder, request: ShareGroupHeartbeatRequest, reply_to: Hashable) -> None:
        """Remove a member that leaves. Raises 25 or 69."""
        group = self._context.existing(request.group_id)
        self.remove(builder, group, group.member(request.member_id))
        builder.reply(
            reply_to, ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def remove(self, builder: OutcomeBuilder, group: ShareGroup, member: ShareMember) -> None:
        """Delete a member and bump the group epoch."""
        left = [each for each in group.members.values() if each.member_id != member.member_id]
        for record in tombstones(group.group_id, member.member_id):
            builder.record(record)
        self.bump_epoch(builder, group, left)
        if not left and self._context.behaves(Behaviour.SHARE_EMPTIED_ASSIGNMENT):
            builder.record(ShareGroupRecord.of(group.group_id, ShareTargetEpoch(group.epoch + 1, 0)))
        builder.cancel(_key(group.group_id, member.member_id))

    def bump_epoch(self, builder: OutcomeBuilder, group: ShareGroup, members: Collection[ShareMember]) -> None:
        """Begin the group's next epoch with these members and their subscribed topics."""
        new_hash = metadata_hash({name for each in members for name in each.subscribed}, self._context.topics)
        builder.record(ShareGroupRecord.of(group.group_id, ShareGroupEpoch(group.epoch + 1, new_hash)))
        report_change(builder, group, members, group.epoch + 1)


def _key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("share-session", group_id, member_id)
