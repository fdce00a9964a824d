"""Audits of a directory while brokers write to it: nothing that is read is ahead of the logs. No Spark."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.commands import audit
from pipeline.duck.tables import DuckTables
from protocol.log_records.transaction import TransactionState
from tests.pipeline.audited import checks_that_find, tables_of
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring

LOSSES = ("acknowledged-absent", "commit-beyond-end", "producer-snapshot")
UNKNOWN = ("transaction-hanging", "marker-without-data")


def written(folder: Path, batches: int) -> Path:
    """A data directory and a journal: so many batches of a producer, with a segment and a snapshot of it for each."""
    where = Planting(folder / "data")
    wiring = Wiring(where)
    log, wire = where.shelf("orders"), wiring.connect("app")
    for number in range(batches):
        if number:
            log.roll()
        wire.append(log, who=(500, 0), sequence=3 * number)
        where.committed_offset("g", "orders", 0, log.next_offset)
    where.close()
    wiring.write(folder / "journal")
    return folder


def findings_of(folder: Path) -> set[str]:
    """What an audit calls lost."""
    return checks_that_find(folder / "data", *LOSSES, journal=folder / "journal")


def test_what_is_written_while_logs_are_read_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal, committed offsets and snapshots are read before; a log that is behind them all has lost records."""
    now, later = written(tmp_path / "now", 2), written(tmp_path / "later", 4)
    read = DuckTables._read_history

    def growing(tables: DuckTables) -> None:
        read(tables)
        shutil.copytree(later, now, dirs_exist_ok=True)

    with monkeypatch.context() as patch:
        patch.setattr(DuckTables, "_read_history", growing)
        assert findings_of(now) == set()
    assert findings_of(now) == set()
    for base in (6, 9):
        (now / "data" / "orders-0" / f"{base:020d}.log").unlink()
    assert findings_of(now) == set(LOSSES)


def test_an_offset_is_not_committed_if_its_transaction_is_aborted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker came after the offset was read, and before its log was."""
    for name, has_marker in (("now", False), ("later", True)):
        where = Planting(tmp_path / name)
        where.committed_offset("g", "orders", 0, 3)
        where.committed_offset("g", "orders", 0, 7, producer=9)
        if has_marker:
            where.shelf("__consumer_offsets").marker(9, 0, committed=False)
        where.close()
    read = DuckTables._read_history

    def growing(tables: DuckTables) -> None:
        shutil.copytree(tmp_path / "later", tmp_path / "now", dirs_exist_ok=True)
        read(tables)

    monkeypatch.setattr(DuckTables, "_read_history", growing)
    with tables_of(tmp_path / "now") as tables:
        assert tables.engine.plain("SELECT committed_offset FROM committed").to_pylist() == [{"committed_offset": 3}]


class Stub:
    """Tables that only note what is asked of them."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def register(self, **_: Any) -> None:
        """The logs."""
        self.calls.append("logs")

    def add(self, *_: Any) -> None:
        """Small tables."""

    def add_views(self, _: Any) -> None:
        """Views of them."""


def test_histories_of_clients_are_read_before_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients go on while logs are read."""
    calls: list[str] = []
    monkeypatch.setattr(audit, "read", lambda _: calls.append("history"))
    tables: Any = Stub(calls)
    audit._register(tables, {"history": "somewhere", "records": False})
    assert calls == ["history", "logs"]


def coordinated(folder: Path, *, later: bool) -> Path:
    """A transaction that is over; later another one is open, and a third one had added a partition for nothing."""
    where = Planting(folder)
    first, second = where.shelf("orders"), where.shelf("orders", 1)
    where.transaction("x", 35, 0, TransactionState.ONGOING, [("orders", 0)])
    first.data(3, producer=35, transactional=True)
    first.marker(35, 0, committed=True)
    where.transaction("x", 35, 0, TransactionState.COMPLETE_COMMIT)
    second.data(3)
    if later:
        where.transaction("x", 35, 0, TransactionState.ONGOING, [("orders", 0)])
        first.data(3, producer=35, transactional=True)
        where.transaction("y", 36, 0, TransactionState.ONGOING, [("orders", 1)])
        second.marker(36, 0, committed=True)
        where.transaction("y", 36, 0, TransactionState.COMPLETE_COMMIT)
    return where.close()


def unknown(folder: Path) -> set[str]:
    """What an audit calls unknown to the coordinators."""
    return checks_that_find(folder, *UNKNOWN)


def test_a_transaction_that_begins_while_logs_are_read_is_not_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its coordinator wrote behind what was read of it. Where that is not so, it is a finding."""
    now, later = coordinated(tmp_path / "now", later=False), coordinated(tmp_path / "later", later=True)
    unknowing = shutil.copytree(later, tmp_path / "unknowing")
    shutil.rmtree(unknowing / "__transaction_state-0")
    shutil.copytree(now / "__transaction_state-0", unknowing / "__transaction_state-0")
    assert (unknown(now), unknown(later), unknown(unknowing)) == (set(), set(), set(UNKNOWN))
    read = DuckTables._read_history

    def growing(tables: DuckTables) -> None:
        shutil.copytree(later, now, dirs_exist_ok=True)
        read(tables)

    with monkeypatch.context() as patch:
        patch.setattr(DuckTables, "_read_history", growing)
        assert unknown(now) == set()
