"""The streams groups of one coordinator (KIP-1071), after Kafka's ``StreamsGroup`` and ``GroupMetadataManager``.

States: Empty, NotReady, Assigning, Reconciling, Stable; they follow from the topology, the group's epoch, its target's
epoch and its members.

1. Groups and members change in :meth:`StreamsGroups.replay` alone; nothing is parked.
2. A heartbeat joins, brings the topology, reports and gets its tasks in one step (``heartbeat``, ``reconciliation``); a
   new epoch of the group leads to a new target (``assignor``).
3. The topology is checked against the topics that exist (``configuration``, ``partition_counts``); internal topics that
   are missing go back with the response, and the broker creates them.
4. A member is removed when it leaves, or when one of its timers fires (``member_removal``, ``timers``).

What does not fit, as in Kafka: the configured topology, the check of the topics (``metadata_check``), what members get
of a target (``refinement``), the endpoint epoch, the member that asked for a shutdown and the initial delay are soft
state, which a heartbeat changes although it may fail later, or its records may be refused.
"""

from collections.abc import Callable, Hashable

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.group import Groups, GroupType
from broker.coordination.group.kind import ClassicRequests
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.no_classic_members import NoClassicMembers
from broker.coordination.group.outcome_builder import GroupOutcome, OutcomeBuilder
from broker.coordination.group.rules import STREAMS_DESCRIBE
from broker.coordination.group.streams.context import StreamsContext, StreamsSettings
from broker.coordination.group.streams.description import described
from broker.coordination.group.streams.group import StreamsGroup
from broker.coordination.group.streams.heartbeat import Heartbeats
from broker.coordination.group.streams.member import Member, MemberState
from broker.coordination.group.streams.member_removal import MemberRemoval
from broker.coordination.group.streams.step import Beat
from broker.coordination.group.streams.timers import MemberTimers, delay_timer
from protocol.errors import KafkaError
from protocol.log_records.streams_group import StreamsKind, StreamsRecord
from protocol.messages.streams_group_describe import DescribedGroup
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


class StreamsGroups:
    """Streams groups among all groups of the shard; the arguments are those of its context."""

    type = GroupType.STREAMS
    record_classes = (StreamsRecord,)
    makes_way = True

    def __init__(
        self,
        groups: Groups,
        settings: StreamsSettings,
        topics: Topics,
        newer: Callable[[], bool],
    ) -> None:
        self._groups = groups
        self._context = context = StreamsContext(groups, settings, topics, newer)
        self._timers = timers = MemberTimers(context, self._expire)
        self._removal = MemberRemoval(context, timers)
        self._heartbeats = Heartbeats(context, timers)
        self.classic_requests: ClassicRequests = NoClassicMembers()

    def _expire(self, builder: OutcomeBuilder, group: StreamsGroup, member: Member) -> None:
        # The one circle among the rules: timers remove members, and removal cancels timers.
        self._removal.remove(builder, group, member)

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, beat: Beat, now_ms: int, reply_to: Hashable
    ) -> GroupOutcome:
        """StreamsGroupHeartbeat (groups E.2, E.3) of a valid request: answers a ``heartbeat.BeatResult``, or an error.

        The timers of a heartbeat that fails are set all the same, as Kafka's: a member that is there stays, though it
        gets nothing but errors.

        Raises:
            KafkaError: refused before any timer was set; nothing has changed.
        """
        builder = OutcomeBuilder(now_ms)
        if request.member_epoch < JOINING:
            self._removal.leave(builder, request, beat, reply_to)
            return builder.outcome()
        builder.keeps_timers = True
        try:
            self._heartbeats.beat(builder, request, beat, reply_to)
        except KafkaError as error:
            instead = OutcomeBuilder(now_ms)
            if not instead.keep_timers(builder):
                raise
            instead.failed = True
            instead.reply_error(reply_to, error)
            return instead.outcome()
        return builder.outcome()

    def describe(self, group_id: str) -> DescribedGroup:
        """A group with its topology and members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND; other kinds have describing APIs of their own.
        """
        return described(self._context.existing(group_id, STREAMS_DESCRIBE, reads=True), self._context.writes.count)

    def end_delay(self, builder: OutcomeBuilder, group_id: str) -> None:
        """A classic group takes the place of an Empty group, whose initial rebalance delay is over."""
        if self._context.delays.pop(group_id, None) is not None:
            builder.cancel(delay_timer(group_id))

    # --- steering ----------------------------------------------------------------------------------------------------

    def rebalance(self, builder: OutcomeBuilder, group: StreamsGroup) -> None:
        """Begin a new epoch, and with it a new target; nothing happens in an Empty group."""
        if not group.is_empty:
            self._context.bump_epoch(builder, group, group.members.values())

    def evict(self, builder: OutcomeBuilder, group: StreamsGroup, member_id: str) -> None:
        """Remove a member as if its session had ended. Raises UNKNOWN_MEMBER_ID."""
        self._removal.remove(builder, group, group.member(member_id))

    # --- the log -----------------------------------------------------------------------------------------------------

    def note_write(self) -> None:
        """The shard has a further record, of any kind of group or of its offsets."""
        self._context.writes.count += 1

    def replay(self, record: StreamsRecord) -> None:
        """Apply a record; the first one makes the group, also in place of one that offsets have made."""
        found = self._groups.get(record.group_id)
        if not isinstance(found, StreamsGroup):
            if record.value is None or (isinstance(found, ClassicGroup) and not found.is_empty):
                return
            found = self._groups[record.group_id] = StreamsGroup(record.group_id)
        if record.value is None and record.kind is StreamsKind.GROUP_METADATA:
            self._context.delays.pop(record.group_id, None)
            del self._groups[record.group_id]
        else:
            found.replay(record)

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
                    self._timers.update_rebalance(builder, group.group_id, member)
