"""The exam's scoreboard is what its generator makes of the recorded runs, and names scenarios that there are."""

from pathlib import Path

import pytest

from tests.exam.findings import NOTES
from tests.exam.libraries import LIBRARIES
from tests.exam.scoreboard import (
    MARK,
    ON_KAFKA,
    PAGE,
    RECORDED,
    REFERENCE,
    SUMS,
    VARIED,
    Run,
    elsewhere,
    failed,
    findings,
    kept,
    library_of,
    page,
    record,
    recorded,
    runs_of,
    sums,
    totals,
)
from tools.marked import replaced
from understudy.exam.runner import JOBS
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict


def test_the_page_is_what_is_recorded() -> None:
    """After a change, run `python -m tests.exam.scoreboard`."""
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page(recorded(), recorded(ON_KAFKA))) + "\n"
    users = SUMS.read_text(encoding="utf-8")
    assert users == replaced(users, MARK, sums(recorded()))


@pytest.mark.parametrize("file", [RECORDED, ON_KAFKA], ids=["here", "on-kafka"])
def test_what_is_recorded_belongs_to_a_scenario_and_a_library(file: Path) -> None:
    """A scenario that is gone or renamed leaves no verdict behind."""
    for name, run in recorded(file).items():
        assert name in LIBRARIES
        assert run["results"].keys() <= SCENARIOS.keys()
        assert {each["verdict"] for each in run["results"].values()} <= {VARIED, *(each.value for each in Verdict)}


@pytest.mark.parametrize("file", [RECORDED, ON_KAFKA], ids=["here", "on-kafka"])
def test_what_is_written_is_what_is_read(file: Path, tmp_path: Path) -> None:
    """Also of a library that has played some scenarios only."""
    record(recorded(file), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == file.read_text(encoding="utf-8")


def test_each_note_belongs_to_a_finding() -> None:
    """A note on what passes by now would be wrong."""
    libraries = recorded()
    recorded_notes = [(name, key) for name, key in NOTES if name in libraries]
    assert [(name, key) for name, key in recorded_notes if "problem" not in libraries[name]["results"][key]] == []


def run_of(version: str = "1", **verdicts: str) -> Run:
    """A run of two scenarios at most, as the command writes it."""
    results: list[dict[str, object]] = [
        {"id": f"produce/{name}", "verdict": verdict, "problem": "" if verdict == "pass" else "lost", "evidence": []}
        for name, verdict in verdicts.items()
    ]
    return {"kafka": "4.4", "library": {"name": "lib", "version": version}, "results": results}


FAILED, PASSED = run_of(plain="fail"), run_of(plain="pass")


def test_a_verdict_that_differs_between_runs_is_marked() -> None:
    """With the problem of the run that had one."""
    varied = {"verdict": VARIED, "runs": 2, "problem": "lost"}
    assert kept([FAILED, PASSED])["results"] == {"produce/plain": varied}
    assert kept([PASSED])["results"] == {"produce/plain": {"verdict": "pass", "runs": 1}}


def test_a_pass_beside_a_flaky_run_is_flaky() -> None:
    """That is what the verdict means: it failed at first, and passed when it was repeated."""
    flaky = run_of(plain="flaky")
    for runs in ([flaky, PASSED], [PASSED, flaky]):
        assert kept(runs)["results"]["produce/plain"]["verdict"] == "flaky"
    assert kept([flaky, FAILED])["results"]["produce/plain"]["verdict"] == VARIED


def test_a_run_of_some_scenarios_leaves_the_others() -> None:
    """Until there is another version of the library."""
    earlier = kept([run_of(**{"plain": "pass", "not-leader": "pass"})])
    results = kept([FAILED], earlier)["results"]
    assert {name: each["verdict"] for name, each in results.items()} == {
        "produce/plain": "fail",
        "produce/not-leader": "pass",
    }
    assert kept([run_of("2", plain="fail")], earlier)["results"].keys() == {"produce/plain"}


def test_a_run_can_be_added_to_those_before_it() -> None:
    """Each scenario has its own number of runs."""
    earlier = kept([run_of(**{"plain": "pass", "not-leader": "pass"})])
    added = kept([FAILED], earlier, add=True)
    assert {name: (each["verdict"], each["runs"]) for name, each in added["results"].items()} == {
        "produce/plain": (VARIED, 2),
        "produce/not-leader": ("pass", 1),
    }
    assert runs_of(added) == "1-2"
    assert kept([PASSED], earlier, add=True)["results"]["produce/plain"] == {"verdict": "pass", "runs": 2}


@pytest.mark.parametrize(
    ("file", "library"),
    [("franz-go.json", "franz-go"), ("franz-go.2.json", "franz-go"), ("java-4.4.0.json", "java-4.4.0"),
     ("java-4.4.0.3.json", "java-4.4.0")],
)  # fmt: skip
def test_a_run_is_one_of_the_library_that_its_file_names(file: str, library: str) -> None:
    """Also where the library's name ends with a number, as that of a run does."""
    assert library_of(Path(file)) == library


def test_a_finding_shows_how_it_was_on_kafka() -> None:
    """Its line has the verdicts of the library here and there, and that of Kafka's own client."""
    here = {"lib": kept([FAILED]), REFERENCE: kept([PASSED])}
    there = {REFERENCE: kept([PASSED]), "lib": kept([FAILED])}
    line = "* produce/plain (fail; on Apache Kafka 4.4: fail; the Java client: pass)"
    assert list(failed("lib", here["lib"], here, there)) == ["", "### lib 1", "", line]
    assert elsewhere("produce/plain", "lib", here, {}) == "the Java client: pass"


def test_the_time_is_that_of_a_whole_exam() -> None:
    """A run of some scenarios does not change it, another version of the library does."""
    whole = {**run_of(), "seconds": 222.4, "jobs": 4}
    whole["results"] = [{"id": name, "verdict": "pass", "problem": "", "evidence": []} for name in SCENARIOS]
    earlier = kept([whole])
    assert (earlier["seconds"], earlier["jobs"]) == (222, 4)
    assert kept([{**FAILED, "seconds": 3.0, "jobs": 4}], earlier)["seconds"] == 222
    assert "seconds" not in kept([run_of("2", plain="fail")], earlier)
    (line,) = [line for line in totals({"lib": earlier}) if line.startswith("| lib |")]
    assert line.endswith(" | 3:42 (4) |")
    (line,) = [line for line in totals({"lib": {**earlier, "jobs": JOBS}}) if line.startswith("| lib |")]
    assert line.endswith(" | 3:42 |")


def test_a_note_on_several_findings_is_printed_once() -> None:
    """A note is printed at its first finding; the others refer to that."""
    (library, first), (_, second) = [pair for pair in NOTES if pair[0] == "confluent-kafka-javascript"][:2]
    assert NOTES[library, first] == NOTES[library, second], "two findings with the same note"
    finding = {"verdict": "non-strict", "runs": 1, "problem": "slow"}
    run = {"library": library, "version": "1", "kafka": "4.4", "results": {first: finding, second: finding}}
    lines = list(findings(library, run, {}, {}))
    assert sum(NOTES[library, first] in line for line in lines) == 1
    assert f"  As for {first}." in lines
