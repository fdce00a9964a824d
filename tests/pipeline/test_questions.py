"""Reports that answer one question each, asked by their names: `stable`, `lag`, `lost`, `skew`."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.client_history import read
from pipeline.reports import answers, registry
from pipeline.reports.asking import Selection
from pipeline.reports.duck_tables import DuckReportTables
from protocol.log_records.transaction import TransactionState
from tests.pipeline import broker_faults, reported
from tests.pipeline.fault_files import TIMEOUT_MS, Planting
from tests.pipeline.group_fault_cases import clean_groups
from tests.pipeline.history_writer import History
from tests.pipeline.journal_lines import Wiring
from understudy.cli import main


def rows(
    name: str, root: Path, journal: Path | None = None, topics: tuple[str, ...] = (), history: Path | None = None
) -> list[dict[str, Any]]:
    """The rows of one report."""
    histories = None if history is None else read(str(history))
    tables = DuckReportTables(
        str(root), None if journal is None else str(journal), Selection(topics), histories=histories
    )
    try:
        wanted = registry.chosen([name], journal=journal is not None)
        tables.prepare(wanted)
        return list(answers.ask(tables, wanted[0]).rows)
    finally:
        tables.forget()


def held(root: Path) -> Path:
    """Transactions that are over, open, overdue and hanging; two of them in one partition."""
    where = Planting(root)
    orders, bills = where.shelf("orders"), where.shelf("bills")
    where.transaction("slow", 11, 0, TransactionState.ONGOING, [("bills", 0)])
    bills.data(3, producer=11, transactional=True)
    orders.data(4, producer=13, transactional=True)
    where.now_ms += TIMEOUT_MS + 31_000
    where.transaction("over", 10, 0, TransactionState.ONGOING, [("orders", 0)])
    orders.data(3, producer=10, transactional=True)
    orders.marker(10, 0, committed=True)
    where.transaction("over", 10, 0, TransactionState.COMPLETE_COMMIT)
    where.transaction("busy", 12, 0, TransactionState.ONGOING, [("orders", 0), ("__consumer_offsets", 0)])
    where.committed_offset("group", "bills", 0, 1, producer=12)
    orders.data(2, producer=12, transactional=True)
    return where.close()


def test_stable_names_who_holds_the_last_stable_offset_back(tmp_path: Path) -> None:
    """Open, overdue and hanging in one table, the first of each partition before those behind it."""
    columns = ("topic", "first_offset", "held_back", "first", "verdict", "transactional_id")
    holders = [tuple(row[name] for name in columns) for row in rows("stable", held(tmp_path))]
    assert holders == [
        ("orders", 0, 10, True, "hanging", None),
        ("bills", 0, 3, True, "overdue", "slow"),
        ("__consumer_offsets", 0, 1, True, "open", "busy"),
        ("orders", 8, 2, False, "open", "busy"),
    ]
    assert {row["topic"] for row in rows("stable", tmp_path, topics=("bills",))} == {"bills"}


def test_nothing_holds_it_back_where_all_transactions_are_over(tmp_path: Path) -> None:
    """Where all transactions are over, the question returns no row."""
    where = Planting(tmp_path)
    where.shelf("orders").data(3, producer=10, transactional=True)
    where.shelf("orders").marker(10, 0, committed=True)
    where.close()
    assert rows("stable", tmp_path) == []


def test_lag_has_groups_of_every_kind(tmp_path: Path) -> None:
    """Of a share group what is not acknowledged from its start offset on; deleted state is no group."""
    where = Planting(tmp_path)
    clean_groups(where)
    where.shelf("orders").data(10)
    where.committed_offset("plain", "orders", 0, 4)
    where.committed_offset("clean-streams", "orders", 0, 7)
    where.close()
    lags = {
        (row["group_id"], row["group_type"]): (row["committed_offset"], row["lag"]) for row in rows("lag", tmp_path)
    }
    assert lags == {
        ("clean-share", "share"): (3, 37), ("all-acknowledged", "share"): (2, 0),
        ("plain", "classic"): (4, 6), ("clean-streams", "streams"): (7, 3),
    }  # fmt: skip


def test_lost_names_offsets_evidence_replicas_and_keys(tmp_path: Path) -> None:
    """A hole that another broker does not have, a log that ends early, sequence numbers, a group, acknowledgements."""
    journal = tmp_path / "journal"
    for number in (1, 2):
        where = Planting(tmp_path / "data" / f"broker-{number}", node_id=number)
        orders = where.shelf("orders")
        orders.data(3)
        if number == 2:
            orders.data(2, keys=[b"lost", None])
        orders.data(3, base_offset=5)
        if number == 1:
            wiring = Wiring(where)
            gone = where.shelf("short")
            gone.data(3, producer=7)
            gone.data(3, producer=7, sequence=5)
            gone.high_watermark = 9
            where.shelf("late", start=20).data(1)
            where.committed_offset("readers", "late", 0, 12)
            wiring.connect("writer").produce("orders", who=(900, 0), sequence=0, offset=30, count=4)
            wiring.write(journal)
        where.close()
    losses = {
        (row["what"], row["first_offset"], row["last_offset"], row["records"], row["whose"]): row
        for row in rows("lost", tmp_path / "data", journal)
    }
    assert set(losses) == {
        ("missing between two batches", 3, 4, 2, None),
        ("below the high watermark, behind the end of the log", 6, 8, 3, None),
        ("sent by a producer, never written", None, 2, 2, "producer 7, epoch 0"),
        ("deleted before the group read them", 12, 19, 8, "group readers"),
        ("acknowledged, and not in the log", 30, 33, 4, "client writer"),
    }
    hole = losses["missing between two batches", 3, 4, 2, None]
    assert [Path(each).name for each in hole["still_in"]] == ["broker-2"]
    assert hole["keys"] == ["lost", "-"]
    assert {row["what"] for row in rows("lost", tmp_path / "data")} == {what for what, *_ in losses} - {
        "acknowledged, and not in the log"
    }


def test_lost_names_records_by_the_ids_of_clients(tmp_path: Path) -> None:
    """Of a hole in the log, and of acknowledged records behind its end; none of what is there or was deleted."""
    where = Planting(tmp_path / "data")
    orders = where.shelf("orders")
    orders.data(3)
    orders.data(2, base_offset=5)
    where.shelf("late", start=20).data(1)
    where.close()
    (tmp_path / "history").mkdir()
    history = History(tmp_path / "history", "writer")
    for topic, offsets in (("orders", (1, 3, 4, 6, 9, 10)), ("late", (7, 20))):
        for offset in offsets:
            history.write("sent", id=f"order-{offset}", topic=topic)
            history.write("acknowledged", id=f"order-{offset}", topic=topic, partition=0, offset=offset)
    history.close()
    losses = {
        (row["what"], row["topic"], row["first_offset"], row["last_offset"]): row["ids"]
        for row in rows("lost", tmp_path / "data", history=tmp_path / "history")
    }
    assert losses == {
        ("missing between two batches", "orders", 3, 4): ["order-3", "order-4"],
        ("recorded by a client, and not in the log", "orders", 3, 4): ["order-3", "order-4"],
        ("recorded by a client, and not in the log", "orders", 9, 10): ["order-10", "order-9"],
    }
    assert [row["ids"] for row in rows("lost", tmp_path / "data")] == [None]


def test_nothing_is_lost_in_a_sound_directory(tmp_path: Path) -> None:
    """Every case that is not a loss: several log directories of a broker."""
    broker_faults.clean_disks(tmp_path)
    assert rows("lost", tmp_path) == []


def test_a_question_is_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names before the directory; without a directory one sentence names it."""
    reported.directory(tmp_path)
    assert main(["report", "skew", "lag", str(tmp_path), "--quiet"]) == 0
    text = capsys.readouterr().out
    headings = [line.partition(":")[0] for line in text.splitlines() if ": " in line and line[0] != " "]
    assert headings[:2] == ["skew", "lag"]
    assert "hottest_key" in text
    with pytest.raises(SystemExit):
        main(["report"])
    assert "needs DIR" in capsys.readouterr().err
