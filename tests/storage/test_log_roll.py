"""When a log rolls to its next segment, and what the files of the closed one hold then (core F.1 to F.3)."""

import errno
from collections.abc import Callable
from pathlib import Path
from struct import iter_unpack

import pytest

from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from storage.files import DiskFiles
from storage.files.disk import DiskFile
from storage.log import retention, truncation
from storage.log.partition_log import PartitionLog
from storage.producers.snapshot import decode_snapshot
from tests.storage.logs import (
    NOW_MS,
    SEGMENT,
    Tree,
    append,
    bases,
    contents,
    one_each,
    records_batch,
    sized,
    timed_batch,
)
from tests.storage.test_files import synced


def values(log: PartitionLog) -> list[bytes | None]:
    """The values of all records."""
    return [value for _, _, value in contents(log)]


def test_a_segment_without_timestamps_is_rolled_by_its_age(tree: Tree) -> None:
    """Without timestamps the clock counts, from the segment's creation on."""
    log = tree.log(segment_ms=1000)
    for later_ms in (0, 1000, 1001):
        append(log, timed_batch(-1), now_ms=NOW_MS + later_ms)
    assert bases(log) == [0, 2]


def test_a_batch_without_a_timestamp_rolls_no_segment_that_has_them(tree: Tree) -> None:
    """Its time is -1, which is before that of the first batch (LogSegment.timeWaitedForRoll)."""
    log = tree.log(segment_ms=1000)
    append(log, timed_batch(NOW_MS))
    append(log, timed_batch(-1), now_ms=NOW_MS + 5000)
    assert bases(log) == [0]


def test_jitter_makes_a_segment_roll_earlier(tree: Tree) -> None:
    """A random part of `segment.jitter.ms` is taken off, drawn for each segment."""
    limits = []

    def jitter(limit: int) -> int:
        limits.append(limit)
        return 300

    tree.open().context.jitter = jitter
    log = tree.log(segment_ms=1000, segment_jitter_ms=400)
    append(log, timed_batch(NOW_MS))
    append(log, timed_batch(NOW_MS + 700))
    append(log, timed_batch(NOW_MS + 701))
    assert bases(log) == [0, 2]
    assert limits == [400, 400]


def test_max_compaction_lag_rolls_compacted_logs(tree: Tree) -> None:
    """The lag bounds a segment's age only where the log is compacted (core LOG-13)."""
    log = tree.log(cleanup_policy=("compact",), max_compaction_lag_ms=1000)
    append(log, records_batch(b"a", key=b"k", time_ms=NOW_MS))
    append(log, records_batch(b"a", key=b"k", time_ms=NOW_MS + 1001))
    assert bases(log) == [0, 1]


def test_a_full_index_rolls_the_segment(tree: Tree) -> None:
    """No entry is ever lost because an index is full (core F.3 rows 3 and 4)."""
    log = tree.log(segment_index_bytes=48, index_interval_bytes=0)
    for index in range(12):
        append(log, timed_batch(NOW_MS + index))
    assert bases(log) == [0, 4, 8]


def test_an_offset_too_far_from_the_base_rolls_the_segment(tree: Tree) -> None:
    """Offsets are stored relative to the base, in 31 bits (core F.3 row 5); a follower may meet such a gap."""
    log = tree.log()
    for offset in (0, 2**31 + 5):
        batch = records_batch(b"a")
        RecordBatch(batch).assign(offset, 0)
        log.append_as_follower(batch, NOW_MS)
    assert bases(log) == [0, 2**31 + 5]
    assert log.reader.read(1, 1000, bound=2**31 + 6, min_one=True).size


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_segment_that_cannot_be_created_leaves_no_file(
    disk: Tree, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file descriptor the append fails; a smaller one still fits into the previous segment, and stays."""

    def failing(files: DiskFiles, path: str, *, create: bool = True) -> DiskFile:
        if path.endswith(f"1{suffix}"):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(files, path, create=create)

    log = disk.log(internal_segment_bytes=300)
    append(log, sized(b"a", size=200))
    opened = DiskFiles.open
    with monkeypatch.context() as patch:
        patch.setattr(DiskFiles, "open", failing)
        with pytest.raises(KafkaError, match="No file descriptor is left"):
            append(log, sized(b"refused", size=200))
    append(log, sized(b"b", size=100))
    disk.stop()
    disk.open()
    log = disk.log()
    assert ([value for _, _, value in contents(log)], log.log_end_offset) == ([b"a", b"b"], 2)
    assert bases(log) == [0]


def test_a_segment_that_cannot_be_created_removes_no_earlier_file(
    disk: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that already had one of its names stays as it is."""

    def failing(files: DiskFiles, path: str, *, create: bool = True) -> DiskFile:
        if path.endswith("1.timeindex"):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(files, path, create=create)

    log = disk.log(internal_segment_bytes=300)
    append(log, sized(b"a", size=200))
    opened = DiskFiles.open
    other = next(tmp_path.rglob("*.log")).with_name(f"{1:020}.index")
    other.write_bytes(b"of others")
    monkeypatch.setattr(DiskFiles, "open", failing)
    with pytest.raises(KafkaError, match="No file descriptor is left"):
        append(log, sized(b"refused", size=200))
    assert other.read_bytes() == b"of others"
    assert not other.with_suffix(".log").exists()


def test_an_idle_segment_is_not_rolled(tree: Tree) -> None:
    """Only an append checks the segment's age."""
    log = tree.log(segment_ms=1, retention_ms=-1)
    append(log, timed_batch(NOW_MS))
    retention.run(log, NOW_MS + 10_000)
    assert bases(log) == [0]


def test_index_entries_are_written_each_interval(tree: Tree) -> None:
    """Last offset and position of the batch that came after more than `index.interval.bytes` (core F.2.1)."""
    log = tree.log(index_interval_bytes=300, segment_index_bytes=800)
    for index in range(6):
        append(log, sized(time_ms=NOW_MS + index))
    assert len(tree.read_file("foo-0/00000000000000000000.index")) == 800
    assert len(tree.read_file("foo-0/00000000000000000000.timeindex")) == 792
    log.roll(NOW_MS)
    offsets = tree.read_file("foo-0/00000000000000000000.index")
    times = tree.read_file("foo-0/00000000000000000000.timeindex")
    assert list(iter_unpack(">ii", offsets)) == [(2, 400), (4, 800)]
    assert [(time - NOW_MS, offset) for time, offset in iter_unpack(">qi", times)] == [(2, 2), (4, 4), (5, 5)]


def test_DSK_03_a_roll_writes_a_producer_snapshot(tree: Tree) -> None:
    """`<base>.snapshot` has the producers as they were before the new segment."""
    log = tree.log()
    append(log, records_batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=0))
    log.roll(NOW_MS)
    (entry,) = decode_snapshot(tree.read_file("foo-0/00000000000000000002.snapshot"))
    assert (entry.producer_id, entry.producer_epoch, entry.last_sequence) == (7, 1, 1)


def test_sync_at_roll_syncs_the_closed_segment() -> None:
    """With sync=roll a power cut takes nothing but the active segment."""
    tree = Tree(None, sync="roll")
    log = tree.log(internal_segment_bytes=SEGMENT)
    append(log, sized(b"a"))
    append(log, sized(b"b"))
    tree.memory = tree.memory.crash()
    tree.open()
    assert tree.log().log_end_offset == 1


def postpone_syncs(tree: Tree) -> list[tuple[list[str], Callable[[OSError | None], None]]]:
    """Postpone the directory's syncs; return the list that gets the paths and the completion of each."""
    requested_syncs: list[tuple[list[str], Callable[[OSError | None], None]]] = []
    assert tree.dir is not None
    tree.dir.context.sync_later = lambda paths, done: requested_syncs.append((list(paths), done))
    return requested_syncs


def test_a_sync_that_comes_later_moves_the_recovery_point_when_it_is_done(disk: Tree) -> None:
    """Appends continue meanwhile; a segment that was deleted by then moves nothing; the stop syncs the others."""
    disk.sync = "roll"
    log = disk.log(internal_segment_bytes=SEGMENT)
    requested_syncs = postpone_syncs(disk)
    one_each(log, 4)
    assert (bases(log), log.bounds.recovery_point) == ([0, 1, 2, 3], 0)
    assert [paths[0] for paths, _ in requested_syncs] == [f"foo-0/{base:020d}.log" for base in range(3)]
    requested_syncs[0][1](None)
    assert log.bounds.recovery_point == 1
    requested_syncs[1][1](FileNotFoundError())
    assert log.bounds.recovery_point == 1
    disk.stop()
    assert disk.root is not None
    assert (disk.root / "recovery-point-offset-checkpoint").read_text() == "0\n1\nfoo 0 4\n"


def test_a_later_sync_that_fails_takes_the_directory_offline(disk: Tree) -> None:
    """It is unknown how much of the segment is durable."""
    disk.sync = "roll"
    log = disk.log(internal_segment_bytes=SEGMENT)
    requested_syncs = postpone_syncs(disk)
    one_each(log, 2)
    requested_syncs[0][1](OSError(5, "Input/output error"))
    assert (log.offline, log.bounds.recovery_point) == (True, 0)
    with pytest.raises(KafkaError, match="offline"):
        append(log, sized())


def test_flush_messages_limits_the_records_that_are_not_synced() -> None:
    """`flush.messages` holds under any sync policy."""
    tree = Tree(None)
    log = tree.log(flush_messages=3)
    append(log, records_batch(b"a", b"b"))
    assert log.bounds.recovery_point == 0
    append(log, records_batch(b"c"))
    append(log, records_batch(b"d"))
    assert log.bounds.recovery_point == 3
    tree.memory = tree.memory.crash()
    tree.open()
    assert tree.log().log_end_offset == 3


def test_flush_ms_limits_the_time_until_a_sync(tree: Tree) -> None:
    """A record waits for `flush.ms` at most; the log returns the deadline to its caller."""
    log = tree.log(flush_ms=1000)
    deadlines_ms: list[int] = []
    log.context.flush_at = deadlines_ms.append
    for later_ms in (0, 700):
        log.append_as_leader(records_batch(b"a"), leader_epoch=0, now_ms=NOW_MS + later_ms)
    assert deadlines_ms == [NOW_MS + 1000]
    assert tree.dir is not None
    assert (tree.dir.flush_due(NOW_MS + 999), log.bounds.recovery_point) == (NOW_MS + 1000, 0)
    assert (tree.dir.flush_due(NOW_MS + 1000), log.bounds.recovery_point) == (None, 2)
    log.append_as_leader(records_batch(b"a"), leader_epoch=0, now_ms=NOW_MS + 5000)
    assert deadlines_ms == [NOW_MS + 1000, NOW_MS + 6000]


@pytest.mark.parametrize("ending", ["clean", "kill", "roll"])
def test_a_preallocated_segment_has_its_full_size_until_it_is_closed(tmp_path: Path, ending: str) -> None:
    """preallocate (FileRecords.open): cut at a roll and at a clean stop; after a kill its zeros are no damage."""
    tree = Tree(tmp_path)
    log = tree.log(preallocate=True, segment_bytes=1_000_000)
    append(log, records_batch(b"a", b"b"))
    path = tmp_path / "foo-0" / f"{0:020}.log"
    assert (path.stat().st_size, log.segments.size < 200, values(log)) == (1_000_000, True, [b"a", b"b"])
    if ending == "roll":
        log.roll(NOW_MS)
    else:
        tree.stop(clean=ending == "clean")
    assert path.stat().st_size == (1_000_000 if ending == "kill" else log.segments.size)
    if ending != "roll":
        tree.open()
        log = tree.log()
        append(log, records_batch(b"c"))
        assert (values(log), path.stat().st_size) == ([b"a", b"b", b"c"], log.segments.size)


def test_a_later_sync_includes_what_an_earlier_process_has_left(disk: Tree) -> None:
    """After a kill the recovery point passes segments that nothing has synced yet, so they are synced first."""
    disk.sync = "never"
    one_each(disk.log(internal_segment_bytes=SEGMENT), 3)
    disk.stop(clean=False)
    disk.sync = "roll"
    disk.open()
    requested_syncs = postpone_syncs(disk)
    log = disk.log(internal_segment_bytes=SEGMENT)
    for expected in ([0, 1, 2], [3]):
        log.roll(NOW_MS)
        paths, _ = requested_syncs[-1]
        assert [int(path[6:26]) for path in paths if path.endswith(".log")] == expected
        append(log, sized())


def test_a_later_sync_includes_what_identifies_the_log(disk: Tree) -> None:
    """Its topic id, its epochs, and the entry of its folder: a power cut must not leave segments without them."""
    disk.sync = "roll"
    log = disk.log()
    requested_syncs = postpone_syncs(disk)
    append(log, sized())
    log.roll(NOW_MS)
    assert requested_syncs[0][0][-4:] == ["foo-0/partition.metadata", "foo-0/leader-epoch-checkpoint", "foo-0", ""]


def test_a_later_sync_of_a_log_that_was_cut_meanwhile_moves_nothing(disk: Tree) -> None:
    """The same offsets have other records by now, which are not synced."""
    disk.sync = "roll"
    log = disk.log(internal_segment_bytes=SEGMENT)
    requested_syncs = postpone_syncs(disk)
    one_each(log, 3)
    truncation.truncate_to(log, 1, NOW_MS)
    one_each(log, 3)
    requested_syncs[1][1](None)
    assert log.bounds.recovery_point == 0


def test_a_log_has_one_sync_at_a_time(disk: Tree) -> None:
    """What is appended meanwhile is synced afterwards, by one sync."""
    disk.sync = "roll"
    log = disk.log()
    requested_syncs = postpone_syncs(disk)
    for _ in range(3):
        append(log, sized())
        log.flusher.flush_soon()
    assert len(requested_syncs) == 1
    requested_syncs[0][1](None)
    assert (len(requested_syncs), log.bounds.recovery_point) == (2, 1)
    requested_syncs[1][1](None)
    assert (len(requested_syncs), log.bounds.recovery_point) == (2, 3)


def test_sync_at_every_append_syncs_new_folder_entries_too(disk: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut destroys nothing: neither the partition's directory nor a segment in it."""
    disk.sync = "every"
    disk.open()
    names = synced(monkeypatch)
    log = disk.log(internal_segment_bytes=SEGMENT)
    assert disk.root is not None
    assert {disk.root.name, "foo-0"} <= set(names)
    append(log, sized())
    names.clear()
    append(log, sized())
    assert names[names.index(f"{1:020}.log") - 1] == "foo-0"
