"""Journals of real runs: nothing is wrong in them; and of wrong answers made field by field, most are found."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from tests.pipeline import answer_traffic
from tests.pipeline.answer_mutations import found, lines_of, mutations
from tests.serving import Server, until
from tests.storage.kafka_tools import RealBroker, need_kafka
from tests.swap.nodes import KAFKA_SETTINGS
from understudy.launcher import ServerProcess, command_line

pytestmark = pytest.mark.timeout(300)

APIS = {"Metadata", "Fetch", "SyncGroup", "EndTxn", "OffsetCommit"}
"""Of these each wrong answer is tried at once; all APIs when benchmarked (docs/audit.md)."""


def reported(data: Path, journal: Path) -> list[str]:
    """What an audit has to report of a directory and its journal, information left out."""
    tables = DuckTables(str(data), str(journal))
    tables.register(records=True)
    asked = [check for check in chosen(has=["records", "journal"]) if check.severity != "info"]
    rows = [f"{each.check.name}, {each.count} times: {each.rows[:2]}" for each in ask_all(tables.engine, asked)]
    tables.forget()
    return rows


def test_wrong_answers_are_found(tmp_path: Path) -> None:
    """The journal as it is has no finding; of its wrong answers in five APIs three quarters are found."""
    data, journal = answer_traffic.recorded(tmp_path)
    assert reported(data, journal) == []
    lines = lines_of(journal)
    made = [each for each in mutations(lines) if each.api in APIS]
    *names, of_none = found(data, lines, made, tmp_path / "mutated")
    assert of_none <= {"redelivered"}
    missed = [
        f"{each.api} {each.field} {each.how}" for each, checks in zip(made, names, strict=True) if not checks - of_none
    ]
    assert len(made) > 100
    assert len(missed) <= len(made) * 0.25, missed


@pytest.mark.interop
def test_answers_of_a_real_broker_are_no_finding(tmp_path: Path) -> None:
    """The same traffic with Apache Kafka, recorded by the proxy in front of it."""
    need_kafka()
    (tmp_path / "kafka").mkdir()
    broker = RealBroker(tmp_path / "kafka", KAFKA_SETTINGS)
    broker.start()
    try:
        options: dict[str, Any] = {
            "upstream": broker.bootstrap,
            "port": 0,
            "control_port": 0,
            "journal": tmp_path / "journal",
        }
        proxy = ServerProcess(command_line(**options), "proxy")
        try:
            answer_traffic.make(Server(proxy).addresses[0])
        finally:
            proxy.stop()
    finally:
        broker.stop()
    until(lambda: list((tmp_path / "journal").glob("*.jsonl")), "the finished file")
    assert len(lines_of(tmp_path / "journal")) > 100
    assert reported(broker.data, tmp_path / "journal") == []
