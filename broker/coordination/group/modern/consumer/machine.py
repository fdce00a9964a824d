"""Consumer groups of one coordinator (KIP-848), after Kafka's ``ConsumerGroup`` and ``GroupMetadataManager``.

States: Empty, Assigning, Reconciling, Stable; derived from the group's epoch, its target's epoch and its members.

1. Groups and members change only in :meth:`ConsumerGroups.replay`; no request is parked.
2. A heartbeat joins, reports owned partitions and returns the assignment in one step (``heartbeat``,
   ``reconciliation``); a new group epoch leads to a new target (``modern.target_assignment``).
3. A member is removed when it leaves, or when one of its timers fires (``member_removal``, ``timers``).
4. The group also serves members that use the classic protocol (``classic_protocol``); it changes its kind when the
   first member of the other protocol joins or the last one leaves (``migration``).

Exceptions:

* :meth:`Migration.upgrade` replays the records of the new group before they are in the log, as the same heartbeat
  continues with that group; the group is in the table only after the append.
* Soft state: the sessions, and which members have been asked to rejoin.
"""

from collections.abc import Callable, Hashable
from functools import partial
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.events import EVICTED
from broker.coordination.group.group import ClassicRequests, Group, Groups, GroupType
from broker.coordination.group.modern.consumer.classic_protocol import ClassicMembers
from broker.coordination.group.modern.consumer.context import ConsumerContext
from broker.coordination.group.modern.consumer.description import described
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.heartbeat import Heartbeats, Sender
from broker.coordination.group.modern.consumer.member import Member, MemberState
from broker.coordination.group.modern.consumer.member_removal import MemberRemoval
from broker.coordination.group.modern.consumer.migration import Migration
from broker.coordination.group.modern.consumer.regular_expressions import Patterns
from broker.coordination.group.modern.consumer.timers import ConsumerTimers
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.modern.target_assignment import shown_assignor
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import GroupOutcome, OutcomeBuilder
from broker.coordination.group.rules import DESCRIBE
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour, newest_behaves
from protocol.errors import KafkaError
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord
from protocol.messages.consumer_group_describe import DescribedGroup
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_MAKERS = frozenset({ConsumerKind.GROUP_METADATA, ConsumerKind.MEMBER_METADATA, ConsumerKind.TARGET_METADATA,
                     ConsumerKind.TARGET_MEMBER, ConsumerKind.CURRENT_MEMBER})  # fmt: skip


class ConsumerGroups:
    """The rules of consumer groups; ``group_setting(group_id, name)`` returns a numeric group setting."""

    type = GroupType.CONSUMER
    record_classes = (ConsumerRecord,)
    makes_way = True

    def __init__(
        self,
        groups: Groups,
        settings: Settings,
        topics: Topics,
        group_setting: Callable[[str, str], int],
        new_uuid: Callable[[], UUID],
        rebalances: Rebalances,
        behaves: Callable[[Behaviour], bool] = newest_behaves,
    ) -> None:
        self._groups = groups
        self._context = context = ConsumerContext(
            ConsumerGroup, groups, settings, topics, group_setting, behaves, new_uuid
        )
        self._timers = timers = ConsumerTimers(context, self._expire)
        migration = Migration(context, timers, rebalances)
        self._removal = MemberRemoval(context, timers, migration)
        self._heartbeats = Heartbeats(context, timers, migration, Patterns(context))
        self.classic_requests: ClassicRequests = ClassicMembers(
            context, timers, self._heartbeats, self._removal, migration
        )

    def _expire(self, builder: OutcomeBuilder, group: ConsumerGroup, member: Member) -> None:
        # The only cycle between the rules: timers remove members, and removal cancels timers.
        self._removal.remove(builder, group, [member])

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, sender: Sender, now_ms: int, reply_to: Hashable
    ) -> GroupOutcome:
        """ConsumerGroupHeartbeat (groups C.3, C.4) of a valid request: replies with a ConsumerGroupHeartbeatResponse.

        The member's timers are set even if the log refuses the records, as in Kafka.

        Raises:
            KafkaError: if refused; nothing was changed.
        """
        builder = OutcomeBuilder(now_ms)
        if request.member_epoch < JOINING:
            self._removal.leave(builder, request, reply_to)
            return builder.outcome()
        group = self._groups.get(request.group_id)
        builder.keeps_timers = isinstance(group, ConsumerGroup)
        try:
            self._heartbeats.handle(builder, request, sender, reply_to)
        except KafkaError as error:
            if not builder.replies():
                raise
            instead = OutcomeBuilder(now_ms)
            for each in builder.replies():
                instead.reply(each.to, each.message)
            _not_upgraded(group, reply_to, error, instead)
            return instead.outcome()
        if isinstance(group, ClassicGroup):
            builder.if_not_appended(partial(_not_upgraded, group, reply_to))
        return builder.outcome()

    def describe(self, group_id: str) -> DescribedGroup:
        """Return a group with its members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, also for groups of other kinds, which have their own Describe APIs.
        """
        group = self._context.existing(group_id, DESCRIBE, reads=True)
        return described(group, self._context.topics, self._context.assignors)

    def assignor_of(self, group: ConsumerGroup) -> str:
        """Return the assignor that most members of the group prefer."""
        return shown_assignor(group.members.values(), self._context.assignors)

    # --- control plane -----------------------------------------------------------------------------------------------

    def rebalance(self, builder: OutcomeBuilder, group: ConsumerGroup) -> None:
        """Begin a new epoch, and so a new target; no effect on an Empty group."""
        if not group.is_empty:
            self._context.bump_epoch(builder, group, group.members.values())

    def evict(self, builder: OutcomeBuilder, group: ConsumerGroup, member_id: str) -> None:
        """Remove a member as if its session had expired. Raises UNKNOWN_MEMBER_ID."""
        member = group.member(member_id)
        builder.member(group, EVICTED, member)
        self._removal.remove(builder, group, [member])

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: ConsumerRecord) -> None:
        """Apply a record; the first one creates the group, also in place of a "simple" group created by commits."""
        group = self._groups.get(record.group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None or record.kind not in _MAKERS:
                return
            if isinstance(group, ClassicGroup) and not group.is_empty:
                return
            group = self._groups[record.group_id] = self._context.new_group(record.group_id)
        if record.value is None and record.kind is ConsumerKind.GROUP_METADATA:
            del self._groups[record.group_id]
        else:
            group.replay(record)

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Do nothing: no request to a consumer group is parked."""

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Start a session for each member. Quirk: with the consumer protocol's timeout under either one (groups C.11).

        The time to revoke partitions is limited under either protocol as well.
        """
        for group in self._groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            for member in group.members.values():
                self._timers.arm_session(builder, group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._timers.limit_revocation(builder, group.group_id, member)


def _not_upgraded(group: Group | None, reply_to: Hashable, error: KafkaError, builder: OutcomeBuilder) -> None:
    """Keep the classic group after a failed upgrade: its parked requests are answered (``convertToConsumerGroup``)."""
    assert isinstance(group, ClassicGroup)
    group.awaiting_join.clear()
    group.awaiting_sync.clear()
    builder.reply_error(reply_to, error)
    builder.failed = True
