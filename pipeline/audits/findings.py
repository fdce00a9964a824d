"""Runs the checks and holds their findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pipeline.audits.engine import Engine, EngineError
from pipeline.audits.registry import SEVERITIES, Check
from pipeline.audits.sidecar_files import is_brokers
from pipeline.rendering.text import plain

ROWS_KEPT: Final = 1000
"""Rows that are kept of each check, in order; the count covers all of them: arbitrary, more would not be read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check. `rows` are the first of `count`, with JSON values."""

    check: Check
    count: int
    rows: Sequence[dict[str, Any]] = field(default_factory=tuple)

    @property
    def columns(self) -> list[str]:
        """Return the columns of the rows, in the query's order, without those that are null in every row.

        The data directory is left out too, unless there are several brokers.
        """
        names = list(self.rows[0]) if self.rows else []
        filled = {name for name in names if any(row[name] is not None for row in self.rows)}
        if "directory" in filled and not any(row["directory"] and is_brokers(row["directory"]) for row in self.rows):
            filled.remove("directory")
        return [name for name in names if name in filled]


@dataclass(frozen=True, slots=True)
class Report:
    """Result of an audit. `findings` has the checks that found rows, the worst first; `checks` all that were asked."""

    path: str
    journal: str | None
    checks: Sequence[Check]
    findings: Sequence[Finding]
    totals: dict[str, int]

    def at_least(self, severity: str) -> list[Finding]:
        """Return the findings of this severity or a worse one."""
        worst = SEVERITIES.index(severity)
        return [each for each in self.findings if SEVERITIES.index(each.check.severity) <= worst]


ORDER: Final = ("directory", "run", "topic", "partition", "offset", "id")
"""Columns by which rows are sorted, if the check has them; null comes first."""
_TOTALS: Final = """
  SELECT (SELECT count(DISTINCT topic) FROM partitions) AS topics, (SELECT count(*) FROM partitions) AS partitions,
         count(*) AS batches, CAST(coalesce(sum(record_count), 0) AS BIGINT) AS records,
         CAST(coalesce(sum(size), 0) AS BIGINT) AS bytes
  FROM batches
"""


def ask(engine: Engine, check: Check) -> Finding:
    """Run one check. Rows are sorted by topic, partition and offset, if the check has these columns."""
    try:
        kept_rows, count = engine.find(check.sql, ORDER, ROWS_KEPT)
    except EngineError as error:
        raise EngineError(f"check {check.name}: {error}") from error
    return Finding(check, count, [{name: plain(value) for name, value in row.items()} for row in kept_rows])


def ask_all(
    engine: Engine, checks: Sequence[Check], ended: Callable[[Check, int], None] = lambda _check, _count: None
) -> list[Finding]:
    """Run all checks, and return those with findings in the given order.

    `ended` is called after each.
    """
    findings = []
    for check in checks:
        finding = ask(engine, check)
        ended(check, finding.count)
        if finding.count:
            findings.append(finding)
    return findings


def totals(engine: Engine, *, journal: bool = False) -> dict[str, int]:
    """Return the amount of audited data: topics, partitions, batches, records, bytes; with a journal also requests."""
    counted: dict[str, int] = engine.plain(_TOTALS).to_pylist()[0]
    if journal:
        counted["requests"] = engine.plain("SELECT count(*) AS requests FROM calls").to_pylist()[0]["requests"]
    return counted
