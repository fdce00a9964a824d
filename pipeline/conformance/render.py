"""Renders the conformance report as text tables, JSON, JUnit XML or one HTML page."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from xml.etree import ElementTree as ET

from pipeline.audits.registry import SEVERITIES
from pipeline.conformance.compare import Change, changes, is_new
from pipeline.conformance.run import NOT_EXERCISED, Broken, Rows, Run, named, times
from pipeline.conformance.tables import questions
from pipeline.rendering import html
from pipeline.rendering.plots import Picture
from pipeline.rendering.text import counted, grid, wrapped

_ROWS_OF_A_TABLE: Final = 40  # more APIs than a client uses
_ROWS_OF_AN_INVARIANT: Final = 5  # examples; ours, `--json` has all
_CHANGED: Final = ("kind", "part", "software", "subject", "before", "now")
_UNFIT: Final = {code: None for code in range(32) if code not in (9, 10, 13)}  # control characters that XML forbids
_LEFT_OUT: Final = ("software", "software_version")


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run, and the earlier one to compare it with."""

    now: Run
    before: Run | None = None

    @property
    def changes(self) -> list[Change]:
        """Return the differences; none without an earlier run."""
        return [] if self.before is None else changes(self.before, self.now)

    def failing(self, fail_on: str) -> list[Broken]:
        """Return the violations of this severity or worse; with an earlier run, only new ones."""
        worst = SEVERITIES.index(fail_on)
        severe = [each for each in self.now.broken if SEVERITIES.index(each.check.severity) <= worst]
        return [each for each in severe if self.before is None or is_new(each, self.before)]

    @property
    def summary(self) -> str:
        """Return a one-line summary."""
        if self.before is None:
            return self.now.summary
        worse = sum(each.kind == "worse" for each in self.changes)
        differences = counted(len(self.changes), "difference")
        return f"{self.now.summary}; against {self.before.journal}: {differences}, {worse} for the worse"


def _columns(rows: Rows) -> list[str]:
    """Return the columns that have a value in some row."""
    return [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]


def _of_rows(each: Broken) -> list[str]:
    return [name for name in _columns(each.rows) if name not in _LEFT_OUT]


def _changed(conformance: Conformance) -> list[dict[str, Any]]:
    return [asdict(each) for each in conformance.changes]


def as_table(conformance: Conformance, width: int | None = None) -> str:
    """Return the report as text; `width`: of the terminal."""
    parts = []
    if conformance.before is not None:
        lines = [f"differences from {conformance.before.journal}"]
        lines += grid(_CHANGED, _changed(conformance), width) if conformance.changes else ["  none"]
        parts.append("\n".join([*lines, ""]))
    parts += [_invariant(each, width) for each in conformance.now.broken]
    for name, question in questions().items():
        rows = conformance.now.parts[name]
        lines = [f"{name}: {question.title}", *wrapped(question.explanation, width)]
        lines += grid(_columns(rows), rows[:_ROWS_OF_A_TABLE], width) if rows else ["  none"]
        if len(rows) > _ROWS_OF_A_TABLE:
            lines.append(f"  ... and {len(rows) - _ROWS_OF_A_TABLE} more (--format json shows all)")
        parts.append("\n".join([*lines, ""]))
    silent = _not_exercised(conformance.now)
    if silent:
        parts.append("\n".join(["not exercised by any of these clients", *wrapped(", ".join(silent), width), ""]))
    return "\n".join([*parts, conformance.summary])


def _not_exercised(run: Run) -> list[str]:
    """Return the invariants that no client had an occasion to violate."""
    exercised = {each.check.name for each in run.verdicts() if each.text != NOT_EXERCISED}
    return sorted(check.name for check in run.checks if check.name not in exercised)


def _invariant(each: Broken, width: int | None = None) -> str:
    check = each.check
    whose = named(each.software, each.version)
    lines = [f"{check.severity.upper()} {check.name}: {check.title} ({whose}, {times(each.count)})"]
    lines += wrapped(check.explanation, width)
    lines += grid(_of_rows(each), each.rows[:_ROWS_OF_AN_INVARIANT], width)
    if each.count > _ROWS_OF_AN_INVARIANT:
        lines.append(f"  ... and {each.count - _ROWS_OF_AN_INVARIANT} more")
    return "\n".join([*lines, ""])


def as_json(conformance: Conformance) -> str:
    """Return the report as JSON."""
    document = {"generator": "understudy conformance"} | _run(conformance.now)
    if conformance.before is not None:
        document |= {"against": _run(conformance.before), "changes": _changed(conformance)}
    return json.dumps(document, indent=2)


def _run(run: Run) -> dict[str, Any]:
    broken = [
        {
            "invariant": each.check.name,
            "severity": each.check.severity,
            "title": each.check.title,
            "software": each.software,
            "software_version": each.version,
            "count": each.count,
            "rows": list(each.rows),
        }
        for each in run.broken
    ]
    check_names = [check.name for check in run.checks]
    return {
        "journal": run.journal,
        "asked": check_names,
        "broken": broken,
        "invariants": [
            {
                "invariant": each.check.name,
                "software": each.software,
                "software_version": each.version,
                "verdict": each.text,
                "occasions": each.occasions,
                "broken": each.broken,
            }
            for each in run.verdicts()
        ],
        **{name: list(rows) for name, rows in run.parts.items()},
    }


def as_junit(conformance: Conformance, *, fail_on: str) -> str:
    """Return a test case for each client and invariant; violations fail, with an earlier run only new ones."""
    failing = {(each.software, each.version, each.check.name) for each in conformance.failing(fail_on)}
    broken = {(each.software, each.version, each.check.name): each for each in conformance.now.broken}
    verdicts = list(conformance.now.verdicts())
    suite = ET.Element(
        "testsuite", name="understudy conformance", tests=str(len(verdicts)),
        failures=str(len(failing)), errors="0", skipped=str(sum(each.text == NOT_EXERCISED for each in verdicts)),
    )  # fmt: skip
    for verdict in verdicts:
        software, version, check = verdict.software, verdict.version, verdict.check
        case = ET.SubElement(suite, "testcase", classname=named(software, version).translate(_UNFIT), name=check.name)
        each = broken.get((software, version, check.name))
        if each is None:
            if verdict.text == NOT_EXERCISED:
                ET.SubElement(case, "skipped", message=NOT_EXERCISED)
            continue
        part = ET.SubElement(case, "failure" if (software, version, check.name) in failing else "system-out")
        if part.tag == "failure":
            part.set("message", f"{check.title}: {each.count}")
        part.text = _invariant(each).translate(_UNFIT)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def as_html(conformance: Conformance, drawn: Sequence[Picture]) -> str:
    """Return the page: pictures, differences, violations, then the parts."""
    broken = {each.check.name for each in conformance.now.broken}
    silent = set(_not_exercised(conformance.now))
    return html.page(
        "conformance.html",
        f"Conformance of {conformance.now.journal}",
        conformance.summary,
        drawn=drawn,
        before=None if conformance.before is None else conformance.before.journal,
        changed=_CHANGED,
        changes=_changed(conformance),
        broken=list(map(_finding, conformance.now.broken)),
        sections=[
            (name, question, _columns(conformance.now.parts[name]), conformance.now.parts[name])
            for name, question in questions().items()
        ],
        quiet=[check for check in conformance.now.checks if check.name not in broken and check.name not in silent],
        silent=[check for check in conformance.now.checks if check.name in silent],
    )


def _finding(each: Broken) -> dict[str, Any]:
    about = f"{each.check.name}: {named(each.software, each.version)}, {times(each.count)}"
    return {"check": each.check, "columns": _of_rows(each), "rows": each.rows, "count": each.count, "about": about}
