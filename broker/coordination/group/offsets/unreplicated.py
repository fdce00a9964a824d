"""Replicated offsets, which OffsetFetch returns while the leader's log is ahead of the in-sync replicas.

After Kafka's ``OffsetMetadataManager``, which reads its timelines at the last committed offset of the log.
"""

from collections import deque
from collections.abc import Sequence

from broker.coordination.group.offsets.store import CommittedOffset, Offsets, Partitions
from broker.coordination.outcome import TransactionEnd
from protocol.log_records.group import GroupRecord, OffsetCommit, OffsetCommitTombstone

_Place = tuple[str, str, int]


class _Change:
    """State before one append or marker: committed offsets, and which producers had pending ones."""

    __slots__ = ("begun", "committed", "ended")

    def __init__(self) -> None:
        self.committed: dict[_Place, CommittedOffset | None] = {}
        self.begun: dict[_Place, set[int]] = {}
        self.ended: dict[_Place, set[int]] = {}


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
