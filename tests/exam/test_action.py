"""The composite action: its step `Exam` runs as GitHub runs it, in bash with the inputs in variables."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.clients.targets import ROOT

ACTION: Final = ROOT / "examples" / "exam" / "action.yml"
DRIVER: Final = f"{sys.executable} -m tests.exam.drivers.confluent"


def action() -> Any:
    """The file."""
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


def exam(folder: Path, driver: str, arguments: str) -> tuple[int, str, str]:
    """Run the step: its exit code, what it adds to the summary of the job, and its output."""
    (step,) = [each for each in action()["runs"]["steps"] if each.get("name") == "Exam"]
    inputs_set = {"driver": driver, "arguments": arguments, "report": str(folder / "report")}
    inputs = {name: inputs_set.get(name, each.get("default")) for name, each in action()["inputs"].items()}
    assert inputs.keys() == inputs_set.keys()
    variables = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)
        for name, text in step["env"].items()
    }
    summary = folder / "summary.md"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        # GitHub's own command for `shell: bash`.
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **variables, "GITHUB_STEP_SUMMARY": str(summary), "PATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, summary.read_text(encoding="utf-8") if summary.exists() else "", done.stderr


def test_the_action_fails_only_with_a_broken_rule(tmp_path: Path) -> None:
    """The report is kept and printed; the step fails with a driver that breaks a MUST, and passes with librdkafka."""
    code, summary, output = exam(tmp_path, DRIVER, "--only produce/plain --level MUST")
    assert code == 0, output
    assert "| produce/plain | MUST | pass |" in summary
    assert (tmp_path / "report" / "exam.md").read_text(encoding="utf-8") == summary


@pytest.mark.parametrize(
    ("driver", "arguments", "code", "problem"),
    [
        (f"{sys.executable} -m tests.exam.broken_driver", "--only produce/plain --plays 1", 1, "fail"),
        (DRIVER, "--only nothing/*", 2, "no scenario has such an id"),
        ("./no-driver", "", 2, "cannot be started"),
    ],
)
def test_the_action_ends_with_the_code_of_the_exam(
    tmp_path: Path, driver: str, arguments: str, code: int, problem: str
) -> None:
    """1 if a rule was broken, 2 if it could not begin."""
    exit_code, summary, output = exam(tmp_path, driver, arguments)
    assert (exit_code, problem in summary + output) == (code, True), output


def test_the_action_installs_this_checkout() -> None:
    """With the extra that the exam's reports need: pip resolves what the step names, two folders above the action."""
    (step,) = [each for each in action()["runs"]["steps"] if each.get("name") == "Install Understudy"]
    match = re.search(r'"\$GITHUB_ACTION_PATH/(\S+)\[(\w+)\]"', step["run"])
    assert match is not None
    assert (ACTION.parent / match[1]).resolve() == ROOT
    assert match[2] in (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("optional-dependencies")[2]
