"""The file of a finding: a scenario file, with the schedule, the evidence and a diagram beside its steps."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from control_api.scenario_file import VERSION
from understudy import output_files
from understudy.exam.random.faults import UNDO
from understudy.exam.random.oracle import Finding
from understudy.exam.random.schedule import FAULT, Schedule


@dataclass(frozen=True, slots=True)
class Played:
    """A play: what was found; if anything, also the last requests, a diagram, and the history."""

    findings: Sequence[Finding]
    evidence: tuple[str, ...] = ()
    diagram: str = ""
    history: Sequence[Mapping[str, Any]] = ()

    def has(self, check: str) -> bool:
        """Return whether this was found."""
        return any(each.check == check for each in self.findings)

    def first(self, check: str) -> "Played":
        """Return the play with this finding first."""
        return replace(self, findings=sorted(self.findings, key=lambda each: each.check != check))


def document(schedule: Schedule, problem: str, shown: Played) -> dict[str, Any]:
    """Return the document of a file.

    `understudy ctl scenario run` reads its `steps`: the faults. `understudy exam --schedule` reads `exam`: the steps
    of the application, and the faults between them.
    """
    return {
        "scenario": VERSION,
        "about": f"understudy exam --random, seed {schedule.seed}: {problem}",
        "steps": steps_of(schedule),
        "exam": {
            **schedule.as_json(),
            "found": [{"check": each.check, "text": each.text} for each in shown.findings],
            "lines": schedule.lines(),
            "evidence": list(shown.evidence),
            "history": list(shown.history),
        },
        "diagram": shown.diagram.splitlines(),
    }


def steps_of(schedule: Schedule) -> list[dict[str, Any]]:
    """Return the faults as steps of a scenario file, without those about members and transactions of a play."""
    steps = []
    for fault in (step.fields for step in schedule.steps if step.kind == FAULT):
        known = [each for each in fault["steps"] if each["verb"].partition(" ")[0] not in {"groups", "transactions"}]
        steps += [{"about": fault["name"], **each} for each in known]
        steps += [
            {"verb": UNDO[each["verb"]], "arguments": each["arguments"]} for each in known if each["verb"] in UNDO
        ]
    return steps


def name_of(library: str, scenario: str) -> str:
    """Return the name of the file of a finding."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", f"{library}-{scenario.rpartition('/')[2]}") + ".json"


def save(folder: str, library: str, findings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write a file for each finding, and return their paths. Raises OutputFileError: one exists already."""
    output_files.make_folder(folder, "--save")
    paths = []
    for scenario, finding in findings.items():
        path = str(Path(folder) / name_of(library, scenario))
        output_files.write_new(path, (json.dumps(finding, indent=1, ensure_ascii=False) + "\n").encode(), "--save")
        paths.append(path)
    return paths
