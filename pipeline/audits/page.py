"""A report as one HTML page that needs nothing else: the pictures first, then what was found, then what was asked."""

from collections.abc import Sequence
from html import escape

from pyspark.sql import SparkSession

from pipeline.audits.findings import Finding, Report
from pipeline.audits.pictures import COLOURS, pictures
from pipeline.audits.shown import summary
from pipeline.showing import html
from pipeline.showing.plots import Picture


def draw(spark: SparkSession, found: Sequence[Finding]) -> list[Picture]:
    """The pictures for these findings; partitions that were found come first."""
    rows = [row for finding in found for row in finding.rows]
    suspects = [(row["topic"], row["partition"]) for row in rows if {"topic", "partition"} <= set(row)]
    return pictures(spark, suspects)


def as_html(report: Report, drawn: Sequence[Picture]) -> str:
    """The page."""
    parts = [
        *_pictures(drawn),
        f"<h2>{'What was found' if report.findings else 'Nothing was found'}</h2>",
        *map(_finding, report.findings),
        _asked(report),
    ]
    return html.page(f"Audit of {report.path}", summary(report), parts)


def _pictures(drawn: Sequence[Picture]) -> list[str]:
    if not drawn:
        return []
    key = "".join(
        f"<span style='background:{COLOURS[kind]}'></span>{word}"
        for kind, word in (("COMMIT", "committed"), ("ABORT", "aborted"), ("open", "open or hanging"))
    )
    parts = ["<h2>The picture</h2>"]
    for index, picture in enumerate(drawn):
        if index == 1:
            parts.append(f"<h2>Transactions and the last stable offset</h2><p class='quiet key'>{key}</p>")
        parts.append(html.picture(picture))
    return parts


def _finding(finding: Finding) -> str:
    check = finding.check
    return (
        f"<section class='finding {check.severity}' id='{check.name}'><span class=tag>{check.severity}</span> "
        f"<b>{escape(check.title)}</b> <span class=quiet>{check.name}, {finding.count}</span>"
        f"<p>{html.prose(check.explanation)}</p>"
        f"{html.table(finding.columns, finding.rows, count=finding.count)}{html.question(check.sql)}</section>"
    )


def _asked(report: Report) -> str:
    found = {finding.check.name for finding in report.findings}
    quiet = "".join(
        f"<li title='{escape(check.title, quote=True)}'>{check.name}</li>"
        for check in report.asked
        if check.name not in found
    )
    return f"<h2>Asked, and nothing found</h2><ul class=ok>{quiet}</ul>"
