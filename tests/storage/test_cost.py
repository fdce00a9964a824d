"""What operations cost does not grow with the log: counted in bytes and entries looked at, not in time."""

import struct
import tracemalloc

import pytest
from crc32c import crc32c

from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch
from storage.append_errors import RecordsRejectedError
from storage.log import retention
from storage.log.partition_log import PartitionLog
from storage.log.segment import Segment
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, sized

INTERVAL = 1000


def filled(count: int) -> PartitionLog:
    """A log of so many batches in segments of 50."""
    log = Tree(None).log(internal_segment_bytes=50 * SEGMENT, index_interval_bytes=INTERVAL)
    for index in range(count):
        append(log, sized(time_ms=NOW_MS + index))
    return log


@pytest.mark.parametrize("count", [100, 3000])
def test_a_read_looks_at_one_index_interval(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is found by bisection and a walk over at most one interval of headers."""
    log = filled(count)
    walked: list[int] = []
    locate = Segment.locate

    def counting(segment: Segment, offset: int) -> object:
        batch_place = locate(segment, offset)
        assert batch_place is not None
        walked.append(batch_place.position - segment.index.lookup(offset))
        return batch_place

    monkeypatch.setattr(Segment, "locate", counting)
    for offset in range(0, count, 17):
        assert log.reader.read(offset, 1, bound=count, min_one=True).size == SEGMENT
    assert max(walked) <= INTERVAL + 2 * SEGMENT


def test_the_newest_batch_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What consumers at the log's end ask for is remembered."""
    log = filled(100)
    monkeypatch.setattr(Segment, "locate", None)
    assert log.reader.read(99, 1 << 20, bound=100, min_one=True).size == SEGMENT
    assert log.reader.bytes_available(99, 100, 1 << 20) == SEGMENT


@pytest.mark.slow
def test_indexes_of_old_segments_are_forgotten() -> None:
    """A consumer that reads a whole log leaves no more than a few indexes in memory."""
    log = filled(5000)
    for offset in range(0, 5000, 10):
        log.reader.read(offset, 1, bound=5000, min_one=True)
    loaded = [segment for segment in log.segments if segment.index.is_loaded]
    assert len(log.segments) == 100
    assert len(loaded) <= 65


def test_an_idle_log_is_not_touched_by_timers() -> None:
    """Retention, expiry and flush of a log without change write nothing."""
    log = filled(10)
    files = log.context.files
    before = {name: files.read_file(f"foo-0/{name}") for name in files.list("foo-0")}
    assert (retention.run(log, NOW_MS), log.producer_log.expire(NOW_MS)) == (0, [])
    log.flusher.flush_if_due(NOW_MS)
    assert {name: files.read_file(f"foo-0/{name}") for name in files.list("foo-0")} == before


def test_a_large_batch_is_appended_without_new_memory() -> None:
    """Its buffer becomes the log's, and what is needed to check its records is there already from the batch before."""
    log = Tree(None).log()
    template = build_batch([Record(index, NOW_MS, None, bytes(1000)) for index in range(800)])
    log.append_as_leader(bytearray(template), leader_epoch=0, now_ms=NOW_MS)
    batch = bytearray(template)
    tracemalloc.start()
    try:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert log.log_end_offset == 1600
    assert most < len(batch) // 20


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_compressed_batch_is_looked_at_without_new_memory(codec: Codec) -> None:
    """It is decompressed into the place where the one before was."""
    log = Tree(None).log()
    records = [Record(index, NOW_MS, None, index.to_bytes(4, "big") * 250) for index in range(800)]
    template = build_batch(records, codec=codec)
    for _ in range(2):
        log.append_as_leader(bytearray(template), leader_epoch=0, now_ms=NOW_MS)
    batch = bytearray(template)
    tracemalloc.start()
    try:
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert log.log_end_offset == 2400
    assert most < 100_000


def test_records_are_not_taken_from_behind_their_batch() -> None:
    """A batch is looked at in a place where a longer one has been: it must not be completed by that one's records."""
    log = Tree(None).log()
    records = [Record(index, NOW_MS, None, bytes(1000)) for index in range(800)]
    log.append_as_leader(bytearray(build_batch(records)), leader_epoch=0, now_ms=NOW_MS)
    short = bytearray(build_batch(records[:400]))
    struct.pack_into(">i", short, 57, 401)  # one record more than there are
    struct.pack_into(">i", short, 23, 400)
    struct.pack_into(">I", short, 17, crc32c(memoryview(short)[21:]))
    with pytest.raises(RecordsRejectedError, match=r"where 0 are left|cut short"):
        log.append_as_leader(short, leader_epoch=0, now_ms=NOW_MS)
    assert log.log_end_offset == 800
