"""Partitions of deleted topics, for explanations: a topic of the same name has other records and offsets."""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from broker.replication.partition import ReplicatedPartition
from broker.steering.timelines.event_log import LIMITS
from broker.time.clock import Clock


class Deleted(NamedTuple):
    """The deletion of a partition: its topic id, the time, and up to which offset it could be read."""

    topic_id: UUID
    at_ms: int
    end_offset: int


class DeletedPartitions:
    """The latest deletion of each partition by its topic's name, as many as a timeline has ids."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deleted: OrderedDict[tuple[str, int], Deleted] = OrderedDict()

    def note(self, partition: ReplicatedPartition, end_offset: int) -> None:
        """Note that a partition is being deleted."""
        place = partition.topic, partition.index
        self._deleted[place] = Deleted(partition.topic_id, self._clock.now_ms(), end_offset)
        self._deleted.move_to_end(place)
        if len(self._deleted) > LIMITS.ids:
            self._deleted.popitem(last=False)

    def of(self, topic: str, index: int) -> Deleted | None:
        """Return the latest deletion of a partition of that name, if there was one."""
        return self._deleted.get((topic, index))

    def clear(self) -> None:
        """Forget all."""
        self._deleted.clear()
