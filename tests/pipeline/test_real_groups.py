"""What a broker leaves behind of share and streams groups: an audit finds nothing in it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline import group_traffic
from tests.pipeline.audited import as_text, findings_of, tables_of
from tests.serving import Server, start
from tests.storage.kafka_tools import RealBroker, need_kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(params=["kafka", "understudy"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The data directory of a broker that was killed after the traffic: Apache Kafka's, or ours."""
    if request.param == "kafka":
        need_kafka()
        yield of_kafka(tmp_path)
        return
    process = start(data_dir=tmp_path / "data", settings=group_traffic.SETTINGS)
    try:
        group_traffic.make(Server(process).addresses[0])
    finally:
        process.process.kill()
        process.stop()
    yield tmp_path / "data"


def of_kafka(folder: Path) -> Path:
    """The directory of the first Kafka of three that serves the traffic: on a busy machine some share no record."""
    for attempt in ("first", "second"):
        with contextlib.suppress(AssertionError):
            return served_by_kafka(folder / attempt)
    return served_by_kafka(folder / "third")


def served_by_kafka(folder: Path) -> Path:
    """The directory of a Kafka that was killed after the traffic."""
    folder.mkdir()
    broker = RealBroker(folder, group_traffic.SETTINGS)
    broker.start()
    try:
        group_traffic.make(broker.bootstrap)
    finally:
        broker.stop(clean=False)
    return broker.data


def test_an_audit_finds_nothing_after_share_and_streams_groups(directory: Path) -> None:
    """Snapshots, updates, resets, deletions, members that come and go; and the tables have them."""
    assert as_text(findings_of(directory)) == []
    with tables_of(directory) as tables:
        counted = tables.engine.plain(
            "SELECT count(*) FILTER (is_snapshot AND NOT is_initial) AS snapshots, "
            "count(*) FILTER (is_initial) AS begun, count(*) FILTER (is_tombstone) AS deleted FROM share_states"
        ).to_pylist()[0]
        kinds = {row["group_type"] for row in tables.engine.plain("SELECT group_type FROM group_states").to_pylist()}
    assert min(counted.values()) > 0, counted
    assert kinds == {"share", "streams"}
