"""Renders a report as text tables, as JSON, or as one HTML page: pictures first, then the tables."""

import json
from collections.abc import Sequence
from typing import Final

from pipeline.rendering import html
from pipeline.rendering.plots import Picture
from pipeline.rendering.text import grid, wrapped
from pipeline.reports.answers import Answer, Report

_ROWS_OF_A_TABLE: Final = 20  # `--json` has them all; ours, a screen
_NOTHING: Final = "no rows"


def as_table(report: Report, width: int | None = None) -> str:
    """Return the report as text; `width`: of the terminal."""
    return "\n".join([*(_paragraph(each, width) for each in report.answers), report.summary])


def _paragraph(answer: Answer, width: int | None) -> str:
    question = answer.question
    shown = answer.rows[:_ROWS_OF_A_TABLE]
    lines = [f"{question.name}: {question.title}", *wrapped(question.explanation, width)]
    lines += grid(answer.shown_columns, shown, width) if shown else [f"  {_NOTHING}"]
    if answer.count > len(shown):
        lines.append(f"  ... and {answer.count - len(shown)} more (--format json shows {len(answer.rows)} of them)")
    return "\n".join([*lines, ""])


def as_json(report: Report) -> str:
    """Return the report as JSON, including the queries. Sizes are bytes, shares 0 to 1, times UTC."""
    document = {
        "generator": "understudy report",
        "path": report.path,
        "journal": report.journal,
        "topics": list(report.topics),
        "reports": {
            answer.question.name: {
                "title": answer.question.title,
                "explanation": answer.question.explanation,
                "sql": answer.question.sql,
                "count": answer.count,
                "rows": list(answer.rows),
            }
            for answer in report.answers
        },
    }
    return json.dumps(document, indent=2)


def as_html(report: Report, drawn: Sequence[tuple[str, Picture]]) -> str:
    """Return the page; each picture is shown with the report of its name."""
    sections = [
        (answer, [picture for name, picture in drawn if name == answer.question.name]) for answer in report.answers
    ]
    return html.page("report.html", f"Report of {report.path}", report.summary, sections=sections, nothing=_NOTHING)
