"""Answers for people: a table where there is a list, `name  value` lines where there is none."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from understudy.verbs import Verb

WIDEST = 60


def lines(verb: Verb, answer: Any) -> Iterator[str]:
    """The answer of a verb, line by line."""
    if not isinstance(answer, Mapping):
        yield str(answer)
        return
    rows = answer.get(verb.items) if verb.items else None
    yield from facts({name: value for name, value in answer.items() if name != verb.items or rows is None})
    if rows is not None:
        yield from table(verb.columns, rows)


def facts(document: Mapping[str, Any]) -> Iterator[str]:
    """One line a field, nested ones as JSON."""
    width = max(map(len, document), default=0)
    for name, value in document.items():
        yield f"{name:{width}}  {said(value)}"


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Aligned columns under their names, numbers to the right; a list in a cell is told by its length."""
    grid = [[cell(row.get(column)) for column in columns] for row in rows]
    widths = [max([len(column), *(len(line[i]) for line in grid)]) for i, column in enumerate(columns)]
    numeric = [bool(grid) and all(line[i].lstrip("-").isdigit() for line in grid) for i in range(len(columns))]
    for line in [[column.upper() for column in columns], *grid]:
        spots = zip(line, widths, numeric, strict=True)
        yield "  ".join(f"{text:>{w}}" if right else f"{text:<{w}}" for text, w, right in spots).rstrip()


def cell(value: Any) -> str:
    """A value in a table: short."""
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return str(len(value))
    text = said(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def said(value: Any) -> str:
    """A value in words."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(part, (dict, list)) for part in value):
        return ",".join(map(said, value)) or "-"
    return plain(json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value))


def plain(text: str) -> str:
    r"""Names come from clients, and may hold what a terminal obeys; such characters are shown as \x1b and the like."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
