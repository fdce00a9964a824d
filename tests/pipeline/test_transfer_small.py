"""Exports and loads without Spark: the same files and the same logs as with it, by commands that start none."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.transfer import export
from pipeline.transfer import load as loading
from pipeline.transfer.manifest import Manifest, ManifestError, Store
from pipeline.transfer.selection import Choice, ChoiceError
from pipeline.transfer.staging import Staging
from pipeline.transfer.targets import counts, targets
from pipeline.transfer.wire import Cluster
from pipeline.values.columns import Schemas
from tests.pipeline import log_faults
from tests.pipeline.conftest import ROOT
from tests.pipeline.fault_files import T0_MS, Planting
from tests.pipeline.test_interrupted import of_a_dead_process
from tests.pipeline.test_transfer import NOW_MS, grown, rows, serve, through_a_cluster

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of odd logs: transactions that end either way, compaction, append times, messages of old formats."""
    where = Planting(tmp_path_factory.mktemp("small") / "data")
    log_faults.clean(where)
    return where.close()


def nameless(manifest: Manifest) -> str:
    """The manifest without the name of its run, which is another each time."""
    text = manifest.encode()
    for each in manifest.files:
        topic, _run, task, number = each.path.rsplit("-", 3)
        text = text.replace(each.path, f"{topic}-{task}-{number}")
    return text


def contents(folder: Path, manifest: Manifest) -> list[bytes]:
    """The bytes of the files, in the manifest's order."""
    return [(folder / each.path).read_bytes() for each in manifest.files]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"producers": True},
        {"isolation": "read_uncommitted"},
        {"schemas": Schemas(is_wanted=True)},
        {"choice": Choice(offsets=(3, 9))},
        {"choice": Choice(times=(T0_MS + 5_000, T0_MS + 200_000), renamed={"orders": "copy"}), "producers": True},
        {"choice": Choice(topics=["order*"], offsets=(None, 20))},
    ],
    ids=["records", "producers", "uncommitted", "schema ids", "offsets", "times", "topics"],
)
def test_both_engines_write_the_same_files(
    spark: SparkSession, source: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """To the byte, and the same manifest: bounds, settings, ids, counts and checksums."""
    ours = export.export(None, str(source), str(tmp_path / "ours"), **options)
    theirs = export.export(spark, str(source), str(tmp_path / "theirs"), **options)
    assert ours.records > 5
    assert nameless(ours) == nameless(theirs)
    assert contents(tmp_path / "ours", ours) == contents(tmp_path / "theirs", theirs)


def test_an_export_without_spark_is_read_and_continued(tmp_path: Path) -> None:
    """By pandas and pyarrow, as a folder; `--append` goes on behind the last manifest, each record once."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    for batches in (2, 5, 5, 7):
        data = grown(tmp_path / f"data-{batches}-{len(list(tmp_path.iterdir()))}", batches)
        manifest = export.export(None, str(data), str(out), append=True)
    once = export.export(None, str(data), str(whole))
    assert rows(out) == rows(whole)
    assert manifest.topics == once.topics
    assert len(pd.read_parquet(out)) == pq.read_table(out).num_rows == manifest.records == once.records > 20
    export.verify(Store(str(out)), manifest)


def test_an_export_without_spark_that_is_killed_leaves_nothing_that_counts(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two files: the export of before is in force, and the next run removes what was left."""
    out = tmp_path / "out"
    before = export.export(None, str(source), str(out), choice=Choice(topics=["timed"]))
    monkeypatch.setattr(Staging, "discard", lambda _self: None)
    monkeypatch.setattr(Staging, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        export.export(None, str(source), str(out), overwrite=True)
    monkeypatch.undo()
    assert list(out.glob("_writing-*/*.parquet")) != []
    assert Store(str(out)).read_manifest() == before
    with pytest.raises(ManifestError, match="--overwrite"):
        export.prepare(Store(str(out)), overwrite=False)
    of_a_dead_process(out)
    after = export.export(None, str(source), str(out), overwrite=True)
    assert {path.name for path in out.iterdir()} == {"_manifest.json", *(each.path for each in after.files)}


def loaded(spark: SparkSession | None, out: Path, manifest: Manifest, directory: Path) -> dict[str, str]:
    """Load into a new directory; the checksum of each segment."""
    wanted = targets(Store(str(out)), manifest, Choice())
    server = serve(directory)
    try:
        with Cluster(server.ready.bootstrap_servers[0]) as cluster:
            cluster.create(counts(wanted))
    finally:
        server.stop()
    assert loading.into_directory(spark, str(directory), wanted, NOW_MS) == manifest.records
    logs = [path for path in directory.glob("*/*.log") if not path.parent.name.startswith("__")]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in logs}


def test_both_engines_load_the_same_logs(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Segments to the byte, also of records that were chosen from an export."""
    manifest = export.export(None, str(source), str(tmp_path / "out"), producers=True)
    ours = loaded(None, tmp_path / "out", manifest, tmp_path / "ours")
    assert ours == loaded(spark, tmp_path / "out", manifest, tmp_path / "theirs")
    assert len(ours) > 5
    choice = Choice(offsets=(2, 12), times=(T0_MS, None))
    whole = Store(str(tmp_path / "out"))
    chosen = [
        export.chosen(engine, whole, manifest, choice, str(tmp_path / name))[1]
        for engine, name in ((None, "a"), (spark, "b"))
    ]
    assert replace(chosen[0], files=()) == replace(chosen[1], files=())
    assert rows(tmp_path / "a") == rows(tmp_path / "b") != []


def test_a_running_cluster_takes_a_load_without_spark(source: Path, tmp_path: Path) -> None:
    """Every record, with its key, value, headers and time."""
    first, again = through_a_cluster(None, source, tmp_path, Choice())
    assert again == first != []


@pytest.mark.parametrize("choice", [Choice(where="offset > 3"), Choice(sample=0.5), Choice(masks={"value": "null"})])
def test_what_takes_sql_needs_a_session(source: Path, tmp_path: Path, choice: Choice) -> None:
    """An expression is Spark's, and so is the hash that samples keys; the command starts it for any size."""
    with pytest.raises(ChoiceError, match="need Spark"):
        export.export(None, str(source), str(tmp_path / "out"), choice=choice)
    assert not choice.needs_sql or not (tmp_path / "out" / "_manifest.json").exists()


def test_small_commands_start_neither_spark_nor_java(source: Path, tmp_path: Path) -> None:
    """In a process in which neither can be imported or found; damage is one sentence; larger files need Spark."""
    code = "import sys; sys.modules['pyspark'] = None; from understudy.cli import main; sys.exit(main(sys.argv[1:]))"

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments), "--quiet"],
            capture_output=True, text=True, check=False, timeout=120, cwd=ROOT, env={"PATH": ""},
        )  # fmt: skip

    exported = run("export", source, tmp_path / "out", "--topic", "orders")
    assert (exported.returncode, exported.stderr) == (0, "")
    records = json.loads((tmp_path / "out" / "_manifest.json").read_text())["topics"]["orders"]["partitions"]["0"]
    assert records["records"] == 30
    load = run("load", tmp_path / "out", "--to", tmp_path / "data")
    assert (load.returncode, load.stderr) == (0, "")
    assert load.stdout.split(" in ")[0] == exported.stdout.split(" in ")[0]
    for refused in (
        run("export", source, tmp_path / "none", "--spark-above", "0"),
        run("export", source, tmp_path / "none", "--where", "offset > 3"),
        run("load", tmp_path / "out", "--to", tmp_path / "more", "--sample", "10%"),
    ):
        assert refused.returncode == 2
        assert "pyspark is not installed" in refused.stderr
    damaged = Planting(tmp_path / "damaged")
    log = damaged.shelf("orders")
    log.data(3)
    log.data(3)
    damaged.close()
    log.log_path.write_bytes(log.log_path.read_bytes()[:90] + b"\xff" + log.log_path.read_bytes()[91:])
    failed = run("export", tmp_path / "damaged", tmp_path / "none")
    assert failed.returncode == 1
    assert "checksum" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
