"""The audits on Spark: every planted fault is found by its own check, and nothing else is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.audits import page, shown
from pipeline.audits.findings import Report, ask_all, totals
from pipeline.audits.registry import NEEDS, chosen
from pipeline.audits.tables import Tables
from pipeline.commands import audit as command
from tests.pipeline import planted, wire_planted
from tests.pipeline.planted import Found
from tests.pipeline.wire_planted import FoundCall

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def of_logs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[set[Found], Report, str]]:
    """What was planted in a directory, what all checks of logs found, and the page that tells it."""
    root = tmp_path_factory.mktemp("planted") / "data"
    wanted = planted.planted(root)
    tables = Tables(spark, str(root))
    tables.register(records=True)
    asked = chosen(has=["records"])
    report = Report(str(root), None, asked, ask_all(spark, asked), totals(spark))
    yield wanted, report, page.as_html(report, page.draw(spark, report.findings))
    tables.forget()


def test_every_fault_in_a_log_is_found_and_nothing_else(of_logs: tuple[set[Found], Report, str]) -> None:
    """Thirty faults beside topics that are odd and right: each is told once, at its place, by its own check."""
    wanted, report, _ = of_logs
    found = [
        Found(finding.check.name, row["topic"], row["partition"], row["offset"])
        for finding in report.findings
        for row in finding.rows
    ]
    assert sorted(found) == sorted(wanted)
    assert sum(finding.count for finding in report.findings) == len(wanted)


def test_a_hanging_transaction_tells_what_it_pins(of_logs: tuple[set[Found], Report, str]) -> None:
    """How old it is, how much waits behind it, and what its coordinator believes."""
    _, report, _ = of_logs
    rows = next(finding.rows for finding in report.findings if finding.check.name == "transaction-hanging")
    unknown, finished = rows
    assert (unknown["pinned_offsets"], unknown["coordinator_says"]) == (6, None)
    assert (finished["transactional_id"], finished["coordinator_says"]) == ("hanging", "CompleteAbort")
    assert unknown["age_ms"] > finished["age_ms"] > 0


def test_the_page_shows_the_picture_before_the_findings(of_logs: tuple[set[Found], Report, str]) -> None:
    """It needs no other file, and every check has its place in it."""
    _, report, text = of_logs
    assert text.index("<svg") < text.index("What was found") < text.index("id='batch-crc'")
    assert "http" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "https://matplotlib.org", ""
    ).replace("http://creativecommons.org", "")
    assert all(check.name in text for check in report.asked)


def test_every_fault_in_a_journal_is_found_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    """What the journal tells against the logs, and every passive invariant; beside traffic that is in order."""
    wanted = wire_planted.planted(tmp_path / "data", tmp_path / "journal")
    tables = Tables(spark, str(tmp_path / "data"), str(tmp_path / "journal"))
    tables.register()
    asked = [check for check in chosen(has=NEEDS) if "journal" in check.needs]
    found = [
        FoundCall(finding.check.name, row["id"]) for finding in ask_all(spark, asked) for row in finding.rows
    ]
    tables.forget()
    assert sorted(found) == sorted(wanted)


def test_a_directory_without_logs_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing to look at is an error, not a clean bill."""
    with pytest.raises(FileNotFoundError, match="no partition"):
        Tables(spark, str(tmp_path))


def test_a_journal_without_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one sentence and before Spark starts, not with a worker's traceback."""
    words = {**dict.fromkeys(("list", "show", "records")), "dir": str(tmp_path), "journal": str(tmp_path)}
    with pytest.raises(SystemExit) as refused:
        command.main({**words, "only": [], "without": [], "quiet": True})
    assert refused.value.code == 2
    assert "no journal lies there" in capsys.readouterr().err


def test_reports_as_table_json_and_junit(of_logs: tuple[set[Found], Report, str]) -> None:
    """The same findings in each form."""
    import json  # noqa: PLC0415 - for this test alone
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - as above

    _, report, _ = of_logs
    table = shown.as_table(report)
    assert "ERROR sequence-gap: sequence numbers are missing (1)" in table
    assert table.splitlines()[-1].endswith(f"{len(report.findings)} kinds")
    told = json.loads(shown.as_json(report))
    assert {each["check"]: each["count"] for each in told["findings"]} == {
        finding.check.name: finding.count for finding in report.findings
    }
    suite = ET.fromstring(shown.as_junit(report))  # noqa: S314 - our own
    assert suite.get("tests") == str(len(report.asked))
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {finding.check.name for finding in report.at_least("warning")}
