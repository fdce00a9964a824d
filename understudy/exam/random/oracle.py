"""Judges a play: the history, completed by the cluster's log, is given to the checks of `understudy audit --history`.

The log is one more consumer, called `log`, with read_committed, that began at the start and read to the end.
"""

import importlib
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from understudy.exam.random.history import History
from understudy.results import JournalEntry

LOG: Final = "log"
COLUMNS: Final = ("topic", "partition", "offset", "id", "client", "group_id", "transaction", "what")
MOST: Final = 3  # examples in a finding; ours, one line
_imports = threading.Lock()
Records = Mapping[tuple[str, int], Sequence[tuple[int, str]]]
"""Topic and partition -> offset and value of the records that a consumer with read_committed receives."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: the check's name, and a sentence with the first rows."""

    check: str
    text: str

    def __str__(self) -> str:
        """Return both."""
        return f"{self.check}: {self.text}"


def completed(history: History, log: Records) -> History:
    """Return the history with what the log knows.

    Transactions of which the library did not report the end were committed if their records are visible; records of
    which it did not report the outcome were written if they are visible.
    """
    whole = History(list(history.events), list(history.problems))
    places = {value: (topic, partition, offset) for (topic, partition), rows in log.items() for offset, value in rows}
    sent = {each["id"]: each for each in history.of("sent")}
    ended = {each["transaction"] for each in history.of("ended")}
    visible = {sent[value].get("transaction") for value in places if value in sent}
    for name, client in {
        each["transaction"]: each["client"] for each in sent.values() if "transaction" in each
    }.items():
        if name not in ended:
            outcome = "committed" if name in visible else "aborted"
            whole.write("ended", client, transaction=name, outcome=outcome)
    _add_acknowledgements(whole, places, sent, log)
    for (topic, partition), rows in log.items():
        whole.write("assigned", LOG, topic=topic, partition=partition, offset=0)
        for offset, value in rows:
            whole.write(
                "polled", LOG, id=value or "empty", topic=topic, partition=partition, offset=offset,
                isolation="read_committed",
            )  # fmt: skip
        _add_end(whole, topic, partition)
    return whole


def _add_acknowledgements(
    whole: History, places: Mapping[str, tuple[str, int, int]], sent: Mapping[str, Any], log: Records
) -> None:
    """Add the places of visible records; an acknowledged one without an offset that is nowhere gets one at the end."""
    counts = Counter(value for rows in log.values() for _, value in rows)
    acknowledged = {each["id"] for each in whole.of("acknowledged")}
    for at, each in enumerate(whole.events):
        if each["event"] == "acknowledged" and each["offset"] < 0:
            if counts[each["id"]] == 1:
                whole.events[at] = each | dict(zip(("topic", "partition", "offset"), places[each["id"]], strict=True))
            elif not counts[each["id"]]:
                whole.events[at] = each | {"offset": _behind(whole, each["topic"], each["partition"])}
    for value, (topic, partition, offset) in places.items():
        if value in sent and value not in acknowledged and counts[value] == 1:
            whole.write(
                "acknowledged", sent[value]["client"], id=value, topic=topic, partition=partition, offset=offset
            )


def _behind(whole: History, topic: str, partition: int) -> int:
    """Return an offset behind all that are known."""
    offsets = [
        each["offset"]
        for each in whole.events
        if each.get("topic") == topic and each.get("partition") == partition and "offset" in each
    ]
    return max(offsets, default=-1) + 1_000  # records that were lost may have been there


def _add_end(whole: History, topic: str, partition: int) -> None:
    """Add a last record, which the log's consumer reads: what is missing before it was lost."""
    value, offset = f"end of {topic}-{partition}", _behind(whole, topic, partition)
    place: dict[str, Any] = {"id": value, "topic": topic, "partition": partition, "offset": offset}
    whole.write("sent", LOG, id=value, topic=topic)
    whole.write("polled", LOG, isolation="read_committed", **place)


def findings(whole: History) -> list[Finding]:
    """Return what was seen at once, then what the checks find in a completed history, the worst first."""
    with _imports:  # takes half a second, once
        checks = importlib.import_module("pipeline.commands.histories")
    with tempfile.TemporaryDirectory(prefix="understudy-exam-") as folder:
        (Path(folder) / "history.jsonl").write_text(whole.lines(), encoding="utf-8")
        broken_checks = checks.findings(folder)
    return [
        *(Finding(check, text) for check, text in whole.problems),
        *(Finding(each.check.name, _sentence(each.check.title, each.count, each.rows)) for each in broken_checks),
    ]


def resumed_elsewhere(entries: Sequence[JournalEntry]) -> Iterator[Finding]:
    """Return consumers whose first Fetch of a partition is not at an offset that OffsetFetch has answered."""
    names: dict[str, str] = {}
    committed: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    begun: set[tuple[str, str, int]] = set()
    for entry in entries:
        client = entry.client_id or ""
        if entry.api == "Metadata":
            topics = (entry.response or {}).get("topics", ())
            names |= {each.get("topic_id") or "": each["name"] for each in topics if each["name"]}
        for topic, partition, offset in _committed(entry, names):
            committed[client, topic, partition].add(offset)
        for topic, partition, offset in _fetched(entry, names):
            place = client, topic, partition
            if place not in begun and offset not in committed.get(place, {offset}):
                text = f"request {entry.id} of {client} begins {topic}-{partition} at {offset}"
                yield Finding("wire-resumed", f"{text}, where the group has committed {sorted(committed[place])}")
            begun.add(place)


def _committed(entry: JournalEntry, names: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Return the committed offsets that a client has received."""
    answer = entry.response or {}
    received = entry.api == "OffsetFetch" and entry.outcome == "answered"
    for group in (answer.get("groups") or (answer,)) if received else ():
        for topic in group.get("topics") or ():
            name = topic.get("name") or names.get(topic.get("topic_id") or "", "")
            for each in topic["partitions"]:
                if each["committed_offset"] >= 0 and each["error_code"] == "NONE":
                    yield name, each["partition_index"], each["committed_offset"]


def _fetched(entry: JournalEntry, names: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Return the offsets from which a request fetches."""
    for topic in (entry.request or {}).get("topics") or () if entry.api == "Fetch" else ():
        name = topic.get("topic") or names.get(topic.get("topic_id") or "", "")
        for each in topic["partitions"]:
            yield name, each["partition"], each["fetch_offset"]


def _sentence(title: str, count: int, rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [", ".join(f"{name} {row[name]}" for name in COLUMNS if row.get(name) is not None) for row in rows[:MOST]]
    times = "" if count == 1 else f" ({count} times)"
    return f"{title}{times}: {'; '.join(shown)}"
