"""The topic of a plant in a data directory, and the records about it in internal topics.

A plant is a row: what brokers wrote, step by step. Each step returns the offset that it wrote, or its place.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from protocol.log_records import group, transaction
from protocol.log_records.transaction import TransactionState
from protocol.records.records import Record, build_batch
from tests.pipeline.fault_files import Planting, Shelf, restamped, topic_id_of

OFFSETS, STATE, METADATA = "__consumer_offsets", "__transaction_state", "__cluster_metadata"


class Place(NamedTuple):
    """Where an audit has to point; a file has no offset."""

    topic: str
    partition: int
    offset: int | None


Written = int | Place | set[Place]
Steps = Callable[["Topic"], "Written | tuple[Written, ...]"]
"""Writes a plant. The last value, or the one picked, is where an audit has to point; a number: in partition 0."""


class Topic:
    """The plant's own topic; a group or a transactional id may have its name too."""

    def __init__(self, where: Planting, name: str) -> None:
        self.where, self.name = where, name

    @property
    def log(self) -> Shelf:
        """Partition 0."""
        return self.where.shelf(self.name)

    def partition(self, number: int) -> Shelf:
        """Another partition."""
        return self.where.shelf(self.name, number)

    def at(self, offset: int | None, partition: int = 0) -> Place:
        """A place in it."""
        return Place(self.name, partition, offset)

    def of(self, **settings: Any) -> int:
        """Create it with settings; its first offset."""
        return self.where.shelf(self.name, **settings).next_offset

    def data(self, count: int = 3, **options: Any) -> int:
        """Append a batch to partition 0; its offset."""
        return self.log.data(count, **options)

    def batches(self, number: int, **options: Any) -> int:
        """Append so many; the offset of the last."""
        return [self.log.data(3, **options) for _ in range(number)][-1]

    def transactional(self, producer: int, partition: int = 0, **options: Any) -> int:
        """Append a batch of a transaction."""
        return self.partition(partition).data(3, producer=producer, transactional=True, **options)

    def marker(
        self, producer: int, epoch: int = 0, *, committed: bool = True, partition: int = 0, **options: Any
    ) -> int:
        """Append a marker."""
        return self.partition(partition).marker(producer, epoch, committed=committed, **options)

    def header(self, **fields: int) -> int:
        """Append a batch of three records with other header fields, under a checksum that fits."""
        at, now_ms = self.log.next_offset, self.where.tick()
        records = [Record(at + index, now_ms, b"k%d" % index, b"v") for index in range(3)]
        self.log.raw(restamped(build_batch(records, partition_leader_epoch=0), **fields), indexed=False)
        return at

    def file(self, name: str, content: bytes) -> Place:
        """A file of partition 0 has this content in the end."""
        self.where.written_last[f"{self.name}-0/{name}"] = content
        return self.at(None)

    def checkpoint(self, file: str, offset: int) -> int:
        """A checkpoint of the directory has this offset of partition 0."""
        self.where.checkpoints[file, self.name, 0] = offset
        return offset

    # ------------------------------------------------------------------ internal topics

    def metadata(self, *records: Any) -> Place:
        """Append records to the metadata log; the place of the last."""
        return Place(METADATA, 0, self.where.recorded(*records))

    def offsets(self, *records: Any, encode: Callable[[Any], tuple[Any, Any]] = group.encode) -> Place:
        """Append records to `__consumer_offsets`, a batch each; the place of the last."""
        return self._internal(OFFSETS, map(encode, records))

    def _internal(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> Place:
        log = self.where.shelf(topic, cleanup_policy="compact")
        return Place(topic, 0, [log.records([pair]) for pair in pairs][-1])

    def raw(self, topic: str, key: bytes | None, value: bytes | None) -> Place:
        """Append a record with these bytes to an internal topic."""
        return self._internal(topic, [(key, value)])

    def classic_group(self, *members: group.GroupMember, **fields: Any) -> Place:
        """The record of a classic group in generation 3, which has its name."""
        known: dict[str, Any] = {
            "protocol_type": "consumer", "generation": 3, "protocol": "range" if members else None,
            "leader": members[0].member_id if members else None, "current_state_timestamp_ms": self.where.tick(),
            "members": members, **fields}  # fmt: skip
        return self.offsets(group.GroupMetadata(self.name, **known))

    def commit(self, **fields: Any) -> Place:
        """A committed offset of partition 0, of a group of its name; the place is the one that was committed."""
        known: dict[str, Any] = {"topic": self.name, "partition": 0, "offset": 2,
                                 "commit_timestamp_ms": self.where.tick(), **fields}  # fmt: skip
        self.offsets(group.OffsetCommit(self.name, **known))
        return Place(known["topic"], known["partition"], known["offset"])

    def coordinator(
        self, name: str, producer: int, state: TransactionState, *partitions: int, epoch: int = 0, **options: Any
    ) -> Place:
        """A record of a transactional id with partitions of the topic."""
        touched = [(self.name, number) for number in partitions]
        return Place(STATE, 0, self.where.transaction(name, producer, epoch, state, touched, **options))

    def state(self, **fields: Any) -> Place:
        """A record of the transactional id of its name, as it is."""
        self.where.producers.add(fields["producer_id"])
        record = transaction.TransactionRecord(transactional_id=self.name, **fields)
        return self._internal(STATE, [transaction.encode(record)])

    @property
    def id(self) -> Any:
        """Its topic id."""
        return topic_id_of(self.name)


Row = tuple[str, Steps]
Rows = Mapping[str, Row]
"""Name of a plant -> the checks that find it, and what writes it."""


def found_at(topic: Topic, steps: Steps) -> set[Place]:
    """Write a plant; where it has to be found."""
    written = steps(topic)
    last = written[-1] if isinstance(written, tuple) and not isinstance(written, Place) else written
    return {topic.at(last)} if isinstance(last, int) else {last} if isinstance(last, Place) else last
