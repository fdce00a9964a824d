"""Thirty ways in which a log can be wrong, continued: offsets, times, bytes, and the files beside the log."""

from protocol.records.records import Record, build_batch
from storage.checkpoints import EpochEntry
from storage.indexes.txn_index import AbortedTransaction
from tests.pipeline.fault_files import STEP_MS, T0_MS, Planting, restamped
from tests.pipeline.log_faults import Places, plant

A_DAY_MS = 86_400_000
FAR_FUTURE_MS = 4_000_000_000_000


# --- offsets and segments -------------------------------------------------------------------------------------------


@plant
def offset_hole(where: Planting, topic: str) -> Places:
    """Offsets are missing where nothing is compacted."""
    log = where.shelf(topic)
    log.data(3)
    return {"offset-hole": {(0, log.data(3, base_offset=10))}}


@plant
def offset_overlap(where: Planting, topic: str) -> Places:
    """A batch begins before the end of the one before it."""
    log = where.shelf(topic)
    log.data(5)
    return {"offset-overlap": {(0, log.data(3, base_offset=3))}}


@plant
def offset_outside_segment(where: Planting, topic: str) -> Places:
    """A batch is in a segment whose name has a later base offset."""
    log = where.shelf(topic)
    log.data(3)
    log.roll(base_offset=5)
    misplaced = log.data(3, base_offset=3)
    return {"offset-outside-segment": {(0, misplaced)}}


# --- times ----------------------------------------------------------------------------------------------------------


@plant
def timestamp_backwards(where: Planting, topic: str) -> Places:
    """Append times that go back."""
    log = where.shelf(topic, message_timestamp_type="LogAppendTime")
    log.data(3, log_append_time=True)
    log.data(3, log_append_time=True)
    return {"timestamp-backwards": {(0, log.data(3, log_append_time=True, at_ms=T0_MS - A_DAY_MS))}}


@plant
def timestamp_header(where: Planting, topic: str) -> Places:
    """The header's latest time is not that of any record."""
    log = where.shelf(topic)
    log.data(3)
    return {"timestamp-header": {(0, log.data(3, max_timestamp_ms=where.now_ms + 60 * STEP_MS))}}


@plant
def timestamp_future(where: Planting, topic: str) -> Places:
    """A producer's clock in seconds where it should be milliseconds, or the other way round."""
    log = where.shelf(topic)
    log.data(3)
    return {"timestamp-future": {(0, log.data(3, at_ms=FAR_FUTURE_MS))}}


# --- bytes ----------------------------------------------------------------------------------------------------------


@plant
def batch_crc(where: Planting, topic: str) -> Places:
    """One byte of a value has flipped."""
    log = where.shelf(topic)
    log.data(3)
    begin = log.segment.size
    flipped = log.data(3)
    log.data(3)
    path = log.log_path
    content = bytearray(path.read_bytes())
    content[begin + 61 + 12] ^= 0x40
    path.write_bytes(content)
    return {"batch-crc": {(0, flipped)}}


@plant
def tail_torn(where: Planting, topic: str) -> Places:
    """The machine lost power in the middle of a batch."""
    log = where.shelf(topic)
    log.data(3)
    records = [Record(3, where.tick(), b"k", b"a value that is cut off")]
    log.segment.log.append(bytes(build_batch(records, partition_leader_epoch=0))[:-9])
    return {"tail-torn": {(0, 3)}}


@plant
def batch_damaged(where: Planting, topic: str) -> Places:
    """A length that no batch can have, in the middle of a closed segment."""
    log = where.shelf(topic)
    log.data(3)
    begin = log.segment.size
    damaged = log.data(3)
    log.data(3)
    log.roll()
    log.data(3)
    path = where.root / log.closed[0].path_of(".log")
    content = bytearray(path.read_bytes())
    content[begin + 8 : begin + 12] = (5).to_bytes(4, "big")
    path.write_bytes(content)
    return {"batch-damaged": {(0, damaged)}}


@plant
def record_count(where: Planting, topic: str) -> Places:
    """A header that promises more records than there are offsets."""
    log = where.shelf(topic)
    log.data(3)
    at = log.next_offset
    records = [Record(at + index, where.tick(), b"k", b"v") for index in range(3)]
    batch = build_batch(records, partition_leader_epoch=0)
    log.raw(restamped(batch, record_count=5))
    return {"record-count": {(0, at)}}


# --- the files beside the log ---------------------------------------------------------------------------------------


@plant
def index_offset(where: Planting, topic: str) -> Places:
    """An entry of the offset index points into the middle of a batch."""
    log = where.shelf(topic)
    for _ in range(6):
        log.data(3)
    log.segment.index.append(log.next_offset - 1, log.segment.size - 40)
    return {"index-offset": {(0, log.next_offset - 1)}}


@plant
def index_time(where: Planting, topic: str) -> Places:
    """An entry of the time index promises a time that no record up to its offset has."""
    log = where.shelf(topic)
    for _ in range(6):
        log.data(3)
    log.segment.time_index.append(where.now_ms + A_DAY_MS, log.next_offset - 1)
    return {"index-time": {(0, log.next_offset - 1)}}


@plant
def index_transaction(where: Planting, topic: str) -> Places:
    """An abort that the transaction index does not list, and one that it lists and that never was."""
    log = where.shelf(topic)
    first = log.data(3, producer=43, transactional=True)
    log.marker(43, 0, committed=False, index=False)
    second = where.shelf(topic, 1)
    second.data(3)
    second.segment.txn_index.append(AbortedTransaction(44, 0, 2, 3))
    return {"index-transaction": {(0, first), (1, 0)}}


@plant
def leader_epoch_regress(where: Planting, topic: str) -> Places:
    """A batch of an older leader behind one of a newer leader."""
    log = where.shelf(topic)
    log.data(3, leader_epoch=0)
    log.epochs.append(EpochEntry(2, 3))
    log.data(3, leader_epoch=2)
    log.data(3, leader_epoch=2)
    return {"leader-epoch-regress": {(0, log.data(3, leader_epoch=1))}}


@plant
def leader_epoch_checkpoint(where: Planting, topic: str) -> Places:
    """The checkpoint has a wrong start offset of an epoch: truncation would cut at the wrong place."""
    log = where.shelf(topic)
    log.data(3, leader_epoch=0)
    log.data(3, leader_epoch=1)
    log.epochs.append(EpochEntry(1, 5))
    return {"leader-epoch-checkpoint": {(0, 5)}}


@plant
def records_returned(where: Planting, topic: str) -> Places:
    """The broker was killed before the log start of a DeleteRecords was on disk, and a later epoch follows."""
    log = where.shelf(topic)
    log.data(4)
    log.data(1, leader_epoch=1)
    log.epochs = [EpochEntry(0, 2), EpochEntry(1, 4)]
    return {"records-returned": {(0, 0)}}


@plant
def high_watermark_beyond_end(where: Planting, topic: str) -> Places:
    """Consumers have been shown offsets that the log does not have any more."""
    log = where.shelf(topic)
    log.data(3)
    log.high_watermark = 9
    return {"high-watermark-beyond-end": {(0, 9)}}


@plant
def commit_beyond_end(where: Planting, topic: str) -> Places:
    """A group has committed an offset that the log does not have."""
    where.shelf(topic).data(3)
    where.committed_offset("beyond", topic, 0, 50)
    return {"commit-beyond-end": {(0, 50)}}


@plant
def commit_before_start(where: Planting, topic: str) -> Places:
    """A group has not read what was deleted; another one is at the start."""
    where.shelf(topic, start=20).data(3)
    where.committed_offset("late", topic, 0, 12)
    where.committed_offset("in-time", topic, 0, 20)
    return {"commit-before-start": {(0, 12)}}


@plant
def retention_overdue(where: Planting, topic: str) -> Places:
    """Two segments are beyond retention.ms; the third is not, and keeps an older one behind it."""
    log = where.shelf(topic, retention_ms="60000")
    day_ms = 86_400_000
    for at_ms in (where.now_ms - 2 * day_ms, where.now_ms - day_ms, None, where.now_ms - day_ms):
        log.data(3, at_ms=at_ms)
        log.roll()
    log.data(3)
    return {"retention-overdue": {(0, 0), (0, 3)}}


@plant
def retention_by_size_overdue(where: Planting, topic: str) -> Places:
    """What is behind the second of four is all that is kept. One topic keeps a byte more, another one is compacted."""
    for name, more, policy in (
        (topic, 0, "delete"), (f"{topic}-within", 1, "delete"), (f"{topic}-compacted", 0, "compact"),
    ):  # fmt: skip
        log = where.shelf(name, cleanup_policy=policy)
        sizes = []
        for _ in range(4):
            log.data(3, at_ms=where.now_ms - 7_200_000)
            sizes.append(log.log_path.stat().st_size)
            log.roll()
        where.configs[name]["retention.bytes"] = str(sum(sizes[2:]) + more)
    return {"retention-overdue": {(0, 0), (0, 3), (f"{topic}-within", 0, 0)}}
