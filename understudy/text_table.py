"""Formats responses as text for programs: a table for each list of objects, `name  value` lines for everything else.

Columns are separated by at least two spaces, and no cell is empty: `awk -F '  +'` divides a line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from control_api import times
from control_api.spelling import plain
from control_api.verb import Verb

WIDEST, WIDEST_AT_THE_END = 60, 120
"""Characters of a cell; the last one of a line moves nothing, and often is a link.

Ours, two cells and a link beside each other.
"""


def lines(verb: Verb, answer: Any) -> Iterator[str]:
    """Return the response of a verb, line by line."""
    if not isinstance(answer, Mapping):
        yield str(answer)
        return
    if verb.name in {"report", "diagrams show"}:  # formatted by the server
        yield from answer["text"].splitlines()
        return
    verb, answer = readable(verb, answer)
    rows = answer.get(verb.items) if verb.items else None
    others = {name: value for name, value in answer.items() if name != verb.items or rows is None}
    nested = {name: value for name, value in others.items() if _is_rows(value)}
    yield from facts({name: value for name, value in others.items() if name not in nested})
    for name, items in nested.items():
        yield from ("", f"{name}:")
        yield from table(tuple(dict.fromkeys(key for row in items for key in row)), items)
    if rows is not None:
        if nested:
            yield from ("", f"{verb.items}:")
        yield from table(verb.columns, rows)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def readable(verb: Verb, answer: Mapping[str, Any]) -> tuple[Verb, Mapping[str, Any]]:
    """Return records decoded by their schemas, with a column for these; requests with outcomes, if any has one."""
    if verb.name == "journal list" and any(map(unanswered, answer["entries"])):
        return verb._replace(columns=(*verb.columns, "outcome")), answer
    if verb.name != "records read" or not any(map(_is_decoded, answer["records"])):
        return verb, answer
    records = [decoded(record) for record in answer["records"]]
    return verb._replace(columns=(*verb.columns, "schema")), {**answer, "records": records}


def unanswered(request: Mapping[str, Any]) -> bool:
    """Return whether a request got no response, or has none yet."""
    return bool(request.get("outcome", "answered") != "answered")


def noted(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request whose error is its outcome, if it got no response, for a line without a further column."""
    return {**request, "error": request["outcome"]} if unanswered(request) else request


def decoded(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with its decoded key and value; if decoding failed, unchanged with the reason."""
    sides = {side: record.get(f"{side}_decoded") for side in ("key", "value")}
    texts = {side: each["json"] for side, each in sides.items() if each is not None and each["json"] is not None}
    schemas = [f"{side}: {_schema(each)}" for side, each in sides.items() if each is not None]
    return {**record, **texts, "schema": "; ".join(schemas)}


def _is_decoded(record: Mapping[str, Any]) -> bool:
    return record.get("key_decoded") is not None or record.get("value_decoded") is not None


def _schema(about: Mapping[str, Any]) -> str:
    """Return its type, id and subject, and the reason why data were not decoded."""
    name = about["schema_guid"] if about["schema_id"] is None else about["schema_id"]
    parts = [about["type"], None if name is None else f"schema {name}", next(iter(about["subjects"]), None)]
    if about["magic"] is None:
        parts.append(about["source"])
    text = ", ".join(str(part) for part in parts if part is not None)
    return text if about["problem"] is None else f"{text}: {about['problem']}" if text else str(about["problem"])


def facts(document: Mapping[str, Any]) -> Iterator[str]:
    """Return one line per field, nested ones as JSON."""
    width = max((len(heading(name)) for name in document), default=0)
    for name, value in document.items():
        yield f"{heading(name):{width}}  {formatted(value, name)}"


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return aligned columns under their names, numbers to the right; a list in a cell is shown as its length.

    The first column is on the left, so that no line begins with a separator.
    """
    grid = [
        [filled(row.get(column), column, WIDEST_AT_THE_END if column == columns[-1] else WIDEST) for column in columns]
        for row in rows
    ]
    headings = [heading(column).upper() for column in columns]
    widths = [max([len(above), *(len(line[i]) for line in grid)]) for i, above in enumerate(headings)]
    numeric = [i > 0 and are_numbers([line[i] for line in grid]) for i in range(len(columns))]
    for line in [headings, *grid]:
        spots = zip(line, widths, numeric, strict=True)
        yield "  ".join(f"{text:>{w}}" if right else f"{text:<{w}}" for text, w, right in spots).rstrip()


def are_numbers(cells: Sequence[str]) -> bool:
    """Return whether a column is aligned to the right: numbers, some of which may be unknown."""
    shown = [text for text in cells if text != "-"]
    return bool(shown) and all(text.lstrip("-").isdigit() for text in shown)


def heading(name: str) -> str:
    """Return a field's name; of a time without its unit, since it is not shown in milliseconds."""
    return name.removesuffix("_ms") if name in times.NAMES else name


def cell(value: Any, name: str, widest: int = WIDEST) -> str:
    """Return a value for a table: short."""
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return str(len(value))
    text = formatted(value, name)
    return text if len(text) <= widest else text[: widest - 3] + "..."


def filled(value: Any, name: str, widest: int = WIDEST) -> str:
    """Return a value for a table as above; an empty text as two quotation marks, since columns are found by spaces."""
    return cell(value, name, widest) or '""'


def formatted(value: Any, name: str = "") -> str:
    """Return a value as text; times as local times."""
    if name in times.NAMES and isinstance(value, int):
        return times.local_time(value) if value >= 0 else "-"
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(part, (dict, list)) for part in value):
        return ",".join(map(formatted, value)) or "-"
    return plain(json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value))
