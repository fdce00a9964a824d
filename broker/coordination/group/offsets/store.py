"""Offsets of one coordinator: committed, and pending in producers' open transactions (transactions E.1).

Records and markers change it, in log order; it makes no decisions. After Kafka's ``OffsetMetadataManager``.
OffsetFetch returns replicated offsets while the leader's log is ahead of the in-sync replicas: Kafka reads its
timelines at the last committed offset of the log.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from broker.coordination.outcome import TransactionEnd
from protocol.log_records.group import GroupRecord, OffsetCommit, OffsetCommitTombstone


class CommittedOffset(NamedTuple):
    """A commit and its offset in the coordinator's log; of two commits, the later one in the log wins."""

    commit: OffsetCommit
    at: int


Partitions = dict[int, CommittedOffset]
"""Partition -> its committed offset."""

_Place = tuple[str, int]
_GroupPlace = tuple[str, str, int]


class Offsets:
    """Offsets by group, topic and partition."""

    __slots__ = ("_by_group", "_open", "_pending")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, Partitions]] = {}
        self._pending: dict[int, dict[_GroupPlace, CommittedOffset]] = {}
        """Producer id -> what its open transaction commits: a marker names the producer, not the groups."""
        self._open: dict[str, dict[_Place, set[int]]] = {}
        """The same by group -> place -> producer ids: requests and deletions ask by group."""

    # --- replay ------------------------------------------------------------------------------------------------------

    def commit(self, commit: OffsetCommit, at: int) -> None:
        """Store a commit outside of transactions. Pending offsets stay pending."""
        topics = self._by_group.setdefault(commit.group_id, {})
        topics.setdefault(commit.topic, {})[commit.partition] = CommittedOffset(commit, at)

    def commit_pending(self, producer_id: int, commit: OffsetCommit, at: int) -> None:
        """Store a commit until its transaction's marker; it replaces an earlier commit of the same transaction."""
        place = (commit.group_id, commit.topic, commit.partition)
        self._pending.setdefault(producer_id, {})[place] = CommittedOffset(commit, at)
        places = self._open.setdefault(commit.group_id, {})
        places.setdefault((commit.topic, commit.partition), set()).add(producer_id)

    def forget(self, tombstone: OffsetCommitTombstone) -> None:
        """Drop the committed offset and all producers' pending offsets of a partition."""
        group_id, topic, partition = tombstone.group_id, tombstone.topic, tombstone.partition
        topics = self._by_group.get(group_id)
        if topics is not None and topic in topics:
            topics[topic].pop(partition, None)
            if not topics[topic]:
                del topics[topic]
            if not topics:
                del self._by_group[group_id]
        for producer_id in tuple(self._open.get(group_id, {}).get((topic, partition), ())):
            self._pending[producer_id].pop((group_id, topic, partition))
            if not self._pending[producer_id]:
                del self._pending[producer_id]
            self._close(producer_id, (group_id, topic, partition))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker: commit or drop the producer's pending offsets in all groups.

        An offset that was committed outside of transactions after the transactional commit is kept.
        """
        for place, offset in self._pending.pop(producer_id, {}).items():
            self._close(producer_id, place)
            if not committed:
                continue
            known = self.find(*place)
            if known is None or offset.at > known.at:
                self.commit(offset.commit, offset.at)

    def _close(self, producer_id: int, place: _GroupPlace) -> None:
        group_id, topic, partition = place
        places = self._open[group_id]
        producers = places[topic, partition]
        producers.discard(producer_id)
        if not producers:
            del places[topic, partition]
        if not places:
            del self._open[group_id]

    # --- reading -----------------------------------------------------------------------------------------------------

    def topics(self, group_id: str) -> dict[str, Partitions]:
        """Return all committed offsets of a group: topic -> partition -> offset."""
        return self._by_group.get(group_id, {})

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the committed offset of a partition, or ``None``."""
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has committed an offset of the partition."""
        return (topic, partition) in self._open.get(group_id, ())

    def producers(self, group_id: str, topic: str, partition: int) -> Collection[int]:
        """Return the ids of producers whose open transactions have committed an offset of the partition."""
        return self._open.get(group_id, {}).get((topic, partition), ())

    def in_transactions(self, group_id: str) -> bool:
        """Return whether an open transaction has committed offsets of the group."""
        return group_id in self._open

    def places(self, group_id: str) -> list[_Place]:
        """Return topic and partition of all committed and pending offsets, committed ones first."""
        committed = [(topic, partition) for topic, offsets in self.topics(group_id).items() for partition in offsets]
        return list(dict.fromkeys([*committed, *self._open.get(group_id, ())]))

    def pending(self, group_id: str) -> dict[_Place, list[int]]:
        """Return the producer ids of pending offsets by topic and partition."""
        return {place: sorted(producers) for place, producers in self._open.get(group_id, {}).items()}

    def pending_of(self, producer_id: int) -> list[tuple[_GroupPlace, CommittedOffset]]:
        """Return a producer's pending offsets: (group, topic, partition) and the offset."""
        return list(self._pending.get(producer_id, {}).items())

    def of_topic(self, topic: str) -> Iterator[CommittedOffset]:
        """Iterate over all offsets of a topic in all groups, committed or pending."""
        for topics in self._by_group.values():
            yield from topics.get(topic, {}).values()
        for offsets in self._pending.values():
            yield from (offset for (_, name, _), offset in offsets.items() if name == topic)


# --- offsets that are not replicated yet ------------------------------------------------------------------------------

_CommitKey = tuple[str, str, int]
"""Group id, topic and partition."""


class _Change:
    """State before one append or marker: committed offsets, and which producers had pending ones."""

    __slots__ = ("begun", "committed", "ended")

    def __init__(self) -> None:
        self.committed: dict[_CommitKey, CommittedOffset | None] = {}
        self.begun: dict[_CommitKey, set[int]] = {}
        self.ended: dict[_CommitKey, set[int]] = {}


class UnreplicatedOffsets:
    """Changes of offsets that are not replicated yet, in log order; mostly there are none."""

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._changes: deque[_Change] = deque()

    def add(self, records: Sequence[GroupRecord | TransactionEnd], producer_id: int | None) -> None:
        """Keep the state that an append or a marker is about to change; ``producer_id`` for a transactional append."""
        change = _Change()
        for record in records:
            match record:
                case TransactionEnd():
                    self._keep_pending(change, record)
                case OffsetCommit() if producer_id is not None:
                    place = (record.group_id, record.topic, record.partition)
                    if producer_id not in self._offsets.producers(*place):
                        change.begun[place] = {producer_id}
                case OffsetCommit() | OffsetCommitTombstone():
                    place = (record.group_id, record.topic, record.partition)
                    change.committed.setdefault(place, self._offsets.find(*place))
                    if isinstance(record, OffsetCommitTombstone):
                        change.ended[place] = set(self._offsets.producers(*place))
        self._changes.append(change)

    def _keep_pending(self, change: _Change, end: TransactionEnd) -> None:
        for place, _ in self._offsets.pending_of(end.producer_id):
            change.ended[place] = {end.producer_id}
            if end.committed:
                change.committed[place] = self._offsets.find(*place)

    def remove(self) -> None:
        """Drop the oldest change, which is now replicated."""
        self._changes.popleft()

    # --- reading -----------------------------------------------------------------------------------------------------

    def topics(self, group_id: str) -> dict[str, Partitions]:
        """Return :meth:`Offsets.topics` as far as replicated."""
        topics = self._offsets.topics(group_id)
        if not self._changes:
            return topics
        topics = {topic: dict(partitions) for topic, partitions in topics.items()}
        for change in reversed(self._changes):
            for (group, topic, partition), before in change.committed.items():
                if group != group_id:
                    continue
                if before is not None:
                    topics.setdefault(topic, {})[partition] = before
                else:
                    topics.get(topic, {}).pop(partition, None)
        return {topic: partitions for topic, partitions in topics.items() if partitions}

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return :meth:`Offsets.is_pending` as far as replicated."""
        if not self._changes:
            return self._offsets.is_pending(group_id, topic, partition)
        place = (group_id, topic, partition)
        producers = set(self._offsets.producers(*place))
        for change in reversed(self._changes):
            producers -= change.begun.get(place, set())
            producers |= change.ended.get(place, set())
        return bool(producers)
