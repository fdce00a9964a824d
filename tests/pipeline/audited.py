"""Audits in this process: the way in which tests ask what one finds in a directory, beside a journal or alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.audits.findings import Finding, ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.reader import Reader
from pipeline.duck.tables import DuckTables


@contextmanager
def tables_of(
    data: Path, journal: Path | None = None, *, records: bool = False, reader: Reader | None = None
) -> Iterator[DuckTables]:
    """The tables of an audit, which are gone afterwards."""
    tables = DuckTables(str(data), None if journal is None else str(journal), reader)
    tables.register(records=records)
    try:
        yield tables
    finally:
        tables.forget()


def findings_of(
    data: Path,
    *names: str,
    journal: Path | None = None,
    information: bool = True,
    reader: Reader | None = None,
) -> list[Finding]:
    """The findings of some checks, or of all that there are tables for; without those that are information only."""
    checks = chosen(names, has=["records"] if journal is None else ["records", "journal"])
    checks = [each for each in checks if information or each.severity != "info"]
    records = any("records" in each.needs for each in checks)
    with tables_of(data, journal, records=records, reader=reader) as tables:
        return ask_all(tables.engine, checks)


def checks_that_find(data: Path, *names: str, journal: Path | None = None, reader: Reader | None = None) -> set[str]:
    """The names of the checks that have a finding."""
    return {each.check.name for each in findings_of(data, *names, journal=journal, reader=reader)}


def as_text(findings: list[Finding]) -> list[str]:
    """Findings for the message of a test that expects none."""
    return [f"{each.check.name}, {each.count} times: {each.rows[:3]}" for each in findings]


def reported(data: Path, *, more_than: int) -> list[str]:
    """All that an audit has to report of a directory, information left out. It has more records than this."""
    with tables_of(data) as tables:
        (seen,) = tables.engine.plain("SELECT sum(record_count) AS records FROM batches").to_pylist()
    assert seen["records"] > more_than
    return as_text(findings_of(data, information=False))
