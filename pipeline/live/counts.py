"""Counts committed records by topic and time bucket while a log grows, each record once."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.reading import read_segments
from pipeline.replicas import find_partitions

RECORD_COUNTS: Final = pa.schema(
    [
        pa.field("role", pa.string()),  # input, output; null for other topics
        pa.field("topic", pa.string()),
        pa.field("bucket_ms", pa.int64()),  # start of the bucket
        pa.field("bucket_end_ms", pa.int64()),
        pa.field("records", pa.int64()),
    ]
)
COUNTED_FROM: Final = pa.schema(
    [
        pa.field("role", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("from_ms", pa.int64()),  # the first bucket that was counted completely
    ]
)
TABLES: Final = {"record_counts": RECORD_COUNTS, "counted_from": COUNTED_FROM}
_FIRST: Final = -(2**62)  # before every timestamp


def _machine_ms() -> int:
    return time.time_ns() // 1_000_000  # when a command runs


class Counts:
    """Counts so far. `width_ms` is the length of a bucket; `now_ms` returns the time."""

    def __init__(
        self,
        width_ms: int,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        now_ms: Callable[[], int] = _machine_ms,
    ) -> None:
        self.width_ms, self._now_ms = width_ms, now_ms
        self._roles = {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output")}
        self.records: dict[tuple[str, int], int] = {}
        """Topic and start of the bucket -> records."""
        self._next: dict[tuple[str, int], int] = {}
        self._from_ms: dict[str, int] = {}

    def add(self, path: str, topics: Iterable[str] | None = None) -> None:
        """Count new records below a path, up to the last stable offset. Internal topics are left out.

        Raises FileNotFoundError: there is no log.
        """
        wanted = None if topics is None else set(topics)
        for log in find_partitions(path):
            if log.topic.startswith("__") or (wanted is not None and log.topic not in wanted):
                continue
            start = max(log.log_start_offset, log.segments[0].base_offset)
            self._log(str(log.directory), log.key, start, is_cut=start > 0 and log.key not in self._next)

    def _log(self, path: str, key: tuple[str, int], start: int, *, is_cut: bool) -> None:
        begin = max(start, self._next.get(key, start))
        self._next[key] = begin
        columns = ("offset", "timestamp_ms")
        bounds = begin, None
        for rows in read_segments(path, columns=columns, offsets=bounds, isolation="read_committed", mode="skip"):
            if not len(rows):
                continue
            times = rows.column("timestamp_ms")
            if is_cut:
                self._begin_after(key[0], pc.min(times).as_py())
                is_cut = False
            self._next[key] = pc.max(rows.column("offset")).as_py() + 1
            width = pa.scalar(self.width_ms, pa.int64())
            numbers = pc.value_counts(pc.cast(pc.floor(pc.divide(pc.cast(times, pa.float64()), width)), pa.int64()))
            for each in numbers.to_pylist():
                at = key[0], each["values"] * self.width_ms
                self.records[at] = self.records.get(at, 0) + each["counts"]
        if is_cut:  # no record is left, and what was removed may have been written until now
            self._begin_after(key[0], self._now_ms())

    def _begin_after(self, topic: str, at_ms: int) -> None:
        """Note that the buckets up to this time are not complete."""
        after_ms = at_ms - at_ms % self.width_ms + self.width_ms
        self._from_ms[topic] = max(self._from_ms.get(topic, _FIRST), after_ms)

    def begin_again(self, key: tuple[str, int]) -> None:
        """Forget the position up to which a log was counted."""
        self._next.pop(key, None)

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the rows of `TABLES`."""
        return {
            "record_counts": [
                {"role": self._roles.get(topic), "topic": topic, "bucket_ms": at, "bucket_end_ms": at + self.width_ms,
                 "records": count}
                for (topic, at), count in sorted(self.records.items())
            ],
            "counted_from": [
                {"role": self._roles.get(topic), "topic": topic, "from_ms": at}
                for topic, at in sorted(self._from_ms.items())
            ],
        }  # fmt: skip

    def recent(self, most: int = 10) -> list[dict[str, Any]]:
        """Return the newest buckets of each topic: by default as many as a graph's end shows."""
        rows = self.tables()["record_counts"]
        newest: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            newest.setdefault(row["topic"], []).append(row)
        return [row for each in newest.values() for row in each[-most:]]

    def over(self, before_ms: int) -> list[dict[str, Any]]:
        """Return the buckets that ended before a time."""
        return [row for row in self.tables()["record_counts"] if row["bucket_end_ms"] <= before_ms]
