"""What compaction leaves, in logs that were cleaned here or copied from a replica: no finding but real ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from protocol.log_records import metadata
from protocol.records.batch import batches
from protocol.records.records import Record, build_batch
from storage.checkpoints import CLEANER, HIGH_WATERMARK
from storage.producers.snapshot import encode_snapshot
from storage.producers.state import BatchRange, ProducerEntry
from tests.pipeline.fault_files import T0_MS, Planting, topic_id_of


def found(root: Path) -> dict[str, list[int | None]]:
    """The offsets that each check reports, information left out."""
    tables = DuckTables(str(root))
    tables.register(records=True)
    asked = [check for check in chosen(has=["records"]) if check.severity != "info"]
    answer = {each.check.name: [row.get("offset") for row in each.rows] for each in ask_all(tables.engine, asked)}
    tables.forget()
    return answer


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
    made = Record(base, T0_MS + 10**6, None, metadata.encode(record)[1])
    path.write_bytes(raw + build_batch([made], base_offset=base, partition_leader_epoch=0))


def test_gaps_that_a_replica_has_copied_are_no_finding(tmp_path: Path) -> None:
    """The same gaps are one where no replica was moved, since its own cleaner has not been there."""
    with_gaps(tmp_path)
    assert found(tmp_path) == {"offset-hole": [10], "sequence-gap": [10]}
    moved(tmp_path)
    assert found(tmp_path) == {}


def test_gaps_are_not_judged_without_a_checkpoint_of_the_cleaner(tmp_path: Path) -> None:
    """A directory that was loaded from elsewhere has none, and the gaps of where it came from."""
    with_gaps(tmp_path)
    (tmp_path / CLEANER).unlink()
    assert "offset-hole" not in found(tmp_path)


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
    assert found(tmp_path) == ({"producer-snapshot": [6]} if is_wrong else {})


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
    assert set(found(tmp_path)) == set(expected)
