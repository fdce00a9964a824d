"""Audits a directory in use, step by step: which findings are new, and measurements for metrics.

A broker writes its files one after the other, so a directory in use may contradict itself for a moment. A finding is
confirmed when two consecutive steps have it, and is reported once.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pipeline.audits.engine import Engine
from pipeline.audits.findings import Finding
from pipeline.audits.registry import SEVERITIES, Check

PLACE: Final = (
    "directory", "topic", "partition", "offset", "id", "run", "file", "what", "producer_id", "producer_epoch",
    "transactional_id", "group_id", "topic_id", "shared_partition", "name", "entry", "position", "bucket_ms",
)  # fmt: skip
"""Columns that identify a row across steps; the others may change."""

_RECORDS: Final = "SELECT topic, sum(record_count) AS value FROM batches WHERE NOT is_control GROUP BY topic"
_LAG: Final = """
  SELECT group_id, committed.topic, committed.partition, max(log_end) - max(committed_offset) AS value
  FROM committed JOIN partitions ON partitions.topic = committed.topic AND partitions.partition = committed.partition
  GROUP BY ALL
"""
_OPEN: Final = """
  SELECT topic, partition, count(*) AS count, max(now_ms() - first_ms) AS age_ms
  FROM (SELECT DISTINCT topic, partition, producer_id, turn, first_ms FROM transactions
        WHERE marker IS NULL AND first_offset IS NOT NULL)
  GROUP BY ALL
"""


class Row(NamedTuple):
    """A row of a check to report."""

    check: Check
    row: dict[str, Any]


_LIVE_LAG: Final = """
  SELECT group_id, topic, partition, high_watermark - committed_offset AS value
  FROM live_commits JOIN live_partitions USING (topic, partition)
"""
_BOUNDS: Final = """
  SELECT topic, partition, log_start AS log_start_offset, last_stable_offset, high_watermark FROM live_partitions
"""
_STATES: Final = "SELECT state, count(DISTINCT transactional_id) AS count FROM live_transactions GROUP BY state"


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a step: records by topic, lag by group and partition, open transactions by partition.

    For a running cluster also the bounds of each log and the transactional ids by state.
    """

    records: Sequence[dict[str, Any]] = ()
    lag: Sequence[dict[str, Any]] = ()
    open_transactions: Sequence[dict[str, Any]] = ()
    bounds: Sequence[dict[str, Any]] = ()
    states: Sequence[dict[str, Any]] = ()


def measured(engine: Engine, *, is_cluster: bool = False) -> Measured:
    """Query the tables of one step, in SQL that both engines understand."""
    queries = (_RECORDS, _LIVE_LAG, _OPEN, _BOUNDS, _STATES) if is_cluster else (_RECORDS, _LAG, _OPEN)
    return Measured(*(engine.plain(sql).to_pylist() for sql in queries))


@dataclass(slots=True)
class Followed:
    """The state of an audit over all its steps."""

    steps: int = 0
    failures: int = 0
    """Steps that could not read the directory."""
    reported: dict[str, int] = field(default_factory=dict)
    """Rows reported of each check."""
    current: dict[str, int] = field(default_factory=dict)
    """Rows of each check in the last step."""
    measured: Measured = field(default_factory=Measured)
    counts: Sequence[dict[str, Any]] = ()
    """Rows of `record_counts` for the newest buckets."""
    _confirmed: set[tuple[str, str]] = field(default_factory=set)
    _previous: set[tuple[str, str]] = field(default_factory=set)
    """Check and identity of the rows that two steps had, and of those of the last step."""

    def step(self, findings: Iterable[Finding]) -> list[Row]:
        """Add the findings of a step; return those that are in it for the second time and not yet reported."""
        rows = {(each.check.name, _identity(row)): Row(each.check, row) for each in findings for row in each.rows}
        new = [row for key, row in rows.items() if key in self._previous and key not in self._confirmed]
        self._confirmed |= {key for key in rows if key in self._previous}
        self._previous = set(rows)
        self.steps += 1
        self.current = {}
        for name, _ in rows:
            self.current[name] = self.current.get(name, 0) + 1
        for each in new:
            self.reported[each.check.name] = self.reported.get(each.check.name, 0) + 1
        return new


def is_at_least(check: Check, severity: str) -> bool:
    """Return whether a check has this severity or a worse one."""
    return SEVERITIES.index(check.severity) <= SEVERITIES.index(severity)


def _identity(row: dict[str, Any]) -> str:
    """Return the values of the columns in `PLACE`, as text."""
    return json.dumps({name: row[name] for name in PLACE if name in row}, default=str, sort_keys=True)
