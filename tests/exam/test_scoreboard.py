"""docs/scoreboard.md is what its generator makes of the recorded runs, and speaks of the scenarios that there are."""

from tests.exam.findings import NOTES
from tests.exam.libraries import LIBRARIES
from tests.exam.scoreboard import PAGE, VARIED, kept, page, recorded
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict


def test_the_page_is_what_is_recorded() -> None:
    """After a change, run `python -m tests.exam.scoreboard`."""
    assert PAGE.read_text(encoding="utf-8") == "\n".join(page(recorded())) + "\n"


def test_what_is_recorded_belongs_to_a_scenario_and_a_library() -> None:
    """A scenario that is gone or renamed leaves no verdict behind."""
    for name, run in recorded().items():
        assert name in LIBRARIES
        assert run["results"].keys() <= SCENARIOS.keys()
        assert {each["verdict"] for each in run["results"].values()} <= {VARIED, *(each.value for each in Verdict)}


def test_each_note_belongs_to_a_finding() -> None:
    """A note on what passes by now would be wrong."""
    found = recorded()
    recorded_notes = [(name, key) for name, key in NOTES if name in found]
    assert [(name, key) for name, key in recorded_notes if "problem" not in found[name]["results"][key]] == []


def test_a_verdict_that_differs_between_runs_is_marked() -> None:
    """With the problem of the run that had one."""
    library = {"name": "lib", "version": "1"}
    results = [
        {"id": "a/b", "verdict": verdict, "problem": problem, "evidence": []}
        for verdict, problem in (("fail", "lost"), ("pass", ""))
    ]
    runs = [{"kafka": "4.4", "library": library, "results": [each]} for each in results]
    assert kept(runs)["results"]["a/b"] == {"verdict": VARIED, "problem": "lost", "evidence": []}
    assert kept(runs[1:])["results"]["a/b"] == {"verdict": "pass"}
