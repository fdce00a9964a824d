"""Plants: every kind of file beside a partition's segments, with a mistake in each of its fields."""

import struct
from collections.abc import Callable
from pathlib import Path

from storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, EpochEntry
from storage.indexes.txn_index import AbortedTransaction
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry
from tests.pipeline.fault_files import T0_MS, Planting, Shelf
from tests.pipeline.log_faults import PLANTS, Places, plant


def entry(
    producer: int, *, epoch: int = 0, sequence: int = 2, last: int = 2, count: int = 3, coordinator_epoch: int = -1,
    open_from: int | None = None,
) -> ProducerEntry:  # fmt: skip
    """An entry of a producer snapshot: its last batch ended with `sequence` at offset `last`."""
    batch = BatchRange(sequence - count + 1, sequence, last - count + 1, last, T0_MS)
    return ProducerEntry(producer, epoch, (batch,), coordinator_epoch, T0_MS, open_from)


def _snapshot(log: Shelf, offset: int, *entries: ProducerEntry) -> Path:
    path = log.owner.root / log.directory / f"{offset:020d}.snapshot"
    path.write_bytes(encode_snapshot(entries))
    return path


def _of_snapshot(offset: int, *entries: ProducerEntry) -> Callable[[Planting, str], Places]:
    """A log of two batches of producer 620 (offsets 0 to 5) and this snapshot."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3, producer=620)
        log.data(3, producer=620)
        _snapshot(log, offset, *entries)
        return {"producer-snapshot": {(0, offset)}}

    return make


PLANTS.update(
    {
        "snapshot-epoch": _of_snapshot(6, entry(620, epoch=4, sequence=5, last=5)),
        "snapshot-sequence": _of_snapshot(6, entry(620, sequence=4, last=5)),
        "snapshot-offset": _of_snapshot(6, entry(620, sequence=5, last=4)),
        "snapshot-of-later-batches": _of_snapshot(3, entry(620, sequence=5, last=5)),
        "snapshot-unknown-producer": _of_snapshot(6, entry(620, sequence=5, last=5), entry(621, last=5)),
        "snapshot-open-transaction": _of_snapshot(6, entry(620, sequence=5, last=5, open_from=3)),
        "snapshot-producer-twice": _of_snapshot(6, entry(620, sequence=5, last=5), entry(620, sequence=5, last=5)),
        "snapshot-beyond-end": _of_snapshot(9, entry(620, sequence=5, last=5)),
    }
)


@plant
def snapshot_transaction_closed(where: Planting, topic: str) -> Places:
    """The snapshot does not know of a transaction that was open at its offset."""
    log = where.shelf(topic)
    log.data(3, producer=622, transactional=True)
    _snapshot(log, 3, entry(622))
    log.marker(622, 0, committed=True)
    return {"producer-snapshot": {(0, 3)}}


@plant
def snapshot_producer_missing(where: Planting, topic: str) -> Places:
    """A producer with an open transaction is not in the snapshot."""
    log = where.shelf(topic)
    log.data(3, producer=623, transactional=True)
    _snapshot(log, 3)
    log.marker(623, 0, committed=True)
    return {"producer-snapshot": {(0, 3)}}


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Planting, str], Places]:
    """A snapshot whose bytes were changed."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3, producer=624)
        path = _snapshot(log, 3, entry(624))
        path.write_bytes(change(path.read_bytes()))
        return {"file-unreadable": {(0, None)}}

    return make


PLANTS.update(
    {
        "snapshot-crc": _bytes(lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])),
        "snapshot-version": _bytes(lambda raw: b"\0\7" + raw[2:]),
        "snapshot-torn": _bytes(lambda raw: raw[:-5]),
        "snapshot-empty": _bytes(lambda _: b""),
    }
)


def _file(name: str, text: bytes) -> Callable[[Planting, str], Places]:
    """A small file of a partition with this text instead of its own."""

    def make(where: Planting, topic: str) -> Places:
        where.shelf(topic).data(3)
        where.written_last[f"{topic}-0/{name}"] = text
        return {"file-unreadable": {(0, None)}}

    return make


PLANTS.update(
    {
        "epochs-version": _file(LEADER_EPOCHS, b"1\n1\n0 0\n"),
        "epochs-count": _file(LEADER_EPOCHS, b"0\n3\n0 0\n"),
        "epochs-text": _file(LEADER_EPOCHS, b"0\n1\nzero 0\n"),
        "epochs-garbage": _file(LEADER_EPOCHS, b"\xff\xfe"),
        "partition-metadata-garbage": _file(PARTITION_METADATA, b"version: 0\n"),
        "partition-metadata-id": _file(PARTITION_METADATA, b"version: 0\ntopic_id: short\n"),
        "index-torn": _file("00000000000000000000.index", bytes(7)),
        "time-index-torn": _file("00000000000000000000.timeindex", bytes(13)),
        "transaction-index-torn": _file("00000000000000000000.txnindex", bytes(5)),
    }
)


@plant
def transaction_index_version(where: Planting, topic: str) -> Places:
    """An entry has an unknown version."""
    log = where.shelf(topic)
    log.data(3, producer=630, transactional=True)
    log.marker(630, 0, committed=False)
    path = where.root / log.segment.path_of(".txnindex")
    where.changed_last[str(path)] = lambda raw: b"\0\5" + raw[2:]
    return {"file-unreadable": {(0, None)}}


@plant
def topic_id_of_another(where: Planting, topic: str) -> Places:
    """`partition.metadata` names an id that the metadata give to no topic of this name."""
    where.shelf(topic).data(3)
    where.written_last[f"{topic}-0/{PARTITION_METADATA}"] = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZg"
    return {"topic-id": {(0, None)}}


def _epochs(*entries: tuple[int, int], at: int) -> Callable[[Planting, str], Places]:
    """A leader epoch checkpoint of these entries beside two batches of epoch 0 and two of epoch 2 (from offset 6)."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        for epoch in (0, 0, 2, 2):
            log.data(3, leader_epoch=epoch)
        log.epochs = [EpochEntry(*each) for each in entries]
        return {"leader-epoch-entries": {(0, at)}}

    return make


PLANTS.update(
    {
        "epochs-missing-one": _epochs((0, 0), at=6),
        "epochs-twice": _epochs((0, 0), (2, 6), (2, 6), at=6),
        "epochs-beyond-end": _epochs((0, 0), (2, 6), (3, 40), at=40),
        "epochs-negative": _epochs((-3, 0), (0, 0), (2, 6), at=0),
    }
)


# --- index entries ---------------------------------------------------------------------------------------------------


@plant
def index_offset_back(where: Planting, topic: str) -> Places:
    """An offset index whose entries go back."""
    log = where.shelf(topic)
    for _ in range(6):
        log.data(3)
    where.changed_last[str(where.root / log.segment.path_of(".index"))] = lambda raw: raw + raw[:8]
    return {"index-offset": {(0, 8)}}


@plant
def epochs_none(where: Planting, topic: str) -> Places:
    """A checkpoint without entries."""
    log = where.shelf(topic)
    log.data(3)
    log.epochs = []
    return {"leader-epoch-entries": {(0, 0)}}


@plant
def epochs_begin_late(where: Planting, topic: str) -> Places:
    """The first epoch begins behind the first batch."""
    log = where.shelf(topic)
    log.data(3)
    log.data(3)
    log.epochs = [EpochEntry(0, 3)]
    return {"leader-epoch-checkpoint": {(0, 3)}}


def _time_entry(log: Shelf, time_ms: int, offset: int) -> None:
    """Put this entry in the place of all others of the time index."""
    log.owner.changed_last[str(log.owner.root / log.segment.path_of(".timeindex"))] = lambda _: struct.pack(
        ">qI", time_ms, offset
    )


@plant
def time_index_too_late(where: Planting, topic: str) -> Places:
    """The entry names a later batch than the one that has the time: a search skips what lies between."""
    log = where.shelf(topic)
    log.data(3, at_ms=T0_MS + 900)
    for _ in range(3):
        log.data(3, at_ms=T0_MS)
    _time_entry(log, T0_MS + 902, 10)
    return {"index-time": {(0, 10)}}


@plant
def time_index_of_a_smaller_time(where: Planting, topic: str) -> Places:
    """A batch before the entry has a later time than the entry."""
    log = where.shelf(topic)
    log.data(3, at_ms=T0_MS + 5000)
    log.data(3, at_ms=T0_MS)
    _time_entry(log, T0_MS + 2, 5)
    return {"index-time": {(0, 0), (0, 5)}}  # and the latest time has no entry, though the log was closed


@plant
def transaction_index_stable_offset(where: Planting, topic: str) -> Places:
    """The last stable offset of an entry is not the one that held when the marker was written."""
    log = where.shelf(topic)
    first = log.data(3, producer=631, transactional=True)
    stop = log.marker(631, 0, committed=False, index=False)
    log.segment.txn_index.append(AbortedTransaction(631, first, stop, first))
    return {"index-transaction": {(0, first)}}


@plant
def transaction_index_twice(where: Planting, topic: str) -> Places:
    """The index has an entry twice."""
    log = where.shelf(topic)
    first = log.data(3, producer=632, transactional=True)
    log.marker(632, 0, committed=False)
    where.changed_last[str(where.root / log.segment.path_of(".txnindex"))] = lambda raw: raw + raw
    return {"index-transaction": {(0, first)}}


@plant
def transaction_index_of_another_producer(where: Planting, topic: str) -> Places:
    """The entry names another producer."""
    log = where.shelf(topic)
    first = log.data(3, producer=633, transactional=True)
    stop = log.marker(633, 0, committed=False, index=False)
    log.segment.txn_index.append(AbortedTransaction(634, first, stop, stop + 1))
    return {"index-transaction": {(0, first)}}


# --- checkpoints of the data directory -------------------------------------------------------------------------------


def _checkpoint(name: str, offset: int) -> Callable[[Planting, str], Places]:
    """An entry of one of the directory's checkpoints, for a log that ends at 3."""

    def make(where: Planting, topic: str) -> Places:
        log = where.shelf(topic)
        log.data(3)
        where.checkpoints[name, topic, 0] = offset
        return {"checkpoint-offset": {(0, offset)}}

    return make


PLANTS.update(
    {
        "recovery-point-beyond-end": _checkpoint("recovery-point-offset-checkpoint", 9),
        "recovery-point-negative": _checkpoint("recovery-point-offset-checkpoint", -2),
        "log-start-beyond-end": _checkpoint("log-start-offset-checkpoint", 8),
        "log-start-negative": _checkpoint("log-start-offset-checkpoint", -4),
        "cleaner-beyond-active-segment": _checkpoint("cleaner-offset-checkpoint", 7),
        "cleaner-negative": _checkpoint("cleaner-offset-checkpoint", -1),
        "high-watermark-negative": _checkpoint("replication-offset-checkpoint", -1),
    }
)


@plant
def partition_directory_gone(where: Planting, topic: str) -> Places:
    """The metadata know of a partition of this broker, and its directory is not there."""
    where.shelf(topic, 0).data(3)
    where.lost.append((topic, 1))
    return {"partition-missing": {(1, None)}}


# --- files of another partition, and files that are gone -------------------------------------------------------------


@plant
def index_of_another_partition(where: Planting, topic: str) -> Places:
    """The offset indexes of two partitions have changed places; their batches begin at other positions."""
    logs = [where.shelf(topic, number) for number in (0, 1)]
    for _ in range(4):
        logs[0].data(3)
        logs[1].data(3, values=[b"longer" * 30] * 3)
    first, second = (where.root / log.segment.path_of(".index") for log in logs)

    def swap(raw: bytes) -> bytes:
        other = second.read_bytes()
        second.write_bytes(raw)
        return other

    where.changed_last[str(first)] = swap
    return {"index-offset": {(0, 5), (0, 8), (0, 11), (1, 8)}}


@plant
def batch_of_another_codec(where: Planting, topic: str) -> Places:
    """The topic has had compression.type zstd since it was created; a marker is never compressed."""
    log = where.shelf(topic, compression_type="zstd")
    log.data(3, producer=640, transactional=True, codec=4)
    log.marker(640, 0, committed=True)
    return {"batch-setting": {(0, log.data(3, codec=1))}}


@plant
def batch_of_other_times(where: Planting, topic: str) -> Places:
    """A client's times, though the broker has stamped all batches; the ones before are right."""
    log = where.shelf(topic, message_timestamp_type="LogAppendTime")
    log.data(3, log_append_time=True)
    return {"batch-setting": {(0, log.data(3))}}


@plant
def batch_beyond_the_largest(where: Planting, topic: str) -> Places:
    """The topic has had this max.message.bytes since it was created. The cleaner may write a larger one."""
    log, compacted = (
        where.shelf(name, max_message_bytes="500", cleanup_policy=policy)
        for name, policy in ((topic, "delete"), (f"{topic}-compacted", "compact"))
    )
    log.data(1, values=[b"v" * 300])
    compacted.data(1, values=[b"v" * 600])
    return {"batch-setting": {(0, log.data(1, values=[b"v" * 600]))}}


@plant
def record_before_the_window(where: Planting, topic: str) -> Places:
    """The topic has had message.timestamp.before.max.ms of a day since it was created; a batch is 25 hours older."""
    log = where.shelf(topic, message_timestamp_before_max_ms="86400000")
    log.data(3)
    return {"batch-setting": {(0, log.data(3, at_ms=where.now_ms - 90_000_000))}}


@plant
def segment_beyond_the_largest(where: Planting, topic: str) -> Places:
    """The topic has had this segment.bytes since it was created; one batch alone may be larger, and a compacted one."""
    places = set()
    for name, policy in ((f"{topic}-compacted", "compact"), (topic, "delete")):
        log = where.shelf(name, segment_bytes="600", cleanup_policy=policy)
        log.data(1, values=[b"v" * 900])
        log.roll()
        places = {(0, log.data(1, values=[b"v" * 400]))}
        log.data(1, values=[b"v" * 400])
    return {"batch-setting": places}


@plant
def compaction_unfinished(where: Planting, topic: str) -> Places:
    """A file that the cleaner writes is left, though the broker stopped cleanly."""
    log = where.shelf(topic)
    log.data(3)
    (where.root / f"{log.segment.path_of('.log')}.swap").write_bytes(b"")
    return {"segment-files": {(0, None)}}


@plant
def segment_gone(where: Planting, topic: str) -> Places:
    """The files of a segment in the middle are gone."""
    log = where.shelf(topic)
    for _ in range(3):
        log.data(3)
        log.roll()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        (where.root / log.closed[1].path_of(suffix)).unlink(missing_ok=True)
    return {"offset-hole": {(0, 6)}}


@plant
def time_index_cut(where: Planting, topic: str) -> Places:
    """The time index of a closed segment has lost its last entry."""
    log = where.shelf(topic)
    for _ in range(4):
        log.data(3)
    log.roll()
    log.data(3)
    where.changed_last[str(where.root / log.closed[0].path_of(".timeindex"))] = lambda raw: raw[:-12]
    return {"index-time": {(0, 0)}}


@plant
def snapshot_of_another_partition(where: Planting, topic: str) -> Places:
    """The producer snapshot of partition 1 beside the log of partition 0; one producer has written to both."""
    logs = [where.shelf(topic, number) for number in (0, 1)]
    logs[0].data(3, producer=625)
    logs[0].data(3, producer=625)
    logs[1].data(4, producer=625, sequence=0)
    logs[1].data(2, producer=626)
    _snapshot(logs[0], 6, entry(625, sequence=3, last=3, count=4), entry(626, sequence=1, last=5, count=2))
    return {"producer-snapshot": {(0, 6)}}
