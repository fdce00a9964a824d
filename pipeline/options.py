"""Parses the options of the data sources. Unknown options are rejected, since they would have no effect."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from control_api.spelling import closest
from pipeline import schemas
from pipeline.query import Bounds, Query, pick
from pipeline.splits import SPLIT_BYTES


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a number from 1 on")
    return int(text)


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(" or ".join(choices))
        return text

    return read


def _paths(text: str) -> list[str]:
    return [str(path) for path in json.loads(text)]


def _numbers(text: str) -> frozenset[int]:
    return frozenset(map(int, _names(text)))


EARLIEST: Final = -2
LATEST: Final = -1


def _offsets(text: str) -> Any:
    """Parse `earliest`, `latest`, a number, or Spark's JSON: {"topic": {"0": 23, "1": -2}}, -2 earliest, -1 latest."""
    if text in {"earliest", "latest"}:
        return EARLIEST if text == "earliest" else LATEST
    try:
        document = json.loads(text)
        if type(document) is int:
            return document
        return {(topic, int(number)): int(at) for topic, each in document.items() for number, at in each.items()}
    except (ValueError, AttributeError):
        raise ValueError('earliest, latest, a number, or {"topic": {"0": 23}}') from None


def _milliseconds(text: str) -> int:
    """Parse milliseconds since 1970, or an ISO 8601 timestamp."""
    if text.lstrip("-").isdecimal():
        return int(text)
    instant = datetime.fromisoformat(text)
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


_COMMON: Final[dict[str, Callable[[str], Any]]] = {
    "path": str,
    "paths": _paths,  # the form in which Spark passes load([...])
    "mode": _one_of("fail", "report", "skip"),
    "splitBytes": _count,
    "maxOffsetsPerTrigger": _count,
    "maxBytesPerTrigger": _count,
    "startingOffsets": _offsets,
    "failOnDataLoss": _boolean,
    "pushFilters": _boolean,
}
_LOGS: Final[dict[str, Callable[[str], Any]]] = {
    **_COMMON,
    "topics": _names,
    "topicPattern": re.compile,
    "partitions": _numbers,
    "endingOffsets": _offsets,
    "startingTimestamp": _milliseconds,
    "endingTimestamp": _milliseconds,
    "crc": _one_of("check", "skip"),
    "broker": int,
}
OPTIONS: Final[dict[str, dict[str, Callable[[str], Any]]]] = {
    "kafka_segments": {
        **_LOGS,
        "isolation": _one_of("read_uncommitted", "read_committed"),
        "includeHeaders": _boolean,
        "columns": _names,
        "values": _boolean,
        "control": _boolean,
    },
    "kafka_batches": _LOGS,
    "kafka_state": {
        **{name: read for name, read in _LOGS.items() if name != "topics"},
        "kind": _one_of(*schemas.STATE),
    },
    "wire_journal": {name: read for name, read in _COMMON.items() if name != "failOnDataLoss"},
}
"""Data source -> option -> parser of its text."""


_LAST: Final = 2**63 - 1  # the highest int64


def _open_end(stop: int) -> int | None:
    return None if stop == LATEST else 0 if stop == EARLIEST else stop


class Options:
    """The options of one read.

    Args:
        source: name of the data source.
        given: as Spark passes them, in any case.

    Raises:
        ValueError: an unknown option or an invalid value; one sentence.
    """

    def __init__(self, source: str, texts: Mapping[str, str]) -> None:
        self.source = source
        known = {name.lower(): (name, read) for name, read in OPTIONS[source].items()}
        self._values: dict[str, Any] = {}
        for option, text in texts.items():
            if source == "kafka_state" and option.lower() == "topics":
                raise ValueError(f"{source}: no option {option!r}: the option kind selects the topic of a coordinator")
            if option.lower() not in known:
                near = closest(option, OPTIONS[source])
                hint = f"; did you mean {near}?" if near else f"; there are {', '.join(OPTIONS[source])}"
                raise ValueError(f"{source}: no option {option!r}{hint}")
            name, read = known[option.lower()]
            try:
                self._values[name] = read(text)
            except (ValueError, re.error) as error:
                raise ValueError(f"{source}: option {name}={text!r}: {error}") from None
        if "path" not in self._values and "paths" not in self._values:
            raise ValueError(f"{source}: no path; use .load(PATH) or .option('path', PATH)")

    def __getitem__(self, name: str) -> Any:
        """Return the value of an option; None if it was not given."""
        return self._values.get(name)

    def on(self, name: str, *, default: bool) -> bool:
        """Return the value of a boolean option."""
        return bool(self._values.get(name, default))

    @property
    def paths(self) -> list[str]:
        """Return the paths to read."""
        return self["paths"] or [self["path"]]

    @property
    def split_bytes(self) -> int:
        """Return the bytes that a task reads."""
        return self["splitBytes"] or SPLIT_BYTES

    @property
    def mode(self) -> str:
        """Return the handling of damage."""
        return self["mode"] or ("report" if self.source == "kafka_batches" else "fail")

    def wants(self, topic: str, partition: int) -> bool:
        """Return whether `topicPattern` and `partitions` match."""
        pattern, partitions = self["topicPattern"], self["partitions"]
        is_named = pattern is None or pattern.fullmatch(topic) is not None
        return is_named and (partitions is None or partition in partitions)

    def offset(self, name: str, topic: str, partition: int, default: int) -> int:
        """Return a partition's offset in `startingOffsets` or `endingOffsets`; `EARLIEST` and `LATEST` unchanged."""
        offsets = self[name]
        return int(
            offsets.get((topic, partition), default)
            if isinstance(offsets, dict)
            else default
            if offsets is None
            else offsets
        )

    def bounds(self, topic: str, partition: int) -> Bounds:
        """Return the offsets of a partition that a batch query reads; None: open."""
        start = self.offset("startingOffsets", topic, partition, EARLIEST)
        stop = self.offset("endingOffsets", topic, partition, LATEST)
        return None if start == EARLIEST else _LAST if start == LATEST else start, _open_end(stop)

    def schema(self) -> pa.Schema:
        """Return the columns for these options."""
        if self.source == "kafka_batches":
            return schemas.BATCHES
        if self.source == "kafka_state":
            return schemas.state_schema(self.kind, self.mode)
        if self.source == "wire_journal":
            return schemas.JOURNAL
        return schemas.segments(
            headers=self.on("includeHeaders", default=False),
            extra=self["columns"] or (),
            values=self.on("values", default=True),
            damage=self.mode == "report",
        )

    def available(self) -> pa.Schema:
        """Return all columns that a user-defined schema may name."""
        return pa.schema([*schemas.KAFKA, *schemas.EXTRA]) if self.source == "kafka_segments" else self.schema()

    @property
    def kind(self) -> str:
        """Return the kind of coordinator records."""
        if self["kind"] is None:
            raise ValueError(f"kafka_state: option kind is missing: {' or '.join(schemas.STATE)}")
        return str(self["kind"])

    @property
    def topics(self) -> tuple[str, ...] | None:
        """Return names and patterns of topics; None: all."""
        if self.source == "kafka_state":
            return schemas.STATE_TOPICS[self.kind]
        names: tuple[str, ...] | None = self["topics"]
        return names

    def query(self, names: tuple[str, ...]) -> Query:
        """Return the query for these columns."""
        return Query(
            pick(self.available(), names),
            self.topics,
            times=(self["startingTimestamp"], self["endingTimestamp"]),
            isolation=self["isolation"] or "read_uncommitted",
            control=self.on("control", default=False),
            mode=self.mode,
            crc=self["crc"] != "skip",
            broker=self["broker"],
        )
