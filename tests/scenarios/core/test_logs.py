"""Logs on disk (core I.6): segments, retention, cleaning, recovery; files are read where the broker has them."""

from collections.abc import Iterator

import pytest

from tests.conftest import BrokerWith
from tests.scenarios.core.disks import Disk, lines
from tests.scenarios.on_kafka import TARGET

A, B = (b"k1", b"a"), (b"k2", b"b")
COMPACT = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
ONE_EACH = 80
"""A segment's size in which each batch has a segment of its own."""
HOUR_MS = 3_600_000


@pytest.fixture
def own_disk(broker_with: BrokerWith) -> Iterator[Disk]:
    """A broker of the row's own."""
    broker_disk = Disk(broker_with)
    yield broker_disk
    broker_disk.close()


if TARGET == "kafka":

    @pytest.fixture(scope="module")
    def disk() -> Iterator[Disk]:
        """A broker for all rows that leave it running."""
        broker_disk = Disk()
        yield broker_disk
        broker_disk.close()

else:

    @pytest.fixture
    def disk(own_disk: Disk) -> Disk:
        """A cluster in process costs less than what rows would leave to each other."""
        return own_disk


def compacted(disk: Disk, name: str, **configs: object) -> str:
    """A topic that is compacted, and has a segment for each batch."""
    return disk.topic(name, **COMPACT, internal_segment_bytes=ONE_EACH, **configs)


# --- segments --------------------------------------------------------------------------------------------------------


def test_LOG_01_a_full_segment_is_rolled(disk: Disk) -> None:
    """The second one is named by its first offset, in twenty digits."""
    (size,) = disk.put(disk.topic("measure"), A)
    topic = disk.topic("full", internal_segment_bytes=2 * size)
    disk.put(topic, A, A, A)
    assert disk.files(topic) == ["00000000000000000000.log", "00000000000000000002.log"]


def test_LOG_02_a_segment_is_rolled_by_the_records_time(disk: Disk) -> None:
    """The first record's time counts, not the clock."""
    topic = disk.topic("timed", segment_ms=1_000)
    now_ms = int(disk.server.now_ms()) - HOUR_MS
    disk.put(topic, A, at_ms=now_ms)
    disk.put(topic, A, at_ms=now_ms + 2_000)
    assert disk.segments(topic) == [0, 1]


# --- retention -------------------------------------------------------------------------------------------------------


def test_LOG_03_size_keeps_at_least_retention_bytes(disk: Disk) -> None:
    """Of five segments one goes, where three and a half are to stay."""
    (size,) = disk.put(disk.topic("measured"), A)
    topic = disk.topic("sized", internal_segment_bytes=ONE_EACH, retention_bytes=size * 7 // 2)
    disk.put(topic, A, A, A, A, A)
    disk.come_round()
    assert disk.bounds(topic) == (1, 5)


def test_LOG_04_an_expired_active_segment_goes_too(disk: Disk) -> None:
    """The log is empty, and its offsets continue."""
    topic = disk.topic("expired", retention_ms=1_000)
    disk.put(topic, A, B, at_ms=int(disk.server.now_ms()) - HOUR_MS)
    disk.come_round()
    assert disk.bounds(topic) == (2, 2)
    assert disk.segments(topic) == [2]
    assert disk.fetched(topic, 2).error_code == 0


def test_LOG_05_a_future_timestamp_keeps_its_segment_and_newer_ones(disk: Disk) -> None:
    """A record from the future keeps its segment and newer ones; older segments go."""
    topic = disk.topic("future", internal_segment_bytes=ONE_EACH, retention_ms=1_000)
    now_ms = int(disk.server.now_ms())
    for at_ms in (now_ms - HOUR_MS, now_ms + HOUR_MS // 2, now_ms - HOUR_MS, now_ms - HOUR_MS):
        disk.put(topic, A, at_ms=at_ms)
    disk.come_round()
    assert disk.bounds(topic) == (1, 4)


def test_LOG_06_files_of_a_deleted_segment_stay_for_the_delay(disk: Disk) -> None:
    """Files of a deleted segment stay as .deleted for file.delete.delay.ms."""
    topic = disk.topic("delayed", retention_ms=1_000, file_delete_delay_ms=8_000)
    disk.put(topic, A, at_ms=int(disk.server.now_ms()) - HOUR_MS)
    disk.come_round()
    assert "00000000000000000000.log.deleted" in disk.files(topic, ".deleted")
    disk.come_round(10_000)
    assert disk.files(topic, ".deleted") == []


def test_LOG_16_a_deleted_topic_leaves_after_the_delay(disk: Disk) -> None:
    """Its directory has another name until then; the broker's delay counts, not the topic's own."""
    topic = disk.topic("leaving", file_delete_delay_ms=HOUR_MS)
    disk.put(topic, A)
    disk.delete(topic)
    (left,) = [each.name for each in disk.folder.iterdir() if each.name.startswith("leaving-0")]
    assert left.endswith("-delete")
    disk.come_round(9_000)
    assert [each.name for each in disk.folder.iterdir() if each.name.startswith("leaving-0")] == []


# --- cleaning --------------------------------------------------------------------------------------------------------


def test_LOG_10_of_each_key_the_newest_record_stays(disk: Disk) -> None:
    """Offsets do not change, the active segment is not touched, and the checkpoint moves."""
    topic = compacted(disk, "cmp")
    disk.put(topic, A, B, (b"k1", b"c"), (b"k9", b""))
    disk.come_round()
    assert disk.contents(topic) == [(1, b"k2", b"b"), (2, b"k1", b"c"), (3, b"k9", b"")]
    assert disk.bounds(topic) == (0, 4)
    assert f"{topic} 0 3" in lines((disk.folder / "cleaner-offset-checkpoint").read_bytes())


def test_LOG_11_a_tombstone_gets_a_horizon_and_goes_behind_it(disk: Disk) -> None:
    """It is kept at first, with bit 6 set, and removed by a cleaning after the delay."""
    topic = compacted(disk, "tomb", delete_retention_ms=6_000)
    disk.put(topic, A, (b"k1", None), (b"k3", b""))
    disk.come_round()
    first = disk.stored(topic)[0]
    assert (disk.contents(topic)[0], first.has_delete_horizon) == ((1, b"k1", None), True)
    disk.come_round(9_000)
    disk.put(topic, (b"k4", b""), (b"k5", b""))
    disk.come_round()
    assert (1, b"k1", None) not in disk.contents(topic)


def test_LOG_12_young_records_are_not_compacted(disk: Disk) -> None:
    """Those of another topic, without the lag, are."""
    young, other = compacted(disk, "young", min_compaction_lag_ms=HOUR_MS), compacted(disk, "old")
    for topic in (young, other):
        disk.put(topic, A, (b"k1", b"c"), (b"k9", b""))
    disk.come_round()
    assert [len(disk.contents(topic)) for topic in (young, other)] == [3, 2]


def test_LOG_13_overdue_records_are_compacted_at_any_dirty_ratio(disk: Disk) -> None:
    """The active segment is rolled for it."""
    configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0"}
    overdue = disk.topic("overdue", **configs, max_compaction_lag_ms=1_000)
    never = disk.topic("never", **configs)
    for topic in (overdue, never):
        disk.put(topic, A, (b"k1", b"c"))
    disk.come_round()
    for topic in (overdue, never):
        disk.put(topic, (b"k9", b""))
    disk.come_round()
    assert [offset for offset, *_ in disk.contents(overdue)] == [1, 2]
    assert [offset for offset, *_ in disk.contents(never)] == [0, 1, 2]


def test_LOG_14_the_last_batch_of_a_remembered_producer_stays_empty(disk: Disk) -> None:
    """Cleaning keeps 61 bytes of a producer's last batch, for its sequence."""
    topic = compacted(disk, "empty")
    disk.put(topic, A, producer_id=4_000_000, producer_epoch=0, base_sequence=0)
    disk.put(topic, (b"k1", b"b"), (b"k1", b"c"), (b"z", b""))
    disk.come_round()
    empty = disk.stored(topic)[0]
    assert (empty.size, empty.record_count, empty.base_sequence, empty.producer_id) == (61, 0, 0, 4_000_000)
    assert [offset for offset, *_ in disk.contents(topic)] == [2, 3]


def test_an_emptied_segment_hides_those_behind_it_from_a_search_by_time(disk: Disk) -> None:
    """It is as recent as its file, so the search ends there (core E.8.5)."""
    topic = compacted(disk, "hidden")
    disk.put(topic, A, (b"k1", b"c"), (b"k9", b""), at_ms=1_000)
    assert disk.offset_at(topic, 1_000) == 0
    disk.come_round()
    assert [offset for offset, *_ in disk.contents(topic)] == [1, 2]
    assert disk.segments(topic)[:2] == [0, 1]
    assert disk.offset_at(topic, 1_000) == -1
    assert disk.offset_at(topic, 0) == -1


# --- recovery --------------------------------------------------------------------------------------------------------


def test_LOG_08_after_a_clean_stop_nothing_is_lost_or_cut(own_disk: Disk) -> None:
    """A marker file records the clean stop, and is deleted once it was read."""
    disk = own_disk
    topic = disk.topic("kept", internal_segment_bytes=ONE_EACH)
    disk.put(topic, A, B, A)
    disk.stop(clean=True)
    assert (disk.folder / ".kafka_cleanshutdown").exists()
    disk.start()
    assert not (disk.folder / ".kafka_cleanshutdown").exists()
    assert disk.bounds(topic) == (0, 3)
    assert disk.segments(topic) == [0, 1, 2]


def test_LOG_07_09_15_after_a_kill(own_disk: Disk) -> None:
    """A torn tail is cut and its index rebuilt; damage in an old segment ends the log; half a cleaning is undone."""
    disk = own_disk
    torn, damaged, halfway = disk.topic("torn"), disk.topic("damaged", internal_segment_bytes=ONE_EACH), "halfway"
    compacted(disk, halfway)
    for topic in (torn, damaged, halfway):
        disk.put(topic, A, B, (b"k3", b"c"))
    disk.stop(clean=False)
    tail = disk.file(torn, 0)
    whole = sum(batch.size for batch in disk.stored(torn))
    tail.write_bytes(tail.read_bytes()[: whole - 5])
    disk.file(torn, 0, ".index").unlink()
    old = disk.file(damaged, 1)
    old.write_bytes(old.read_bytes()[:-1] + b"!")
    disk.file(halfway, 0, ".log.cleaned").write_bytes(b"half of a segment")
    disk.start()
    assert disk.bounds(torn) == (0, 2)
    assert [each[1] for each in disk.contents(torn)] == [b"k1", b"k2"]
    assert disk.file(torn, 0, ".index").exists()
    assert disk.bounds(damaged) == (0, 1)
    assert disk.segments(damaged) in ([0], [0, 1])
    assert disk.bounds(halfway) == (0, 3)
    assert disk.files(halfway, ".cleaned") == []
