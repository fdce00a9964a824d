"""The checks of clients' histories as a function: what `understudy audit --history` does, for `understudy exam`."""

from collections.abc import Sequence

from pipeline.audits import client_history
from pipeline.audits.findings import Finding, ask_all
from pipeline.audits.registry import chosen
from pipeline.client_history import read
from pipeline.duck.tables import NoLogs


def findings(path: str) -> Sequence[Finding]:
    """Return what the checks find in the histories of a file or folder, the worst first. Raises HistoryError."""
    rows, tables = read(path), NoLogs()
    try:
        client_history.register(tables, rows)
        return ask_all(tables.engine, [each for each in chosen(has=["history"]) if "history" in each.needs])
    finally:
        tables.forget()
