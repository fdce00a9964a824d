"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete (groups B.1, B.2; transactions C.4, E.1, E.2, E.4)."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from uuid import UUID

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.classic.states import State
from broker.coordination.group.events import (
    GROUP_DELETED,
    OFFSET_LOWERED,
    OFFSETS_DELETED,
    TOPIC_DELETED,
)
from broker.coordination.group.group import Committer, Group, Groups, GroupType, PartitionCheck
from broker.coordination.group.offsets.store import CommittedOffset, Offsets, Partitions, UnreplicatedOffsets
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import COMMIT, OFFSET_DELETE
from broker.coordination.reasons import Reason, Refusal
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour
from protocol.errors import ErrorCode
from protocol.java import as_long, utf16_length
from protocol.log_records.group import OffsetCommit, OffsetCommitTombstone
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_CommittedPartition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition

NO_EXPIRY = -1
_EXPIRING_VERSION, _EARLIER_VERSION, _TOPIC_ID_VERSION = 1, 3, 4
"""Versions of OffsetCommitValue. Only v1 has an expiry; it has no leader epoch and no topic id (transactions F.3)."""


class Commits:
    """Decides requests about the offsets of one shard. ``behaves``: whether the emulated release has a behaviour."""

    def __init__(
        self,
        groups: Groups,
        offsets: Offsets,
        settings: Settings,
        rebalances: Rebalances,
        behaves: Callable[[Behaviour], bool],
    ) -> None:
        self._groups, self._offsets, self._settings, self._rebalances = groups, offsets, settings, rebalances
        self._behaves = behaves
        self.unreplicated = UnreplicatedOffsets(offsets)

    # --- committing --------------------------------------------------------------------------------------------------

    def commit(
        self, builder: OutcomeBuilder, request: OffsetCommitRequest, reply_to: Hashable, *, knows_stale_epochs: bool
    ) -> None:
        """Commit offsets of partitions that exist; topics have a name and, if known, an id (groups B.1).

        Raises:
            KafkaError: if the whole request is refused.
        """
        committer = Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            knows_stale_epochs=knows_stale_epochs,
        )
        unknown_group_error = ErrorCode.GROUP_ID_NOT_FOUND if knows_stale_epochs else ErrorCode.ILLEGAL_GENERATION
        group, check = self._committing_group(request.group_id, committer, unknown_group_error)
        # A commit counts as a heartbeat, but not in CompletingRebalance (OffsetMetadataManager).
        if isinstance(group, ClassicGroup) and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._rebalances.rearm(builder, group, request.member_id)
        expires_ms = NO_EXPIRY
        if request.retention_time_ms != NO_EXPIRY:
            expires_ms = as_long(builder.now_ms + request.retention_time_ms)  # quirk: Long.MAX overflows
        topics = []
        for topic in request.topics:
            codes = [
                OffsetCommitResponsePartition(
                    partition.partition_index,
                    self._store(builder, (request.group_id, topic.name, topic.topic_id), partition, expires_ms, check),
                )
                for partition in topic.partitions
            ]
            topics.append(OffsetCommitResponseTopic(topic.name, codes, topic.topic_id))
        if group is not None:
            self._note_lowered(builder, group, committer.member_id)
        self._create_without_records(builder, request.group_id)
        builder.reply(reply_to, OffsetCommitResponse(topics))

    def commit_pending(
        self,
        builder: OutcomeBuilder,
        request: TxnOffsetCommitRequest,
        reply_to: Hashable,
        *,
        unknown_group_error: ErrorCode,
        knows_stale_epochs: bool = False,
    ) -> None:
        """Add pending offsets: the builder's records belong to the producer's transaction (transactions C.4.2).

        ``unknown_group_error``: the error if the request names a generation of a group that does not exist;
        ``knows_stale_epochs``: the request's version has STALE_MEMBER_EPOCH (KIP-1319).

        Raises:
            KafkaError: if the whole request is refused.
        """
        committer = Committer(
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            transactional=True,
            knows_stale_epochs=knows_stale_epochs,
        )
        _, check = self._committing_group(request.group_id, committer, unknown_group_error)
        topics = []
        for topic in request.topics:
            codes = [
                TxnOffsetCommitResponsePartition(
                    partition.partition_index,
                    self._store(builder, (request.group_id, topic.name, topic.topic_id), partition, NO_EXPIRY, check),
                )
                for partition in topic.partitions
            ]
            topics.append(TxnOffsetCommitResponseTopic(topic.name, codes, topic.topic_id))
        self._create_without_records(builder, request.group_id)
        builder.reply(reply_to, TxnOffsetCommitResponse(topics=topics))

    def _note_lowered(self, builder: OutcomeBuilder, group: Group, member_id: str) -> None:
        """Report commits of offsets below the committed ones: the next consumer reads records again."""
        lowered = []
        for record in builder.records:
            if not isinstance(record, OffsetCommit):
                continue
            known = self._offsets.find(group.group_id, record.topic, record.partition)
            if known is not None and known.commit.offset > record.offset:
                lowered.append((known.commit.topic, known.commit.partition, known.commit.offset))
        if lowered:
            builder.noted(group, OFFSET_LOWERED, member_id=member_id, places=tuple(lowered))

    def _committing_group(
        self, group_id: str, committer: Committer, unknown_group_error: ErrorCode
    ) -> tuple[Group | None, PartitionCheck | None]:
        """Return the group and its check for each partition, if the committer passes (groups B.1 OC1 to OC4).

        The group is ``None`` if the commit will create a simple group.
        """
        group = self._groups.get(group_id)
        if group is not None:
            return group, group.check_commit(committer)
        if committer.generation >= 0:
            raise Refusal(unknown_group_error, *COMMIT.row(" OC1"))
        return None, None

    def _create_without_records(self, builder: OutcomeBuilder, group_id: str) -> None:
        """Create a simple group whose offsets were all refused, as in Kafka; otherwise ``replay`` creates it."""
        if not builder.records and group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id, builder.now_ms)
            self._groups.unseen.add(group_id)

    def _store(
        self,
        builder: OutcomeBuilder,
        place: tuple[str, str, UUID | None],
        partition: _CommittedPartition,
        expires_ms: int,
        check: PartitionCheck | None,
    ) -> ErrorCode:
        """Commit one offset, of any value (groups B.1 OC5 to OC7). ``place``: group id, topic, topic id.

        Raises:
            KafkaError: if the group refuses the partition, and so the whole request.
        """
        group_id, topic, topic_id = place
        metadata = partition.committed_metadata or ""
        # Quirk: the limit is in bytes, but UTF-16 units are counted. It comes before the member's epoch, on which the
        # whole request fails (groups B.1 OC5).
        if utf16_length(metadata) > self._settings.int("offset.metadata.max.bytes"):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if check is not None:
            check(topic, topic_id, partition.partition_index)
        with_ids = self._behaves(Behaviour.TOPIC_IDS_OF_OFFSETS)
        version = _TOPIC_ID_VERSION if with_ids else _EARLIER_VERSION
        builder.record(
            OffsetCommit(
                group_id,
                topic,
                partition.partition_index,
                partition.committed_offset,
                partition.committed_leader_epoch,
                metadata,
                builder.now_ms,
                expires_ms,
                topic_id if with_ids else None,
                version if expires_ms == NO_EXPIRY else _EXPIRING_VERSION,
            )
        )
        return ErrorCode.NONE

    # --- fetching ----------------------------------------------------------------------------------------------------

    def fetch(
        self, wanted: OffsetFetchRequestGroup, *, require_stable: bool, written: bool = False
    ) -> OffsetFetchResponseGroup:
        """Return committed offsets; topics have a name and, from v10 on, an id; ``topics=None`` means all (groups B.2).

        ``written``: include offsets that are not replicated yet. The response has to wait for them.

        Raises:
            KafkaError: if the group refuses the member.
        """
        group = self._groups.get(wanted.group_id)
        known = group is not None and group.type is not GroupType.SHARE
        if group is not None and known:
            group.check_fetch(wanted.member_id, wanted.member_epoch)
        offsets = self._offsets if written else self.unreplicated
        stored = offsets.topics(wanted.group_id) if known else {}
        if wanted.topics is None:
            topics = [OffsetFetchRequestTopics(name, list(partitions), None) for name, partitions in stored.items()]
        else:
            topics = list(wanted.topics)
        answers = []
        for topic in topics:
            pending = partial(offsets.is_pending, wanted.group_id, topic.name) if require_stable else _never
            answers.append(_answer(topic, stored.get(topic.name, {}), pending))
        return OffsetFetchResponseGroup(wanted.group_id, answers)

    # --- deleting ----------------------------------------------------------------------------------------------------

    def delete(self, builder: OutcomeBuilder, request: OffsetDeleteRequest, reply_to: Hashable) -> None:
        """Delete offsets of topics without subscribers, also pending ones (transactions E.4).

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *OFFSET_DELETE)
        group.check_offset_delete()
        known = set(self._offsets.places(request.group_id))
        deleted: list[tuple[str, int]] = []
        topics = []
        for topic in request.topics:
            subscribed = group.subscribes_to(topic.name)
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            for partition in topic.partitions:
                if not subscribed and (topic.name, partition.partition_index) in known:
                    deleted.append((topic.name, partition.partition_index))
                    builder.record(OffsetCommitTombstone(request.group_id, topic.name, partition.partition_index))
            codes = [OffsetDeleteResponsePartition(partition.partition_index, code) for partition in topic.partitions]
            topics.append(OffsetDeleteResponseTopic(topic.name, codes))
        self._note_gone(builder, group, OFFSETS_DELETED, deleted)
        builder.reply(reply_to, OffsetDeleteResponse(topics=topics))

    def _note_gone(
        self, builder: OutcomeBuilder, group: Group, reason: Reason, places: Iterable[tuple[str, int]]
    ) -> None:
        """Report committed offsets that are deleted; of a partition with a pending offset only, the offset is -1."""
        known = [(place, self._offsets.find(group.group_id, *place)) for place in places]
        if known:
            gone = tuple((*place, -1 if offset is None else offset.commit.offset) for place, offset in known)
            builder.noted(group, reason, places=gone)

    def forget_all(self, builder: OutcomeBuilder, group: Group) -> None:
        """Write tombstones for all committed and pending offsets of a group that is deleted."""
        group_id, places = group.group_id, self._offsets.places(group.group_id)
        if places:
            self._note_gone(builder, group, GROUP_DELETED, places)
        else:
            builder.noted(group, GROUP_DELETED)
        for topic, partition in places:
            builder.record(OffsetCommitTombstone(group_id, topic, partition))

    def forget_topic(self, builder: OutcomeBuilder, topic: str, topic_id: UUID | None) -> None:
        """Delete a deleted topic's offsets in all groups, but not those of another topic of that name (groups B.4).

        Each committed offset and each pending one gets its own tombstone, as in Kafka.
        """
        places = [
            (offset.commit.group_id, offset.commit.partition)
            for offset in self._offsets.of_topic(topic)
            if not _of_another_topic(offset, topic_id)
        ]
        by_group: dict[str, list[tuple[str, int]]] = {}
        for group_id, partition in sorted(places):
            builder.record(OffsetCommitTombstone(group_id, topic, partition))
            by_group.setdefault(group_id, []).append((topic, partition))
        for group_id, gone in by_group.items():
            if (group := self._groups.get(group_id)) is not None:
                self._note_gone(builder, group, TOPIC_DELETED, dict.fromkeys(gone))


def no_offset(partition: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """Return the response for a partition without an offset."""
    return OffsetFetchResponsePartitions(partition, -1, -1, "", code)


def _answer(
    topic: OffsetFetchRequestTopics, stored: Partitions, is_pending: Callable[[int], bool]
) -> OffsetFetchResponseTopics:
    answers = []
    for partition in topic.partition_indexes:
        offset = stored.get(partition)
        if is_pending(partition):
            answers.append(no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif offset is None or _of_another_topic(offset, topic.topic_id):
            answers.append(no_offset(partition))
        else:
            commit = offset.commit
            answers.append(
                OffsetFetchResponsePartitions(partition, commit.offset, commit.leader_epoch, commit.metadata)
            )
    return OffsetFetchResponseTopics(topic.name, answers, topic.topic_id)


def _never(_partition: int) -> bool:
    return False


def _of_another_topic(offset: CommittedOffset, topic_id: UUID | None) -> bool:
    """Return whether the offset was committed to a topic with the same name and another id."""
    stored = offset.commit.topic_id
    return stored is not None and topic_id is not None and stored != topic_id
