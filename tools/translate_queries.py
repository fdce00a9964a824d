"""Writes pipeline/duck/translations.json: the queries of audits and of the conformance report in DuckDB's SQL.

Usage: python tools/translate_queries.py [--check].
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pipeline.audits import client_history, identities, journal, registry
from pipeline.audits.partition_files import COMPACTED_TOPICS
from pipeline.conformance import run, tables
from pipeline.duck.tables import COMPACTED_KEYS
from pipeline.duck.translation import FILE, key_of, translate
from pipeline.reports import answers, asking
from pipeline.reports import registry as reports

TARGET = ROOT / "pipeline" / "duck" / FILE


def queries() -> Iterator[str]:
    """Yield the text of every query that a command runs."""
    yield from (
        registry.view(name)
        for name in (
            *registry.PARTITION_VIEWS,
            *registry.LOG_VIEWS,
            *journal.VIEWS,
            *identities.VIEWS,
            *client_history.VIEWS,
        )
    )
    yield from (check.sql for check in registry.checks().values())
    yield from (run.by_software(check) for check in run.invariants())
    yield from tables.views().values()
    yield from (question.sql for question in tables.questions().values())
    yield from asking.views().values()
    yield from (question.sql for question in reports.questions().values())
    yield answers.LAGS
    yield COMPACTED_TOPICS
    yield COMPACTED_KEYS


def made() -> str:
    """Return the file's text."""
    return json.dumps({key_of(sql): translate(sql) for sql in queries()}, indent=0, sort_keys=True) + "\n"


def main() -> int:
    """Write the file, or with --check compare it; exit code 1: it is stale."""
    text = made()
    if "--check" in sys.argv[1:]:
        return int(not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
