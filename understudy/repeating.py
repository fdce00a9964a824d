"""`ctl --watch` and `ctl --follow`: redraws an output repeatedly, or prints each new row on its own line."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from control_api.verb import Verb
from understudy.text_table import filled, heading

if TYPE_CHECKING:
    from rich.console import Console

EVERY_MS = {"watch": 2000, "follow": 500}
"""Pauses between two requests: ours, as often as a screen is read, and sooner for what has just happened."""
FIRST_ROWS = 20
"""Number of journal requests with which `--follow` starts: a screen."""
Ask = Callable[[Mapping[str, Any]], Any]
Row = Mapping[str, Any]


def can_follow(verb: Verb) -> bool:
    """Return whether a verb returns a list that grows at its end: requests, or the events of a timeline."""
    return verb.name == "journal list" or verb.items == "timeline"


def can_watch(verb: Verb) -> bool:
    """Return whether repeating the verb has no side effects."""
    return verb.method == "GET" and not verb.is_file


def watch(out: "Console", verb: Verb, ask: Callable[[], Any], every_ms: int) -> None:
    """Redraw the output until Ctrl-C."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from understudy.terminal import picture

    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            head = Text(f"understudy ctl {verb.name}, every {every_ms / 1000:g} s, Ctrl-C ends\n", style="dim")
            live.update(Group(head, picture(verb, ask(), out.width)), refresh=True)
            time.sleep(every_ms / 1000)


def follow(verb: Verb, ask: Ask, arguments: Mapping[str, Any], pause: Callable[[], None]) -> Iterator[Sequence[Row]]:
    """Yield new rows, each once and in order, without end."""
    rounds = _requests(ask, arguments) if verb.name == "journal list" else _events(ask, arguments)
    for rows in rounds:
        if rows:
            yield rows
        pause()


def _requests(ask: Ask, arguments: Mapping[str, Any]) -> Iterator[Sequence[Row]]:
    """Yield requests of the journal; a request in progress is shown when it has been answered."""
    entries = ask({**arguments, "limit": arguments.get("limit", FIRST_ROWS)})["entries"]
    rest = {name: value for name, value in arguments.items() if name != "limit"}
    since, shown = arguments.get("since", 1), set[int]()  # a time stays the starting point until a request is found
    while True:
        settled = [row for row in entries if row["duration_ms"] is not None and row["id"] not in shown]
        yield settled
        shown |= {row["id"] for row in settled}
        last = max((row["id"] for row in entries), default=since - 1)
        since = min((row["id"] for row in entries if row["duration_ms"] is None), default=last + 1)
        shown = {entry_id for entry_id in shown if entry_id >= since}
        entries = ask({**rest, "since": since})["entries"]


def _events(ask: Ask, arguments: Mapping[str, Any]) -> Iterator[Sequence[Row]]:
    """Yield events of a timeline. Old events are merged, so each counts with those merged into it."""
    seen = 0
    while True:
        answer = ask(arguments)
        timeline = answer["timeline"]
        happened = answer["forgotten"] + sum(event["count"] for event in timeline)
        new = happened - seen if happened >= seen else happened  # fewer than before: the cluster was reset
        yield timeline[max(len(timeline) - new, 0) :] if new else []
        seen = happened


class Lines:
    """Rows as lines under one heading; columns grow with their values, so that lines stay aligned."""

    def __init__(
        self, columns: Sequence[str], *, as_json: bool = False, shown: Callable[[Any, str], str] = filled
    ) -> None:
        self._columns, self._as_json, self._shown = columns, as_json, shown
        self._widths = [0] * len(columns)
        self._begun = False

    def of(self, rows: Sequence[Row]) -> Iterator[tuple[str, Row | None]]:
        """Return a line for each row, with the row; the first call begins with the heading, which has no row."""
        if self._as_json:
            yield from ((json.dumps(row, ensure_ascii=False), row) for row in rows)
            return
        grid: list[tuple[list[str], Row | None]] = [
            ([self._shown(row.get(column), column) for column in self._columns], row) for row in rows
        ]
        if not self._begun:
            self._begun = True
            grid.insert(0, ([heading(column).upper() for column in self._columns], None))
        for line, _ in grid:
            self._widths = [max(width, len(text)) for width, text in zip(self._widths, line, strict=True)]
        for line, row in grid:
            spots = zip(line, self._widths, strict=True)
            yield "  ".join(f"{text:<{width}}" for text, width in spots).rstrip(), row
