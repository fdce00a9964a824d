"""`understudy exam` at its command line: options, formats, and drivers that break the contract."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from understudy.exam import command, report
from understudy.exam.command import deliver, main, selected
from understudy.exam.driver import Driver, DriverProblem
from understudy.exam.driver_api import CAPABILITIES, COMMANDS, reference, schema
from understudy.exam.exercise import Exercise
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import ExamResult, Library, Result, Verdict, changes
from understudy.output_files import OutputFileError

FIRST, SECOND = list(SCENARIOS.values())[:2]
EVIL = "<b>&\x00 it's | not"
RESULT = ExamResult(
    Library("lib", "1.0", ("producer",)),
    "0.1.0",
    "4.4",
    (Result(FIRST, Verdict.FAIL, EVIL, ("request 1", "request 2"), 0.5, 3), Result(SECOND, Verdict.PASS)),
)


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The sentence on stderr; the exit code is 2."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ((), "needs the driver's command after --"),
        (("--only", "transaction/*", "--", "x"), "no scenario has such an id"),
        (("--shard", "3/2", "--", "x"), "--shard needs I/N"),
        (("--shard", "1", "--", "x"), "--shard needs I/N"),
        (("--plays", "0", "--", "x"), "--plays needs at least 1"),
        (("--jobs", "0", "--", "x"), "--jobs needs at least 1"),
        (("--upstream", "x:1", "--jobs", "2", "--", "x"), "--jobs needs a cluster for each job"),
        (("--client-config", "x", "--", "x"), "--client-config needs --upstream"),
        (("--upstream", "x:1", "--as-version", "4.0", "--", "x"), "and --upstream is another one"),
        (("--against", "/does/not/exist", "--", "x"), "cannot be read"),
        (("--out", "/does/not/exist", "--", "x"), "no such folder"),
        (("--", "/does/not/exist"), "cannot be started"),
    ],
)
def test_bad_arguments_get_one_sentence(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], sentence: str
) -> None:
    """Bad arguments are refused in one sentence before anything is played."""
    assert sentence in refusal(capsys, *argv)


def test_a_file_of_the_users_is_not_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--out; an earlier report is, in each format."""
    own = tmp_path / "notes.md"
    own.write_text("mine", encoding="utf-8")
    assert "was not written by understudy" in refusal(capsys, "--out", str(own), "--", "x")
    assert own.read_text(encoding="utf-8") == "mine"
    for form in report.FORMATS:
        earlier = tmp_path / form
        earlier.write_text(report.rendered(RESULT, form), encoding="utf-8")
        assert "cannot be started" in refusal(capsys, "--out", str(earlier), "--", "/does/not/exist")


def test_a_result_of_something_else_is_no_earlier_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--against wants the JSON of an exam."""
    file = tmp_path / "other.json"
    file.write_text('{"kind": "audit"}', encoding="utf-8")
    assert "is not the result of an exam" in refusal(capsys, "--against", str(file), "--", "x")
    for results in ("7", "[7]", '[{"id": "x"}]'):
        file.write_text(f'{{"kind": "exam", "results": {results}}}', encoding="utf-8")
        assert "has no results, each with its id" in refusal(capsys, "--against", str(file), "--", "x")
    file.write_text("{", encoding="utf-8")
    assert "is not JSON" in refusal(capsys, "--against", str(file), "--", "x")


def test_shards_share_the_scenarios() -> None:
    """Each scenario is in exactly one shard."""
    shards = [selected([], None, f"{index}/3") for index in (1, 2, 3)]
    assert sorted(each.id for part in shards for each in part) == sorted(SCENARIOS)
    assert {each.area for each in selected(["groups/*"], None, None)} == {"groups"}
    assert {each.level.value for each in selected([], "SHOULD", None)} == {"SHOULD"}


def test_every_need_is_a_capability() -> None:
    """And each capability belongs to the contract."""
    assert {need for each in SCENARIOS.values() for need in each.needs} <= CAPABILITIES.keys()
    assert {each.capability for each in COMMANDS.values() if each.capability} <= CAPABILITIES.keys()
    assert len(schema()["$defs"]["command"]["oneOf"]) == len(COMMANDS)


def test_the_page_has_each_command_with_its_result() -> None:
    """A driver can be written from the page alone; `driver_api.reference` returns its table."""
    page = (Path(__file__).parents[2] / "docs" / "exam.md").read_text(encoding="utf-8")
    assert [line for line in reference() if line not in page.splitlines()] == []


def test_the_schema_has_each_result() -> None:
    """Lists with what their rows have, and errors as they are answered."""
    results = schema()["$defs"]["results"]
    assert results.keys() == COMMANDS.keys()
    one, other = results["flush"]["properties"]["outcomes"]["items"]["oneOf"]
    assert (one["required"], other["required"]) == (["id", "offset"], ["id", "error"])
    assert results["poll"]["properties"]["errors"]["items"] == {"$ref": "#/$defs/error"}


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`--schema` prints the contract of drivers as a JSON schema."""
    assert main(["--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


# --- reports ---------------------------------------------------------------------------------------------------------


def test_json_is_read_back() -> None:
    """The JSON of an earlier run is read back, and the verdicts that changed are listed."""
    before = json.loads(report.rendered(RESULT, "json"))
    assert (before["counts"]["fail"], before["results"][0]["problem"]) == (1, EVIL)
    assert changes(before, RESULT.results) == []
    assert changes(before, [Result(FIRST, Verdict.PASS)]) == [f"{FIRST.id}: fail, now pass"]


def test_junit_has_a_case_for_each_scenario() -> None:
    """Well-formed, for any error message."""
    suite = ET.fromstring(report.rendered(RESULT, "junit"))  # noqa: S314 - our own
    assert [case.get("name") for case in suite] == [FIRST.id, SECOND.id]
    assert [len(case) for case in suite] == [1, 0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_the_page_escapes_messages() -> None:
    """A message cannot add an element to the HTML page."""
    page = report.rendered(RESULT, "html")
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert FIRST.id in page


def test_reports_have_the_time_of_the_exam() -> None:
    """With the number of scenarios that shared it."""
    slow = replace(RESULT, seconds=222.4, jobs=4)
    assert "in 3 min 42 s, 4 scenarios at a time" in report.rendered(slow, "table")
    assert "in 3 min 42 s, 4 scenarios at a time." in report.rendered(slow, "markdown")
    assert json.loads(report.rendered(slow, "json"))["seconds"] == 222.4
    assert "in 0 s\n" in report.rendered(RESULT, "table")


def test_markdown_keeps_its_columns() -> None:
    """A bar in a message is escaped, so that the table keeps its columns."""
    (row,) = [line for line in report.markdown(RESULT) if FIRST.id in line]
    assert row.replace("\\|", "").count("|") == 5


def test_markdown_shows_tags_and_escapes_as_they_are() -> None:
    """A topic <unknown> in a message would be an element, and a backslash before a bar would undo its escape."""
    broken = replace(RESULT, results=(Result(FIRST, Verdict.FAIL, "<unknown> a\\|b\r\nc"),))
    assert list(report.markdown(broken))[-1].endswith(" | fail | &lt;unknown> a\\\\\\|b c |")


@pytest.mark.parametrize("form", report.FORMATS)
def test_a_message_that_is_no_text_does_not_cost_the_report(form: str) -> None:
    """JSON can hold half of a surrogate pair, which no file can; XML has no U+FFFF either."""
    library = replace(RESULT.library, name="lib\x01\ufffe\ud800")
    text = report.rendered(replace(RESULT, library=library, results=(Result(FIRST, Verdict.FAIL, "\ud800"),)), form)
    assert text.encode()
    if form in {"junit", "badge"}:
        ET.fromstring(text)  # noqa: S314 - our own


def test_the_badge_counts_what_was_played() -> None:
    """Passed, of those that the library supports."""
    further = ExamResult(RESULT.library, "0.1.0", "4.4", (*RESULT.results, Result(SECOND, Verdict.NOT_SUPPORTED)))
    assert "1 of 2 passed" in report.badge(further)


# --- drivers ---------------------------------------------------------------------------------------------------------


def driver_that(code: str) -> Driver:
    """A driver in a few lines of Python."""
    return Driver(
        [sys.executable, "-c", f"import sys, json\nfor line in sys.stdin:\n    c = json.loads(line)\n    {code}"]
    )


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('hello', flush=True)", "answers in JSON only"),
        ("print(json.dumps({'id': 7, 'result': {}}), flush=True)", "needs this id"),
        ("print(json.dumps({'id': 1}), flush=True)", "has no result"),
        ("print(json.dumps({'id': 1, 'error': 'x'}), flush=True)", "needs class, code and message"),
        ("print(json.dumps({'id': 1, 'result': {'protocol': 9}}), flush=True)", "speaks version 9"),
        (
            "print(json.dumps({'id': 1, 'result': {'protocol': 1, 'capabilities': ['flying']}}), flush=True)",
            "no such capability: flying",
        ),
        ("print(json.dumps({'id': 1, 'unsupported': 'hello'}), flush=True)", "hello has to be answered with a result"),
        (
            "print(json.dumps({'id': 1, 'error': {'class': 'other', 'message': 'x'}}), flush=True)",
            "hello has to be answered with a result",
        ),
        (
            "print(json.dumps({'id': 1, 'result': {'protocol': 1, 'capabilities': None}}), flush=True)",
            "capabilities has to be a list of strings",
        ),
        ("sys.exit('out of memory')", "out of memory"),
    ],
)
def test_a_driver_that_breaks_the_contract_is_refused(code: str, problem: str) -> None:
    """A driver that breaks the contract is refused in one sentence for its author."""
    with driver_that(code) as driver, pytest.raises(DriverProblem, match=problem):
        driver.hello()


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({"outcomes": None}, "outcomes has to be a list"),
        ({"outcomes": [7]}, "a list of objects"),
        ({"outcomes": [{"offset": 1}]}, "needs the id of a record"),
        ({"outcomes": [{"id": 0}]}, "needs an offset"),
        ({"outcomes": [{"id": 0, "offset": "1"}]}, "needs an offset"),
        ({"outcomes": [], "pending": None}, "pending has to be an integer"),
        ({"outcomes": [{"id": 5, "offset": 1}]}, "record 5 was never sent"),
        ({"outcomes": [{"id": -1, "offset": 1}]}, "record -1 was never sent"),
    ],
)
def test_a_wrong_outcome_is_the_driver_s_failure(result: object, problem: str) -> None:
    """And not the end of the exam, which loses the results of all other scenarios."""
    code = (
        f"print(json.dumps({{'id': c['id'], 'result': {result!r} if c['command'] == 'flush' else {{}}}}), flush=True)"
    )
    cluster: Any = SimpleNamespace(bootstrap_servers="x:1")
    with driver_that(code) as driver:
        producer = Exercise(cluster, driver).producer()
        producer.send(["one"])
        with pytest.raises(DriverProblem, match=f"^the answer to flush is wrong: .*{problem}"):
            producer.flush()


@pytest.mark.parametrize(
    ("command", "result", "problem"),
    [
        ("poll", {"records": {}}, "records has to be a list"),
        ("poll", {"records": [{"topic": "t", "partition": 0, "offset": None, "value": ""}]}, "a record needs"),
        ("poll", {"records": [{"topic": "t", "partition": 0, "offset": 0}]}, "a record needs"),
        ("poll", {"errors": "none"}, "errors has to be a list"),
        ("assignment", {}, "needs partitions"),
        ("assignment", {"partitions": [{"topic": "t"}]}, "a partition needs"),
    ],
)
def test_a_wrong_record_or_partition_is_the_driver_s_failure(command: str, result: object, problem: str) -> None:
    """A driver whose result has a wrong record or partition ends the exam with the reason."""
    code = f"print(json.dumps({{'id': c['id'], 'result': {result!r}}}), flush=True)"
    with driver_that(code) as driver, pytest.raises(DriverProblem, match=problem):
        driver.call(command)


def test_a_report_that_cannot_be_written_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The folder was removed while the exam ran for half an hour."""
    with pytest.raises(OutputFileError, match="no such folder"):
        deliver(str(tmp_path / "gone" / "out"), "the report\n", "lib 1.0")
    assert capsys.readouterr().out == "the report\n"


def test_problems_of_a_driver_are_printed_with_any_text(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Half of a surrogate pair in a message of its library."""
    monkeypatch.setattr(command, "self_test", lambda _: ["consumers/plain: \ud800"])
    assert main(["--self-test", "--", "driver"]) == 1
    assert capsysbinary.readouterr().out == b"consumers/plain: \\ud800\n"
