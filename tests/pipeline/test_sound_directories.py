"""Directories of real brokers of five releases, each with a life of its own: an audit finds nothing in any of them."""

from pathlib import Path

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from tests.pipeline.sound_lives import ALL, live
from tests.storage.kafka_tools import need_kafka

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def findings(directory: Path) -> list[str]:
    """All that an audit has to report, information left out."""
    tables = DuckTables(str(directory))
    tables.register(records=True)
    reported = ask_all(tables.engine, [check for check in chosen(has=["records"]) if check.severity != "info"])
    (seen,) = tables.engine.plain("SELECT sum(record_count) AS records FROM batches").to_pylist()
    tables.forget()
    assert seen["records"] > 50
    return [f"{each.check.name}, {each.count} times: {each.rows[:3]}" for each in reported]


@pytest.mark.parametrize(("release", "name"), ALL)
def test_a_real_brokers_directory_has_no_finding(tmp_path: Path, release: str, name: str) -> None:
    """As it was at each stop or kill of all brokers."""
    need_kafka()
    directories = live(tmp_path, release, name)
    assert {each.name: findings(each) for each in directories} == {each.name: [] for each in directories}
    assert directories
