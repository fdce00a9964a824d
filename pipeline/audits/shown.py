"""A report as a table for people, as JSON, and as JUnit XML for continuous integration."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from pipeline.audits.findings import Finding, Report

_ROWS_OF_A_TABLE: Final = 10
_WIDEST: Final = 48
_UNIT: Final = 1024
_UNFIT: Final = {code: None for code in range(32) if code not in (9, 10, 13)}


def size_text(count: float) -> str:
    """Bytes for people: 12.3 MiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < _UNIT:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= _UNIT
    return f"{count:.1f} TiB"


def summary(report: Report) -> str:
    """One line: what was looked at and what came out."""
    seen = report.totals
    looked = (
        f"{seen['topics']} topics, {seen['partitions']} partitions, {seen['batches']} batches, "
        f"{seen['records']} records, {size_text(seen['bytes'])}"
    )
    if "requests" in seen:
        looked += f", {seen['requests']} requests"
    if not report.findings:
        return f"{looked}: nothing found by {len(report.asked)} checks"
    rows = sum(finding.count for finding in report.findings)
    return f"{looked}: {rows} findings of {len(report.findings)} kinds"


def as_table(report: Report) -> str:
    """For a terminal."""
    parts = [_paragraph(finding) for finding in report.findings]
    return "\n".join([*parts, summary(report)])


def _paragraph(finding: Finding) -> str:
    check = finding.check
    hidden = finding.count - min(len(finding.rows), _ROWS_OF_A_TABLE)
    lines = [f"{check.severity.upper()} {check.name}: {check.title} ({finding.count})", *_wrapped(check.explanation)]
    lines += grid(finding.columns, finding.rows[:_ROWS_OF_A_TABLE])
    if hidden:
        lines.append(f"  ... and {hidden} more (--format json tells up to {len(finding.rows)} of them)")
    return "\n".join([*lines, ""])


def _wrapped(text: str, width: int = 110) -> Iterable[str]:
    import textwrap  # noqa: PLC0415 - for this format alone

    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")


def grid(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows under their columns' names; long texts lose their beginning, for paths tell more at their end."""
    cells = [[_cell(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells), 0) for at, name in enumerate(columns)]
    lines = [columns, *cells]
    return ["  " + "  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines]  # fmt: skip


def _cell(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _WIDEST else "..." + text[3 - _WIDEST :]


def as_json(report: Report) -> str:
    """For programs: everything, the queries too."""
    told = {
        "path": report.path,
        "journal": report.journal,
        "totals": report.totals,
        "asked": [check.name for check in report.asked],
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
    return json.dumps(told, indent=2)


def as_junit(report: Report, *, fails: str = "warning") -> str:
    """A test case for each check; those that found something of `fails` or worse have failed, the others say it."""
    found = {finding.check.name: finding for finding in report.findings}
    failing = {finding.check.name for finding in report.at_least(fails)}
    suite = ET.Element(
        "testsuite", name="understudy audit", tests=str(len(report.asked)), failures=str(len(failing)), errors="0",
        skipped="0",
    )  # fmt: skip
    for check in report.asked:
        case = ET.SubElement(suite, "testcase", classname=f"audit.{check.severity}", name=check.name)
        finding = found.get(check.name)
        if finding is not None:
            kind = "failure" if check.name in failing else "system-out"
            part = ET.SubElement(case, kind)
            if kind == "failure":
                part.set("message", f"{check.title}: {finding.count}")
            part.text = _paragraph(finding).translate(_UNFIT)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
