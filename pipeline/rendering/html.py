"""Renders self-contained HTML pages, for a light and a dark screen, from Jinja templates.

Templates escape everything except what is marked as HTML: drawings, and prose with code.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.rendering.text import formatted, is_number

MOST_ROWS: Final = 50
"""Maximum number of rows of a table on a page: arbitrary, what is scrolled through; `--json` has them all."""


def page(template: str, title: str, summary: str, **values: Any) -> str:
    """Render a page: its title, a one-line summary, and the values that its template shows."""
    return _environment().get_template(template).render(title=title, summary=summary, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": _cell, "is_number": _is_number, "prose": prose}
    environment.globals["most_rows"] = MOST_ROWS
    return environment


def _cell(value: Any, column: str) -> str:
    return "" if value is None else formatted(column, value)


def _is_number(rows: Sequence[dict[str, Any]], column: str) -> bool:
    return is_number([row.get(column) for row in rows])


def prose(text: str) -> Markup:
    """Escape plain text, with text between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it was escaped
