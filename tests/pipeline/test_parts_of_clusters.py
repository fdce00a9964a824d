"""Directories that are a part of a cluster: what lies elsewhere is not missing, and what lags behind is not lost."""

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from pipeline.audits.registry import checks
from pipeline.directory import logs_below
from pipeline.duck.engine import DuckEngine
from pipeline.live.counts import TABLES, Counts
from pipeline.locations import locate
from pipeline.reports import answers, registry
from pipeline.reports.asking import Selection
from pipeline.reports.duck_tables import DuckReportTables
from protocol.log_records import metadata
from protocol.log_records.transaction import TransactionState as State
from protocol.records.records import Record, build_batch
from protocol.types import uuid_text
from storage.checkpoints import CLEAN_SHUTDOWN
from tests.pipeline import audited, broker_faults, log_faults
from tests.pipeline.fault_files import Planting, restamped
from tests.pipeline.logs import write_segment


def findings_of(root: Path, *names: str) -> dict[str, int]:
    """How many rows these checks have."""
    return {each.check.name: each.count for each in audited.findings_of(root, *names)}


OF_COORDINATORS = ("transaction-hanging", "marker-without-data", "transaction-open", "transaction-overdue")


def transactions(root: Path) -> Planting:
    """An open transaction and a marker that the coordinators' partition here does not know."""
    where = Planting(root)
    orders = where.shelf("orders")
    orders.data(3)
    orders.data(3, producer=35, transactional=True)
    where.shelf("orders", 1).data(3)
    where.shelf("orders", 1).marker(37, 0, committed=True)
    where.transaction("other", 36, 0, State.ONGOING, [("elsewhere", 0)])
    where.transaction("other", 36, 0, State.COMPLETE_COMMIT)
    return where


def whole(_: Planting) -> None:
    """All partitions of `__transaction_state`."""


def in_part(where: Planting) -> None:
    """There is another partition of it."""
    where.lost.append(("__transaction_state", 1))


def cleaned(where: Planting) -> None:
    """The cleaner has removed what its coordinator wrote."""
    where.shelf("__transaction_state").roll()
    where.cleaned("__transaction_state", 0, 3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (whole, {"transaction-hanging": 1, "marker-without-data": 1}),
        (in_part, {"transaction-open": 1}),
        (cleaned, {"transaction-hanging": 1}),
    ],
)
def test_a_coordinator_may_know_what_is_not_here(
    tmp_path: Path, change: Callable[[Planting], None], expected: dict[str, int]
) -> None:
    """Where not all of its topic is: an open transaction is open, and a marker proves nothing."""
    where = transactions(tmp_path)
    change(where)
    where.close()
    assert findings_of(tmp_path, *OF_COORDINATORS) == expected


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [((0, 1), {"transaction-hanging": 1, "marker-without-data": 1}), ((0, 2), {"transaction-open": 1})],
)
def test_a_copy_without_metadata_is_whole_if_no_partition_is_left_out(
    tmp_path: Path, partitions: tuple[int, ...], expected: dict[str, int]
) -> None:
    """A copy of a running cluster has no metadata, and counts as whole with all partitions."""
    where = transactions(tmp_path)
    for number in partitions:
        where.shelf("__transaction_state", number)
    where.close()
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    assert findings_of(tmp_path, *OF_COORDINATORS) == expected


@pytest.mark.parametrize(("committed", "expected"), [(5, {}), (7, {"commit-beyond-end": 1})])
def test_a_replica_that_lags_behind_ends_before_a_committed_offset(
    tmp_path: Path, committed: int, expected: dict[str, int]
) -> None:
    """Beyond the end of each replica it is a finding, and one."""
    for node_id, count in ((1, 6), (2, 3)):
        where = Planting(tmp_path / f"broker-{node_id}", node_id=node_id)
        where.shelf("orders").data(count)
        where.committed_offset("g", "orders", 0, committed)
        where.close()
    assert findings_of(tmp_path, "commit-beyond-end") == expected


@pytest.mark.parametrize(
    ("registered", "expected"),
    [((), {"partition-missing": 1}), ((109,), {"partition-missing": 1}), ((109, 177), {})],
    ids=["unknown", "one", "two"],
)
def test_a_partition_may_lie_in_a_log_directory_that_is_not_here(
    tmp_path: Path, registered: tuple[int, ...], expected: dict[str, int]
) -> None:
    """As many directories count as the broker registered last."""
    where = Planting(tmp_path)
    where.shelf("orders").data(3)
    where.lost.append(("orders", 1))
    for directories in ((109,), registered):
        log_dirs = tuple(UUID(int=each) for each in directories)
        where.metadata_before.append(metadata.RegisterBrokerRecord(1, log_dirs=log_dirs))
    where.close()
    assert findings_of(tmp_path, "partition-missing") == expected


@pytest.mark.parametrize("registered", [(109,), (109, 177)])
@pytest.mark.parametrize("is_alone", [False, True])
def test_the_metadata_may_have_a_directory_of_their_own(
    tmp_path: Path, registered: tuple[int, ...], is_alone: bool
) -> None:
    """`metadata.log.dir` has an id that no broker registers, and none of the partitions."""
    data, quorum = Planting(tmp_path / "data"), Planting(tmp_path / "quorum")
    for where, number in ((data, 109), (quorum, 155)):
        where.shelf("orders").data(3)
        where.properties["directory.id"] = uuid_text(UUID(int=number))
    if len(registered) > 1:
        quorum.lost.append(("orders", 1))
    log_dirs = tuple(UUID(int=each) for each in registered)
    quorum.metadata_before.append(metadata.RegisterBrokerRecord(1, log_dirs=log_dirs))
    data.close()
    quorum.close()
    shutil.rmtree(data.root / "__cluster_metadata-0")
    shutil.rmtree(quorum.root / "orders-0")
    if is_alone:
        shutil.rmtree(data.root)
    assert findings_of(tmp_path, "partition-missing", "meta-properties") == {}


@pytest.mark.parametrize(("first", "expected"), [(0, []), (100, [{"role": None, "topic": "t", "from_ms": 20_000}])])
def test_counts_begin_behind_what_retention_has_removed(
    tmp_path: Path, first: int, expected: list[dict[str, object]]
) -> None:
    """Also where no checkpoint has the log's start: a copy, or a broker that has not written it yet."""
    records = [Record(first + at, 12_000 + at, b"k", b"v") for at in range(3)]
    write_segment(tmp_path, build_batch(records, partition_leader_epoch=0), base=first)
    counts = Counts(10_000)
    counts.add(str(tmp_path))
    assert counts.tables()["counted_from"] == expected
    counts.add(str(tmp_path))
    assert counts.tables()["counted_from"] == expected
    assert [row["records"] for row in counts.tables()["record_counts"]] == [3]


def test_counts_of_a_log_without_any_record_left_begin_now(tmp_path: Path) -> None:
    """Its buckets are not complete, so that they are not compared with those of the other topic."""
    write_segment(tmp_path, build_batch([Record(0, 12_000, b"k", b"v")], partition_leader_epoch=0), name="in-0")
    write_segment(tmp_path, base=5, name="out-0")
    counts = Counts(10_000, ["in"], ["out"], now_ms=lambda: 93_000)
    counts.add(str(tmp_path), ["in", "out"])
    tables = counts.tables()
    assert tables["counted_from"] == [{"role": "output", "topic": "out", "from_ms": 100_000}]
    engine = DuckEngine()
    for name, schema in TABLES.items():
        engine.table(name, pa.Table.from_pylist(list(tables[name]), schema))
    assert engine.rows(checks()["count-differs"].sql).num_rows == 0
    engine.table("counted_from", TABLES["counted_from"].empty_table())
    assert engine.rows(checks()["count-differs"].sql).num_rows == 1
    engine.close()


@pytest.mark.parametrize("name", ["index-offset", "index-time"])
def test_a_broker_that_runs_may_have_entries_from_before_a_truncation(tmp_path: Path, name: str) -> None:
    """In its last segment, where it alone knows how many count: a follower moves that number back, and no byte."""
    assert name in log_faults.PLANTS
    wanted = log_faults.planted(tmp_path, name, clean_too=False)
    assert {each.check for each in wanted} == {name}
    assert findings_of(tmp_path, name) == {name: len(wanted)}
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    assert findings_of(tmp_path, name) == {}


def test_a_closed_segment_has_its_own_entries_alone(tmp_path: Path) -> None:
    """A closed segment has only its own index entries, also in a broker that runs."""
    where = Planting(tmp_path)
    log = where.shelf("orders")
    for _ in range(6):
        log.data(3)
    log.segment.index.append(log.next_offset - 1, log.segment.size - 40)
    log.roll()
    log.data(3)
    where.close()
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    assert findings_of(tmp_path, "index-offset") == {"index-offset": 1}


def test_brokers_with_several_log_directories_are_one_cluster(tmp_path: Path) -> None:
    """Audit, reports and reader find all replicas where they are, and a difference between them."""
    broker_faults.clean_cluster_with_disks(tmp_path)
    disks = [f"broker-{broker}/{disk}" for broker in (1, 2) for disk in ("disk-a", "disk-b")]

    with audited.tables_of(tmp_path) as tables_of_all:
        assert tables_of_all.directories == [str(tmp_path / each) for each in disks]
    assert audited.checks_that_find(tmp_path) == set()
    (future,) = [each for each in (tmp_path / "broker-1").rglob("orders-0") if each.is_dir()]
    other = next(each for each in (tmp_path / "broker-1").iterdir() if each != future.parent)
    shutil.copytree(future, other / f"orders-0.{5:032x}-future")
    assert audited.checks_that_find(tmp_path) == {"partition-future"}
    orders = [each for each in logs_below(locate(tmp_path)) if each.topic == "orders"]
    read = {(each.topic, each.partition, each.broker) for each in orders}
    assert read == {("orders", partition, broker) for partition in (0, 1) for broker in (1, 2)}
    tables = DuckReportTables(str(tmp_path), None, Selection())
    size = registry.chosen(["size"])
    tables.prepare(size)
    (row,) = answers.ask(tables, size[0]).rows
    tables.forget()
    assert (row["partitions"], row["replicas"], row["records"]) == (2, 2, 6)
    (log,) = (tmp_path / "broker-2").rglob("orders-0/*.log")
    whole = bytearray(log.read_bytes())
    whole[-2] ^= 1  # a byte of the last value
    log.write_bytes(restamped(whole))
    assert audited.checks_that_find(tmp_path) == {"partition-future", "replica-differs"}


def test_offsets_of_a_topic_that_was_deleted_before_a_broker_was_killed_may_be_left(tmp_path: Path) -> None:
    """Its coordinator had no time to remove them. After a clean stop they are a finding; an unknown topic always is."""
    where = Planting(tmp_path)
    where.shelf("orders").data(3)
    gone = UUID(int=900)
    where.metadata_before += [metadata.TopicRecord("gone", gone), metadata.RemoveTopicRecord(gone)]
    where.committed_offset("group", "gone", 0, 3)
    where.committed_offset("group", "never-there", 0, 3)
    where.close()
    assert findings_of(tmp_path, "commit-invalid") == {"commit-invalid": 2}
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    assert findings_of(tmp_path, "commit-invalid") == {"commit-invalid": 1}
