"""Members that leave, are silent for too long, or give nothing up (groups C.3, C.8)."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.members import LEAVING_STATIC, Assigned, Member, tombstones
from broker.coordination.group.consumer.rules import Shard
from broker.coordination.group.draft import Draft
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


class Removing:
    """Takes members out of the groups of one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        shard.remove = self.remove

    def leave(self, draft: Draft, request: ConsumerGroupHeartbeatRequest, token: Hashable) -> None:
        """C.3: a member goes for good (-1), or a static one for a while (-2). Its own epoch is not asked for.

        Raises:
            KafkaError: 25, 69 or 82.
        """
        group = self._shard.find(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = group.static_member(request.instance_id, request.member_id)
        if request.instance_id is not None and request.member_epoch == LEAVING_STATIC:
            away = replace(member, epoch=LEAVING_STATIC, assigned=_undated(member.assigned), revoking={})
            draft.record(away.current_record(group.group_id))
        else:
            self.remove(draft, group, [member])
        draft.reply(
            token, ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        )

    def remove(self, draft: Draft, group: ConsumerGroup, members: Sequence[Member]) -> None:
        """C.8: forget members; the next heartbeat of another one finds a new epoch."""
        gone = {member.member_id for member in members}
        left = [member for member in group.members.values() if member.member_id not in gone]
        if self._shard.downgraded(draft, group, left):
            for member in members:
                self._shard.forget_timers(draft, group.group_id, member.member_id)
            return
        for member in members:
            for record in tombstones(group.group_id, member.member_id):
                draft.record(record)
            self._shard.forget_timers(draft, group.group_id, member.member_id)
        forget_regexes(draft, group, [member.regex for member in members], left)
        self._shard.bumped(draft, group, left)


def forget_regexes(draft: Draft, group: ConsumerGroup, regexes: Sequence[str], left: Sequence[Member]) -> None:
    """Tombstones for regular expressions that nobody subscribes by any more."""
    used = {member.regex for member in left}
    for regex in dict.fromkeys(regexes):
        if regex and regex not in used:
            draft.record(ConsumerRecord(ConsumerKind.REGULAR_EXPRESSION, group.group_id, regex))


def _undated(assigned: Assigned) -> Assigned:
    return {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in assigned.items()}
