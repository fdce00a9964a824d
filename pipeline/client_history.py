"""Reads a client's own history: JSON lines of what it sent, what was acknowledged, polled and committed.

`docs/audit.md` describes the format, `docs/client-history.schema.json` is its JSON schema.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

EVENTS: Final = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("number", pa.int64()),  # index among the client's events
        pa.field("event", pa.string()),
        pa.field("client", pa.string()),
        pa.field("id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("transaction", pa.string()),  # of `sent`: chosen by the client; of `ended`
        pa.field("outcome", pa.string()),  # of `ended`: committed, aborted, unknown
        pa.field("group_id", pa.string()),
        pa.field("isolation", pa.string()),
        pa.field("idempotent", pa.bool_()),
        pa.field("source_topic", pa.string()),  # of `sent`, for a copy: topic and id of the record that was copied
        pa.field("source_id", pa.string()),
        pa.field("call", pa.string()),  # of `hung`
        pa.field(
            "run", pa.int32()
        ),  # of `polled`, `committed` and `assigned`: how often the partition was assigned before
    ]
)
"""One row per line that can be read."""
BAD_LINES: Final = pa.schema(
    [pa.field("file", pa.string()), pa.field("line", pa.int64()), pa.field("reason", pa.string())]
)
TABLES: Final = {"client_events": EVENTS, "client_bad_lines": BAD_LINES}

_OUTCOMES: Final = ("committed", "aborted", "unknown")
_ISOLATIONS: Final = ("read_uncommitted", "read_committed")
_MOST: Final = 2**63  # offsets and times are int64


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _number(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _partition(value: Any) -> bool:
    return _number(value) and value < 2**31  # an int32


def _offset(value: Any) -> bool:
    return (value == -1 and type(value) is int) or _number(value)


_FIELDS: Final[dict[str, Callable[[Any], bool]]] = {
    "client": _text,
    "id": _text,
    "topic": _text,
    "partition": _partition,
    "offset": _number,
    "transaction": _text,
    "outcome": lambda value: value in _OUTCOMES,
    "group": _text,
    "isolation": lambda value: value in _ISOLATIONS,
    "idempotent": lambda value: isinstance(value, bool),
    "source_topic": _text,
    "source_id": _text,
    "call": _text,
}
_EVENTS: Final = {
    "sent": (("id", "topic"), ("transaction", "idempotent", "source_topic", "source_id", "group")),
    "acknowledged": (("id", "topic", "partition", "offset"), ()),
    "failed": (("id", "topic"), ()),
    "ended": (("transaction", "outcome"), ()),
    "assigned": (("topic", "partition"), ("offset", "group")),
    "polled": (("id", "topic", "partition", "offset"), ("isolation",)),
    "committed": (("group", "topic", "partition", "offset"), ()),
    "stored": (("group", "topic", "partition", "offset"), ()),
    "drained": (("topic",), ("group",)),
    "hung": (("call",), ()),
}
"""Event -> its required fields, besides `event` and `client`, and its optional fields."""


class HistoryError(ValueError):
    """An unreadable history; the message is for the user."""


def read(path: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of `TABLES` from a file, or from all `*.jsonl` files of a folder. Raises HistoryError."""
    place = Path(path)
    files = sorted(place.rglob("*.jsonl")) if place.is_dir() else [place]
    if not files or not all(each.is_file() for each in files):
        raise HistoryError(f"--history {path}: there is no file of JSON lines")
    history = _History()
    for file in files:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                history.add(str(file), number, line)
    return {"client_events": history.events, "client_bad_lines": history.bad}


class _History:
    """The rows read so far."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.bad: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._runs: dict[tuple[str, str, int], int] = {}

    def add(self, file: str, number: int, line: bytes) -> None:
        """Parse a line. A last line without newline was being written when the client ended, and is skipped."""
        place = {"file": file, "line": number}
        try:
            event = json.loads(line)
            reason = _reason(event)
        except (ValueError, RecursionError):
            if not line.endswith(b"\n"):
                return
            event, reason = {}, "this is not JSON"
        if reason:
            self.bad.append({**place, "reason": reason})
            return
        client = event["client"]
        self._numbers[client] = self._numbers.get(client, 0) + 1
        needed, more = _EVENTS[event["event"]]
        event = {
            name: event[name] for name in ("event", "client", *needed, *more) if name in event
        }  # no other fields are allowed
        row = {**event, **place, "number": self._numbers[client], "group_id": event.get("group")}
        if "partition" in event and event["event"] != "acknowledged":
            key = client, event["topic"], event["partition"]
            self._runs[key] = self._runs.get(key, 0) + (event["event"] == "assigned")
            row["run"] = self._runs[key]
        self.events.append({name: row.get(name) for name in EVENTS.names})


def _reason(event_fields: Any) -> str | None:
    """Return why a line is not a valid event; None if it is."""
    if not isinstance(event_fields, Mapping):
        return "this is not a JSON object"
    event = event_fields.get("event")
    if not isinstance(event, str) or event not in _EVENTS:
        return f"event is one of {', '.join(_EVENTS)}"
    needed, more = _EVENTS[event]
    for name in ("client", *needed, *more):
        if name not in event_fields and name not in more:
            return f"{event} needs {name}"
        is_right = _offset if (event, name) == ("acknowledged", "offset") else _FIELDS[name]
        if name in event_fields and not is_right(event_fields[name]):
            return f"{name} has an invalid value"
    return None
