"""Formats values and tables for people, for a terminal or a page."""

import re
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

_UNIT: Final = 1024
_WIDEST: Final = 48  # characters of a column: two such fit beside each other
_LEAST: Final = 12
"""Minimum width of a column of text: arbitrary, a shorter one would show nothing of a name."""
_PARAGRAPH: Final = 110  # characters of a line of prose; ours, a terminal that is not narrow
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def size_text(count: float) -> str:
    """Format a number of bytes: 12.3 MiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(count) < _UNIT:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= _UNIT
    return f"{count:.1f} TiB"


def counted(count: int, noun: str) -> str:
    """Format a number and its noun: 1 finding, 2 findings, 3 batches."""
    plural = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


def last_line(error: Exception) -> str:
    """Return the last meaningful line of a worker's exception, without its traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(("  ", "\t"))]
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception)?: ", line)]
    message = (named or lines or [type(error).__name__])[-1]
    return re.sub(r"^(?:\w+\.)+(\w+): ", "", message)


def plain(value: Any) -> Any:
    """Convert a value for JSON. Times are in UTC, in ISO 8601 format."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def formatted(name: str, value: Any) -> str:
    """Format a column's value: sizes and shares by the column's name, lists with commas, null as `-`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(formatted(name, each) for each in value) or "-"
    if isinstance(value, int | float):
        unit = name.rpartition("_")[2]
        if unit == "bytes" and value >= 0:  # -1 is Kafka's "no limit"
            return size_text(value)
        if unit == "share":
            return f"{value:.1%}"
        if isinstance(value, float):
            # About three digits that count.
            return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
    # Keys and names come from clients, and may contain control characters of terminals.
    return _UNPRINTABLE.sub(lambda character: character[0].encode("unicode_escape").decode(), str(value))


def is_number(values: Sequence[Any]) -> bool:
    """Return whether a column contains numbers and is aligned to the right."""
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)


def grid(columns: Sequence[str], rows: Sequence[dict[str, Any]], width: int | None = None) -> list[str]:
    """Format rows below their column names; long texts lose their beginning, because the end of a path matters more.

    To fit `width`, the widest texts are cut further. If the columns do not fit even then, each row is a paragraph of
    names and values.
    """
    cells = [[formatted(name, row.get(name)) for name in columns] for row in rows]
    right = [is_number([row.get(name) for row in rows]) for name in columns]
    widths = [max(len(name), *(min(len(row[at]), _WIDEST) for row in cells), 0) for at, name in enumerate(columns)]
    least = [
        own if number else min(own, max(len(name), _LEAST))
        for name, own, number in zip(columns, widths, right, strict=True)
    ]
    while width is not None and _line_width(widths) > width and widths != least:
        spare = [own - few for own, few in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    if width is not None and _line_width(widths) > width:
        return _paragraphs(columns, cells, width)
    return [
        "  " + "  ".join(f"{text:>{own}}" if number else f"{_short(text, own):{own}}"
                         for text, own, number in zip(line, widths, right, strict=True)).rstrip()
        for line in [list(columns), *cells]
    ]  # fmt: skip


def _line_width(widths: Sequence[int]) -> int:
    return sum(2 + width for width in widths)


def _paragraphs(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """Format each row as `name=value`, with its second and later lines indented further."""
    lines = []
    for row in cells:
        begin = "  "
        line = ""
        for name, text in zip(columns, row, strict=True):
            # The indentation and "=".
            part = f"{name}={_short(text, max(width - len(name) - 5, _LEAST))}"
            if line and len(begin) + len(line) + 2 + len(part) > width:
                lines.append(begin + line)
                begin, line = "    ", ""
            line += f"{'  ' if line else ''}{part}"
        lines.append(begin + line)
    return lines


def shortened(text: str, width: int = 24) -> str:
    """Remove control characters from a text, and cut its beginning if it is too long, for a cell or a label."""
    return _short(formatted("", text), width)


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[3 - width :]  # with the dots


def wrapped(text: str, width: int | None = None) -> list[str]:
    """Wrap a paragraph, indented like tables."""
    return textwrap.wrap(text, min(width or _PARAGRAPH, _PARAGRAPH), initial_indent="  ", subsequent_indent="  ")
