"""Values and tables for people, in a terminal or on a page."""

import re
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

_UNIT: Final = 1024
_WIDEST: Final = 48
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def size_text(count: float) -> str:
    """Bytes for people: 12.3 MiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(count) < _UNIT:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= _UNIT
    return f"{count:.1f} TiB"


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 finding, 2 findings, 3 batches."""
    plural = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


def last_line(error: Exception) -> str:
    """Message of a worker's exception without its traceback: the last meaningful line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(("  ", "\t"))]
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception)?: ", line)]
    message = (named or lines or [type(error).__name__])[-1]
    return re.sub(r"^(?:\w+\.)+(\w+): ", "", message)


def plain(value: Any) -> Any:
    """A value for JSON. Times are in UTC, as ISO 8601 does."""
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
    """A value of a column for people: sizes and shares by the column's name, lists with commas, nothing as `-`."""
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
            return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
    # Keys and names come from clients, and may hold what a terminal obeys.
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def is_number(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers: then it is aligned to the right."""
    found = [value for value in values if value is not None]
    return bool(found) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in found)


def grid(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows under their columns' names; long texts lose their beginning, because the end of a path matters more."""
    cells = [[_short(formatted(name, row.get(name))) for name in columns] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells), 0) for at, name in enumerate(columns)]
    right = [is_number([row.get(name) for row in rows]) for name in columns]
    return [
        "  " + "  ".join(f"{text:>{width}}" if number else f"{text:{width}}"
                         for text, width, number in zip(line, widths, right, strict=True)).rstrip()
        for line in [list(columns), *cells]
    ]  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else "..." + text[3 - _WIDEST :]


def wrapped(text: str, width: int = 110) -> list[str]:
    """A paragraph, indented as tables are."""
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")
