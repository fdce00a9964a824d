"""The conformance report as tables for people, as JSON, as JUnit XML, and as one HTML page."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final
from xml.etree import ElementTree as ET

from pipeline.audits.registry import SEVERITIES
from pipeline.conformance.compare import Change, changes, is_new
from pipeline.conformance.run import Broken, Rows, Run, named, times
from pipeline.conformance.tables import questions
from pipeline.showing import html
from pipeline.showing.plots import Picture
from pipeline.showing.text import grid, wrapped

_ROWS_OF_A_TABLE: Final = 40
_ROWS_OF_AN_INVARIANT: Final = 5
_CHANGED: Final = ("kind", "part", "software", "subject", "before", "now")
_UNFIT: Final = {code: None for code in range(32) if code not in (9, 10, 13)}
_LEFT_OUT: Final = ("software", "software_version")


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run, and the earlier one that it is held against."""

    now: Run
    before: Run | None = None

    @property
    def changes(self) -> list[Change]:
        """What differs; nothing without an earlier run."""
        return [] if self.before is None else changes(self.before, self.now)

    def failing(self, fail_on: str) -> list[Broken]:
        """What is broken at this severity or worse; where there is an earlier run, only what was not broken there."""
        worst = SEVERITIES.index(fail_on)
        found = [each for each in self.now.broken if SEVERITIES.index(each.check.severity) <= worst]
        return [each for each in found if self.before is None or is_new(each, self.before)]

    @property
    def summary(self) -> str:
        """One line."""
        if self.before is None:
            return self.now.summary
        worse = sum(each.kind == "worse" for each in self.changes)
        return (
            f"{self.now.summary}; against {self.before.journal}: {len(self.changes)} differences, {worse} for the worse"
        )


def _columns(rows: Rows) -> list[str]:
    """Those that have something in a row."""
    return [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]


def _of_rows(each: Broken) -> list[str]:
    return [name for name in _columns(each.rows) if name not in _LEFT_OUT]


def _changed(told: Conformance) -> list[dict[str, Any]]:
    return [asdict(each) for each in told.changes]


def as_table(told: Conformance) -> str:
    """For a terminal."""
    parts = []
    if told.before is not None:
        lines = [f"differences from {told.before.journal}"]
        lines += grid(_CHANGED, _changed(told)) if told.changes else ["  none"]
        parts.append("\n".join([*lines, ""]))
    parts += [_invariant(each) for each in told.now.broken]
    for name, question in questions().items():
        rows = told.now.parts[name]
        lines = [f"{name}: {question.title}", *wrapped(question.explanation)]
        lines += grid(_columns(rows), rows[:_ROWS_OF_A_TABLE]) if rows else ["  none"]
        if len(rows) > _ROWS_OF_A_TABLE:
            lines.append(f"  ... and {len(rows) - _ROWS_OF_A_TABLE} more (--format json tells all)")
        parts.append("\n".join([*lines, ""]))
    return "\n".join([*parts, told.summary])


def _invariant(each: Broken) -> str:
    check = each.check
    whose = named(each.software, each.version)
    lines = [f"{check.severity.upper()} {check.name}: {check.title} ({whose}, {times(each.count)})"]
    lines += wrapped(check.explanation)
    lines += grid(_of_rows(each), each.rows[:_ROWS_OF_AN_INVARIANT])
    if each.count > _ROWS_OF_AN_INVARIANT:
        lines.append(f"  ... and {each.count - _ROWS_OF_AN_INVARIANT} more")
    return "\n".join([*lines, ""])


def as_json(told: Conformance) -> str:
    """For programs."""
    document = _run(told.now)
    if told.before is not None:
        document |= {"against": _run(told.before), "changes": _changed(told)}
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
    asked = [check.name for check in run.checks]
    return {
        "journal": run.journal,
        "asked": asked,
        "broken": broken,
        **{name: list(rows) for name, rows in run.parts.items()},
    }


def as_junit(told: Conformance, *, fail_on: str) -> str:
    """A test case for each client and invariant. What is broken fails; with an earlier run, what is broken anew."""
    failing = {(each.software, each.version, each.check.name) for each in told.failing(fail_on)}
    broken = {(each.software, each.version, each.check.name): each for each in told.now.broken}
    clients = [(row["software"], row["software_version"]) for row in told.now.parts["clients"]]
    suite = ET.Element(
        "testsuite", name="understudy conformance", tests=str(len(clients) * len(told.now.checks)),
        failures=str(len(failing)), errors="0", skipped="0",
    )  # fmt: skip
    for software, version in clients:
        for check in told.now.checks:
            case = ET.SubElement(
                suite, "testcase", classname=named(software, version).translate(_UNFIT), name=check.name
            )
            each = broken.get((software, version, check.name))
            if each is None:
                continue
            part = ET.SubElement(case, "failure" if (software, version, check.name) in failing else "system-out")
            if part.tag == "failure":
                part.set("message", f"{check.title}: {each.count}")
            part.text = _invariant(each).translate(_UNFIT)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def as_html(told: Conformance, drawn: Sequence[Picture]) -> str:
    """The page: the pictures, what differs, what is broken, then the parts."""
    parts = ["<h2>The picture</h2>", *map(html.picture, drawn)]
    if told.before is not None:
        changed = _changed(told)
        table = html.table(_CHANGED, changed) if changed else "<p>Nothing.</p>"
        parts.append(f"<h2>What differs from {escape(told.before.journal)}</h2>{table}")
    parts.append(f"<h2>{'Invariants that were broken' if told.now.broken else 'No invariant was broken'}</h2>")
    parts += map(_section, told.now.broken)
    for name, question in questions().items():
        rows = told.now.parts[name]
        table = html.table(_columns(rows), rows) if rows else "<p>None.</p>"
        title = question.title[0].upper() + question.title[1:]
        parts.append(
            f"<section id='{name}'><h2>{escape(title)}</h2><p class=quiet>{html.prose(question.explanation)}</p>{table}"
            f"{html.question(question.sql)}</section>"
        )
    kept = {check.name for check in told.now.checks} - {each.check.name for each in told.now.broken}
    quiet = "".join(
        f"<li title='{escape(c.title, quote=True)}'>{c.name}</li>" for c in told.now.checks if c.name in kept
    )
    parts.append(f"<h2>Kept by all</h2><ul class=ok>{quiet}</ul>")
    return html.page(f"Conformance of {told.now.journal}", told.summary, parts)


def _section(each: Broken) -> str:
    check = each.check
    return (
        f"<section class='finding {check.severity}'><span class=tag>{check.severity}</span> "
        f"<b>{escape(check.title)}</b> "
        f"<span class=quiet>{check.name}: {escape(named(each.software, each.version))}, {times(each.count)}</span>"
        f"<p>{html.prose(check.explanation)}</p>{html.table(_of_rows(each), each.rows, count=each.count)}"
        f"{html.question(check.sql)}</section>"
    )
