"""Data directories written batch by batch, with or without mistakes: what no broker would let itself be talked into.

The files are made by `storage`, so that everything but the planted mistake is as a broker leaves it.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from protocol.log_records import group, metadata, metadata_security, transaction
from protocol.log_records.transaction import TransactionRecord, TransactionState
from protocol.records.batch import HEADER, RecordBatch
from protocol.records.records import Record, build_batch, build_marker
from protocol.types import uuid_text
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER,
    HIGH_WATERMARK,
    LEADER_EPOCHS,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT,
    EpochEntry,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_properties,
)
from storage.files import DiskFiles
from storage.indexes.txn_index import AbortedTransaction
from storage.log.segment import Segment
from tests.pipeline.planted_snapshots import at_the_end

T0_MS = 1_700_000_000_000
STEP_MS = 1000
INDEX_BYTES = 10 * 1024 * 1024
INDEX_INTERVAL_BYTES = 200
"""Small, so that a few batches have index entries already."""
TIMEOUT_MS = 60_000
LATER_MS = T0_MS + 86_400_000
"""Behind all batches of a planted directory."""


def topic_id_of(topic: str) -> UUID:
    """The id of a planted topic."""
    return UUID(int=1) if topic == "__cluster_metadata" else uuid5(NAMESPACE_OID, topic)


class Shelf:
    """The log of one partition. Offsets, sequences and times continue by themselves unless a batch has its own."""

    def __init__(self, owner: "Planting", topic: str, partition: int, start: int) -> None:
        self.owner, self.topic, self.partition = owner, topic, partition
        self.directory = f"{topic}-{partition}"
        self.log_start = self.next_offset = start
        self.high_watermark: int | None = None
        self.epochs = [EpochEntry(0, start)]
        self.leader_epoch = 0
        self._sequences: dict[tuple[int, int], int] = {}
        self._open: dict[int, int] = {}
        self.closed: list[Segment] = []
        (owner.root / self.directory).mkdir()
        self.segment = Segment(owner.files, self.directory, start, INDEX_BYTES)

    @property
    def log_path(self) -> Path:
        """The active segment's file."""
        return self.owner.root / self.segment.path_of(".log")

    def data(
        self,
        count: int = 3,
        *,
        producer: int = -1,
        epoch: int = 0,
        sequence: int | None = None,
        transactional: bool = False,
        base_offset: int | None = None,
        at_ms: int | None = None,
        keys: Sequence[bytes | None] = (),
        values: Sequence[bytes | None] = (),
        drop: Iterable[int] = (),
        leader_epoch: int = 0,
        codec: int = 0,
        log_append_time: bool = False,
        max_timestamp_ms: int | None = None,
    ) -> int:
        """Append a batch and return its base offset. `drop`: indexes of records that compaction has removed."""
        base = self.next_offset if base_offset is None else base_offset
        at_ms = self.owner.tick() if at_ms is None else at_ms
        records = [
            Record(
                base + index,
                at_ms + index,
                keys[index] if index < len(keys) else b"k%d" % index,
                values[index] if index < len(values) else b"%s/%d" % (self.directory.encode(), base + index),
                (("h", b"1"), ("h", None)) if index == 0 else (),
            )
            for index in range(count)
            if index not in drop
        ]
        if producer >= 0 and sequence is None:
            sequence = self._sequences.get((producer, epoch), 0)
        if producer >= 0 and sequence is not None:
            self._sequences[producer, epoch] = (sequence + count) & 0x7FFFFFFF
        batch = build_batch(
            records,
            base_offset=base,
            last_offset=base + count - 1,
            base_timestamp_ms=at_ms,
            max_timestamp_ms=max_timestamp_ms,
            producer_id=producer,
            producer_epoch=epoch if producer >= 0 else -1,
            base_sequence=-1 if sequence is None else sequence,
            transactional=transactional,
            partition_leader_epoch=leader_epoch,
            codec=codec,
            log_append_time=log_append_time,
        )
        if transactional:
            self._open.setdefault(producer, base)
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        self.raw(batch)
        return base

    def records(self, pairs: Sequence[tuple[bytes | None, bytes | None]], **options: bool | int) -> int:
        """Append a batch of exactly these keys and values."""
        return self.data(
            len(pairs),
            keys=[key for key, _ in pairs],
            values=[value for _, value in pairs],
            **options,  # type: ignore[arg-type]
        )

    def marker(
        self, producer: int, epoch: int, *, committed: bool, coordinator_epoch: int = 0, index: bool = True
    ) -> int:
        """Append a marker, with its entry in the transaction index if it aborts; returns its offset."""
        offset = self.next_offset
        self.raw(
            build_marker(
                producer, epoch, committed, coordinator_epoch, self.owner.tick(),
                base_offset=offset, partition_leader_epoch=0,
            )
        )  # fmt: skip
        first = self._open.pop(producer, None)
        if not committed and first is not None and index:
            stable = min(self._open.values(), default=offset + 1)
            self.segment.txn_index.append(AbortedTransaction(producer, first, offset, stable))
        return offset

    def raw(self, batch: bytes | bytearray, *, indexed: bool = True) -> int:
        """Append a batch as it is; returns its position in the segment."""
        header = RecordBatch(batch)
        interval = INDEX_INTERVAL_BYTES if indexed else 2**31
        position = self.segment.append(batch, header, interval)
        self.next_offset = max(self.next_offset, header.next_offset)
        if header.is_control and header.producer_id in self._open:
            self.owner.ended.add(header.producer_id)
        return position

    def roll(self, base_offset: int | None = None) -> int:
        """Begin a new segment; its base offset."""
        self.segment.close_indexes()
        self.closed.append(self.segment)
        base = self.next_offset if base_offset is None else base_offset
        self.segment = Segment(self.owner.files, self.directory, base, INDEX_BYTES)
        return base

    def epochs_listed(self, *entries: tuple[int, int]) -> int:
        """Have these epochs, with their start offsets, in the checkpoint instead of the true ones; how many."""
        self.epochs = [EpochEntry(*each) for each in entries]
        return len(entries)

    def epoch_listed(self, epoch: int, start: int) -> int:
        """Have one more epoch in the checkpoint; its start offset."""
        self.epochs.append(EpochEntry(epoch, start))
        return start

    def skip_to(self, offset: int) -> int:
        """Go on at a later offset."""
        self.next_offset = offset
        return offset

    def without_segment(self, number: int) -> int:
        """Remove the files of a closed segment; its base offset."""
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            self.path_of(suffix, number).unlink(missing_ok=True)
        return self.closed[number].base_offset

    def torn(self, record: Record, *, by: int) -> int:
        """Append a batch of one record without its last bytes; its offset."""
        self.segment.log.append(bytes(build_batch([record], partition_leader_epoch=0))[:-by])
        return record.offset

    def path_of(self, suffix: str, segment: int = -1) -> Path:
        """A file of a segment, counted among all, the active one being the last."""
        return self.owner.root / [*self.closed, self.segment][segment].path_of(suffix)

    def changed(self, suffix: str, change: Callable[[bytes], bytes], segment: int = -1) -> int:
        """Have a file of a segment changed in the end; how many files are."""
        self.owner.changed_last[str(self.path_of(suffix, segment))] = change
        return len(self.owner.changed_last)

    def overwritten(self, at: int, content: bytes, segment: int = -1) -> int:
        """Put other bytes into a segment at once; how many."""
        path = self.path_of(".log", segment)
        data = path.read_bytes()
        path.write_bytes(data[:at] + content + data[at + len(content) :])
        return len(content)

    def close(self, topic_id: UUID) -> None:
        """Write the files beside the segments."""
        self.segment.close_indexes()
        files = self.owner.files
        files.replace(f"{self.directory}/{PARTITION_METADATA}", encode_partition_metadata(topic_id))
        files.replace(f"{self.directory}/{LEADER_EPOCHS}", encode_epochs(self.epochs))


class Planting:
    """A data directory in the making. `shelf` gives a partition's log; `close` writes the files beside the logs."""

    def __init__(self, root: Path, *, node_id: int = 1) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.node_id = root, node_id
        self.files = DiskFiles(root)
        self.shelves: dict[tuple[str, int], Shelf] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.now_ms = T0_MS
        self._cleaned: dict[tuple[str, int], int] = {}
        self._removed: list[tuple[str, UUID]] = []
        self._stopped: list[tuple[str, int]] = []
        self.ended: set[int] = set()
        """Producers with a finished transaction."""
        self.producers: set[int] = set()
        """Those that their coordinator knows, or is to leave unknown; `close` makes the others known."""
        self._states: dict[str, TransactionState] = {}
        self._touched: dict[str, list[tuple[str, int]]] = {}
        self.properties = {"version": "1", "cluster.id": "planted", "node.id": str(node_id)}
        self.properties["directory.id"] = uuid_text(UUID(int=108 + node_id))
        self.metadata_before: list[object] = []
        self.metadata_behind: list[object] = []
        """Records that the metadata begin and end with."""
        self.throttled: list[str] = []
        """Client ids with a quota."""
        self.lost: list[tuple[str, int]] = []
        self.led: dict[str, Sequence[int]] = {}
        self.checkpoints: dict[tuple[str, str, int], int] = {}
        """Offsets that are written to a checkpoint (the first part of the key) instead of the true ones."""
        self.written_last: dict[str, bytes] = {}
        """Files, by their paths within the directory, that get another content in the end."""
        self.changed_last: dict[str, Callable[[bytes], bytes]] = {}
        """Files, by their whole paths, whose content is changed in the end."""

    def tick(self) -> int:
        """The time of the next batch."""
        self.now_ms += STEP_MS
        return self.now_ms

    def shelf(self, topic: str, partition: int = 0, *, start: int = 0, **configs: str) -> Shelf:
        """The log of a partition; made when it is first asked for."""
        key = (topic, partition)
        if key not in self.shelves:
            self.shelves[key] = Shelf(self, topic, partition, start)
            self.configs.setdefault(topic, {}).update({name.replace("_", "."): text for name, text in configs.items()})
        return self.shelves[key]

    def recorded(self, *records: Any) -> int:
        """Append records to the metadata log; the offset of the last."""
        values = [metadata.encode(record)[1] for record in records]
        log = self.shelf("__cluster_metadata")
        log.data(len(values), keys=[None] * len(values), values=values)
        return log.next_offset - 1

    def led_by(self, topic: str, *leaders: int) -> int:
        """The changes of leaders of partition 0, after its PartitionRecord of epoch 0; -2 names none. How many."""
        self.led[topic] = leaders
        return len(leaders)

    def without(self, topic: str, partition: int) -> int:
        """The metadata know of a partition that has no directory; how many there are."""
        self.lost.append((topic, partition))
        return len(self.lost)

    def cleaned(self, topic: str, partition: int, offset: int) -> int:
        """The cleaner has gone up to this offset."""
        self._cleaned[topic, partition] = offset
        return offset

    def stranger(self, producer: int) -> int:
        """Leave a producer unknown to the coordinators."""
        self.producers.add(producer)
        return producer

    def recreated(self, topic: str) -> None:
        """A topic of this name was there before, and was deleted."""
        self._removed.append((topic, UUID(int=1000 + len(self._removed))))

    def stopped(self, topic: str, partition: int) -> None:
        """Its broker has stopped cleanly: the metadata names no leader and an empty ISR (KIP-966)."""
        self._stopped.append((topic, partition))

    def transaction(
        self,
        name: str,
        producer: int,
        epoch: int,
        state: TransactionState,
        partitions: Iterable[tuple[str, int]] = (),
        *,
        at_ms: int | None = None,
        version: int = 2,
    ) -> int:
        """A record of `__transaction_state`; what ends a transaction comes behind the record that prepares it."""
        prepares = {
            TransactionState.COMPLETE_COMMIT: TransactionState.PREPARE_COMMIT,
            TransactionState.COMPLETE_ABORT: TransactionState.PREPARE_ABORT,
        }
        before = self._states.get(name)
        if before == TransactionState.ONGOING and state in prepares:
            self.transaction(name, producer, epoch, prepares[state], self._touched[name], at_ms=at_ms, version=version)
        self._states[name], self._touched[name] = state, list(partitions)
        self.producers.add(producer)
        partitions = self._touched[name]
        at_ms = self.tick() if at_ms is None else at_ms
        answer = TransactionRecord(
            name, producer, epoch, TIMEOUT_MS, state, frozenset(partitions), at_ms, at_ms,
            client_transaction_version=version,
        )  # fmt: skip
        key, value = transaction.encode(answer)
        return self.shelf("__transaction_state", cleanup_policy="compact").records([(key, value)])

    def committed_offset(
        self, group_id: str, topic: str, partition: int, offset: int, *, producer: int = -1, epoch: int = 0
    ) -> int:
        """A committed offset in `__consumer_offsets`; with a producer, a pending one."""
        record = group.OffsetCommit(group_id, topic, partition, offset, commit_timestamp_ms=self.tick())
        key, value = group.encode(record)
        return self.shelf("__consumer_offsets", cleanup_policy="compact").records(
            [(key, value)], producer=producer, epoch=epoch, transactional=producer >= 0
        )

    def close(self) -> Path:
        """Write metadata, checkpoints and the rest; returns the directory."""
        for producer in sorted(self.ended - self.producers) if ("__transaction_state", 0) in self.shelves else ():
            self.transaction(f"producer-{producer}", producer, 0, TransactionState.EMPTY)
        self._write_metadata()
        ids = self._topic_ids()
        for (topic, _), shelf in self.shelves.items():
            shelf.close(ids[topic])
        own = {key: shelf for key, shelf in self.shelves.items() if key[0] != "__cluster_metadata"}
        ends = {
            key: shelf.next_offset if shelf.high_watermark is None else shelf.high_watermark
            for key, shelf in own.items()
        }
        for name, offsets in (
            (HIGH_WATERMARK, ends),
            (RECOVERY_POINT, {key: shelf.next_offset for key, shelf in own.items()}),
            (LOG_START, {key: shelf.log_start for key, shelf in own.items() if shelf.log_start}),
            (CLEANER, self._cleaned),
        ):
            others = {
                (topic, number): offset for (file, topic, number), offset in self.checkpoints.items() if file == name
            }
            self.files.replace(name, encode_offsets({**offsets, **others}))
        self.files.replace(META_PROPERTIES, encode_properties(self.properties))
        self.files.replace(CLEAN_SHUTDOWN, b"")
        self.files.close()
        for folder in {self.root / shelf.directory for shelf in own.values()}:
            if (left := at_the_end(folder)) is not None and not (folder / left[0]).exists():
                (folder / left[0]).write_bytes(left[1])
        for path, content in self.written_last.items():
            (self.root / path).write_bytes(content)
        for path, change in self.changed_last.items():
            Path(path).write_bytes(change(Path(path).read_bytes()))
        return self.root

    def _leader_epoch(self, topic: str, number: int) -> int:
        """The latest of the partition's files, unless changes of leaders come behind."""
        shelf = self.shelves.get((topic, number))
        known = 0 if shelf is None else max([shelf.leader_epoch, *(each.epoch for each in shelf.epochs)])
        return 0 if topic in self.led else max(known, 0)

    def _topic_ids(self) -> dict[str, UUID]:
        names = sorted({topic for topic, _ in self.shelves})
        return {name: topic_id_of(name) for name in names}

    def _write_metadata(self) -> None:
        """`__cluster_metadata-0`, with topics, partitions and settings, as far as readers look at it."""
        self.shelf("__cluster_metadata")
        records = list(self.metadata_before)
        for topic, topic_id in self._removed:
            records += [metadata.TopicRecord(topic, topic_id), metadata.RemoveTopicRecord(topic_id)]
        for topic, topic_id in self._topic_ids().items():
            records.append(metadata.TopicRecord(topic, topic_id))
            records += [metadata.ConfigRecord(2, topic, key, text) for key, text in self.configs[topic].items()]
            records += [
                metadata.PartitionRecord(
                    number,
                    topic_id,
                    (self.node_id,),
                    (self.node_id,),
                    leader=self.node_id,
                    leader_epoch=self._leader_epoch(topic, number),
                    partition_epoch=0,
                )
                for name, number in sorted([*self.shelves, *self.lost])
                if name == topic
            ]
            records += [
                metadata.PartitionChangeRecord(0, topic_id, isr=(self.node_id,), leader=leader)
                for leader in self.led.get(topic, ())
            ]
        ids = self._topic_ids()
        records += [
            metadata.PartitionChangeRecord(number, ids[topic], isr=(), leader=-1, eligible_leader_replicas=(1,))
            for topic, number in self._stopped
        ]
        records.append(metadata.ProducerIdsRecord(1, 1, 3000))
        for client_id in self.throttled:
            entity = (metadata_security.QuotaEntity("client-id", client_id),)
            records.append(metadata_security.ClientQuotaRecord(entity, "consumer_byte_rate", 1.0, False))
        records += self.metadata_behind
        self.recorded(*records)


def one_batch(root: Path, topic: str = "orders", count: int = 3) -> Path:
    """A directory in order, with one batch in one topic."""
    where = Planting(root)
    where.shelf(topic).data(count)
    return where.close()


def restamped(batch: bytes | bytearray, **fields: int) -> bytearray:
    """A batch with other header fields and a checksum that fits them; fields are named as in `RecordBatch`."""
    order = (
        "base_offset", "length", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
        "base_timestamp_ms", "max_timestamp_ms", "producer_id", "producer_epoch", "base_sequence", "record_count",
    )  # fmt: skip
    changed = bytearray(batch)
    answer = dict(zip(order, HEADER.unpack_from(changed), strict=True)) | fields
    HEADER.pack_into(changed, 0, *(answer[name] for name in order))
    if "crc" not in fields:
        changed[17:21] = RecordBatch(changed).compute_crc().to_bytes(4, "big")
    return changed
