"""Selection from a log or an export: topics, offsets, times, a sample; masked columns and renamed topics."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

MASKABLE: Final = ("key", "value", "headers", "timestamp_ms")


class ChoiceError(ValueError):
    """An invalid selection; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Selection of records.

    Attributes:
        topics: names, or patterns with `*` and `?`; none: every topic except internal ones.
        offsets: from (inclusive) and to (exclusive).
        times: the same in milliseconds.
        sample: share of the keys, 0 to 1; the same keys in every run, each with all its records.
        masks: column -> SQL expression that replaces it.
        where: an SQL condition.
        renamed: topic -> new name.
    """

    topics: Sequence[str] = ()
    offsets: tuple[int | None, int | None] = (None, None)
    times: tuple[int | None, int | None] = (None, None)
    sample: float = 1.0
    masks: Mapping[str, str] = field(default_factory=dict)
    where: str | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes_records(self) -> bool:
        """Return whether records are left out or altered, beyond whole topics."""
        plain = self.offsets == self.times == (None, None) and self.sample >= 1
        return not plain or bool(self.masks) or self.where is not None

    @property
    def of_records(self) -> dict[str, object]:
        """Return what selects or changes records within a topic, as JSON; empty: all records unchanged."""
        fields: dict[str, object] = {
            "offsets": list(self.offsets), "times": list(self.times), "sample": self.sample, "masks": dict(self.masks),
            "where": self.where, "renamed": dict(self.renamed),
        }  # fmt: skip
        plain = Choice()
        return {name: value for name, value in fields.items() if value != _as_json(getattr(plain, name))}

    def wants(self, topic: str) -> bool:
        """Return whether a topic is selected."""
        if not self.topics:
            return not topic.startswith("__")
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)

    def name_of(self, topic: str) -> str:
        """Return a topic's new name."""
        return self.renamed.get(topic, topic)

    def twice(self, topics: Iterable[str]) -> str | None:
        """Return a name that two of these topics would get."""
        counts = Counter(self.name_of(topic) for topic in topics)
        return next((name for name, count in counts.items() if count > 1), None)

    @property
    def needs_sql(self) -> bool:
        """Return whether the selection needs Spark: for SQL functions or to sample keys."""
        return self.sample < 1 or bool(self.masks) or self.where is not None

    @property
    def conditions(self) -> list[tuple[str, str, int]]:
        """Return the selected offsets as conditions for `sources.tasks`, which then does not read others."""
        pairs = zip((">=", "<"), self.offsets, strict=True)
        return [("offset", operator, bound) for operator, bound in pairs if bound is not None]

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the selected records, under the new name of their topic (all rows are of one topic). Without SQL.

        Control records are kept regardless of time: without its marker a transaction would never end.
        """
        if not rows.num_rows:
            return rows
        name = self.renamed.get(rows.column("topic")[0].as_py())
        if name is not None:
            at = rows.schema.get_field_index("topic")
            rows = rows.set_column(at, rows.schema.field(at), pa.repeat(pa.scalar(name), rows.num_rows))
        rows = _within(rows, "offset", self.offsets)
        marker = rows.column("is_control") if "is_control" in rows.schema.names else None
        return _within(rows, "timestamp_ms", self.times, marker)


def _as_json(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _within(rows: pa.RecordBatch, column: str, bounds: tuple[int | None, int | None], or_where: Any = None) -> Any:
    low, high = bounds
    kept = []
    if low is not None:
        kept.append(pc.greater_equal(rows.column(column), low))
    if high is not None:
        kept.append(pc.less(rows.column(column), high))
    if not kept:
        return rows
    wanted = reduce(pc.and_, kept)
    return rows.filter(wanted if or_where is None else pc.or_(wanted, or_where))


def parse_offsets(text: str | None) -> tuple[int | None, int | None]:
    """Parse `100:200`, `100:` or `:200`. Raises ChoiceError."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        bounds = int(low) if low else None, int(high) if high else None
    except ValueError:
        bounds = None, None
        colon = ""
    if not colon or any(abs(each or 0) >= 1 << 63 for each in bounds):  # offsets are int64
        raise ChoiceError(f"--offsets {text} is not FROM:TO, such as 100:200 or 100:")
    return bounds


def parse_time(option: str, text: str | None) -> int | None:
    """Parse milliseconds, or an ISO 8601 date and time, in UTC unless it has a time zone. Raises ChoiceError."""
    if text is None:
        return None
    if re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ChoiceError(f"{option} {text} is neither milliseconds nor a time such as 2026-11-22T10:00:00") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_pairs(option: str, texts: Sequence[str], names: Sequence[str] = ()) -> dict[str, str]:
    """Parse `NAME=TEXT`, repeated. Raises ChoiceError, also for a name that is not among `names`."""
    pairs = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not name or not rest:
            raise ChoiceError(f"{option} {text} is not NAME=TEXT")
        if names and name not in names:
            raise ChoiceError(f"{option} {name}: there is no such column, but {', '.join(names)}")
        pairs[name] = rest
    return pairs


def parse_sample(text: str | None) -> float:
    """Parse a share such as 0.1 or 10%. Raises ChoiceError."""
    if text is None:
        return 1.0
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ChoiceError(f"--sample {text} is not a share of the keys, such as 0.1 or 10%")
    return share
