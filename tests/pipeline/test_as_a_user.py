"""What real clients leave behind: an audit finds nothing in it, in ours or in Kafka's; and an export brings it back."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.audits.tables import Tables
from pipeline.transfer import exporting
from tests.pipeline import traffic
from tests.pipeline.test_transfer import load
from tests.serving import start
from tests.storage.kafka_tools import need_kafka
from tests.swap.nodes import Node

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]


def found(spark: SparkSession, data: Path, journal: Path | None = None, only: tuple[str, ...] = ()) -> set[str]:
    """The checks that found something."""
    tables = Tables(spark, str(data), str(journal) if journal else None)
    tables.register(records=True)
    asked = chosen(only, has=["records", "journal"] if journal else ["records"])
    names = {finding.check.name for finding in ask_all(spark, asked)}
    tables.forget()
    return names


def test_a_clean_run_of_ours_has_no_findings_and_a_flipped_bit_has(spark: SparkSession, tmp_path: Path) -> None:
    """With its journal; then a byte flips. Exported and loaded again, a consumer sees the same."""
    data, journal = tmp_path / "data", tmp_path / "journal"
    server = start(data_dir=data, journal=journal)
    traffic.make(server.ready.bootstrap_servers[0])
    seen = traffic.read(server.ready.bootstrap_servers[0])
    server.stop()
    assert found(spark, data, journal) == set()
    out, again = tmp_path / "out", tmp_path / "again"
    load(spark, out, exporting.export(spark, str(data), str(out)), again)
    server = start(data_dir=again)
    assert traffic.read(server.ready.bootstrap_servers[0]) == seen
    server.stop()
    log = min((data / "plain-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    assert found(spark, data, only=("batch-crc",)) == {"batch-crc"}


def test_a_clean_run_of_kafka_has_no_findings(spark: SparkSession, tmp_path: Path) -> None:
    """The same clients, on Apache Kafka."""
    need_kafka()
    node = Node(tmp_path)
    node.start_kafka()
    try:
        traffic.make(node.bootstrap)
    finally:
        node.stop()
    assert found(spark, node.data) == set()
