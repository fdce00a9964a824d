"""Plants: every kind of file beside a partition's segments, with a mistake in each of its fields."""

import struct
from collections.abc import Callable
from typing import Final

from storage.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LEADER_EPOCHS,
    LOG_START,
    PARTITION_METADATA,
    RECOVERY_POINT,
)
from storage.indexes.txn_index import AbortedTransaction
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry
from tests.pipeline.fault_files import T0_MS
from tests.pipeline.planted_topic import Rows, Steps, Topic

A_DAY_MS: Final = 86_400_000


# --- snapshots of producers ------------------------------------------------------------------------------------------


def entry(
    producer: int, *, epoch: int = 0, sequence: int = 2, last: int = 2, count: int = 3, open_from: int | None = None
) -> ProducerEntry:
    """An entry of a producer snapshot: its last batch ended with `sequence` at offset `last`."""
    batch = BatchRange(sequence - count + 1, sequence, last - count + 1, last, T0_MS)
    return ProducerEntry(producer, epoch, (batch,), -1, T0_MS, open_from)


def _snapshot(t: Topic, offset: int, *entries: ProducerEntry, change: Callable[[bytes], bytes] = bytes) -> int:
    path = t.where.root / t.log.directory / f"{offset:020d}.snapshot"
    path.write_bytes(change(bytes(encode_snapshot(entries))))
    return offset


def _of_two_batches(offset: int, *entries: ProducerEntry) -> Steps:
    """A log of two batches of producer 620 (offsets 0 to 5) and this snapshot."""
    return lambda t: (t.batches(2, producer=620), _snapshot(t, offset, *entries))


def _changed(change: Callable[[bytes], bytes]) -> Steps:
    """A snapshot whose bytes were changed."""
    return lambda t: (t.data(producer=624), _snapshot(t, 3, entry(624), change=change), t.at(None))


_RIGHT: Final = entry(620, sequence=5, last=5)
OF_SNAPSHOTS: Final[Rows] = {
    "snapshot-epoch": ("producer-snapshot", _of_two_batches(6, entry(620, epoch=4, sequence=5, last=5))),
    "snapshot-sequence": ("producer-snapshot", _of_two_batches(6, entry(620, sequence=4, last=5))),
    "snapshot-offset": ("producer-snapshot", _of_two_batches(6, entry(620, sequence=5, last=4))),
    "snapshot-of-later-batches": ("producer-snapshot", _of_two_batches(3, _RIGHT)),
    "snapshot-unknown-producer": ("producer-snapshot", _of_two_batches(6, _RIGHT, entry(621, last=5))),
    "snapshot-open-transaction": (
        "producer-snapshot", _of_two_batches(6, entry(620, sequence=5, last=5, open_from=3))),
    "snapshot-producer-twice": ("producer-snapshot", _of_two_batches(6, _RIGHT, _RIGHT)),
    "snapshot-beyond-end": ("producer-snapshot", _of_two_batches(9, _RIGHT)),
    # it does not know of a transaction that was open at its offset, or of the transaction's producer
    "snapshot-transaction-closed": ("producer-snapshot", lambda t: (
        t.transactional(622), _snapshot(t, 3, entry(622)), t.marker(622))[1]),
    "snapshot-producer-missing": ("producer-snapshot", lambda t: (
        t.transactional(623), _snapshot(t, 3), t.marker(623))[1]),
    # that of partition 1 beside the log of partition 0; one producer has written to both
    "snapshot-of-another-partition": ("producer-snapshot", lambda t: (
        t.batches(2, producer=625), t.partition(1).data(4, producer=625, sequence=0),
        t.partition(1).data(2, producer=626),
        _snapshot(t, 6, entry(625, sequence=3, last=3, count=4), entry(626, sequence=1, last=5, count=2)))),
    "snapshot-crc": ("file-unreadable", _changed(lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]))),
    "snapshot-version": ("file-unreadable", _changed(lambda raw: b"\0\7" + raw[2:])),
    "snapshot-torn": ("file-unreadable", _changed(lambda raw: raw[:-5])),
    "snapshot-empty": ("file-unreadable", _changed(lambda _: b"")),
}  # fmt: skip


# --- small files and checkpoints -------------------------------------------------------------------------------------


def _file(name: str, text: bytes) -> Steps:
    """A small file of a partition with this text instead of its own."""
    return lambda t: (t.data(), t.file(name, text))


def _entry_at(at: int, *entries: tuple[int, int]) -> Steps:
    """A leader epoch checkpoint of these entries beside two batches of epoch 0 and two of epoch 2 (from offset 6)."""
    return lambda t: (t.batches(2), t.batches(2, leader_epoch=2), t.log.epochs_listed(*entries), at)


def _checkpoint(name: str, offset: int) -> Steps:
    """An entry of one of the directory's checkpoints, for a log that ends at 3."""
    return lambda t: (t.data(), t.checkpoint(name, offset))


OF_SMALL_FILES: Final[Rows] = {
    "epochs-version": ("file-unreadable", _file(LEADER_EPOCHS, b"1\n1\n0 0\n")),
    "epochs-count": ("file-unreadable", _file(LEADER_EPOCHS, b"0\n3\n0 0\n")),
    "epochs-text": ("file-unreadable", _file(LEADER_EPOCHS, b"0\n1\nzero 0\n")),
    "epochs-garbage": ("file-unreadable", _file(LEADER_EPOCHS, b"\xff\xfe")),
    "epochs-missing-one": ("leader-epoch-entries", _entry_at(6, (0, 0))),
    "epochs-twice": ("leader-epoch-entries", _entry_at(6, (0, 0), (2, 6), (2, 6))),
    "epochs-beyond-end": ("leader-epoch-entries", _entry_at(40, (0, 0), (2, 6), (3, 40))),
    "epochs-negative": ("leader-epoch-entries", _entry_at(0, (-3, 0), (0, 0), (2, 6))),
    "epochs-none": ("leader-epoch-entries", lambda t: (t.data(), t.log.epochs_listed())),
    # the first epoch begins behind the first batch
    "epochs-begin-late": ("leader-epoch-checkpoint", lambda t: (t.batches(2), t.log.epochs_listed((0, 3)), 3)),
    "partition-metadata-garbage": ("file-unreadable", _file(PARTITION_METADATA, b"version: 0\n")),
    "partition-metadata-id": ("file-unreadable", _file(PARTITION_METADATA, b"version: 0\ntopic_id: short\n")),
    # an id that the metadata give to no topic of this name
    "topic-id-of-another": ("topic-id", _file(PARTITION_METADATA, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAZg")),
    # consumers have been shown offsets that the log does not have any more
    "high-watermark-beyond-end": ("high-watermark-beyond-end", _checkpoint(HIGH_WATERMARK, 9)),
    "high-watermark-negative": ("checkpoint-offset", _checkpoint(HIGH_WATERMARK, -1)),
    "recovery-point-beyond-end": ("checkpoint-offset", _checkpoint(RECOVERY_POINT, 9)),
    "recovery-point-negative": ("checkpoint-offset", _checkpoint(RECOVERY_POINT, -2)),
    # the broker has stopped cleanly, and has flushed half of the log
    "recovery-point-behind-after-a-clean-stop": ("checkpoint-offset", lambda t: (
        t.batches(2), t.checkpoint(RECOVERY_POINT, 3))),
    "log-start-beyond-end": ("checkpoint-offset", _checkpoint(LOG_START, 8)),
    "log-start-negative": ("checkpoint-offset", _checkpoint(LOG_START, -4)),
    "cleaner-beyond-active-segment": ("checkpoint-offset", _checkpoint(CLEANER, 7)),
    "cleaner-negative": ("checkpoint-offset", _checkpoint(CLEANER, -1)),
    # the metadata know of a partition of this broker, and its directory is not there
    "partition-directory-gone": ("partition-missing", lambda t: (t.data(), t.where.without(t.name, 1), t.at(None, 1))),
    # a file that the cleaner writes is left, though the broker stopped cleanly
    "compaction-unfinished": ("segment-files", lambda t: (
        t.data(), t.log.path_of(".log.swap").write_bytes(b""), t.at(None))),
}  # fmt: skip


# --- indexes ---------------------------------------------------------------------------------------------------------


def _listed(t: Topic, producer: int, first: int, last: int, stable: int, partition: int = 0) -> int:
    """Append an entry to the index of aborted transactions; its first offset."""
    t.partition(partition).segment.txn_index.append(AbortedTransaction(producer, first, last, stable))
    return first


def _aborted(t: Topic, producer: int, *, index: bool = True) -> int:
    """An aborted transaction of offsets 0 to 2; the marker's offset."""
    t.transactional(producer)
    return t.marker(producer, committed=False, index=index)


def _only_time(t: Topic, time_ms: int, offset: int) -> int:
    """Put this entry in the place of all others of the time index."""
    t.log.changed(".timeindex", lambda _: struct.pack(">qI", time_ms, offset))
    return offset


def _swapped(t: Topic) -> int:
    """The offset indexes of two partitions change places in the end."""
    second = t.partition(1).path_of(".index")

    def swap(raw: bytes) -> bytes:
        other = second.read_bytes()
        second.write_bytes(raw)
        return other

    return t.log.changed(".index", swap)


def _points_into_a_batch(t: Topic) -> int:
    offset = t.batches(6) + 2
    t.log.segment.index.append(offset, t.log.segment.size - 40)
    return offset


def _promises_a_later_time(t: Topic) -> int:
    offset = t.batches(6) + 2
    t.log.segment.time_index.append(t.where.now_ms + A_DAY_MS, offset)
    return offset


OF_INDEXES: Final[Rows] = {
    "index-offset": ("index-offset", _points_into_a_batch),
    "index-offset-back": ("index-offset", lambda t: (
        t.batches(6), t.log.changed(".index", lambda raw: raw + raw[:8]), 8)),
    # of two partitions, whose batches begin at other positions
    "index-of-another-partition": ("index-offset", lambda t: (
        *(t.data() + t.partition(1).data(3, values=[b"longer" * 30] * 3) for _ in range(4)), _swapped(t),
        {t.at(5), t.at(8), t.at(11), t.at(8, 1)})),
    "index-torn": ("file-unreadable", _file(f"{0:020d}.index", bytes(7))),
    "time-index-torn": ("file-unreadable", _file(f"{0:020d}.timeindex", bytes(13))),
    "transaction-index-torn": ("file-unreadable", _file(f"{0:020d}.txnindex", bytes(5))),
    "transaction-index-version": ("file-unreadable", lambda t: (
        _aborted(t, 630), t.log.changed(".txnindex", lambda raw: b"\0\5" + raw[2:]), t.at(None))),
    # a time that no record up to the entry's offset has
    "index-time": ("index-time", _promises_a_later_time),
    # the entry names a later batch than the one that has the time: a search skips what lies between
    "time-index-too-late": ("index-time", lambda t: (
        t.data(at_ms=T0_MS + 900), t.batches(3, at_ms=T0_MS), _only_time(t, T0_MS + 902, 10))),
    # a batch before the entry has a later time; and the latest time has no entry, though the log was closed
    "time-index-of-a-smaller-time": ("index-time", lambda t: (
        t.data(at_ms=T0_MS + 5000), t.data(at_ms=T0_MS), _only_time(t, T0_MS + 2, 5), {t.at(0), t.at(5)})),
    # the one of a closed segment has lost its last entry
    "time-index-cut": ("index-time", lambda t: (
        t.batches(4), t.log.roll(), t.data(), t.log.changed(".timeindex", lambda raw: raw[:-12], 0), 0)),
    # an abort that the index does not list, and one that it lists and that never was
    "index-transaction": ("index-transaction", lambda t: (
        _aborted(t, 43, index=False), t.partition(1).data(3), _listed(t, 44, 0, 2, 3, partition=1),
        {t.at(0), t.at(0, 1)})),
    # not the last stable offset that held when the marker was written
    "transaction-index-stable-offset": ("index-transaction", lambda t: (
        stop := _aborted(t, 631, index=False), _listed(t, 631, 0, stop, 0))),
    "transaction-index-twice": ("index-transaction", lambda t: (
        _aborted(t, 632), t.log.changed(".txnindex", lambda raw: raw + raw), 0)),
    "transaction-index-of-another-producer": ("index-transaction", lambda t: (
        stop := _aborted(t, 633, index=False), _listed(t, 634, 0, stop, stop + 1))),
}  # fmt: skip


# --- batches beside the settings that a topic has had since it was created --------------------------------------------


def _beside_compacted(t: Topic, **settings: str) -> tuple[Topic, Topic]:
    """The plant's topic, and a compacted one with the same settings, which is right."""
    compacted = Topic(t.where, f"{t.name}-compacted")
    compacted.of(**settings, cleanup_policy="compact")
    t.of(**settings, cleanup_policy="delete")
    return compacted, t


def _too_large(t: Topic) -> int:
    """The cleaner may write a larger one."""
    compacted, _ = _beside_compacted(t, max_message_bytes="500")
    t.data(1, values=[b"v" * 300])
    compacted.data(1, values=[b"v" * 600])
    return t.data(1, values=[b"v" * 600])


def _segment_too_large(t: Topic) -> int:
    """One batch alone may be larger, and a compacted segment."""
    at = 0
    for each in _beside_compacted(t, segment_bytes="600"):
        each.data(1, values=[b"v" * 900])
        each.log.roll()
        at = each.data(1, values=[b"v" * 400])
        each.data(1, values=[b"v" * 400])
    return at


OF_SETTINGS: Final[Rows] = {
    # a marker is never compressed
    "batch-of-another-codec": ("batch-setting", lambda t: (
        t.of(compression_type="zstd"), t.transactional(640, codec=4), t.marker(640), t.data(codec=1))),
    # a client's times, though the broker has stamped all batches; the ones before are right
    "batch-of-other-times": ("batch-setting", lambda t: (
        t.of(message_timestamp_type="LogAppendTime"), t.data(log_append_time=True), t.data())),
    "batch-beyond-the-largest": ("batch-setting", _too_large),
    # a batch is 25 hours older than the others, in a topic that takes a day
    "record-before-the-window": ("batch-setting", lambda t: (
        t.of(message_timestamp_before_max_ms="86400000"), t.data(), t.data(at_ms=t.where.now_ms - 90_000_000))),
    "segment-beyond-the-largest": ("batch-setting", _segment_too_large),
}  # fmt: skip

PLANTS: Final[Rows] = {**OF_SNAPSHOTS, **OF_SMALL_FILES, **OF_INDEXES, **OF_SETTINGS}
