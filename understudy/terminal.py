"""Prints responses on a terminal: columns that fit its width, short local times, colours unless NO_COLOR is set.

Programs read the text of ``text_table`` or JSON instead; this module prints nothing into a pipe or a file.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from control_api import times
from control_api.verb import Verb
from understudy.text_table import WIDEST_AT_THE_END, are_numbers, cell, formatted, heading, readable

NARROWEST = 10
"""Minimum characters of a text column; if that does not fit, each row becomes a block of lines."""
GAP = 2
NESTED: Mapping[str, tuple[str, ...]] = {
    "timeline": ("at_ms", "event", "state_after", "epoch_after", "client_id", "api", "error", "citation"),
    "partitions": ("partition", "leader", "isr", "log_start_offset", "high_watermark", "last_stable_offset"),
    "clients": ("client_id", "software", "open", "requests", "errors", "series"),
    "faults": ("id", "meets", "does", "hits", "remaining"),
    "refusals": ("at_ms", "name", "error", "why"),
}
"""Columns of lists within a response; other lists show all fields."""
EXPENDABLE = (
    *("connection", "connections", "version", "broker", "throttled_ms", "host", "fault", "how", "ended_ms", "id"),
    *("groups", "topics", "producer_epoch", "transactional_ids"),
)
"""Columns that are left out, in this order, if a table does not fit; JSON has them."""
SPARE: Mapping[str, Sequence[str]] = {"timeline": ("citation", "epoch_after", "state_after", "api")}
"""The same for lists within a response that have their own order. Remaining text has ``WHOLE`` characters."""
WHOLE = 24  # arbitrary: most names are shorter
WIDTH_OF_A_REQUEST, WIDE = 130, 110
"""Characters of a followed request with all columns and names of usual length; of an event without its rule."""
RIGID = frozenset({"error", "state", "event", "state_after", "member_id"})
"""Columns of names that are useless when truncated."""
WRAPPED = frozenset({"meets", "does", "why", "outcome", "assignment"})
"""Columns of sentences and lists, which are wrapped rather than truncated."""
HIDDEN: Mapping[str, frozenset[str]] = {
    "overview": frozenset({"step_ms", "window_ms", "first_entry"}),
    "groups show": frozenset({"offsets"}),  # `lags` includes these, with the partitions that have no commit
}
"""Fields that only programs need, by verb."""
DIAGRAM = "diagrams show"
BARS = "▁▂▃▄▅▆▇█"
LATEST = 20
"""Number of latest values of a series in a table: what fits on a line."""
GOOD, BUSY, BAD = "green", "yellow", "red"
ALARMING: Mapping[str, Any] = {"up": False, "fenced": True, "stopped": True, "leader": -1}
STATES: Mapping[str, str] = {
    "Stable": GOOD,
    "CompleteCommit": GOOD,
    "Ongoing": BUSY,
    "PrepareCommit": BUSY,
    "PrepareAbort": BUSY,
    "PreparingRebalance": BUSY,
    "CompletingRebalance": BUSY,
    "Assigning": BUSY,
    "Reconciling": BUSY,
    "CompleteAbort": BAD,
    "Dead": BAD,
}


class Column(NamedTuple):
    """A column with its cells; a rigid one (numbers and times) is never truncated."""

    name: str
    cells: list[Text]
    rigid: bool

    @property
    def width(self) -> int:
        """Return the characters that it needs without truncation; its heading may have several lines."""
        return max([*map(len, self.title.split()), *(cell.cell_len for cell in self.cells)])

    @property
    def title(self) -> str:
        """Return its heading."""
        return heading(self.name).upper().replace("_", " ")

    @property
    def is_empty(self) -> bool:
        """Return whether no row has a value."""
        return all(cell.plain in {"-", ""} for cell in self.cells)


def console() -> Console:
    """Return the terminal that stdout is."""
    return Console(highlight=False, width=shutil.get_terminal_size().columns)


def show(out: Console, verb: Verb, answer: Any) -> None:
    """Print a response; a diagram exceeds the width rather than losing its end."""
    out.print(picture(verb, answer, out.width), soft_wrap=verb.name == DIAGRAM)


def picture(verb: Verb, answer: Any, width: int) -> RenderableType:
    """Return a response as something that rich prints."""
    if verb.name in {"report", DIAGRAM}:  # lines that the server has formatted
        return Text(answer["text"])
    if not isinstance(answer, Mapping):
        return Text(str(answer))
    return Group(*_parts(*readable(verb, answer), width))


def _parts(verb: Verb, answer: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    hidden = HIDDEN.get(verb.name, frozenset())
    listed = {
        name: value for name, value in answer.items() if name not in hidden and (name == verb.items or _is_rows(value))
    }
    plain = {
        name: value
        for name, value in answer.items()
        if name not in listed and name not in hidden and not _is_void(name, value)
    }
    if plain:
        yield facts(plain)
    for name, items in listed.items():
        if not items and len(answer) > 1:
            continue
        if plain or len(listed) > 1:
            yield Text(f"\n{heading(name)}", style="bold")
        if not items:
            yield Text(f"no {heading(name)}", style="dim")
        is_main = name == verb.items and name != "timeline"
        names = (
            verb.columns if is_main else NESTED.get(name) or tuple(dict.fromkeys(key for row in items for key in row))
        )
        yield rows(names, items, width, every=is_main, spare=SPARE.get(name, EXPENDABLE))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _is_void(name: str, value: Any) -> bool:
    return value in ([], {}) or (name == "forgotten" and not value)


def facts(document: Mapping[str, Any]) -> Table:
    """Return one line per field; nested objects have a line for each of their fields."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            for at, (key, each) in enumerate(value.items()):
                inner = ", ".join(f"{k} {formatted(v, k)}" for k, v in each.items()) if isinstance(each, dict) else None
                shown = f"{formatted(key)}  {formatted(each) if inner is None else inner}"
                table.add_row("" if at else name, Text(shown))  # as a str it would be parsed as markup
        else:
            table.add_row(heading(name), text(value, name))
    return table


def rows(
    names: Sequence[str],
    items: Sequence[Mapping[str, Any]],
    width: int,
    *,
    every: bool,
    spare: Sequence[str] = EXPENDABLE,
) -> RenderableType:
    """Return a table, or if it does not fit, a block of lines for each row.

    Empty columns are shown only with ``every``, and only if that truncates no other. ``spare``: columns to leave out
    first.
    """
    columns = [_column(name, items) for name in names]
    shown = [column for column in columns if every or not column.is_empty]
    if not items:
        return Text("")
    if sum(column.width + GAP for column in shown) - GAP > width:
        shown = [column for column in shown if not column.is_empty] or shown
    least = NARROWEST if spare is EXPENDABLE else WHOLE
    if _needs(shown, least) > width:
        shown = _fitting(shown, width, spare, least)
    if _needs(shown) > width or "why" in names:
        return Group(*(_block(shown, at) for at in range(len(items))))
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    broad = sum(max(column.width, len(column.title)) for column in shown) + GAP * (len(shown) - 1)
    high = broad > width
    for column in shown:
        table.add_column(
            Text("\n".join(column.title.split()) if high else column.title, overflow="ellipsis"),
            justify="right" if are_numbers([each.plain for each in column.cells]) else "left",
            no_wrap=column.rigid,
            vertical="top",
        )
    for at in range(len(items)):
        table.add_row(*(column.cells[at] for column in shown))
    return table


def _needs(columns: Sequence[Column], least: int = NARROWEST) -> int:
    """Return the characters of a table of these columns, if text is truncated to ``least``."""
    return sum(column.width if column.rigid else min(column.width, least) for column in columns) + GAP * (
        len(columns) - 1
    )


def _fitting(columns: Sequence[Column], width: int, spare: Sequence[str], least: int) -> list[Column]:
    """Return the columns without expendable ones, until they fit; else all of them."""
    left = list(columns)
    for name in spare:
        if _needs(left, least) <= width:
            return left
        left = [column for column in left if column.name != name]
    return left if _needs(left) <= width else list(columns)


def _block(columns: Sequence[Column], at: int) -> Table:
    """Return a row as lines, with a blank one below."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for column in columns:
        table.add_row(heading(column.name), column.cells[at])
    table.add_row("", "")
    return table


def columns_to_follow(verb: Verb, width: int) -> tuple[str, ...]:
    """Return the columns of `--follow`: fewer for requests on a narrow terminal, as later values are unknown."""
    columns = NESTED.get(verb.items, verb.columns)
    if verb.items == "timeline" and width < WIDTH_OF_A_REQUEST:
        # As many as have to go.
        return tuple(name for name in columns if name not in SPARE["timeline"][: 2 if width >= WIDE else 3])
    if verb.name != "journal list" or width >= WIDTH_OF_A_REQUEST:
        return columns
    return tuple(name for name in columns if name not in {"id", "broker", "connection", "version", "fault"})


def plain_cell(value: Any, name: str) -> str:
    """Return a value as one line of text."""
    return text(value, name, one_line=True).plain


def _column(name: str, items: Sequence[Mapping[str, Any]]) -> Column:
    values = [row.get(name) for row in items]
    cells = [text(value, name, one_line=name not in WRAPPED) for value in values]
    rigid = name in RIGID or name in times.NAMES or name.endswith("series")
    rigid = rigid or all(isinstance(value, int | float | None) for value in values)
    return Column(name, cells, rigid)


def text(value: Any, name: str, *, one_line: bool = False) -> Text:
    """Return a value, coloured if it deserves attention."""
    if name in times.NAMES and isinstance(value, int) and value >= 0:
        shown = short_time(value)
    elif name.endswith("series") and isinstance(value, list):
        shown = bars(value[-LATEST:] if one_line else value)
    elif name == "citation" and isinstance(value, str):
        shown = value.partition(" (")[0] or "-"
    elif name in WRAPPED and isinstance(value, list):
        shown = ", ".join(map(formatted, value))
    else:
        shown = cell(value, name, WIDEST_AT_THE_END) if one_line else formatted(value, name)
    cell_text = Text(shown or "-", style=style(name, value))
    if one_line:
        cell_text.no_wrap, cell_text.overflow = True, "ellipsis"
    return cell_text


def bars(series: Sequence[int]) -> str:
    """Return numbers over time as characters of different heights; a space is 0."""
    most = max([1, *series])
    return "".join(BARS[(value * (len(BARS) - 1)) // most] if value else " " for value in series)


def style(name: str, value: Any) -> str:
    """Return the colour of a value."""
    if name in {"error", "fault"} and value is not None:
        return BAD if name == "error" else "magenta"
    if name in ALARMING and value == ALARMING[name]:
        return BAD
    if name == "lag" and isinstance(value, int) and value > 0:
        return BUSY
    return STATES.get(str(value), "") if name.startswith("state") else ""


def short_time(ms: int) -> str:
    """Return local time; with the date unless it is today's, since the cluster's clock may be advanced."""
    local = times.local_time(ms)
    day, mark, clock = local.partition("T")
    if not mark:
        return local
    # With milliseconds today, to the second on another day.
    return clock[:12] if day == datetime.now().astimezone().date().isoformat() else f"{day} {clock[:8]}"
