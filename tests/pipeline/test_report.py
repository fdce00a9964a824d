"""The reports on both engines, of a directory of which all is known; the storage judges compaction and retention."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.reports import answers, registry, render
from pipeline.reports.answers import Report
from pipeline.reports.asking import Selection, TablesOfReports
from pipeline.reports.duck_tables import DuckReportTables
from pipeline.reports.json_shape import MOST_PATHS, json_paths
from pipeline.reports.pictures import pictures
from pipeline.reports.registry import NoSuchReportError
from pipeline.spark_reader import SparkReader
from tests.pipeline import reported
from tests.pipeline.reported import DAY_MS

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]


class Reported:
    """A report, and what it is about."""

    def __init__(self, root: Path, now_ms: int, report: Report, tables: Callable[[Selection], TablesOfReports]) -> None:
        self.root, self.now_ms, self.report, self.tables = root, now_ms, report, tables

    def rows(self, name: str, topic: str) -> list[dict[str, Any]]:
        """A topic's rows of a report."""
        return [row for row in self.report.rows(name) if row["topic"] == topic]


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def reported_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """All reports of the directory and the journal, on one of the engines."""
    folder = tmp_path_factory.mktemp("reported")
    now_ms = reported.directory(folder / "data")
    journal = str(reported.journal(folder / "journal", folder / "scratch"))
    root = str(folder / "data")

    def tables(selection: Selection, with_journal: str | None = None) -> TablesOfReports:
        reader = None
        if request.param == "spark":
            reader = SparkReader(lambda: request.getfixturevalue("spark").sparkContext, small_bytes=-1, meantime=False)
        return DuckReportTables(root, with_journal, selection, reader)

    return Reported(folder / "data", now_ms, report_of(tables(Selection(("*",), now_ms, top=60), journal)), tables)


def report_of(tables: TablesOfReports) -> Report:
    """All reports."""
    try:
        tables.prepare(registry.chosen())
        tables_found = answers.ask_all(tables, registry.chosen())
        return Report("DATA", "JOURNAL", tables.topics, tables_found, answers.lags(tables))
    finally:
        tables.forget()


def test_both_engines_answer_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Both engines return the same rows for every report."""
    now_ms = reported.directory(tmp_path / "data")
    journal = str(reported.journal(tmp_path / "journal", tmp_path / "scratch"))
    root, selection = str(tmp_path / "data"), Selection(("*",), now_ms, top=60)
    one = report_of(DuckReportTables(root, journal, selection))
    other = report_of(
        DuckReportTables(
            root, journal, selection, SparkReader(lambda: spark.sparkContext, small_bytes=-1, meantime=False)
        )
    )
    for left, right in zip(one.answers, other.answers, strict=True):
        assert (left.question.name, left.count, left.columns) == (right.question.name, right.count, right.columns)
        assert [approximately(row) for row in left.rows] == [approximately(row) for row in right.rows], left.question
    assert sorted(map(str, one.lags)) == sorted(map(str, other.lags))


def approximately(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose shares are rounded: sums are made in another order."""
    return {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}


def test_sizes_are_those_of_the_files(reported_run: Reported) -> None:
    """Bytes as the disk has them; records without markers."""
    for topic in ("skewed", "table", "random"):
        (row,) = reported_run.rows("size", topic)
        files = sum(path.stat().st_size for path in reported_run.root.glob(f"{topic}-*/*.log"))
        assert row["bytes"] == files, topic
    (table,) = reported_run.rows("size", "table")
    assert (table["records"], table["segments"], table["partitions"]) == (18, 5, 1)
    assert sum(row["share"] for row in reported_run.report.rows("size")) == pytest.approx(1)


def test_skew_names_the_fullest_partition_and_the_key_behind_it(reported_run: Reported) -> None:
    """60, 20, 20 and 0 records of 100; the key `hot` has half of them."""
    (skew,) = reported_run.rows("skew", "skewed")
    assert (skew["hottest_key"], skew["hottest_share"], skew["hottest_partition"]) == ("hot", 0.5, 0)
    assert (skew["fullest_partition"], skew["most_times_the_mean"], skew["empty_partitions"]) == (0, 2.4, 1)
    assert [row["times_the_mean"] for row in reported_run.rows("partitions", "skewed")] == [2.4, 0.8, 0.8, 0]
    (keys,) = reported_run.rows("keys", "skewed")
    assert (keys["keys"], keys["without_key"], keys["keys_of_half"], keys["scattered_keys"]) == (49, 1, 1, 1)
    hottest, scattered = reported_run.rows("hot-keys", "skewed")[:2]
    assert (hottest["key"], hottest["records"], hottest["share"], hottest["main_partition"]) == ("hot", 50, 0.5, 0)
    assert (scattered["key"], scattered["partitions"]) == ("k0", 2)
    assert {row["key"][:4] for row in reported_run.rows("hot-keys", "skewed") if row["main_partition"] == 2} >= {"X'FF"}


def test_compaction_removes_what_the_report_predicted(reported_run: Reported, tmp_path: Path) -> None:
    """Cleaned by the storage itself: each partition has as many records left as the preview left it."""
    copy = shutil.copytree(reported_run.root, tmp_path / "data")
    left = reported.kept(copy, reported_run.now_ms, clean=True)
    rows = [row for row in reported_run.report.rows("compaction") if row["is_compacted"] and row["topic"] != "both"]
    assert {(row["topic"], row["partition"]): row["records"] - row["removable_records"] for row in rows} == {
        (row["topic"], row["partition"]): left[row["topic"], row["partition"]] for row in rows
    }
    (table,) = reported_run.rows("compaction", "table")
    received = {name: table[name] for name in ("superseded", "aborted", "without_key", "tombstones", "later_records")}
    assert received == {"superseded": 6, "aborted": 2, "without_key": 1, "tombstones": 0, "later_records": 3}
    assert (table["is_due"], table["cleanable_to"]) == (True, 16)
    assert 0 < table["removable_bytes"] < table["bytes"]


@pytest.mark.parametrize(
    "what_if", [{}, {"retention_ms": 5 * DAY_MS}, {"retention_bytes": 700}, {"retention_ms": -1, "retention_bytes": 0}]
)
def test_retention_deletes_what_the_report_predicted(
    reported_run: Reported, tmp_path: Path, what_if: dict[str, int]
) -> None:
    """With the topics' own settings, and with others: by the storage's own rules."""
    policies = {"both": ("compact", "delete"), "__consumer_offsets": ("compact",)}
    known = {row["topic"]: tuple(row["cleanup_policy"].split(",")) for row in reported_run.report.rows("retention")}
    assert {name: known[name] for name in policies} == policies
    if what_if:
        tables = reported_run.tables(Selection(("*",), reported_run.now_ms, **what_if))
        tables.prepare([registry.questions()["retention"]])
        rows = answers.ask(tables, registry.questions()["retention"]).rows
        tables.forget()
    else:
        rows = reported_run.report.rows("retention")
    copy = shutil.copytree(reported_run.root, tmp_path / "data")
    left = reported.kept(copy, reported_run.now_ms, clean=False, what_if=what_if)
    received = {(row["topic"], row["partition"]): _records(reported_run, row) - row["removed_records"] for row in rows}
    assert received == {key: left[key] for key in received}
    assert any(row["removed_records"] for row in rows)


def _records(reported_run: Reported, row: dict[str, Any]) -> int:
    (partition,) = [
        each for each in reported_run.rows("partitions", row["topic"]) if each["partition"] == row["partition"]
    ]
    return int(partition["records"])


def test_lag_is_the_end_less_what_was_committed(reported_run: Reported) -> None:
    """Lag is the end offset less the last committed one."""
    rows = {
        (row["topic"], row["partition"]): (row["committed_offset"], row["lag"])
        for row in reported_run.report.rows("lag")
    }
    assert rows == {("skewed", 0): (45, 15), ("skewed", 1): (20, 0)}


def test_lag_history_follows_commits_and_fetches(reported_run: Reported) -> None:
    """A group's last commit is the committed transaction's, not the aborted one's; without a group, fetches count."""
    rows = {row["reader"]: row for row in reported_run.report.rows("lag-history")}
    assert (rows["group"]["position"], rows["group"]["log_end"], rows["group"]["lag"]) == (50, 100, 50)
    assert (rows["apart"]["kind"], rows["apart"]["position"], rows["apart"]["most_lag"]) == ("client", 4, 96)
    assert rows["apart"]["trend"] == rows["group"]["trend"] == "steady"
    lags = [row["lag"] for row in reported_run.report.lags if row["reader"] == "group"]
    assert max(lags) == lags[-2] == 60
    assert lags[-1] == 50


def test_values_are_reported_by_kind_and_shape(reported_run: Reported) -> None:
    """Shares of the paths, nulls, types, and an example of each."""
    kinds = {row["kind"]: row["sampled"] for row in reported_run.rows("values", "shapes")}
    assert kinds == {
        "JSON object": 9, "JSON array": 1, "JSON scalar": 1, "text": 1, "empty": 1, "binary": 1, "null": 1,
        "schema registry": 1,
    }  # fmt: skip
    (registered,) = [row for row in reported_run.rows("values", "shapes") if row["kind"] == "schema registry"]
    assert registered["schema_ids"] == ["7"]
    paths = {row["path"]: row for row in reported_run.rows("json-shape", "shapes")}
    assert (paths["$.id"]["types"], paths["$.id"]["present_share"]) == ("integer or string", pytest.approx(9 / 11))
    assert (paths["$.name"]["types"], paths["$.name"]["null_share"]) == ("null or string", 0.25)
    assert (paths["$.lines[].n"]["types"], paths["$.lines[].n"]["least"]) == ("number", "1.5")
    assert paths['$["a b"]']["types"] == "boolean"


def test_paths_are_bounded() -> None:
    """Objects that are used as maps, and depth without end."""
    assert len(json_paths(json.dumps({f"k{number}": 1 for number in range(2 * MOST_PATHS)}))) == MOST_PATHS
    assert len(json_paths("[" * 900 + "]" * 900)) == 21
    assert json_paths("[" * 200_000) == json_paths("{") == json_paths(None) == []


def test_every_format_has_every_report(reported_run: Reported) -> None:
    """Tables, JSON, a page with its pictures; and valid PNG files."""
    table, received = render.as_table(reported_run.report), json.loads(render.as_json(reported_run.report))
    drawn = pictures(reported_run.report)
    page = render.as_html(reported_run.report, drawn)
    assert {name for name, _ in drawn} == {"size", "skew", "hot-keys", "compaction", "retention", "lag-history"}
    assert all(picture.png.startswith(b"\x89PNG") for _, picture in drawn)
    for question in registry.questions().values():
        assert f"{question.name}: {question.title}" in table
        assert (received["reports"][question.name]["count"] > 0) == (question.name != "lost"), "nothing is lost there"
        assert f"id='{question.name}'" in page
    assert "#000000" not in page
    assert page.count("<svg") == len(drawn)


def test_reports_are_chosen_by_name() -> None:
    """Without a journal none of it; an unknown name with the nearest one."""
    assert "lag-history" not in [each.name for each in registry.chosen(journal=False)]
    assert [each.name for each in registry.chosen(["keys", "size"], ["size"])] == ["keys"]
    with pytest.raises(NoSuchReportError, match="did you mean retention"):
        registry.chosen(["retension"])
    with pytest.raises(NoSuchReportError, match="needs --journal"):
        registry.chosen(["lag-history"], journal=False)


def test_every_report_explains_itself() -> None:
    """Every report has an explanation, and is listed in the documentation."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "data-directories.md").read_text(encoding="utf-8")
    for question in registry.questions().values():
        assert len(question.explanation) > 60, question.name
        assert f"| `{question.name}` | {question.title}" in page


def test_nothing_wanted_is_refused(reported_run: Reported) -> None:
    """A report on topics that do not exist is refused with the names of those that do."""
    with pytest.raises(FileNotFoundError, match=r"no topic that is wanted; it has .*aged"):
        reported_run.tables(Selection(("nonsense",), reported_run.now_ms))
