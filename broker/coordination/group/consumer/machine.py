"""The consumer groups of one shard: the door to their rules. See ``broker.coordination.group.machine``."""

from collections.abc import Callable, Hashable
from uuid import UUID

from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer import gate
from broker.coordination.group.consumer.classic_members import ClassicMembers
from broker.coordination.group.consumer.describing import described
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.heartbeats import Beat, Heartbeats
from broker.coordination.group.consumer.members import JOINING, MemberState
from broker.coordination.group.consumer.migrating import Migrating
from broker.coordination.group.consumer.patterns import Patterns
from broker.coordination.group.consumer.removing import Removing
from broker.coordination.group.consumer.rules import Settings, Shard
from broker.coordination.group.consumer.targets import effective_assignor
from broker.coordination.group.consumer.topics import Topics
from broker.coordination.group.draft import Draft
from broker.coordination.group.model import Group
from broker.coordination.group.rebalance import Rebalances
from broker.coordination.outcome import Outcome
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord
from protocol.messages.consumer_group_describe import DescribedGroup
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_MAKERS = frozenset({ConsumerKind.GROUP_METADATA, ConsumerKind.MEMBER_METADATA, ConsumerKind.TARGET_METADATA,
                     ConsumerKind.TARGET_MEMBER, ConsumerKind.CURRENT_MEMBER})  # fmt: skip


class ConsumerGroups:
    """Consumer groups among all groups of the shard; ``own(group_id, name)`` is a group's numeric setting."""

    def __init__(
        self,
        groups: dict[str, Group],
        settings: Settings,
        topics: Topics,
        own: Callable[[str, str], int],
        new_uuid: Callable[[], UUID],
        rebalances: Rebalances,
    ) -> None:
        self._groups = groups
        self._shard = Shard(groups, settings, topics, own, new_uuid)
        self._removing = Removing(self._shard)
        Migrating(self._shard, rebalances)
        self._heartbeats = Heartbeats(self._shard, Patterns(self._shard))
        self.classic_members = ClassicMembers(self._shard, self._heartbeats)

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        beat: Beat,
        now_ms: int,
        reply_to: Hashable,
        *,
        makes_own_id: bool = True,
    ) -> Outcome:
        """ConsumerGroupHeartbeat (groups C.2 to C.4): answers a ConsumerGroupHeartbeatResponse.

        ``makes_own_id``: whether members of the request's version make their ids themselves (v1).

        Raises:
            KafkaError: refused; nothing has changed.
        """
        gate.check(request, self._shard.settings.list("group.consumer.assignors"), makes_own_id=makes_own_id)
        draft = Draft(now_ms)
        if request.member_epoch < JOINING:
            self._removing.leave(draft, request, reply_to)
        else:
            self._heartbeats.beat(draft, request, beat, reply_to)
        return draft.outcome()

    def describe(self, group_id: str) -> DescribedGroup:
        """A group with its members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND; other kinds have describing APIs of their own.
        """
        group = self._shard.find(group_id)
        if group is None:
            there = self._groups.get(group_id)
            what = "not found" if there is None else "not a consumer group"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is {what}.")
        return described(group, self._shard.topics, self._shard.settings.list("group.consumer.assignors"))

    def assignor_of(self, group: ConsumerGroup) -> str:
        """The assignor that a group's next target comes from."""
        return effective_assignor(group.members.values(), self._shard.settings.list("group.consumer.assignors"))

    def rebalance(self, group_id: str, now_ms: int) -> Outcome:
        """Let a group have a new epoch, and with it a new target; nothing happens in an Empty one."""
        group, draft = self._shard.find(group_id), Draft(now_ms)
        if group is not None and not group.is_empty:
            self._shard.bumped(draft, group, group.members.values())
        return draft.outcome()

    def evict(self, group_id: str, member_id: str, now_ms: int) -> Outcome:
        """Take a member out, as if its session had ended.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
        """
        group, draft = self._shard.find(group_id), Draft(now_ms)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        self._removing.remove(draft, group, [group.member(member_id)])
        return draft.outcome()

    # --- what is remembered ------------------------------------------------------------------------------------------

    def replay(self, record: ConsumerRecord) -> None:
        """Apply a record; the first one makes the group, also in place of one that offsets have made."""
        found = self._groups.get(record.group_id)
        if not isinstance(found, ConsumerGroup):
            if record.value is None or record.kind not in _MAKERS:
                return
            if isinstance(found, ClassicGroup) and not found.is_empty:
                return
            found = self._groups[record.group_id] = ConsumerGroup(record.group_id, self._shard.topics)
        if record.value is None and record.kind is ConsumerKind.GROUP_METADATA:
            del self._groups[record.group_id]
        else:
            found.replay(record)

    def loaded(self, draft: Draft) -> None:
        """C.11: members get a fresh session each, of the consumer protocol's length whatever they speak."""
        for group in self._groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            for member in group.members.values():
                self._shard.arm_session(draft, group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._shard.follow(draft, group.group_id, member)
