"""Audits of what is small, on DuckDB and without Spark: planted faults, the dialect of queries, the commands."""

import resource
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.amounts import Amount, amount_of
from pipeline.audits.findings import Finding, ask_all
from pipeline.audits.logs import logs_of
from pipeline.audits.registry import NEEDS, checks, chosen
from pipeline.commands import engines
from pipeline.commands.engines import (
    BATCHES,
    EXPORTED,
    LOADED,
    RECORDS,
    cores_of,
    is_left_to_spark,
    is_small,
    seconds_of,
    suits_spark,
)
from pipeline.commands.progress import LINE_EVERY_S, Progress
from pipeline.conformance import run
from pipeline.duck.dialect import in_duckdb
from pipeline.duck.engine import DuckEngine
from pipeline.duck.tables import DuckTables, register_conformance
from pipeline.live.counts import TABLES as COUNT_TABLES
from pipeline.live.tables import TABLES as LIVE_TABLES
from storage.checkpoints import CLEAN_SHUTDOWN, EpochEntry
from tests.pipeline import broker_faults, journal_faults, live_faults, log_faults
from tests.pipeline.audited import checks_that_find, findings_of, tables_of
from tests.pipeline.fault_files import Planting, one_batch
from tests.pipeline.journal_faults import FoundCall
from tests.pipeline.log_faults import LogFinding
from tools.fill_directory import Filling, fill

ROOT = Path(__file__).resolve().parents[2]
SECONDS_OF_A_PROCESSOR = 45
"""The most that four commands may take."""
EXPRESSIONS: dict[str, object] = {
    "concat('a', CAST(NULL AS STRING))": None,
    "get(array(1, 2), 0) + element_at(array(1, 2), 2)": 3,
    "div(-7, 2) + pmod(-7, 4)": -2,
    "array_sort(array(2, CAST(NULL AS INT), 1))": [1, 2, None],
    "sort_array(array(2, CAST(NULL AS INT), 1))": [None, 1, 2],
    "array_distinct(array(3, 1, 3))": [3, 1],
    "array_join(array_except(array('a', 'b', 'a', 'c'), array('c')), '/')": "a/b",
    "regexp_replace('a.b.c', '[.]', '')": "abc",
    "split('a1b22c', '[0-9]+')": ["a", "b", "c"],
    """from_json('{"a": 1, "b": [{"c": "d"}]}', 'a INT, b ARRAY<STRUCT<c: STRING, d ARRAY<BIGINT>>>')""": {
        "a": 1,
        "b": [{"c": "d", "d": None}],
    },
    "(SELECT max_by(a, b) FROM (VALUES (1, 1), (CAST(NULL AS INT), 2)) t(a, b))": None,
    "(SELECT array_sort(collect_set(a)) FROM (VALUES (2), (NULL), (1)) t(a))": [1, 2],
    "(SELECT max(b) FROM (SELECT first_value(a) OVER (ORDER BY a) AS b FROM (VALUES (1), (NULL)) t(a)) u)": None,
    "(SELECT sum(b) FROM (SELECT last_value(if(a = 1, a, NULL)) IGNORE NULLS OVER (ORDER BY a) AS b"
    " FROM (VALUES (1), (2)) t(a)) u)": 2,
    "(SELECT sum(b) FROM (VALUES (array(1, 2)), (NULL)) t(a) LEFT JOIN LATERAL explode(a) AS items(b) ON true)": 3,
    "size(filter(transform(array(1, 2), item -> item + 1), item -> item > 2))": 1,
}
"""What both engines must calculate."""


def test_every_fault_in_a_log_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Each at its place, under its own name, beside topics that are odd and right."""
    wanted = log_faults.planted(tmp_path)
    reported = {
        LogFinding(finding.check.name, row["topic"], row["partition"], row.get("offset"))
        for finding in findings_of(tmp_path)
        for row in finding.rows
    }
    assert reported == wanted


def epochs_ahead(where: Planting) -> None:
    """DeleteRecords up to the end, and a new leader epoch; the checkpoint of log start offsets is behind."""
    where.shelf("pruned").data(4)
    where.shelf("pruned").epochs = [EpochEntry(0, 2)]
    where.shelf("forgotten").data(4)
    where.shelf("forgotten").epochs = [EpochEntry(0, 2)]
    where.led["forgotten"] = (1,)
    where.shelf("emptied").data(4)
    where.shelf("emptied").data(1, leader_epoch=1)
    where.shelf("emptied").epochs = [EpochEntry(1, 4)]
    where.shelf("returned").data(4)
    where.shelf("returned").data(1, leader_epoch=1)
    where.shelf("returned").epochs = [EpochEntry(0, 2), EpochEntry(1, 4)]
    where.shelf("removed").data(2)
    where.shelf("removed").data(3, leader_epoch=1)
    where.shelf("removed").data(3, leader_epoch=2)
    where.shelf("removed").epochs = [EpochEntry(0, 0), EpochEntry(2, 5)]
    where.close()


def test_a_broker_that_runs_writes_epochs_before_the_start_of_the_log(tmp_path: Path) -> None:
    """As a real broker does when it prunes `__share_group_state`. After a clean stop it would be a fault.

    Unless a later epoch follows, in the log or only in the metadata (`forgotten`): then the broker was killed, and the
    records that it had deleted are back.
    """
    names = ["leader-epoch-checkpoint", "leader-epoch-entries", "records-returned"]
    epochs_ahead(Planting(tmp_path / "stopped"))
    assert between(tmp_path / "stopped", names) == {
        (names[0], "pruned"), (names[1], "an epoch without an entry"), (names[2], "emptied"), (names[2], "returned"),
    }  # fmt: skip
    epochs_ahead(Planting(tmp_path / "running"))
    (tmp_path / "running" / CLEAN_SHUTDOWN).unlink()
    assert between(tmp_path / "running", names) == {(names[1], "an epoch without an entry")}


def test_a_broker_without_partitions_is_no_error_beside_others(tmp_path: Path) -> None:
    """One of several brokers may have no replica, as where the controllers have the metadata log; all may not."""
    one_batch(tmp_path / "broker-2", "t", 2)
    empty, filled = str(tmp_path / "broker-1"), str(tmp_path / "broker-2")
    (tmp_path / "broker-1").mkdir()
    assert {directory for directory, _ in logs_of([empty, filled])} == {filled}
    with pytest.raises(FileNotFoundError, match="broker-1: no partition's log there"):
        logs_of([empty])


def test_every_fault_in_a_journal_is_found_and_nothing_else(tmp_path: Path) -> None:
    """The journal against the logs, and every passive invariant; beside traffic that is in order."""
    wanted = journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    names = [check.name for check in chosen(has=NEEDS) if "journal" in check.needs]
    findings = findings_of(tmp_path / "data", *names, journal=tmp_path / "journal")
    reported = [FoundCall(finding.check.name, row["id"]) for finding in findings for row in finding.rows]
    assert sorted(reported) == sorted(wanted)


def test_a_broker_that_runs_writes_index_entries_while_its_logs_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry for a batch behind what was read is no fault; it is one where nothing was written meanwhile."""
    one_batch(tmp_path, "grows", 4)
    (index,) = tmp_path.rglob("grows-0/*.index")
    read = DuckTables._read_history

    def growing(tables: DuckTables) -> None:
        read(tables)
        with index.open("ab") as file:
            file.write(struct.pack(">ii", 100, 100_000))

    with monkeypatch.context() as patch:
        patch.setattr(DuckTables, "_read_history", growing)
        assert checks_that_find(tmp_path, "index-offset") == set()
    assert checks_that_find(tmp_path, "index-offset") == {"index-offset"}


def test_every_fault_in_the_answers_of_a_cluster_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Answers and counts that contradict each other, beside those that are in order."""
    beside = live_faults.planted(tmp_path)
    with tables_of(tmp_path) as tables:
        tables.add({**LIVE_TABLES, **COUNT_TABLES}, beside)
        findings = ask_all(tables.engine, chosen({name for name, _ in live_faults.FINDINGS}, has=NEEDS))
    assert reported(findings) == live_faults.FINDINGS


def reported(findings: Iterable[Finding]) -> set[tuple[str, object]]:
    """Check, and topic, transactional id or bucket of each row."""
    return {
        (each.check.name, row.get("topic") or row.get("transactional_id") or row.get("bucket_ms"))
        for each in findings
        for row in each.rows
    }


def test_what_is_broken_had_an_occasion(tmp_path: Path) -> None:
    """Each invariant has a planted fault, and counts as exercised by the client that broke it."""
    journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    engine = DuckEngine()
    register_conformance(engine, str(tmp_path / "journal"))
    conformance = run.look(engine, str(tmp_path / "journal"), run.invariants())
    engine.close()
    broken = [each for each in conformance.verdicts() if each.broken]
    assert {each.check.name for each in broken} == {check.name for check in conformance.checks}
    assert [each.check.name for each in broken if not each.occasions] == []


def between(root: Path, names: list[str]) -> broker_faults.Expected:
    """What these checks find in a folder of several directories."""
    return {
        (finding.check.name, row.get("what") or row.get("file") or row["topic"])
        for finding in findings_of(root, *names)
        for row in finding.rows
    }


def test_faults_between_directories_are_found_and_nothing_else(tmp_path: Path) -> None:
    """Of several brokers, and of one broker with several log directories; none where these are in order."""
    for name, plant in (("brokers", broker_faults.planted), ("disks", broker_faults.planted_disks)):
        wanted = plant(tmp_path / name)
        assert between(tmp_path / name, sorted({check for check, _ in wanted})) == wanted
    broker_faults.clean_disks(tmp_path / "clean")
    assert between(tmp_path / "clean", [name for name, check in checks().items() if not check.needs]) == set()


def test_what_has_no_common_spelling_is_replaced() -> None:
    """But not in texts, comments and quoted names."""
    assert in_duckdb("transform(a, each -> each.offset)") == 'list_transform(a, lambda each: each."offset")'
    assert in_duckdb("last_value(if(a, b, c)) IGNORE NULLS OVER w") == "last_value(if(a, b, c) IGNORE NULLS) OVER w"
    assert in_duckdb("SELECT t.* EXCEPT (a) WHERE b > :least") == "SELECT t.* EXCLUDE (a) WHERE b > $least"
    same = "SELECT 'offset -> :a', \"offset\", from_json(a, 'b: INT, offset BIGINT') -- size(offset)"
    assert in_duckdb(same) == same


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS.items())
def test_functions_of_spark_have_the_same_results_on_duckdb(expression: str, value: object) -> None:
    """Those of DuckDB with the same names would have others, or do not exist. On Spark: test_audit.py."""
    engine = DuckEngine()
    assert engine.rows(f"SELECT {expression} AS value").to_pylist() == [{"value": value}]
    engine.close()


def test_the_size_decides(tmp_path: Path) -> None:
    """Of logs and journals, by one figure; a cluster is always Spark's."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large.log").write_bytes(bytes((1 << 20) + 1))
    arguments = {"master": "local[*]", "spark_above": 2}
    assert is_small(arguments, [str(tmp_path)])
    assert not is_small(arguments | {"spark_above": 1}, [str(tmp_path)])
    assert not is_small(arguments | {"spark_above": 0}, [str(tmp_path)])
    assert not is_small(arguments | {"master": "spark://there:7077"}, [str(tmp_path)])


def test_the_amount_is_estimated_from_the_first_batches(tmp_path: Path) -> None:
    """Within a percent for batches of one size; journals by their bytes."""
    fill(tmp_path / "data", Filling(20_000, partitions=2, per_batch=3, value_bytes=60))
    (tmp_path / "wire-1-00000.jsonl").write_bytes(bytes(1000))
    amount = amount_of([str(tmp_path / "data"), str(tmp_path)])
    assert amount.journal_bytes == 1000
    assert amount.log_bytes == 2 * sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    assert amount.batches == pytest.approx(2 * 20_000 / 3, rel=0.01)
    assert amount.records == pytest.approx(2 * 20_000, rel=0.01)


@pytest.mark.parametrize("transactions", [0, 5])
def test_a_filled_directory_is_sound(tmp_path: Path, transactions: int) -> None:
    """As a broker leaves it after a clean stop: no check has a finding, also with every record decoded."""
    fill(tmp_path / "data", Filling(4000, partitions=2, transactions=transactions))
    assert findings_of(tmp_path / "data") == []


def test_spark_decodes_what_takes_one_core_long(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """If there are cores and memory for it. The line names the amount, the memory, and the option for the other way."""
    large = Amount(log_bytes=200 << 30, batches=100_000_000, records=10**9)
    assert seconds_of(large, EXPORTED) > seconds_of(large, RECORDS) > seconds_of(large, BATCHES) > 250
    assert suits_spark(300, 2, 16, BATCHES.start_s)
    assert not suits_spark(300, 2, 2, BATCHES.start_s), "the memory"
    assert not suits_spark(300, 1, 16, BATCHES.start_s), "the cores"
    assert not suits_spark(30, 2, 16, BATCHES.start_s), "its start"
    assert suits_spark(37, 2, 16, BATCHES.start_s)
    assert not suits_spark(37, 2, 16, LOADED.start_s), "a session with SQL takes longer"
    assert [cores_of(master) for master in ("local", "local[3]", "local[2,4]")] == [1, 3, 2]
    arguments = {"master": "local[2]", "spark_above": None}
    progress = Progress(quiet=False)
    fill(tmp_path / "data", Filling(1000))
    assert not is_left_to_spark(arguments, [str(tmp_path)], progress, BATCHES)
    assert capsys.readouterr().err == "", "what is small is not worth a line"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "_SMALL_MB", 0)
        patch.setattr(engines, "free_bytes", lambda: 16 * 10**9)
        assert not is_left_to_spark(arguments, [str(tmp_path)], progress, BATCHES)
        line = capsys.readouterr().err
        assert line.startswith("about 13 batches with 1,040 records in 0.0 GB: this process reads them (")
        assert line.endswith("2 cores and 16 GB of memory are free; to choose Spark: --spark-above 0)\n")
        assert is_left_to_spark(arguments, [str(tmp_path)], progress, LOADED, Amount(10**9, records=10**8))
        assert capsys.readouterr().err == (
            "about 100,000,000 records in 1.0 GB: Spark reads them (90 s of one core; "
            "2 cores and 16 GB of memory are free; to choose this process: --spark-above 1000000)\n"
        )


def test_a_long_command_reports_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Where its stderr is no terminal; and not a line for each step."""
    now_s = [0.0]
    progress = Progress(quiet=False, clock=lambda: now_s[0])
    for step in range(25):
        now_s[0] = step
        progress.show(f"step {step}")
    assert capsys.readouterr().err == f"step {LINE_EVERY_S:.0f}\nstep {2 * LINE_EVERY_S:.0f}\n"


@pytest.mark.timeout(600)
def test_a_small_audit_starts_neither_spark_nor_java(tmp_path: Path) -> None:
    """The commands in a process in which neither can be imported or found; findings make the exit code 1.

    They take seconds of a processor, however busy the machine is.
    """
    before_s = children_s()
    journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    code = "import sys; sys.modules['pyspark'] = None; from understudy.cli import main; sys.exit(main(sys.argv[1:]))"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments, "--quiet"],
            capture_output=True, text=True, check=False, cwd=ROOT, env={"PATH": ""},
        )  # fmt: skip

    audit = run("audit", str(tmp_path / "data"), "--journal", str(tmp_path / "journal"))
    assert (audit.returncode, audit.stderr) == (1, "")
    assert "i03-sequence" in audit.stdout
    conformance = run("conformance", str(tmp_path / "journal"))
    assert (conformance.returncode, conformance.stderr) == (1, "")
    assert "invariants broken" in conformance.stdout
    page = run("audit", str(tmp_path / "data"), "--format", "html", "--out", str(tmp_path / "page.html"))
    assert page.returncode == 0, page.stdout + page.stderr
    assert "Records written over time" in (tmp_path / "page.html").read_text()
    refused = run("audit", str(tmp_path / "data"), "--spark-above", "0")
    assert refused.returncode == 2
    assert "pyspark is not installed" in refused.stderr
    assert children_s() - before_s < SECONDS_OF_A_PROCESSOR


def children_s() -> float:
    """The time that processors have worked for the processes which this one started and which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
