"""Journals of real runs: nothing is wrong in them; and of wrong answers made field by field, most are found."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.answers.judge import answer_tables
from tests.forking import Started
from tests.pipeline import administrator_traffic, answer_traffic, audited, member_traffic
from tests.pipeline.answer_lies import ADMINISTRATOR, LIES, MEMBERS, Run
from tests.pipeline.answer_mutations import as_text, lines_of, mutations
from tests.pipeline.answers_alone import checks_that_find
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring
from tests.serving import Server, start, until
from tests.storage.kafka_tools import RealBroker, need_kafka
from tests.swap.nodes import KAFKA_SETTINGS
from understudy.launcher import command_line

pytestmark = pytest.mark.timeout(300)

APIS: dict[str, set[str]] = {
    "clients": {"Metadata", "Fetch", "SyncGroup", "EndTxn", "OffsetCommit"},
    "administrator": {"DescribeConfigs", "DescribeAcls", "DescribeTopicPartitions", "DescribeGroups"},
    "members": {"ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "ShareFetch", "ShareAcknowledge"},
}
"""Of these wrong answers are tried; all APIs when benchmarked (docs/inside/verification.md)."""
_SAMPLE = 15
TRAFFIC: dict[str, Callable[[str], None]] = {
    "clients": answer_traffic.make, "administrator": administrator_traffic.make, "members": member_traffic.make,
}  # fmt: skip
SETTINGS: dict[str, dict[str, str]] = {
    "clients": {}, "administrator": administrator_traffic.SETTINGS, "members": member_traffic.SETTINGS,
}  # fmt: skip


def reported(data: Path, journal: Path) -> list[str]:
    """What an audit has to report of a directory and its journal, information left out."""
    return audited.as_text(audited.findings_of(data, journal=journal, information=False))


def recorded(folder: Path, name: str) -> tuple[Path, Path]:
    """Data directory and journal of a run of Understudy with one of the traffics."""
    server = start(data_dir=folder / "data", journal=folder / "journal", settings=SETTINGS[name])
    try:
        TRAFFIC[name](server.ready.bootstrap_servers[0])
    finally:
        server.stop()
    until(lambda: list((folder / "journal").glob("*.jsonl")), "the finished file")
    return folder / "data", folder / "journal"


@pytest.mark.parametrize("name", sorted(TRAFFIC))
@pytest.mark.parametrize("most", [_SAMPLE, pytest.param(None, marks=pytest.mark.nightly, id="all")])
def test_wrong_answers_are_found(tmp_path: Path, name: str, most: int | None) -> None:
    """The journal as it is has no finding; of its wrong answers in some APIs three quarters are found.

    By day of a sample, spread over all of them.
    """
    data, journal = recorded(tmp_path, name)
    assert reported(data, journal) == []
    lines = lines_of(journal)
    wrong_answers = [each for each in mutations(lines) if each.api in APIS[name]]
    assert len(wrong_answers) > 90
    wrong_answers = wrong_answers[:: 1 if most is None else len(wrong_answers) // most]
    names = checks_that_find(data, lines, wrong_answers, tmp_path / "mutated")
    missed = [str(each) for each, checks in zip(wrong_answers, names, strict=True) if not checks]
    assert len(missed) <= len(wrong_answers) * 0.25, missed


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The lines of a run of each traffic that the lies are about. As they are, nothing is wrong in their answers."""
    lines_by_traffic = {}
    for name in (ADMINISTRATOR, MEMBERS):
        lines_by_traffic[name] = lines_of(recorded(tmp_path_factory.mktemp(name), name)[1])
        assert faults(lines_by_traffic[name], tmp_path_factory.mktemp(name)) == set()
    return lines_by_traffic


def faults(lines: list[dict[str, Any]], folder: Path) -> set[str]:
    """The checks that the judge of answers reports of a journal."""
    (folder / "wire-R-000001.jsonl").write_text("".join(map(as_text, lines)), encoding="utf-8")
    return set(answer_tables(folder)["answer_faults"].column("kind").to_pylist())


@pytest.mark.parametrize("name", sorted(LIES))
def test_an_answer_that_fits_alone_is_found(
    journals: dict[str, list[dict[str, Any]]], tmp_path: Path, name: str
) -> None:
    """It contradicts its request or other answers; under the name of its check."""
    traffic, check, lie = LIES[name]
    lines = copy.deepcopy(journals[traffic])
    lie(Run(lines))
    assert check in faults(lines, tmp_path)


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(TRAFFIC))
def test_answers_of_a_real_broker_are_no_finding(tmp_path: Path, name: str) -> None:
    """The same traffic with Apache Kafka, recorded by the proxy in front of it."""
    need_kafka()
    (tmp_path / "kafka").mkdir()
    broker = RealBroker(tmp_path / "kafka", {**KAFKA_SETTINGS, **SETTINGS[name]})
    broker.start()
    try:
        options: dict[str, Any] = {
            "upstream": broker.bootstrap,
            "port": 0,
            "control_port": 0,
            "journal": tmp_path / "journal",
        }
        proxy = Started(command_line(**options), "proxy")
        try:
            TRAFFIC[name](Server(proxy).addresses[0])
        finally:
            proxy.stop()
    finally:
        broker.stop()
    until(lambda: list((tmp_path / "journal").glob("*.jsonl")), "the finished file")
    assert len(lines_of(tmp_path / "journal")) > 60
    assert reported(broker.data, tmp_path / "journal") == []


def test_records_that_come_while_a_broker_reads_are_no_finding(tmp_path: Path) -> None:
    """Kafka notes the high watermark, and then reads; records above it that no later answer has below it are one."""
    ids = {}
    for later in (7, 4):
        where = Planting(tmp_path / str(later))
        wiring = Wiring(where)
        log, wire = where.shelf("t"), wiring.connect("reader")
        for count in (4, 3):
            log.data(count)
        wire.fetch("t", 0, [(0, 3), (4, 6)], stable=4)
        wire.fetch("t", 7, stable=later)
        where.close()
        journal = wiring.write(tmp_path / f"journal-{later}")
        findings = audited.findings_of(tmp_path / str(later), "fetch-answer", journal=journal)
        ids[later] = [row["id"] for each in findings for row in each.rows]
    assert ids[7] == []
    assert ids[4]
