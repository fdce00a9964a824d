"""Group coordinator of one partition of ``__consumer_offsets``, after Kafka's ``GroupCoordinatorShard``.

States: each kind of group has its own (``classic``, ``consumer``, ``share``, ``streams``); ``groups`` holds all kinds
in one name space.

1. Each request has a method that takes the current time and a reply token and returns an outcome. An error of the
   whole request is raised as KafkaError, with nothing changed; JoinGroup replies with errors that carry a member id.
2. The table of kinds (``group.GroupKind``) selects the rules: by the type of the group, or the class of a record.
3. A parked request is answered by a later outcome, or by :meth:`GroupMachine.unloaded`.
4. Offsets, and groups that have records, change only in :meth:`GroupMachine.replay`.

Exceptions:

* Members, states and parked requests of classic groups are soft state, as in Kafka (``classic.machine``).
* A commit whose offsets are all refused creates a group without a record, as in Kafka; ListGroups and DescribeGroups
  do not see it before the next record (``offsets.commit``).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from broker.coordination.group.admin import Administration
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.machine import ClassicGroups
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.group import Group, GroupKind, Groups, GroupType, Joiner
from broker.coordination.group.modern.consumer.machine import ConsumerGroups
from broker.coordination.group.modern.share.machine import ShareGroups
from broker.coordination.group.modern.streams.machine import StreamsGroups
from broker.coordination.group.modern.topics import NoTopics, Topics
from broker.coordination.group.offsets.commit import Commits
from broker.coordination.group.offsets.expiry import Expiry
from broker.coordination.group.offsets.store import Offsets
from broker.coordination.group.outcome_builder import GroupOutcome, OutcomeBuilder
from broker.coordination.outcome import TransactionalAppend, TransactionEnd
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour, newest_behaves
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import (
    GroupRecord,
    OffsetCommit,
    OffsetCommitTombstone,
)
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_delete import OffsetDeleteRequest
from protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from protocol.messages.sync_group import SyncGroupRequest
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

NO_TIME_MS: Final = -1


class GroupMachine:
    """Groups and offsets of one shard.

    ``settings.int(name)`` returns a broker setting by Kafka's name; ``new_uuid`` the random part of member ids.
    ``topics`` are the cluster's. ``group_setting(group_id, name)`` returns a numeric group setting; without it all
    groups have the broker's. ``behaves``: whether the emulated release has a behaviour. ``rack_tags(group_id)`` returns
    the client tags that members of a streams group should have.
    """

    def __init__(
        self,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        *,
        topics: Topics | None = None,
        group_setting: Callable[[str, str], int] | None = None,
        behaves: Callable[[Behaviour], bool] = newest_behaves,
        rack_tags: Callable[[str], Sequence[str]] = lambda _group_id: (),
    ) -> None:
        self.groups = Groups()
        self.offsets = Offsets()
        self._live = False
        self._settings = settings
        self._rebalances = Rebalances(self.groups, settings, behaves)
        self._commits = Commits(self.groups, self.offsets, settings, self._rebalances, behaves)
        self._expiry = Expiry(self.groups, self.offsets, settings)
        self._classic = ClassicGroups(self.groups, settings, self._rebalances, new_uuid)
        known = NoTopics() if topics is None else topics
        own_setting = (lambda _, name: settings.int(f"group.{name}")) if group_setting is None else group_setting
        self.consumers = ConsumerGroups(self.groups, settings, known, own_setting, new_uuid, self._rebalances, behaves)
        self.shares = ShareGroups(self.groups, settings, known, own_setting, behaves)
        self.streams = StreamsGroups(
            self.groups,
            settings,
            known,
            own_setting,
            rack_tags,
            behaves,
        )
        kinds: tuple[GroupKind, ...] = (self._classic, self.consumers, self.shares, self.streams)
        self._kinds: Mapping[GroupType, GroupKind] = {each.type: each for each in kinds}
        """Group type -> its rules."""
        self.administration = Administration(self.groups, self._commits)

    # --- members -----------------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, joiner: Joiner, now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """JoinGroup (groups A.4): replies with a JoinGroupResponse, immediately or when the join phase ends."""
        builder = OutcomeBuilder(now_ms)
        group = self.groups.get(request.group_id)
        kind = self._kind_of(group)
        if group is not None and kind.makes_way and group.is_empty:
            kind = self._classic
            self.streams.end_delay(builder, group.group_id)
        kind.classic_requests.join(builder, group, request, joiner, reply_to)
        return builder.outcome()

    def sync(self, request: SyncGroupRequest, now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """SyncGroup (groups A.7): replies with a SyncGroupResponse; followers wait for the leader's SyncGroup."""
        builder = OutcomeBuilder(now_ms)
        group = self.groups.get(request.group_id)
        self._kind_of(group).classic_requests.sync(builder, group, request, reply_to)
        return builder.outcome()

    def heartbeat(self, request: HeartbeatRequest, now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """Heartbeat (groups A.8): replies with a HeartbeatResponse."""
        builder = OutcomeBuilder(now_ms)
        group = self.groups.get(request.group_id)
        self._kind_of(group).classic_requests.heartbeat(builder, group, request, reply_to)
        return builder.outcome()

    def leave(self, request: LeaveGroupRequest, now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """LeaveGroup (groups A.9): replies with a LeaveGroupResponse with one entry for each member in the request."""
        builder = OutcomeBuilder(now_ms)
        group = self.groups.get(request.group_id)
        self._kind_of(group).classic_requests.leave(builder, group, request, reply_to)
        return builder.outcome()

    def _kind_of(self, group: Group | None) -> GroupKind:
        """Return the rules of a group; those of classic groups if there is no group."""
        return self._classic if group is None else self._kinds[group.type]

    # --- offsets -----------------------------------------------------------------------------------------------------

    def commit_offsets(
        self, request: OffsetCommitRequest, now_ms: int, reply_to: Hashable, *, knows_stale_epochs: bool
    ) -> GroupOutcome:
        """OffsetCommit (groups B.1) for partitions that exist: replies with an OffsetCommitResponse."""
        builder = OutcomeBuilder(now_ms)
        self._commits.commit(builder, request, reply_to, knows_stale_epochs=knows_stale_epochs)
        return builder.outcome()

    def commit_pending_offsets(
        self,
        request: TxnOffsetCommitRequest,
        now_ms: int,
        reply_to: Hashable,
        *,
        guard: object | None = None,
        unknown_group_error: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
        knows_stale_epochs: bool = False,
    ) -> GroupOutcome:
        """TxnOffsetCommit (transactions C.4.2) for partitions that exist: replies with a TxnOffsetCommitResponse.

        ``guard`` comes from the producer's verification and goes to the log with the records; ``unknown_group_error``
        is the error if the request names a generation of a group that does not exist; ``knows_stale_epochs``: whether
        the request's version has STALE_MEMBER_EPOCH.
        """
        builder = OutcomeBuilder(now_ms)
        self._commits.commit_pending(
            builder,
            request,
            reply_to,
            unknown_group_error=unknown_group_error,
            knows_stale_epochs=knows_stale_epochs,
        )
        transaction = TransactionalAppend(
            request.producer_id, request.producer_epoch, request.transactional_id, guard=guard
        )
        return replace(builder.outcome(), transactional=transaction)

    def fetch_offsets(
        self, wanted: OffsetFetchRequestGroup, *, require_stable: bool, written: bool = False
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch (groups B.2) of one group. ``written``: with unreplicated ones, for which the response waits."""
        return self._commits.fetch(wanted, require_stable=require_stable, written=written)

    def delete_offsets(self, request: OffsetDeleteRequest, now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """OffsetDelete (transactions E.4) for partitions that exist: replies with an OffsetDeleteResponse."""
        builder = OutcomeBuilder(now_ms)
        self._commits.delete(builder, request, reply_to)
        return builder.outcome()

    def topic_deleted(self, topic: str, topic_id: UUID | None, now_ms: int) -> GroupOutcome:
        """Delete all offsets of a deleted topic (groups B.4)."""
        builder = OutcomeBuilder(now_ms)
        builder.divisible = True
        self._commits.forget_topic(builder, topic, topic_id)
        if topic_id is not None:
            self.shares.offsets.topic_deleted(builder, topic_id)
        return builder.outcome()

    def expire(self, now_ms: int) -> GroupOutcome:
        """Run the pass of offsets.retention.check.interval.ms now (groups B.3), and arm the next one."""
        builder = OutcomeBuilder(now_ms)
        self._expiry.run(builder)
        return builder.outcome()

    # --- administration ----------------------------------------------------------------------------------------------

    def delete_groups(self, group_ids: Sequence[str], now_ms: int, reply_to: Hashable) -> GroupOutcome:
        """DeleteGroups (groups A.13): replies with a list of DeletableGroupResult."""
        builder = OutcomeBuilder(now_ms)
        self.administration.delete(builder, group_ids, reply_to)
        return builder.outcome()

    def rebalance(self, group_id: str, now_ms: int) -> GroupOutcome:
        """Rebalance a group now, as if a member had triggered it; no effect on an Empty group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        group, builder = self._existing(group_id), OutcomeBuilder(now_ms)
        self._kind_of(group).rebalance(builder, group)
        return builder.outcome()

    def evict(self, group_id: str, member_id: str, now_ms: int) -> GroupOutcome:
        """Remove a member as if its session had expired.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
        """
        group, builder = self._existing(group_id), OutcomeBuilder(now_ms)
        self._kind_of(group).evict(builder, group, member_id)
        return builder.outcome()

    def _existing(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, offset: int, transaction: TransactionalAppend | None) -> None:
        """Apply a record. A commit creates its group if there is none, as a "simple" group has no record of its own."""
        self.groups.unseen.clear()
        self.streams.note_write()
        match record:
            case OffsetCommit():
                if record.group_id not in self.groups:
                    self.groups[record.group_id] = ClassicGroup(record.group_id, record.commit_timestamp_ms)
                if transaction is None:
                    self.offsets.commit(record, offset)
                else:
                    self.offsets.commit_pending(transaction.producer_id, record, offset)
            case OffsetCommitTombstone():
                self.offsets.forget(record)
            case _:
                kind = next(each for each in self._kinds.values() if isinstance(record, each.record_classes))
                kind.replay(record)

    def replicating(
        self, records: Sequence[GroupRecord | TransactionEnd], transaction: TransactionalAppend | None
    ) -> None:
        """Keep the offsets that these records replace: OffsetFetch returns them until the records are replicated.

        Until then, SyncGroup does not return assignments of these records either.
        """
        self._commits.unreplicated.add(records, None if transaction is None else transaction.producer_id)
        self._classic.replicating(records)

    def replicated(self, records: Sequence[GroupRecord | TransactionEnd]) -> None:
        """Let OffsetFetch return the offsets of these records, and SyncGroup their assignments."""
        self._commits.unreplicated.remove()
        self._classic.replicated(records)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:  # noqa: ARG002
        """Apply a transaction marker: commit or drop the producer's pending offsets in all groups."""
        self.groups.unseen.clear()
        self.streams.note_write()
        self.offsets.end_transaction(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> GroupOutcome:
        """Arm the timers of all members after the log has been read (groups A.12)."""
        builder = OutcomeBuilder(now_ms)
        self._expiry.arm(builder)
        for kind in self._kinds.values():
            kind.loaded(builder)
        return builder.outcome()

    def unloaded(self) -> GroupOutcome:
        """Answer all parked requests with NOT_COORDINATOR; clients then find the new coordinator (groups A.12)."""
        builder = OutcomeBuilder(NO_TIME_MS)
        for kind in self._kinds.values():
            kind.unloaded(builder)
        return builder.outcome()
