"""A report as tables for people, as JSON, and as one HTML page: pictures first, then the tables."""

import json
from collections.abc import Sequence
from html import escape
from typing import Final

from pipeline.reports.answers import Answer, Report
from pipeline.showing import html
from pipeline.showing.plots import Picture
from pipeline.showing.text import grid, wrapped

_ROWS_OF_A_TABLE: Final = 20
_NOTHING: Final = "nothing to tell"


def as_table(report: Report) -> str:
    """For a terminal."""
    return "\n".join([*map(_paragraph, report.answers), report.summary])


def _paragraph(answer: Answer) -> str:
    question = answer.question
    shown = answer.rows[:_ROWS_OF_A_TABLE]
    lines = [f"{question.name}: {question.title}", *wrapped(question.explanation)]
    lines += grid(answer.told_columns, shown) if shown else [f"  {_NOTHING}"]
    if answer.count > len(shown):
        lines.append(f"  ... and {answer.count - len(shown)} more (--format json tells {len(answer.rows)} of them)")
    return "\n".join([*lines, ""])


def as_json(report: Report) -> str:
    """For programs: everything, the queries too. Sizes are bytes, shares 0 to 1, times UTC."""
    told = {
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
    return json.dumps(told, indent=2)


def as_html(report: Report, drawn: Sequence[tuple[str, Picture]]) -> str:
    """The page; a picture stands with the report of its name."""
    names = [answer.question.name for answer in report.answers]
    own = {name: [picture for of, picture in drawn if of == name] for name in names}
    parts = [
        f"<p>{' · '.join(_link(answer) for answer in report.answers)}</p>",
        *(_section(answer, own[answer.question.name]) for answer in report.answers),
    ]
    return html.page(f"Report of {report.path}", report.summary, parts)


def _link(answer: Answer) -> str:
    return f"<a href='#{answer.question.name}'>{answer.question.name}</a>"


def _section(answer: Answer, drawn: Sequence[Picture]) -> str:
    question = answer.question
    table = html.table(answer.told_columns, answer.rows, count=answer.count) if answer.rows else f"<p>{_NOTHING}</p>"
    return (
        f"<section id='{question.name}'><h2>{escape(question.title[0].upper() + question.title[1:])}</h2>"
        f"<p class=quiet>{html.prose(question.explanation)}</p>{''.join(map(html.picture, drawn))}{table}"
        f"{html.question(question.sql)}</section>"
    )
