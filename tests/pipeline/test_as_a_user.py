"""What real clients leave behind: an audit finds nothing in it, in ours or in Kafka's; and an export brings it back."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from pipeline.spark_reader import SparkReader
from pipeline.transfer import export
from tests.pipeline import traffic
from tests.pipeline.audited import checks_that_find
from tests.pipeline.conftest import ROOT
from tests.pipeline.test_catalog import delta, iceberg, rows
from tests.pipeline.test_transfer import load
from tests.serving import start
from tests.storage.kafka_tools import need_kafka
from tests.swap.nodes import Node
from understudy.java import find_java

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]


def findings_of(spark: SparkSession, data: Path, journal: Path | None = None, only: tuple[str, ...] = ()) -> set[str]:
    """The checks that found something."""
    return checks_that_find(data, *only, journal=journal, reader=SparkReader(lambda: spark.sparkContext))


def test_a_clean_run_of_ours_has_no_findings_and_a_flipped_bit_has(spark: SparkSession, tmp_path: Path) -> None:
    """With its journal; then a byte flips. Exported and loaded again, a consumer sees the same."""
    data, journal = tmp_path / "data", tmp_path / "journal"
    server = start(data_dir=data, journal=journal)
    traffic.make(server.ready.bootstrap_servers[0])
    seen = traffic.read(server.ready.bootstrap_servers[0])
    server.stop()
    assert findings_of(spark, data, journal) == set()
    out, again = tmp_path / "out", tmp_path / "again"
    load(spark, out, export.export(spark, str(data), str(out)), again)
    server = start(data_dir=again)
    assert traffic.read(server.ready.bootstrap_servers[0]) == seen
    server.stop()
    log = min((data / "plain-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    assert findings_of(spark, data, only=("batch-crc",)) == {"batch-crc"}


def test_an_export_is_registered_by_the_command(tmp_path: Path) -> None:
    """As it is typed, with a path that is not absolute; the libraries of both formats then read every record."""
    server = start(data_dir=tmp_path / "data")
    traffic.make(server.ready.bootstrap_servers[0])
    server.stop()
    command = [
        sys.executable,
        "-m",
        "understudy",
        "export",
        "data",
        "out",
        "--register",
        "delta",
        "--register",
        "iceberg",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(find_java())}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, *places = done.stdout.splitlines()
    count = int(first.split()[0])
    answer = dict(line.split(": ", 1) for line in places)
    assert (list(answer), answer["delta"]) == (["delta", "iceberg"], "out")
    tables = (delta(tmp_path / answer["delta"]), iceberg(answer["iceberg"]))
    assert [len(rows(table)) for table in tables] == [count, count]
    exported = [str(path) for path in (tmp_path / "out").rglob("*.parquet")]
    assert count == ds.dataset(exported, format="parquet").count_rows() > 0


def test_a_clean_run_of_kafka_has_no_findings(spark: SparkSession, tmp_path: Path) -> None:
    """The same clients, on Apache Kafka."""
    need_kafka()
    node = Node(tmp_path)
    node.start_kafka()
    try:
        traffic.make(node.bootstrap)
    finally:
        node.stop()
    assert findings_of(spark, node.data) == set()
