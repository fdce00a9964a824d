"""Logs -> Parquet -> logs that a broker serves, and back again: nothing is lost."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from pipeline.transfer import export, parquet, replay
from pipeline.transfer import load as loading
from pipeline.transfer.manifest import Bounds, ExportedFile, Manifest, ManifestError, Store
from pipeline.transfer.mirror import mirror
from pipeline.transfer.selection import Choice, ChoiceError, parse_offsets, parse_pairs, parse_sample, parse_time
from pipeline.transfer.targets import LoadError, Target, counts, tables, targets
from pipeline.transfer.wire import Cluster, is_bootstrap
from tests.forking import Started
from tests.pipeline import log_faults
from tests.pipeline.fault_files import Planting
from understudy.launcher import ServerProcess, command_line

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
NOW_MS = 1_700_001_000_000
PARTITIONS = 12


def rows(folder: Path) -> list[dict[str, Any]]:
    """All records of an export, in order."""
    table = ds.dataset(folder, format="parquet").to_table()
    return sorted(table.to_pylist(), key=lambda row: (row["topic"], row["partition"], row["offset"]))


def serve(directory: Path) -> ServerProcess:
    """A broker over a data directory."""
    return Started(command_line(data_dir=directory, port=0, control_port="off"))


def load(spark: SparkSession, out: Path, manifest: Manifest, directory: Path, choice: Choice | None = None) -> int:
    """Load an export into a new data directory."""
    wanted = targets(Store(str(out)), manifest, choice or Choice())
    server = serve(directory)
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts(wanted))
    finally:
        server.stop()
    return loading.into_directory(spark, str(directory), wanted, NOW_MS)


def served(directory: Path, folder: Path) -> dict[str, dict[str, str]]:
    """Everything that a broker over a directory gives, as a folder of logs; the topics' settings."""
    server = serve(directory)
    folder.mkdir()
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            return mirror(cluster, folder, Choice())
    finally:
        server.stop()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of odd logs: transactions, wrapped sequences, compaction, append times, and random records."""
    where = Planting(tmp_path_factory.mktemp("transfer") / "data")
    log_faults.clean(where)
    chance = random.Random(8)
    choices = (None, b"", b"x", chance.randbytes(3000))
    for partition in range(PARTITIONS):
        log = where.shelf("random", partition, start=chance.choice((0, 7)))
        for _ in range(chance.randrange(6)):
            count = chance.randrange(1, 30)
            log.data(
                count,
                keys=[chance.choice(choices) for _ in range(count)],
                values=[chance.choice(choices) for _ in range(count)],
                codec=chance.randrange(5),
                base_offset=log.next_offset + chance.choice((0, 0, 5)),
                at_ms=chance.choice((None, -1, 0, 5)),
            )
    return where.close()


@pytest.mark.parametrize("producers", [False, True], ids=["as consumers see it", "with producers"])
def test_the_round_trip_loses_nothing(spark: SparkSession, source: Path, tmp_path: Path, producers: bool) -> None:
    """Export, load into a new directory, serve it, fetch all of it, export again: equal, record by record."""
    out, again = tmp_path / "out", tmp_path / "again"
    first = export.export(spark, str(source), str(out), producers=producers)
    assert load(spark, out, first, tmp_path / "data") == first.records > 100
    settings = served(tmp_path / "data", tmp_path / "mirror")
    assert settings["compacted"] == first.configs["compacted"] == {"cleanup.policy": "compact"}
    second = export.export(spark, str(tmp_path / "mirror"), str(again), producers=producers)
    # Batches are of format 2, whose records have a kind of time where those of format 0 have none.
    assert rows(again) == [{**each, "timestampType": max(each["timestampType"], 0)} for each in rows(out)]
    assert second.topics == first.topics


def test_an_export_holds_what_the_log_holds(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Headers twice and null, null against empty, log append time, no aborted records; the manifest counts them all."""
    manifest = export.export(spark, str(source), str(tmp_path / "out"))
    exported = rows(tmp_path / "out")
    orders = [row for row in exported if row["topic"] == "orders" and row["partition"] == 0]
    assert orders[0]["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    assert orders[1]["headers"] is None
    assert {row["timestampType"] for row in exported if row["topic"] == "timed"} == {1}
    values = {row["value"] for row in exported if row["topic"] == "random"}
    assert {None, b""} < values
    bounds = manifest.topics["orders"][0]
    assert (bounds.records, bounds.log_end) == (30, 39)  # 48 less an aborted transaction's 6, and markers
    assert [row["offset"] for row in exported if row["topic"] == "compacted"] == [0, 3, 4, 5, 20, 21, 22]
    export.verify(Store(str(tmp_path / "out")), manifest)
    stored = json.loads((tmp_path / "out" / "_manifest.json").read_text(encoding="utf-8"))
    assert sum(each["records"] for each in stored["files"]) == manifest.records == len(exported)


def test_an_export_is_verified_before_it_is_loaded(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """A byte that differs is reported with the file's name; an export is not overwritten by accident."""
    manifest = export.export(spark, str(source), str(tmp_path / "out"), choice=Choice(topics=["timed"]))
    (file,) = manifest.files
    path = tmp_path / "out" / file.path
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ManifestError, match="checksum differs"):
        export.verify(Store(str(tmp_path / "out")), manifest)
    with pytest.raises(ManifestError, match="--overwrite"):
        export.export(spark, str(source), str(tmp_path / "out"), choice=Choice(topics=["timed"]))
    again = export.export(spark, str(source), str(tmp_path / "out"), choice=Choice(topics=["timed"]), overwrite=True)
    export.verify(Store(str(tmp_path / "out")), again)


def test_records_are_chosen_masked_and_renamed(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Ranges, a sample by key that is the same every time, masks, and another name."""
    choice = Choice(
        topics=["orders"],
        offsets=(3, None),
        sample=0.5,
        masks={"value": "sha2(value, 256)"},
        renamed={"orders": "sample"},
    )
    export.export(spark, str(source), str(tmp_path / "out"), choice=choice)
    exported = rows(tmp_path / "out")
    whole = tmp_path / "whole"
    manifest = export.export(spark, str(source), str(whole), choice=Choice(topics=["orders"]))
    keys, all_keys = {row["key"] for row in exported}, {row["key"] for row in rows(whole)}
    assert 0 < len(keys) < len(all_keys)
    assert {row["topic"] for row in exported} == {"sample"}
    assert all(len(row["value"]) == 64 for row in exported)
    assert len(exported) == len([row for row in rows(whole) if row["key"] in keys and row["offset"] >= 3])
    store, chosen = export.chosen(spark, Store(str(whole)), manifest, choice, str(tmp_path / "chosen"))
    assert chosen.records == len(exported)
    assert {target.topic for target in targets(store, chosen, choice)} == {"sample"}


def test_topics_that_change_their_names_with_each_other_keep_their_records(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Each record has one new name, with the selections of SQL as without them."""
    swapped = {"orders": "timed", "timed": "orders"}
    topics = ["orders", "timed"]
    ours = export.export(None, str(source), str(tmp_path / "ours"), choice=Choice(topics=topics, renamed=swapped))
    choice = Choice(topics=topics, renamed=swapped, where="true")
    theirs = export.export(spark, str(source), str(tmp_path / "theirs"), choice=choice)
    assert rows(tmp_path / "theirs") == rows(tmp_path / "ours")
    assert theirs.topics == ours.topics


def in_files(folder: Path, *counts: int) -> tuple[Store, Manifest]:
    """An export of one partition in files of so many records, which do not compress."""
    columns, chance = parquet.schema(producers=False), random.Random(5)
    files: list[ExportedFile] = []
    first = 0
    for number, count in enumerate(counts):
        rows = [dict.fromkeys(columns.names) for _ in range(count)]
        for offset, row in enumerate(rows, first):
            row |= {"topic": "t", "partition": 0, "offset": offset, "value": chance.randbytes(1000)}
            row |= {"timestamp_ms": NOW_MS, "timestampType": 0}
        files += parquet.write_files([pa.RecordBatch.from_pylist(rows, columns)], str(folder), columns, number)
        first += count
    bounds = Bounds(0, first, first, 0, first - 1)
    return Store(str(folder)), Manifest("", False, "read_committed", {"t": {0: bounds}}, files=tuple(files))


def test_records_that_are_chosen_stay_in_order(spark: SparkSession, tmp_path: Path) -> None:
    """Spark puts files into tasks by their sizes: here the first and the last one of four into one."""
    store, manifest = in_files(tmp_path / "whole", 200, 5, 5, 190)
    sizes = {"spark.sql.files.maxPartitionBytes": str(2 << 20), "spark.sql.files.openCostInBytes": str(1 << 20)}
    choice = Choice(where="true")
    try:
        for name, value in sizes.items():
            spark.conf.set(name, value)
        frame, chosen = export.chosen(spark, store, manifest, choice, str(tmp_path / "chosen"))
    finally:
        for name in sizes:
            spark.conf.unset(name)
    (target,) = targets(frame, chosen, choice)
    assert [offset for table in tables(target) for offset in table.column("offset").to_pylist()] == list(range(400))


def test_a_load_goes_into_empty_topics_only(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """A load refuses topics that hold records, and leaves them as they are."""
    manifest = export.export(spark, str(source), str(tmp_path / "out"), choice=Choice(topics=["timed"]))
    load(spark, tmp_path / "out", manifest, tmp_path / "data")
    with pytest.raises(LoadError, match="holds records already"):
        load(spark, tmp_path / "out", manifest, tmp_path / "data")


def through_a_cluster(
    spark: SparkSession | None, source: Path, folder: Path, choice: Choice
) -> tuple[list[list[Any]], list[list[Any]]]:
    """What an export holds that was loaded into a cluster, and what one of that cluster holds, without offsets."""
    manifest = export.export(spark, str(source), str(folder / "out"), choice=Choice(topics=["orders"]))
    server = Started(command_line(port=0, control_port="off"))
    try:
        address = server.ready.bootstrap_servers[0]
        wanted = targets(Store(str(folder / "out")), manifest, choice)
        with Cluster(address) as cluster:
            cluster.create(counts(wanted))
        assert loading.into_cluster(spark, address, wanted) == manifest.records
        (folder / "mirror").mkdir()
        with Cluster(address) as cluster:
            mirror(cluster, folder / "mirror", Choice())
    finally:
        server.stop()
    export.export(spark, str(folder / "mirror"), str(folder / "again"))
    kept = ("partition", "timestamp_ms", "key", "value", "headers")
    first, again = ([[row[name] for name in kept] for row in rows(folder / name)] for name in ("out", "again"))
    return first, again


def test_a_running_cluster_takes_a_load(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """New offsets; keys, values, headers and times as they were."""
    first, again = through_a_cluster(spark, source, tmp_path, Choice(renamed={"orders": "copy"}))
    assert again == first != []


def timed_export(folder: Path, *times_ms: list[int]) -> list[Target]:
    """An export of one topic, with records of these times in its partitions; the targets of a load at double speed."""
    columns = parquet.schema(producers=False)
    files: list[ExportedFile] = []
    for partition, times in enumerate(times_ms):
        rows = [dict.fromkeys(columns.names) for _ in times]
        for offset, (row, at_ms) in enumerate(zip(rows, times, strict=True)):
            row |= {"topic": "t", "partition": partition, "offset": offset, "timestamp_ms": at_ms, "timestampType": 0}
        batch = pa.RecordBatch.from_pylist(rows, columns)
        files += parquet.write_files([batch], str(folder), columns, partition)
    bounds = {partition: Bounds(0, len(times)) for partition, times in enumerate(times_ms)}
    manifest = Manifest("", False, "read_committed", {"t": bounds}, files=tuple(files))
    return targets(Store(str(folder)), manifest, Choice(), speed=2)


def test_speed_counts_from_the_first_record_of_all(tmp_path: Path) -> None:
    """In any year: at double speed, records half a second apart go out a quarter of a second apart.

    One task has three partitions, and each has its records when they are due, none after those of another partition.
    """
    wanted = timed_export(tmp_path, [NOW_MS, NOW_MS + 500, NOW_MS + 2000], [-1], [NOW_MS + 3000, NOW_MS + 1000])
    wanted = replay.begun(wanted, 5000.0)
    now_s = [5000.0]
    produced: list[tuple[int, float]] = []

    def wait(seconds: float) -> None:
        now_s[0] += seconds

    def produce(target: Target, _batch: bytearray) -> None:
        produced.append((target.partition, now_s[0] - 5000 - replay.LEAD_S))

    assert replay.replay(wanted, produce, now_s=lambda: now_s[0], sleep=wait) == [3, 1, 2]
    assert produced == [(0, 0), (1, 0), (0, 0.25), (0, 1), (2, 1.5), (2, 1.5)]


def test_a_replay_that_starts_late_catches_up(tmp_path: Path) -> None:
    """All tasks count from the moment that the driver named, not from their own start."""
    wanted = replay.begun(timed_export(tmp_path, [NOW_MS, NOW_MS + 500, NOW_MS + 20_000]), 5000.0)
    slept: list[float] = []
    started_s = 5000 + replay.LEAD_S + 4
    replay.replay(wanted, lambda _target, _batch: None, now_s=lambda: started_s, sleep=slept.append)
    assert slept == [0, 0, 6]


def test_a_replay_has_no_partition_that_waits_for_a_core(tmp_path: Path) -> None:
    """At a speed, no more tasks than run at once; else one for each partition."""
    wanted = timed_export(tmp_path, *([NOW_MS + each] for each in range(5)))
    shares = replay.shared_out(wanted, 2)
    assert [[each.partition for each in share] for share in shares] == [[0, 2, 4], [1, 3]]
    assert len(replay.shared_out(wanted, 8)) == 5
    assert len(replay.shared_out([replace(each, speed=0.0) for each in wanted], 2)) == 5


def test_choices_are_parsed_or_refused() -> None:
    """Each error names the option and shows its form."""
    assert parse_offsets("5:") == (5, None)
    assert parse_offsets(":7") == (None, 7)
    assert parse_time("--since", "2023-11-14T22:13:20") == NOW_MS - 1_000_000
    assert parse_time("--since", "2023-11-14T23:13:20+01:00") == NOW_MS - 1_000_000
    assert parse_sample("10%") == 0.1
    assert parse_pairs("--topic-map", ["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    for refused in (
        lambda: parse_offsets("5"),
        lambda: parse_offsets("a:b"),
        lambda: parse_time("--since", "yesterday"),
        lambda: parse_sample("2"),
        lambda: parse_pairs("--mask", ["offset=1"], ["key"]),
    ):
        with pytest.raises(ChoiceError, match="--"):
            refused()
    assert is_bootstrap("localhost:9092")
    assert is_bootstrap("a:1,b:2")
    assert not is_bootstrap("s3://bucket/a")
    assert not is_bootstrap("/data:9")
    with pytest.raises(LoadError, match="two topics would become a"):
        targets(Store("x"), Manifest("", False, "", {"a": {}, "b": {}}), Choice(renamed={"b": "a"}))


def test_a_folder_with_files_that_belong_to_no_export_is_refused(tmp_path: Path) -> None:
    """With or without permission to overwrite; what a file manager leaves is no reason to refuse."""
    (tmp_path / ".DS_Store").write_text("mine")
    export.prepare(Store(str(tmp_path)), overwrite=False)
    (tmp_path / "topic=orders").mkdir()
    (tmp_path / "topic=orders" / "part-00000-0000.parquet").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(ManifestError, match=r"is not empty and holds no export \(topic=orders\); choose an empty"):
            export.prepare(Store(str(tmp_path)), overwrite=overwrite)
    assert (tmp_path / "topic=orders" / "part-00000-0000.parquet").read_text() == "mine"


@pytest.mark.parametrize("path", ["../mine.txt", "topic=a/../../mine.txt", "/etc/hostname"])
def test_a_manifest_names_files_of_its_own_folder_only(tmp_path: Path, path: str) -> None:
    """Otherwise replacing the export would remove files that are not its own."""
    (tmp_path / "mine.txt").write_text("mine")
    file = {"path": path, "topic": "a", "records": 0, "bytes": 0, "sha256": "", "parts": []}
    document = {"version": 1, "source": "x", "producers": False, "isolation": "read_committed", "topics": {}}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_manifest.json").write_text(json.dumps(document | {"files": [file]}))
    with pytest.raises(ManifestError, match="outside its folder"):
        export.prepare(Store(str(tmp_path / "out")), overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def grown(root: Path, batches: int) -> Path:
    """A log of so many steps: records, and transactions of which every second one is aborted."""
    where = Planting(root)
    log, other = where.shelf("orders"), where.shelf("orders", 1)
    for number in range(batches):
        at_ms = NOW_MS + 1000 * number
        log.data(3, at_ms=at_ms)
        log.data(2, producer=5, epoch=number, sequence=0, transactional=True, at_ms=at_ms)
        if number < batches - 1 or batches % 2:
            log.marker(5, number, committed=number % 2 == 0)
        if number > 2:
            other.data(1, at_ms=at_ms)
    return where.close()


def test_an_export_is_continued(spark: SparkSession, tmp_path: Path) -> None:
    """As often as the log has grown: in the end it has what one export of the whole log has, each record once."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    for batches in (2, 4, 4, 7):
        data = grown(tmp_path / f"data-{batches}-{len(list(tmp_path.iterdir()))}", batches)
        manifest = export.export(spark, str(data), str(out), append=True)
    once = export.export(spark, str(data), str(whole))
    assert rows(out) == rows(whole)
    assert manifest.topics == once.topics
    assert manifest.records == once.records > 20
    export.verify(Store(str(out)), manifest)
    assert len(manifest.files) > len(once.files)


def test_aborted_records_of_a_running_cluster_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """A copy of fetched batches has no transaction index: its markers decide."""
    data = grown(tmp_path / "data", 5)
    served(data, tmp_path / "mirror")
    export.export(spark, str(data), str(tmp_path / "one"))
    export.export(spark, str(tmp_path / "mirror"), str(tmp_path / "two"))
    assert rows(tmp_path / "one") == rows(tmp_path / "two") != []
