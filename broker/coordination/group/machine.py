"""The group coordinator of one partition of ``__consumer_offsets``: the door to its rules.

Each request has a method that takes the time and the token of its answer and returns an outcome. A refusal of the whole
request is raised as KafkaError, nothing having changed; JoinGroup's refusals are answers, since they name a member id.
A request that is parked is answered by a later outcome, or by :meth:`GroupMachine.unloaded`.

Consumer groups (KIP-848) stand in ``consumer``, with rules of their own.

Offsets and finished generations change in :meth:`GroupMachine.replay` alone. What happens to a classic group in between
is soft state, as in Kafka: it is lost with the coordinator, and members join anew (groups A.12).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from uuid import UUID

from broker.coordination.group.admin import Administration
from broker.coordination.group.answers import join_refused
from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.commits import Commits
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.machine import ConsumerGroups
from broker.coordination.group.consumer.rules import Settings
from broker.coordination.group.consumer.topics import NoTopics, Topics
from broker.coordination.group.draft import Draft
from broker.coordination.group.expiry import Expiry
from broker.coordination.group.joining import Joiner, Joining
from broker.coordination.group.membership import Membership
from broker.coordination.group.model import Group
from broker.coordination.group.offsets import Offsets
from broker.coordination.group.rebalance import Rebalances
from broker.coordination.outcome import Outcome, TransactionalAppend
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ConsumerRecord
from protocol.log_records.group import (
    GroupMetadata,
    GroupMetadataTombstone,
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
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

NO_TIME_MS = -1


class GroupMachine:
    """All groups and offsets of one shard.

    ``settings.int(name)`` gives a setting by Kafka's name, ``new_uuid`` the random part of member ids.
    ``offset_version`` is the version of the offset values written: 4, or 3 to be an older broker. ``topics`` are the
    cluster's, ``own(group_id, name)`` a group's numeric setting; without it all have the broker's.
    """

    def __init__(
        self,
        settings: Settings,
        new_uuid: Callable[[], UUID],
        *,
        offset_version: int = 4,
        topics: Topics | None = None,
        own: Callable[[str, str], int] | None = None,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self._live = False
        self._settings = settings
        self._rebalances = Rebalances(self.groups, settings)
        self._commits = Commits(self.groups, self.offsets, settings, self._rebalances, offset_version)
        self._expiry = Expiry(self.groups, self.offsets, settings)
        self.consumers = ConsumerGroups(
            self.groups,
            settings,
            NoTopics() if topics is None else topics,
            (lambda _, name: settings.int(f"group.{name}")) if own is None else own,
            new_uuid,
            self._rebalances,
        )
        members = self.consumers.classic_members
        self._joining = Joining(self.groups, settings, self._rebalances, new_uuid, members)
        self._membership = Membership(self.groups, self._rebalances, members)
        self.administration = Administration(self.groups, self._commits)

    # --- members -----------------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, joiner: Joiner, now_ms: int, reply_to: Hashable) -> Outcome:
        """JoinGroup (groups A.4): answers a JoinGroupResponse, at once or when the join phase ends."""
        draft = Draft(now_ms)
        self._joining.join(draft, request, joiner, reply_to)
        return draft.outcome()

    def sync(self, request: SyncGroupRequest, now_ms: int, reply_to: Hashable) -> Outcome:
        """SyncGroup (groups A.7): answers a SyncGroupResponse, for followers when the leader's has come."""
        draft = Draft(now_ms)
        self._membership.sync(draft, request, reply_to)
        return draft.outcome()

    def heartbeat(self, request: HeartbeatRequest, now_ms: int, reply_to: Hashable) -> Outcome:
        """Heartbeat (groups A.8): answers a HeartbeatResponse."""
        draft = Draft(now_ms)
        self._membership.heartbeat(draft, request, reply_to)
        return draft.outcome()

    def leave(self, request: LeaveGroupRequest, now_ms: int, reply_to: Hashable) -> Outcome:
        """LeaveGroup (groups A.9): answers a LeaveGroupResponse with one entry per member named."""
        draft = Draft(now_ms)
        self._membership.leave(draft, request, reply_to)
        return draft.outcome()

    # --- offsets -----------------------------------------------------------------------------------------------------

    def commit_offsets(
        self, request: OffsetCommitRequest, now_ms: int, reply_to: Hashable, *, knows_stale_epochs: bool
    ) -> Outcome:
        """OffsetCommit (groups B.1) for partitions that exist: answers an OffsetCommitResponse."""
        draft = Draft(now_ms)
        self._commits.commit(draft, request, reply_to, knows_stale_epochs=knows_stale_epochs)
        return draft.outcome()

    def commit_pending_offsets(
        self,
        request: TxnOffsetCommitRequest,
        now_ms: int,
        reply_to: Hashable,
        *,
        guard: object | None = None,
        absent: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
    ) -> Outcome:
        """TxnOffsetCommit (transactions C.4.2) for partitions that exist: answers a TxnOffsetCommitResponse.

        ``guard`` comes from the producer's verification and goes to the log with the records; ``absent`` is what a
        member of a group that does not exist hears.
        """
        draft = Draft(now_ms)
        self._commits.commit_pending(draft, request, reply_to, absent=absent)
        transaction = TransactionalAppend(
            request.producer_id, request.producer_epoch, request.transactional_id, guard=guard
        )
        return replace(draft.outcome(), transactional=transaction)

    def fetch_offsets(self, wanted: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """OffsetFetch (groups B.2) of one group."""
        return self._commits.fetch(wanted, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, now_ms: int, reply_to: Hashable) -> Outcome:
        """OffsetDelete (transactions E.4) for partitions that exist: answers an OffsetDeleteResponse."""
        draft = Draft(now_ms)
        self._commits.delete(draft, request, reply_to)
        return draft.outcome()

    def topic_deleted(self, topic: str, topic_id: UUID | None, now_ms: int) -> Outcome:
        """A topic is gone, and with it all offsets in it (groups B.4)."""
        draft = Draft(now_ms)
        self._commits.forget_topic(draft, topic, topic_id)
        return draft.outcome()

    def expire(self, now_ms: int) -> Outcome:
        """The pass of offsets.retention.check.interval.ms (groups B.3), now; the next one is armed."""
        draft = Draft(now_ms)
        self._expiry.run(draft)
        return draft.outcome()

    # --- administration ----------------------------------------------------------------------------------------------

    def delete_groups(self, group_ids: Sequence[str], now_ms: int, reply_to: Hashable) -> Outcome:
        """DeleteGroups (groups A.13): answers a list of DeletableGroupResult."""
        draft = Draft(now_ms)
        self.administration.delete(draft, group_ids, reply_to)
        return draft.outcome()

    def rebalance(self, group_id: str, now_ms: int) -> Outcome:
        """Let a group rebalance now, as if a member had asked for it.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND without such a group; nothing happens in an Empty one.
        """
        if isinstance(self.groups.get(group_id), ConsumerGroup):
            return self.consumers.rebalance(group_id, now_ms)
        group, draft = self._classic(group_id), Draft(now_ms)
        if group.can_rebalance and not group.is_empty:
            self._rebalances.prepare(draft, group)
        return draft.outcome()

    def evict(self, group_id: str, member_id: str, now_ms: int) -> Outcome:
        """Take a member out, as if its session had ended.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
        """
        if isinstance(self.groups.get(group_id), ConsumerGroup):
            return self.consumers.evict(group_id, member_id, now_ms)
        draft = Draft(now_ms)
        self._membership.evict(draft, self._classic(group_id), member_id)
        return draft.outcome()

    def _classic(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    # --- what is remembered ------------------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, offset: int, transaction: TransactionalAppend | None) -> None:
        """Apply a record. An offset makes its group if there is none, as a "simple" group has no record of its own."""
        self._commits.unseen.clear()
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
            case GroupMetadata():
                self._replay_group(record)
            case GroupMetadataTombstone():
                if isinstance(self.groups.get(record.group_id), ClassicGroup):
                    del self.groups[record.group_id]
            case ConsumerRecord():
                self.consumers.replay(record)

    def _replay_group(self, record: GroupMetadata) -> None:
        group = self.groups.get(record.group_id)
        if self._live and isinstance(group, ClassicGroup):
            group.finished(record)
        else:
            self.groups[record.group_id] = ClassicGroup.restored(record)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:  # noqa: ARG002
        """Apply a transaction marker: the producer's pending offsets are decided in all groups at once."""
        self._commits.unseen.clear()
        self.offsets.end_transaction(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> Outcome:
        """Members get a fresh session each; a group that has grown too large rebalances (groups A.12)."""
        self._live = True
        draft = Draft(now_ms)
        self._expiry.arm(draft)
        for group in self.groups.values():
            if not isinstance(group, ClassicGroup):
                continue
            for member_id in group.members:
                self._rebalances.rearm(draft, group, member_id)
            if len(group.members) > self._settings.int("group.max.size"):
                self._rebalances.prepare(draft, group)
        self.consumers.loaded(draft)
        return draft.outcome()

    def unloaded(self) -> Outcome:
        """Whoever waits hears NOT_COORDINATOR, and will look for the new coordinator (groups A.12)."""
        draft = Draft(NO_TIME_MS)
        for group in self.groups.values():
            if not isinstance(group, ClassicGroup):
                continue
            for member_id in tuple(group.awaiting_join):
                answer = join_refused(ErrorCode.NOT_COORDINATOR, member_id)
                self._rebalances.answer_join(draft, group, member_id, answer)
            for member_id in tuple(group.awaiting_sync):
                self._rebalances.answer_sync(draft, group, member_id, SyncGroupResponse(ErrorCode.NOT_COORDINATOR))
        return draft.outcome()
