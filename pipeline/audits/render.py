"""Renders a report as a table, as JSON, and as JUnit XML for continuous integration."""

import json
from typing import Final
from xml.etree import ElementTree as ET

from pipeline.audits.findings import Finding, Report
from pipeline.rendering.text import counted, grid, size_text, wrapped

_ROWS_OF_A_TABLE: Final = 10  # of one finding; `--json` has them all; ours, examples are enough
_COUNTED: Final = ("topic", "partition", "batch", "record")
_UNFIT: Final = {code: None for code in range(32) if code not in (9, 10, 13)}  # control characters that XML forbids


def summary(report: Report) -> str:
    """Return one line: what was audited, and the result."""
    seen = report.totals
    counts = [counted(seen[f"{noun}{'es' if noun == 'batch' else 's'}"], noun) for noun in _COUNTED]
    looked = ", ".join([*counts, size_text(seen["bytes"])])
    if "requests" in seen:
        looked += f", {counted(seen['requests'], 'request')}"
    if not report.findings:
        return f"{looked}: nothing found by {counted(len(report.checks), 'check')}"
    rows = sum(finding.count for finding in report.findings)
    return f"{looked}: {counted(rows, 'finding')} of {counted(len(report.findings), 'kind')}"


def as_table(report: Report, width: int | None = None) -> str:
    """Return the report as text; `width`: of the terminal."""
    parts = [_paragraph(finding, width) for finding in report.findings]
    return "\n".join([*parts, summary(report)])


def _paragraph(finding: Finding, width: int | None = None) -> str:
    check = finding.check
    hidden = finding.count - min(len(finding.rows), _ROWS_OF_A_TABLE)
    lines = [f"{check.severity.upper()} {check.name}: {check.title} ({finding.count})"]
    lines += wrapped(check.explanation, width)
    lines += grid(finding.columns, finding.rows[:_ROWS_OF_A_TABLE], width)
    if hidden:
        lines.append(f"  ... and {hidden} more (--format json shows up to {len(finding.rows)} of them)")
    return "\n".join([*lines, ""])


def as_json(report: Report) -> str:
    """Return the report as JSON, including the queries."""
    document = {
        "generator": "understudy audit",
        "path": report.path,
        "journal": report.journal,
        "totals": report.totals,
        "asked": [check.name for check in report.checks],
        "findings": [
            {
                "check": finding.check.name,
                "severity": finding.check.severity,
                "title": finding.check.title,
                "explanation": finding.check.explanation,
                "sql": finding.check.sql,
                "count": finding.count,
                "rows": list(finding.rows),
            }
            for finding in report.findings
        ],
    }
    return json.dumps(document, indent=2)


def as_junit(report: Report, *, fails: str = "warning") -> str:
    """Return a test case per check.

    It fails if it found something of severity `fails` or worse, else it notes findings.
    """
    by_check = {finding.check.name: finding for finding in report.findings}
    failing = {finding.check.name for finding in report.at_least(fails)}
    suite = ET.Element(
        "testsuite", name="understudy audit", tests=str(len(report.checks)), failures=str(len(failing)), errors="0",
        skipped="0",
    )  # fmt: skip
    for check in report.checks:
        case = ET.SubElement(suite, "testcase", classname=f"audit.{check.severity}", name=check.name)
        finding = by_check.get(check.name)
        if finding is not None:
            kind = "failure" if check.name in failing else "system-out"
            part = ET.SubElement(case, kind)
            if kind == "failure":
                part.set("message", f"{check.title}: {finding.count}")
            part.text = _paragraph(finding).translate(_UNFIT)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
