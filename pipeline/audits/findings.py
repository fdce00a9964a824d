"""Asks the checks, and holds what they found."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pipeline.audits.beside import is_brokers
from pipeline.audits.registry import SEVERITIES, Check
from pipeline.showing.text import plain

ROWS_KEPT: Final = 1000
"""Of each check's rows, in their order; the count is of all."""
_AT_ONCE: Final = 3
"""So many queries run beside each other: while one is planned another one works."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `rows` are the first of `count`; values are what JSON can say."""

    check: Check
    count: int
    rows: Sequence[dict[str, Any]] = field(default_factory=tuple)

    @property
    def columns(self) -> list[str]:
        """The rows' columns, in the order of the query; those that are null in every row left out.

        So is the data directory, unless it is one of several brokers'.
        """
        names = list(self.rows[0]) if self.rows else []
        telling = {name for name in names if any(row[name] is not None for row in self.rows)}
        if "directory" in telling and not any(is_brokers(row["directory"]) for row in self.rows):
            telling.remove("directory")
        return [name for name in names if name in telling]


@dataclass(frozen=True, slots=True)
class Report:
    """All that was asked and found. `findings` has those with rows, the worst first; `asked` every check."""

    path: str
    journal: str | None
    asked: Sequence[Check]
    findings: Sequence[Finding]
    totals: dict[str, int]

    def at_least(self, severity: str) -> list[Finding]:
        """The findings of this severity or a worse one."""
        worst = SEVERITIES.index(severity)
        return [each for each in self.findings if SEVERITIES.index(each.check.severity) <= worst]


def ask(spark: SparkSession, check: Check) -> Finding:
    """One check. The rows come in the order of topic, partition and offset, as far as they have these."""
    frame = spark.sql(check.sql)
    order = [name for name in ("directory", "run", "topic", "partition", "offset", "id") if name in frame.columns]
    found = frame.orderBy(*order).limit(ROWS_KEPT).toArrow().to_pylist()
    count = len(found) if len(found) < ROWS_KEPT else frame.count()
    return Finding(check, count, [{name: plain(value) for name, value in row.items()} for row in found])


def ask_all(
    spark: SparkSession, checks: Sequence[Check], told: Callable[[Check, int], None] = lambda _check, _count: None
) -> list[Finding]:
    """All checks, a few at once; those that found something, in the order given. `told` hears of each as it ends."""

    def one(check: Check) -> Finding:
        finding = ask(spark, check)
        told(check, finding.count)
        return finding

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [finding for finding in pool.map(one, checks) if finding.count]


def totals(spark: SparkSession, *, journal: bool = False) -> dict[str, int]:
    """How much was looked at: topics, partitions, batches, records, bytes; with a journal also its requests."""
    batches = spark.table("batches")
    row = batches.select(
        F.count(F.lit(1)).alias("batches"),
        F.coalesce(F.sum("record_count"), F.lit(0)).alias("records"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
    ).toArrow()
    where = spark.table("partitions").select(
        F.countDistinct("topic").alias("topics"), F.count(F.lit(1)).alias("partitions")
    )
    counted: dict[str, int] = {**where.toArrow().to_pylist()[0], **row.to_pylist()[0]}
    if journal:
        counted["requests"] = spark.table("calls").count()
    return counted


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then the rest; by name within each."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.check.severity), each.check.name))
