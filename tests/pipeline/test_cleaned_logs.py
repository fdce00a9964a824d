"""What compaction leaves, in logs that were cleaned here or copied from a replica: no finding but real ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.log_records import metadata
from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, batches
from protocol.records.records import Record, build_batch, frame_batch
from storage.checkpoints import CLEANER, HIGH_WATERMARK, LOG_START
from storage.indexes.txn_index import AbortedTransaction
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry
from tests.pipeline import audited
from tests.pipeline.fault_files import STEP_MS, T0_MS, Planting, topic_id_of


def findings_of(root: Path, *names: str) -> dict[str, list[int | None]]:
    """The offsets that each check reports (default: all), information left out."""
    findings = audited.findings_of(root, *names, information=False)
    return {each.check.name: [row.get("offset") for row in each.rows] for each in findings}


def with_gaps(root: Path) -> Planting:
    """A compacted topic of which offsets 3 to 9 are gone, and another one that the broker's own cleaner has cleaned."""
    where = Planting(root)
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(3, producer=1)
    shelf.data(3, producer=1, base_offset=10, sequence=10)
    other = where.shelf("other", cleanup_policy="compact")
    other.data(3)
    other.roll()
    other.data(3)
    where.cleaned("other", 0, 3)
    where.close()
    return where


def moved(root: Path) -> None:
    """The metadata have the partition elsewhere before."""
    path = root / "__cluster_metadata-0" / f"{0:020d}.log"
    raw = path.read_bytes()
    base = list(batches(raw))[-1].next_offset
    record = metadata.PartitionChangeRecord(0, topic_id_of("latest"), replicas=(1,), isr=(1,), leader=1)
    change = Record(base, T0_MS + 10**6, None, metadata.encode(record)[1])
    path.write_bytes(raw + build_batch([change], base_offset=base, partition_leader_epoch=0))


def test_gaps_that_a_replica_has_copied_are_no_finding(tmp_path: Path) -> None:
    """The same gaps are one where no replica was moved, since its own cleaner has not been there."""
    with_gaps(tmp_path)
    assert findings_of(tmp_path) == {"offset-hole": [10], "sequence-gap": [10]}
    moved(tmp_path)
    assert findings_of(tmp_path) == {}


@pytest.mark.parametrize(("left", "gap"), [("00000000000000000000", []), ("00000000000000000010", [10])])
def test_the_cleaner_was_where_the_files_that_it_replaced_are_left(tmp_path: Path, left: str, gap: list[int]) -> None:
    """A broker that was killed before the checkpoint (4.1.1); a file that has no successor proves nothing."""
    where = Planting(tmp_path)
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(3)
    shelf.data(3, base_offset=10)
    shelf.roll()
    shelf.data(3)
    where.cleaned("latest", 0, 3)
    where.close()
    (tmp_path / "latest-0" / f"{left}.log.deleted").touch()
    assert findings_of(tmp_path, "offset-hole") == ({"offset-hole": gap} if gap else {})


def test_with_an_empty_checkpoint_the_cleaner_has_cleaned_nothing(tmp_path: Path) -> None:
    """A broker creates it so when it starts."""
    with_gaps(tmp_path)
    (tmp_path / CLEANER).write_bytes(b"")
    assert findings_of(tmp_path, "offset-hole") == {"offset-hole": [10]}


def test_gaps_are_not_judged_without_a_checkpoint_of_the_cleaner(tmp_path: Path) -> None:
    """A directory that was loaded from elsewhere has none, and the gaps of where it came from."""
    with_gaps(tmp_path)
    (tmp_path / CLEANER).unlink()
    assert "offset-hole" not in findings_of(tmp_path)


def snapshot_of(last_offset: int, epoch: int) -> bytes:
    """Of one producer whose last batch, of three records, ends here."""
    batch = BatchRange(last_offset - 2, last_offset, last_offset - 2, last_offset, T0_MS)
    return bytes(encode_snapshot([ProducerEntry(1, epoch, (batch,), -1, T0_MS, None)]))


@pytest.mark.parametrize(
    ("last_offset", "epoch", "is_wrong"), [(5, 0, False), (2, 0, False), (1, 0, True), (5, -1, True)]
)
def test_a_snapshot_may_name_a_batch_that_the_cleaner_has_removed(
    tmp_path: Path, last_offset: int, epoch: int, is_wrong: bool
) -> None:
    """The batch of offsets 3 to 5 is gone; but no older batch, and no older epoch, than the log has before it."""
    where = Planting(tmp_path)
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(3, producer=1)
    shelf.roll(6)
    shelf.data(3, producer=1, base_offset=6, sequence=6, keys=(b"k3", b"k4", b"k5"))
    shelf.roll()
    shelf.data(3, producer=1)
    where.cleaned("latest", 0, 9)
    where.written_last[f"latest-0/{6:020d}.snapshot"] = snapshot_of(last_offset, epoch)
    where.close()
    assert findings_of(tmp_path) == ({"producer-snapshot": [6]} if is_wrong else {})


def only_metadata(where: Planting) -> None:
    """No partition of a topic is left."""


def with_another(where: Planting) -> None:
    """A partition is left."""
    where.shelf("orders").data(3)


@pytest.mark.parametrize(("fill", "expected"), [(only_metadata, {}), (with_another, {"checkpoint-partition"})])
def test_the_last_high_watermarks_stay_where_no_partition_is_left(
    tmp_path: Path, fill: Callable[[Planting], None], expected: set[str]
) -> None:
    """A broker writes those of the partitions that it has, and nothing without any."""
    where = Planting(tmp_path)
    fill(where)
    where.checkpoints[HIGH_WATERMARK, "moved-away", 0] = 7
    where.close()
    assert set(findings_of(tmp_path)) == set(expected)


def emptied(offset: int) -> bytearray:
    """A marker that the cleaner has removed from its batch, which has the last of its producer."""
    return frame_batch(
        b"", 0, base_offset=offset, last_offset_delta=0, base_timestamp_ms=-1, max_timestamp_ms=T0_MS,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT, producer_id=1, producer_epoch=0, partition_leader_epoch=0,
    )  # fmt: skip


@pytest.mark.parametrize(("cleaned_to", "expected"), [(8, {}), (4, {"marker-malformed": [4]})])
def test_a_marker_may_be_removed_and_its_batch_kept(
    tmp_path: Path, cleaned_to: int, expected: dict[str, list[int]]
) -> None:
    """Below the place up to which the cleaner has been; and not behind it."""
    where = Planting(tmp_path)
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(4)
    shelf.raw(emptied(4))
    shelf.data(3)
    shelf.roll()
    shelf.data(3)
    where.cleaned("latest", 0, cleaned_to)
    where.close()
    assert findings_of(tmp_path, "marker-malformed") == expected


@pytest.mark.parametrize(("is_cut", "listed_first", "expected"), [(True, 0, []), (True, 4, [3]), (False, 3, [0])])
def test_an_aborted_transaction_whose_beginning_is_gone_is_listed_rightly(
    tmp_path: Path, is_cut: bool, listed_first: int, expected: list[int]
) -> None:
    """By the offset at which it began, of which the log knows no more. In a whole log each other one is wrong."""
    where = Planting(tmp_path)
    shelf = where.shelf("orders")
    shelf.data(3, producer=5, transactional=True)
    shelf.roll()
    shelf.data(3, producer=5, transactional=True)
    marker = shelf.marker(5, 0, committed=False, index=False)
    shelf.segment.txn_index.append(AbortedTransaction(5, listed_first, marker, marker + 1))
    if is_cut:
        shelf.log_start = 3
    where.close()
    if is_cut:
        for path in (tmp_path / "orders-0").glob(f"{0:020d}.*"):
            path.unlink()
    assert findings_of(tmp_path, "index-transaction") == ({"index-transaction": expected} if expected else {})


@pytest.mark.parametrize("checkpoint", [0, 1, 3])
def test_a_log_starts_with_its_first_segment_though_the_checkpoint_is_before(tmp_path: Path, checkpoint: int) -> None:
    """Retention removed the segment after the checkpoint was written, or it is in tiered storage."""
    where = Planting(tmp_path)
    shelf = where.shelf("orders")
    shelf.data(1)
    shelf.data(2, producer=5, transactional=True)
    shelf.roll()
    shelf.data(3, producer=5, transactional=True)
    shelf.marker(5, 0, committed=False)
    shelf.data(3, producer=7, sequence=3)
    where.checkpoints[LOG_START, "orders", 0] = checkpoint
    where.close()
    for path in (tmp_path / "orders-0").glob(f"{0:020d}.*"):
        path.unlink()
    assert findings_of(tmp_path) == {}


@pytest.mark.parametrize(("stable", "expected"), [(1, {}), (4, {"index-transaction": [3]})])
def test_the_last_stable_offset_of_an_index_may_lie_before_the_log(
    tmp_path: Path, stable: int, expected: dict[str, list[int]]
) -> None:
    """Another transaction was open then, whose beginning is gone; not where the log has all of it."""
    where = Planting(tmp_path)
    shelf = where.shelf("orders", start=3)
    shelf.data(3, producer=5, transactional=True)
    shelf.data(3, producer=6, transactional=True)
    marker = shelf.marker(5, 0, committed=False, index=False)
    shelf.segment.txn_index.append(AbortedTransaction(5, 3, marker, stable))
    shelf.marker(6, 0, committed=True)
    where.close()
    assert findings_of(tmp_path, "index-transaction") == expected


@pytest.mark.parametrize(("begun", "expected"), [(0, {}), (4, {"producer-snapshot": [6]})])
def test_an_open_transaction_of_a_snapshot_may_begin_before_the_log(
    tmp_path: Path, begun: int, expected: dict[str, list[int]]
) -> None:
    """Its first records are gone; but it does not begin where the log has another batch of it before."""
    where = Planting(tmp_path)
    shelf = where.shelf("orders", start=3)
    shelf.data(3, producer=5, transactional=True, sequence=3)
    shelf.roll()
    shelf.marker(5, 0, committed=True)
    batch = BatchRange(3, 5, 3, 5, T0_MS)
    entry = ProducerEntry(5, 0, (batch,), -1, T0_MS + STEP_MS + 2, begun)
    where.written_last[f"orders-0/{6:020d}.snapshot"] = bytes(encode_snapshot([entry]))
    where.close()
    assert findings_of(tmp_path, "producer-snapshot") == expected


def first_batch_gone(where: Planting) -> None:
    """Two producers of one key: the first one's first batch went, and it goes on."""
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(1, producer=2, base_offset=1)
    shelf.roll(2)
    shelf.data(1, producer=1, sequence=1)
    where.cleaned("latest", 0, 2)


def aborted_batches_gone(where: Planting) -> None:
    """An epoch began with a transaction that was aborted (KIP-890), and all of its records went."""
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(3, producer=1, epoch=3)
    shelf.roll(10)
    shelf.data(2, producer=1, epoch=4, sequence=4, base_offset=10)
    where.cleaned("latest", 0, 10)


def nothing_gone(where: Planting) -> None:
    """The same batches behind the place up to which the cleaner has been."""
    shelf = where.shelf("latest", cleanup_policy="compact")
    shelf.data(1)
    shelf.roll()
    shelf.data(3, producer=1, epoch=3)
    shelf.data(2, producer=1, epoch=4, sequence=4)
    where.cleaned("latest", 0, 1)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [(first_batch_gone, {}), (aborted_batches_gone, {}), (nothing_gone, {"sequence-start": [4]})],
)
def test_what_was_cleaned_is_not_missing_at_the_beginning_of_an_epoch(
    tmp_path: Path, fill: Callable[[Planting], None], expected: dict[str, list[int]]
) -> None:
    """Sequences begin at 0 where nothing can have been removed before."""
    where = Planting(tmp_path)
    fill(where)
    where.close()
    assert findings_of(tmp_path, "sequence-start") == expected
