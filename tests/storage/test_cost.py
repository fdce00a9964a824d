"""What operations cost does not grow with the log: counted in bytes and entries looked at, not in time."""

import pytest

from storage.partition_log import PartitionLog
from storage.segment import Segment
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
        found = locate(segment, offset)
        assert found is not None
        walked.append(found.position - segment.index.lookup(offset))
        return found

    monkeypatch.setattr(Segment, "locate", counting)
    for offset in range(0, count, 17):
        assert log.read(offset, 1, bound=count, min_one=True).size == SEGMENT
    assert max(walked) <= INTERVAL + 2 * SEGMENT


def test_the_newest_batch_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What consumers at the log's end ask for is remembered."""
    log = filled(100)
    monkeypatch.setattr(Segment, "locate", None)
    assert log.read(99, 1 << 20, bound=100, min_one=True).size == SEGMENT
    assert log.bytes_available(99, 100, 1 << 20) == SEGMENT


def test_indexes_of_old_segments_are_forgotten() -> None:
    """A consumer that reads a whole log leaves no more than a few indexes in memory."""
    log = filled(5000)
    for offset in range(0, 5000, 10):
        log.read(offset, 1, bound=5000, min_one=True)
    loaded = [segment for segment in log.segments if segment.index._offsets is not None]
    assert len(log.segments) == 100
    assert len(loaded) <= 65


def test_an_idle_log_is_not_touched_by_timers() -> None:
    """Retention, expiry and flush of a log without change write nothing."""
    log = filled(10)
    files = log.environment.files
    before = {name: files.read_file(f"foo-0/{name}") for name in files.list("foo-0")}
    assert (log.run_retention(NOW_MS), log.expire_producers(NOW_MS)) == (0, [])
    log.flush_if_due(NOW_MS)
    assert {name: files.read_file(f"foo-0/{name}") for name in files.list("foo-0")} == before
