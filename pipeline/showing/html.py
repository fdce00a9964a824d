"""Pages that need no other file, for a light and a dark screen."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from pipeline.showing.plots import Picture
from pipeline.showing.text import is_number, told

MOST_ROWS: Final = 50
"""Of a table on a page."""

STYLE: Final = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1d2733; --line: #dde3ea; --quiet: #566372; --code: #f3f5f8;
  --error: #c0392b; --warning: #b97a10; --info: #3b6ea8 }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #dfe5ec; --line: #323b46; --quiet: #98a5b3; --code: #1d232b;
    --error: #ef7768; --warning: #e3ae4c; --info: #79a9e0 } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1080px; padding: 24px; color: var(--ink);
  background: var(--page) }
h1 { font-size: 24px; margin: 0 } h2 { font-size: 18px; margin: 36px 0 8px } h3 { font-size: 15px; margin: 18px 0 2px }
p { margin: 4px 0; max-width: 90ch } .quiet { color: var(--quiet) }
figure { margin: 12px 0 20px; overflow-x: auto }
svg { width: 100%; min-width: 640px; height: auto; color: inherit } svg text { fill: currentColor }
.finding { border: 1px solid var(--line); border-left: 5px solid; border-radius: 4px; padding: 10px 14px;
  margin: 12px 0 }
.error { border-left-color: var(--error) } .warning { border-left-color: var(--warning) }
.info { border-left-color: var(--info) }
.tag { font-size: 12px; text-transform: uppercase; letter-spacing: .05em; font-weight: 600 }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; margin: 8px 0 }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
td { font-variant-numeric: tabular-nums; max-width: 60ch; overflow: hidden; text-overflow: ellipsis }
a { color: var(--info) } code { font-size: 13px }
th { color: var(--quiet); font-weight: 500 } .number { text-align: right }
pre { background: var(--code); padding: 10px; overflow-x: auto; font-size: 12px }
summary { cursor: pointer; color: var(--quiet) }
.ok { columns: 220px 3; font-size: 13px }
.key span { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 12px }
"""


def page(title: str, summary: str, parts: Iterable[str]) -> str:
    """A page: its title, one line of what was looked at, and the rest."""
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    return "\n".join([head, f"<h1>{escape(title)}</h1><p class=quiet>{escape(summary)}</p>", *parts, "</html>"])


def table(columns: Sequence[str], rows: Sequence[dict[str, Any]], *, count: int | None = None) -> str:
    """The first rows under their columns' names, and how many there are besides."""
    shown = rows[:MOST_ROWS]
    classes = [" class=number" if is_number([row.get(name) for row in shown]) else "" for name in columns]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(columns, classes, strict=True))
    lines = ["".join(map(_cell, columns, [row.get(name) for name in columns], classes)) for row in shown]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    hidden = (len(rows) if count is None else count) - len(shown)
    more = f"<p class=quiet>... and {hidden} more</p>" if hidden else ""
    return f"<div class=scroll><table><tr>{head}</tr>{body}</table></div>{more}"


def _cell(name: str, value: Any, kind: str) -> str:
    text = "" if value is None else escape(told(name, value))
    return f"<td{kind}>{text}</td>"


def prose(text: str) -> str:
    """Plain text, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def picture(drawn: Picture) -> str:
    """A picture with its title and words."""
    words = f"<p class=quiet>{escape(drawn.words)}</p>" if drawn.words else ""
    return f"<h3>{escape(drawn.title)}</h3>{words}<figure>{drawn.svg}</figure>"


def question(sql: str) -> str:
    """The query, folded away."""
    return f"<details><summary>the question</summary><pre>{escape(sql)}</pre></details>"
