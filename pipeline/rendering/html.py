"""Pages that need no other file, for a light and a dark screen, made of Jinja's templates.

Everything that a template shows is escaped but for what is marked as HTML: drawings, and prose with its code.
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
"""Of a table on a page."""


def page(template: str, title: str, summary: str, **values: Any) -> str:
    """A page: its title, one line of what was looked at, and what its template shows of the values."""
    return _environment().get_template(template).render(title=title, summary=summary, **values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cell": _cell, "is_number": _is_number, "prose": prose}
    made.globals["most_rows"] = MOST_ROWS
    return made


def _cell(value: Any, column: str) -> str:
    return "" if value is None else formatted(column, value)


def _is_number(rows: Sequence[dict[str, Any]], column: str) -> bool:
    return is_number([row.get(column) for row in rows])


def prose(text: str) -> Markup:
    """Plain text, with the text between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it was escaped
