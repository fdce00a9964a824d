"""Renders a report as one self-contained HTML page: pictures, findings, then all checks."""

from collections.abc import Sequence

from pipeline.audits.engine import Engine
from pipeline.audits.findings import Finding, Report
from pipeline.audits.pictures import COLOURS, pictures
from pipeline.audits.render import summary
from pipeline.rendering import html
from pipeline.rendering.plots import Picture

_KEY = (("COMMIT", "committed"), ("ABORT", "aborted"), ("open", "open or hanging"))


def draw(engine: Engine, findings: Sequence[Finding]) -> list[Picture]:
    """Draw the pictures for these findings; partitions with findings come first."""
    rows = [row for finding in findings for row in finding.rows]
    suspects = [(row["topic"], row["partition"]) for row in rows if {"topic", "partition"} <= set(row)]
    return pictures(engine, suspects)


def as_html(report: Report, drawn: Sequence[Picture]) -> str:
    """Return the page."""
    failing = {finding.check.name for finding in report.findings}
    return html.page(
        "audit.html",
        f"Audit of {report.path}",
        summary(report),
        report=report,
        drawn=drawn,
        key=[(COLOURS[kind], label) for kind, label in _KEY],
        quiet=[check for check in report.checks if check.name not in failing],
    )
