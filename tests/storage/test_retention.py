"""Retention, DeleteRecords, and what happens to the files of segments that go (core F.4, F.5, E.10)."""

from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.log import retention
from tests.storage.logs import NOW_MS, SEGMENT, Tree, append, bases, contents, one_each, records_batch, sized

HOUR_MS = 3_600_000


def test_LOG_06_files_of_a_deleted_segment_stay_for_the_delay(disk: Tree) -> None:
    """They are renamed at once and removed after `file.delete.delay.ms`."""
    log = disk.log(internal_segment_bytes=SEGMENT, retention_bytes=3 * SEGMENT, file_delete_delay_ms=3000)
    one_each(log, 5)
    retention.run(log, NOW_MS)
    deleted = [f"{base:020d}.log.deleted" for base in (0, 1)]
    assert [name for name in disk.names() if name.endswith(".log.deleted")] == deleted
    assert disk.dir is not None
    assert disk.dir.context.next_removal_ms == NOW_MS + 3000
    disk.dir.remove_due(NOW_MS + 2999)
    assert [name for name in disk.names() if name.endswith(".log.deleted")] == deleted
    disk.dir.remove_due(NOW_MS + 3000)
    assert [name for name in disk.names() if name.endswith(".deleted")] == []


def test_segments_without_timestamps_expire_by_their_last_change(tree: Tree) -> None:
    """The time of the last append is used instead (core F.2.3)."""
    log = tree.log(internal_segment_bytes=SEGMENT, retention_ms=1000)
    append(log, sized(time_ms=-1), now_ms=NOW_MS)
    append(log, sized(time_ms=-1), now_ms=NOW_MS + 500)
    assert retention.run(log, NOW_MS + 1001) == 1
    assert bases(log) == [1]


def test_nothing_above_the_high_watermark_is_deleted(tree: Tree) -> None:
    """Followers may still need it (rule 4)."""
    log = tree.log(internal_segment_bytes=SEGMENT, retention_ms=1000)
    for _ in range(3):
        append(log, sized(time_ms=NOW_MS - HOUR_MS), commit=False)
    log.advance_high_watermark(2)
    retention.run(log, NOW_MS)
    assert bases(log) == [2]


def test_an_empty_active_segment_is_not_deleted(tree: Tree) -> None:
    """An empty log is not rolled over and over."""
    log = tree.log(retention_ms=0, retention_bytes=0)
    for _ in range(3):
        assert retention.run(log, NOW_MS + HOUR_MS) == 0
    assert log.log_end_offset == 0


def test_without_the_delete_policy_only_the_log_start_counts(tree: Tree) -> None:
    """An empty policy, and a compacted log, keep old and large segments (rule 1)."""
    log = tree.log(internal_segment_bytes=SEGMENT, retention_bytes=0, retention_ms=0, cleanup_policy=())
    one_each(log, 4)
    assert retention.run(log, NOW_MS + HOUR_MS) == 0
    log.delete_records_before(2)
    assert retention.run(log, NOW_MS + HOUR_MS) == 2
    assert bases(log) == [2, 3]


def test_DRC_01_delete_records(tree: Tree) -> None:
    """To an offset, to the high watermark, and no farther."""
    log = tree.log()
    append(log, records_batch(*[b"x"] * 10))
    assert log.delete_records_before(4) == 4
    assert log.delete_records_before(2) == 4
    assert [offset for offset, _, _ in contents(log)] == [4, 5, 6, 7, 8, 9]
    for offset in (11, -2):
        with pytest.raises(KafkaError) as caught:
            log.delete_records_before(offset)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(-1) == 10
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (10, 10, 10)


def test_delete_records_keeps_what_producers_did(tree: Tree) -> None:
    """KIP-360: sequences go on where they were although the records are gone."""
    log = tree.log()
    fields: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0}
    append(log, records_batch(b"a", base_sequence=0, **fields))
    log.delete_records_before(-1)
    retention.run(log, NOW_MS)
    append(log, records_batch(b"b", base_sequence=1, **fields))
    assert append(log, records_batch(b"b", base_sequence=1, **fields)).duplicate


def test_leader_epochs_follow_the_log_start(tree: Tree) -> None:
    """Epochs wholly below the start are forgotten, the one that covers it begins there (core F.8)."""
    log = tree.log()
    for epoch in (0, 1, 4):
        append(log, records_batch(b"a", b"b"), epoch=epoch)
    log.delete_records_before(3)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 3), (4, 4)]


@pytest.mark.parametrize("clean", [True, False])
def test_records_without_a_time_are_as_old_as_their_last_append(tree: Tree, clean: bool) -> None:
    """Also after the log was opened again: the age of the active segment's file is on the cluster's clock, not 0."""
    log = tree.log(retention_ms=HOUR_MS)
    append(log, records_batch(b"a", time_ms=-1))
    tree.stop(clean=clean)
    tree.open()
    log = tree.log(retention_ms=HOUR_MS)
    log.advance_high_watermark(log.log_end_offset)
    assert retention.run(log, NOW_MS + HOUR_MS) == 0
    assert retention.run(log, NOW_MS + HOUR_MS + 1) == 1


def test_reads_in_progress_may_finish(tree: Tree) -> None:
    """A slice stays readable when its segment has gone."""
    log = tree.log(internal_segment_bytes=SEGMENT, retention_bytes=0)
    one_each(log, 3)
    piece = log.reader.read(0, 1000, bound=3, min_one=True)
    before = b"".join(piece.buffers)
    retention.run(log, NOW_MS)
    assert tree.dir is not None
    tree.dir.remove_due(NOW_MS + HOUR_MS)
    assert b"".join(piece.buffers) == before
