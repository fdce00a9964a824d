"""A report as one HTML page that needs nothing else: the pictures first, then what was found, then what was asked."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from pyspark.sql import SparkSession

from pipeline.audits.findings import Finding, Report
from pipeline.audits.pictures import COLOURS, Picture, pictures
from pipeline.audits.shown import summary

_ROWS: Final = 50
_STYLE: Final = """
:root { color-scheme: light; --line: #dde3ea; --quiet: #5b6775 }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1080px; padding: 24px; color: #1d2733 }
h1 { font-size: 24px; margin: 0 } h2 { font-size: 18px; margin: 36px 0 8px } h3 { font-size: 15px; margin: 18px 0 2px }
p { margin: 4px 0 } .quiet { color: var(--quiet) } figure { margin: 12px 0 20px } svg { width: 100%; height: auto }
.finding { border: 1px solid var(--line); border-left: 5px solid; border-radius: 4px; padding: 10px 14px;
  margin: 12px 0 }
.error { border-left-color: #c0392b } .warning { border-left-color: #e0a02b } .info { border-left-color: #3b6ea8 }
.tag { font-size: 12px; text-transform: uppercase; letter-spacing: .05em; font-weight: 600 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; margin-top: 8px }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
td { font-variant-numeric: tabular-nums } th { color: var(--quiet); font-weight: 500 }
pre { background: #f5f7f9; padding: 10px; overflow-x: auto; font-size: 12px }
summary { cursor: pointer; color: var(--quiet) }
.ok { columns: 3; font-size: 13px } .key span { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 12px }
"""


def draw(spark: SparkSession, found: Sequence[Finding]) -> list[Picture]:
    """The pictures for these findings; partitions that were found come first."""
    rows = [row for finding in found for row in finding.rows]
    suspects = [(row["topic"], row["partition"]) for row in rows if {"topic", "partition"} <= set(row)]
    return pictures(spark, suspects)


def as_html(report: Report, drawn: Sequence[Picture]) -> str:
    """The page."""
    title = f"Audit of {report.path}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f"<meta name=viewport content='width=device-width'><title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1><p class=quiet>{escape(summary(report))}</p>",
        *_pictures(drawn),
        f"<h2>{'What was found' if report.findings else 'Nothing was found'}</h2>",
        *map(_finding, report.findings),
        _asked(report),
        "</html>",
    ]
    return "\n".join(parts)


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
        parts.append(
            f"<h3>{escape(picture.title)}</h3><p class=quiet>{escape(picture.words)}</p><figure>{picture.svg}</figure>"
        )
    return parts


def _finding(finding: Finding) -> str:
    check = finding.check
    hidden = finding.count - min(len(finding.rows), _ROWS)
    more = f"<p class=quiet>... and {hidden} more</p>" if hidden else ""
    return (
        f"<section class='finding {check.severity}' id='{check.name}'><span class=tag>{check.severity}</span> "
        f"<b>{escape(check.title)}</b> <span class=quiet>{check.name}, {finding.count}</span>"
        f"<p>{escape(check.explanation)}</p>"
        f"<div class=scroll>{_table(finding.columns, finding.rows[:_ROWS])}</div>{more}"
        f"<details><summary>the question</summary><pre>{escape(check.sql)}</pre></details></section>"
    )


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = [["" if row[name] is None else escape(str(row[name])) for name in columns] for row in rows]
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in cells)
    return f"<table><tr>{head}</tr>{body}</table>"


def _asked(report: Report) -> str:
    found = {finding.check.name for finding in report.findings}
    quiet = "".join(
        f"<li title='{escape(check.title, quote=True)}'>{check.name}</li>"
        for check in report.asked
        if check.name not in found
    )
    return f"<h2>Asked, and nothing found</h2><ul class=ok>{quiet}</ul>"
