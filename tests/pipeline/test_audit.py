"""Audits of what Spark decoded: every planted fault is found by its own check, and nothing else is."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from pathlib import Path
from threading import Event

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipeline import spark_reader, workers
from pipeline.audits import html_report, logs, render
from pipeline.audits.engine import EngineError
from pipeline.audits.findings import Finding, Report, ask_all, totals
from pipeline.audits.history import HISTORY
from pipeline.audits.registry import NEEDS, chosen
from pipeline.commands import audit as command
from pipeline.duck import engine as duck_engine
from pipeline.duck.engine import DuckEngine
from pipeline.duck.tables import DuckTables
from pipeline.pieces import Piece
from pipeline.spark_reader import SparkReader
from tests.pipeline import (
    broker_faults,
    journal_faults,
    log_faults,
)
from tests.pipeline.audited import findings_of
from tests.pipeline.fault_files import one_batch
from tests.pipeline.journal_faults import FoundCall
from tests.pipeline.log_faults import LogFinding

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


def everything_on(spark: SparkSession) -> SparkReader:
    """Spark decodes all pieces, however small."""
    return SparkReader(lambda: spark.sparkContext, small_bytes=-1, meantime=False)


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def of_logs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[set[LogFinding], Report, str]]:
    """What was planted in a directory, what all checks of logs found, and the page that shows it."""
    root = tmp_path_factory.mktemp("planted") / "data"
    wanted = log_faults.planted(root)
    on_spark = request.param == "spark"
    tables = DuckTables(str(root), None, everything_on(request.getfixturevalue("spark")) if on_spark else None)
    tables.register(records=True)
    checks = chosen(has=["records"])
    report = Report(str(root), None, checks, ask_all(tables.engine, checks), totals(tables.engine))
    yield wanted, report, html_report.as_html(report, html_report.draw(tables.engine, report.findings))
    tables.forget()


@pytest.mark.parametrize("of_logs", ["spark"], indirect=True)
def test_every_fault_in_a_log_is_found_and_nothing_else(of_logs: tuple[set[LogFinding], Report, str]) -> None:
    """Faults of every file and field beside topics that are odd and right: each at its place, under its own name.

    On DuckDB in test_small.py.
    """
    wanted, report, _ = of_logs
    reported = [
        LogFinding(finding.check.name, row["topic"], row["partition"], row.get("offset"))
        for finding in report.findings
        for row in finding.rows
    ]
    assert set(reported) == wanted


@pytest.mark.parametrize("of_logs", ["spark"], indirect=True)
def test_duckdb_finds_the_same_in_a_log(of_logs: tuple[set[LogFinding], Report, str]) -> None:
    """Every check, row by row and column by column, and the same picture."""
    _, report, page = of_logs
    tables = DuckTables(report.path)
    tables.register(records=True)
    findings = ask_all(tables.engine, report.checks)
    assert [comparable(each) for each in findings] == [comparable(each) for each in report.findings]
    assert totals(tables.engine) == report.totals
    other = Report(report.path, None, report.checks, findings, report.totals)
    drawn = html_report.draw(tables.engine, findings)
    tables.forget()
    assert len(html_report.as_html(other, drawn)) == pytest.approx(len(page), rel=0.01)


def comparable(finding: Finding) -> tuple[str, int, list[str]]:
    """A finding without the order of rows that are alike, and of sets."""
    rows = [
        {name: sorted(value, key=repr) if isinstance(value, list) else value for name, value in row.items()}
        for row in finding.rows
    ]
    return finding.check.name, finding.count, sorted(map(repr, rows))


def test_faults_between_brokers_are_found_and_nothing_else(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas that differ, directories of two clusters, records in the wrong partition, files of a whole directory.

    Their rows come in files, as those of larger directories do.
    """
    monkeypatch.setattr(duck_engine, "TABLE_ROWS", 0)
    wanted = broker_faults.planted(tmp_path / "data")
    assert _between_brokers(spark, tmp_path / "data", wanted) == wanted


def test_log_directories_of_one_broker_are_audited_together(spark: SparkSession, tmp_path: Path) -> None:
    """A partition in two of them, and a directory of another topic; in order, there is no finding.

    That no other check has one there either is shown in test_small.py.
    """
    wanted = broker_faults.planted_disks(tmp_path / "data")
    assert _between_brokers(spark, tmp_path / "data", wanted) == wanted
    broker_faults.clean_disks(tmp_path / "clean")
    assert _between_brokers(spark, tmp_path / "clean", wanted) == set()


def _between_brokers(spark: SparkSession, root: Path, wanted: broker_faults.Expected) -> broker_faults.Expected:
    names = sorted({name for name, _ in wanted})
    return {
        (finding.check.name, row.get("what") or row.get("file") or row["topic"])
        for finding in findings_of(root, *names, reader=everything_on(spark))
        for row in finding.rows
    }


def test_a_hanging_transaction_is_reported_with_what_it_pins(of_logs: tuple[set[LogFinding], Report, str]) -> None:
    """How old it is, how much waits behind it, and what its coordinator believes."""
    _, report, _ = of_logs
    rows = next(finding.rows for finding in report.findings if finding.check.name == "transaction-hanging")
    unknown, finished = rows
    assert (unknown["pinned_offsets"], unknown["coordinator_state"]) == (6, None)
    assert (finished["transactional_id"], finished["coordinator_state"]) == ("hanging", "CompleteAbort")
    assert unknown["age_ms"] > finished["age_ms"] > 0


def test_the_page_shows_the_picture_before_the_findings(of_logs: tuple[set[LogFinding], Report, str]) -> None:
    """It needs no other file, and every check has its place in it."""
    _, report, text = of_logs
    assert text.index("<svg") < text.index("What was found") < text.index("id='batch-crc'")
    assert "http" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "https://matplotlib.org", ""
    ).replace("http://creativecommons.org", "")
    assert all(check.name in text for check in report.checks)


def test_every_fault_in_a_journal_is_found_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    """The journal against the logs, and every passive invariant; beside traffic that is in order."""
    wanted = journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    names = [check.name for check in chosen(has=NEEDS) if "journal" in check.needs]
    findings, small = (
        findings_of(tmp_path / "data", *names, journal=tmp_path / "journal", reader=reader)
        for reader in (everything_on(spark), None)
    )
    reported = [FoundCall(finding.check.name, row["id"]) for finding in findings for row in finding.rows]
    assert sorted(reported) == sorted(wanted)
    assert [comparable(each) for each in small] == [comparable(each) for each in findings]


def test_what_spark_cannot_read_is_an_error_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """A file that is gone when the task opens it; the same pieces are read while it is there."""
    one_batch(tmp_path)
    pieces = logs.whole(logs.logs_of([str(tmp_path)]))
    engine, reader = DuckEngine(), everything_on(spark)
    reader.read(engine, {"history": HISTORY}, logs.read_history, pieces)
    assert engine.plain("SELECT record_count FROM history WHERE topic = 'orders'").to_pylist() == [{"record_count": 3}]
    (tmp_path / "orders-0" / f"{0:020d}.log").unlink()
    with pytest.raises(EngineError, match=r"^FileNotFoundError: .*orders-0"):
        reader.read(engine, {"history": HISTORY}, logs.read_history, pieces)
    reader.close()
    engine.close()


@pytest.mark.parametrize(("megabytes", "tasks"), [(100, []), (1100, [3])])
def test_this_process_decodes_until_spark_has_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int, tasks: list[int]
) -> None:
    """Unless a piece would take longer than the start does; what comes after the start is left to Spark."""
    one_batch(tmp_path)
    (log,) = (each.what for each in logs.whole(logs.logs_of([str(tmp_path)])) if each.what[1].topic == "orders")
    may_start, counts = Event(), list[int]()

    def start() -> SparkContext:
        assert may_start.wait(60)
        return spark.sparkContext

    def run(context: SparkContext, task: Callable[[int], Iterable[object]], count: int) -> list[object]:
        counts.append(count)
        return workers.run(context, task, count)

    monkeypatch.setattr(spark_reader, "run", run)
    engine, reader = DuckEngine(), SparkReader(start)
    if tasks:
        may_start.set()
    for expected in (tasks, [*tasks, 3]):
        reader.read(engine, {"history": HISTORY}, logs.read_history, [Piece(log, megabytes << 20)] * 3)
        assert (counts, engine.plain("SELECT count(*) AS n FROM history").to_pylist()) == (expected, [{"n": 3}])
        may_start.set()
        wait([reader.started])
    reader.close()
    engine.close()


def test_a_directory_without_logs_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing to look at is an error, not a clean bill."""
    with pytest.raises(FileNotFoundError, match="no partition"):
        DuckTables(str(tmp_path), None, everything_on(spark))


def test_a_journal_without_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one sentence and before Spark starts, not with a worker's traceback."""
    options = {**dict.fromkeys(("list", "show", "records")), "dir": str(tmp_path), "journal": str(tmp_path)}
    with pytest.raises(SystemExit) as refused:
        command.main({**options, "only": [], "without": [], "quiet": True})
    assert refused.value.code == 2
    assert "no journal there" in capsys.readouterr().err


def test_reports_as_table_json_and_junit(of_logs: tuple[set[LogFinding], Report, str]) -> None:
    """Table, JSON and JUnit report the same findings."""
    import json  # noqa: PLC0415 - for this test alone
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - as above

    _, report, _ = of_logs
    table = render.as_table(report)
    assert "ERROR sequence-gap: sequence numbers are missing (1)" in table
    assert table.splitlines()[-1].endswith(f"{len(report.findings)} kinds")
    answer = json.loads(render.as_json(report))
    assert {each["check"]: each["count"] for each in answer["findings"]} == {
        finding.check.name: finding.count for finding in report.findings
    }
    suite = ET.fromstring(render.as_junit(report))  # noqa: S314 - our own
    assert suite.get("tests") == str(len(report.checks))
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {finding.check.name for finding in report.at_least("warning")}
